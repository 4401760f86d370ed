"""URLs, options and paths of SQLite stores."""

import os
from pathlib import Path
from typing import Any

import pytest

from convostore.backends.sqlite import SqliteBackend, __all__, from_url
from convostore.errors import InvalidInput
from convostore.testing.drafts import creation, entry, entry_ids, refused


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite://", None),
        ("sqlite:///:memory:", None),
        ("sqlite:///chats.db", "{cwd}/chats.db"),
        ("sqlite:///sub/chats.db", "{cwd}/sub/chats.db"),
        ("sqlite:////srv/chats.db", "/srv/chats.db"),
        ("sqlite:////srv/a%20b%3F%23%25.db", "/srv/a b?#%.db"),
        ("sqlite:////srv/%D7%A9.db", "/srv/\u05e9.db"),
        ("sqlite:////srv/a+b.db?busy_timeout_s=1.5&convostore_readers=4", "/srv/a+b.db"),
    ],
)
def test_a_url_names_a_file(url: str, path: str | None) -> None:
    """Three slashes are relative, four absolute, none in memory; the path is percent-decoded; nothing is opened."""
    backend = from_url(url)
    expected = None if path is None else path.replace("{cwd}", os.getcwd())
    assert f"SqliteBackend({expected!r})" == repr(backend)
    assert ({"durable", "multi_process"} <= backend.capabilities) is (path is not None)
    assert {"indexed", "find_entry"} <= backend.capabilities


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:",
        "sqlite:chats.db",
        "sqlite:/chats.db",
        "sqlite://chats.db",
        "sqlite://host/chats.db",
        "sqlite:///",
        "sqlite:///a%00b",
        "sqlite:///a.db#part",
        "sqlite:///a.db#",
        "sqlite:///a.db?mode=ro",
        "sqlite:///a.db?readers",
        "sqlite:///a.db?readers=two",
        "sqlite:///a.db?readers=0",
        "sqlite:///a.db?readers=1&convostore_readers=2",
        "sqlite:///a.db?busy_timeout_s=-1",
        "sqlite:///a.db?busy_timeout_s=nan",
        "postgresql:///a",
        "chats.db",
        "",
    ],
)
def test_what_names_no_file_is_refused(url: str) -> None:
    """With what to write instead."""
    with pytest.raises(InvalidInput):
        from_url(url)


@pytest.mark.parametrize(
    "options", [{"reader": 2}, {"readers": 2.5}, {"readers": True}, {"readers": None}, {"busy_timeout_s": "long"}]
)
def test_options_that_are_none_are_refused(options: dict[str, Any]) -> None:
    """A misspelt option or a value that is no number is an error, not ignored."""
    with pytest.raises(InvalidInput):
        from_url("sqlite://", **options)


async def test_a_relative_path_is_that_of_its_making(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later change of the working directory does not move the store."""
    monkeypatch.chdir(tmp_path)
    backend = from_url("sqlite:///s.db")
    assert not list(tmp_path.iterdir()), "something was opened before the first call"
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    await backend.commit(creation("c", entry("a")))
    await backend.aclose()
    assert (tmp_path / "s.db").exists()


async def test_a_path_that_cannot_hold_a_file_says_why(tmp_path: Path) -> None:
    """A folder, a missing folder, and a file in the place of one."""
    (tmp_path / "file").write_bytes(b"")
    for path, word in (
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "s.db", "create it"),
        (tmp_path / "file" / "s", "is a file"),
    ):
        backend = SqliteBackend(path)
        assert word in str(await refused(InvalidInput, backend.read("c")))
        assert word in str(await refused(InvalidInput, backend.commit(creation("c"))))
        await backend.aclose()


@pytest.mark.parametrize("name", ["a b?#%.db", ":memory:", "file:x?mode=memory", "\u05e9\u05dc\u05d5\u05dd.db", "-x"])
async def test_any_file_name_is_a_file_name(tmp_path: Path, name: str) -> None:
    """A path is never read as a URL or a special name."""
    backend = SqliteBackend(tmp_path / name)
    await backend.commit(creation("c", entry("a")))
    assert ["a"] == await entry_ids(backend, "c")
    await backend.aclose()
    assert [name] == [each.name for each in tmp_path.iterdir()]


def test_the_package_exports_what_it_says() -> None:
    """Two names."""
    assert ["SqliteBackend", "from_url"] == __all__
