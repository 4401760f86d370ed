"""URLs and paths: the store that is opened is the one that was named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import convostore
from convostore import opening

_NAMES = [
    "a b.db",
    "a\nb.db",
    "a\tb.db",
    "a?b.db",
    "a#b.db",
    "100%.db",
    "%41.db",
    "\u05e9\u05dc.db",
    " lead.db",
    "q\"'.db",
]


@pytest.mark.parametrize("name", _NAMES)
async def test_a_path_names_exactly_that_file(name: str, tmp_path: Path) -> None:
    """Whatever a file is called, a store opened by its path is in that file and no other."""
    async with convostore.open(tmp_path / name) as store:
        await store.create_conversation("context", "subject")
    assert {name} == {each for each in os.listdir(tmp_path) if not each.endswith(("-wal", "-shm"))}


async def test_a_path_that_is_no_text_names_that_file(tmp_path: Path) -> None:
    """A file name that is no UTF-8 is kept byte for byte."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.db"))
    async with convostore.open(path) as store:
        await store.create_conversation("context", "subject")
    assert b"\xff.db" in os.listdir(os.fsencode(tmp_path))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "empty"),
        ("chats.db", "sqlite:///"),
        ("nosuch://x", "no backend answers"),
        ("C:chats", "sqlite:///"),
        ("sqlite:///a\nb.db", "%0A"),
        ("sqlite:///", "names no file"),
        ("sqlite://host/x.db", "host"),
        ("sqlite:///x.db#y", "%23"),
        ("sqlite:///x.db?nope=1", "nope"),
        ("memory://name", "memory://"),
        (7, "by a URL or a path"),
    ],
)
def test_what_names_no_store_is_refused(url: str, said: str) -> None:
    """A URL that names no store is InvalidInput, and the message says what to write."""
    with pytest.raises(convostore.InvalidInput, match=said):
        opening.open(url)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    """A folder is not a store of this version."""
    with pytest.raises(convostore.InvalidInput, match="folder"):
        convostore.open(tmp_path)
