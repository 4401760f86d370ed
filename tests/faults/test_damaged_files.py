"""Bytes of a database file flipped, cut off or replaced by something else: an error or the truth, never a wrong answer."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import convostore
from convostore import Message, blocking
from convostore.errors import CorruptDataError, InvalidInput, StoreError, UnavailableError
from convostore.opening import Store
from convostore.operations.verify import verify
from tests.faults.filled import CONVERSATIONS, VIEWS, fill, seen
from tests.faults.places import folder_in_memory


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """Yield where a store may be, in memory."""
    with folder_in_memory(tmp_path) as folder:
        yield folder / "s.db"


async def _filled(file: Path) -> tuple[bytes, dict[str, dict[str, Any]]]:
    """Return the bytes of a filled store, and what each view shows of each conversation in it."""
    await fill(file, messages=40)
    async with convostore.open(file) as store:
        return file.read_bytes(), {name: await seen(store, name) for name in CONVERSATIONS}


def _place(file: Path, data: bytes) -> None:
    for each in file.parent.iterdir():
        each.unlink()
    file.write_bytes(data)


async def _answers(store: Store, truth: dict[str, dict[str, Any]]) -> tuple[set[str], list[str]]:
    """Return how the views answered, in a word each, and the answers that must not be."""
    words, wrong = set(), []
    for name in CONVERSATIONS:
        found = await seen(store, name)
        for view in VIEWS:
            shown = found[view]
            if shown == truth[name][view]:
                words.add("true")
            elif isinstance(shown, CorruptDataError | UnavailableError | InvalidInput):
                words.add("refused")
            elif isinstance(shown, StoreError):
                words.add(type(shown).__name__)
            elif shown in ("None", "[]") or (view == "last messages" and _is_short(shown, truth[name]["messages"])):
                words.add("absent")
            else:
                wrong.append(f"{view} of {name}: {shown!r}, not {truth[name][view]}")
    return words, wrong


def _is_short(shown: str, messages: str) -> bool:
    """Say whether every message shown is one of `messages`, as when a damaged page hides others of a rewritten log."""
    return all(each in messages for each in shown[1:-1].split(", Message("))


async def _flip(file: Path, data: bytes, truth: dict[str, dict[str, Any]], seed: int) -> set[str]:
    """Change a few bytes at random; return how the store answered. Nothing but the truth or an error is an answer."""
    chance = random.Random(seed)
    changed = bytearray(data)
    places = [chance.randrange(len(data)) for _ in range(chance.choice((1, 1, 2, 8, 64)))]
    for place in places:
        changed[place] ^= 1 << chance.randrange(8)
    _place(file, bytes(changed))
    async with convostore.open(file) as store:
        words, wrong = await _answers(store, truth)
        assert [] == wrong, f"seed {seed}, bytes {places}"
        try:
            damage = [str(each) for each in (await verify(store.backend)).damage]
        except StoreError as error:
            damage = [str(error)]
    assert bytes(changed) == file.read_bytes(), f"seed {seed}: reading changed the file"
    # An index that lost a key says that nothing is there, and only a look at the whole file can tell.
    assert damage or "absent" not in words, f"seed {seed}, bytes {places}: something is taken for absent"
    return words


async def test_flipped_bytes_are_never_a_wrong_answer(file: Path) -> None:
    """Two hundred files with a few flipped bits: every view shows the truth or an error, and reading changes nothing."""
    data, truth = await _filled(file)
    told = [await _flip(file, data, truth, seed) for seed in range(200)]
    counts = {word: sum(word in each for each in told) for word in set().union(*told)}
    print(f"200 files of {len(data)} bytes: {counts}")
    assert counts["refused"] >= 20
    assert counts["true"] >= 120


@pytest.mark.slow
async def test_many_flipped_bytes_are_never_a_wrong_answer(file: Path) -> None:
    """The same of three thousand others."""
    data, truth = await _filled(file)
    for seed in range(1000, 4000):
        await _flip(file, data, truth, seed)


async def test_a_file_cut_short_is_never_a_wrong_answer(file: Path) -> None:
    """Cut to any tenth of its length, or by a byte: the truth or an error, and not a byte is added."""
    data, truth = await _filled(file)
    for length in [*(len(data) * tenth // 10 for tenth in range(1, 10)), len(data) - 1, len(data) - 4096, 4096, 100, 2]:
        _place(file, data[:length])
        async with convostore.open(file) as store:
            words, wrong = await _answers(store, truth)
        assert [] == wrong, f"{length} of {len(data)} bytes"
        assert words <= {"true", "refused"}, f"{length} of {len(data)} bytes: {words}"
        assert "refused" in words, f"{length} of {len(data)} bytes are taken for all"
        assert data[:length] == file.read_bytes()


async def test_a_log_that_was_removed_leaves_an_older_whole_store(file: Path) -> None:
    """Without the log the store is as at its last checkpoint; it says nothing that was never so, and goes on."""
    data, truth = await _filled(file)
    async with convostore.open(file) as store:
        for number in range(5):
            await store.append_messages("first", [Message(role="user", content=f"in the log {number}")])
        kept, log = file.read_bytes(), Path(f"{file}-wal").read_bytes()
    assert data == kept
    assert b"in the log 4" in log
    _place(file, kept)
    async with convostore.open(file) as store:
        assert ({"true"}, []) == await _answers(store, truth)
        await store.append_messages("first", [Message(role="user", content="later")])
        assert "later" == (await store.load_messages("first"))[-1].content
        assert () == (await verify(store.backend)).damage


async def test_a_log_with_flipped_bytes_is_never_a_wrong_answer(file: Path) -> None:
    """SQLite ends at the first frame that does not add up: what is read is what was at some commit, whole."""
    await fill(file)
    sizes = set()
    async with convostore.open(file) as store:
        for number in range(8):
            await store.append_messages(
                "first", [Message(role="user", content=f"{number}-{part}") for part in range(3)]
            )
        kept, log = file.read_bytes(), Path(f"{file}-wal").read_bytes()
        before = len(await store.load_messages("first")) - 24
    chance = random.Random(7)
    for _ in range(60):
        changed = bytearray(log)
        changed[chance.randrange(len(log))] ^= 1 << chance.randrange(8)
        _place(file, kept)
        Path(f"{file}-wal").write_bytes(changed)
        async with convostore.open(file) as store:
            found = [each.content for each in await store.load_messages("first")][before:]
            assert [f"{number}-{part}" for number in range(len(found) // 3) for part in range(3)] == found
            sizes.add(len(found))
    assert len(sizes) >= 4


_STRANGERS = {
    "text": b"this is no database, it is a diary\n" * 300,
    "zeros": bytes(20_000),
    "random bytes": random.Random(3).randbytes(20_000),
    "half a header": b"SQLite format 3\0" + bytes(30),
    "two bytes": b"SQ",
}


@pytest.mark.parametrize("what", _STRANGERS)
async def test_a_file_that_is_no_database_is_an_error_and_stays_as_it_is(file: Path, what: str) -> None:
    """Every verb raises an error that names the file, reads included, and not a byte of it changes."""
    file.write_bytes(_STRANGERS[what])
    await _refused_and_untouched(file, (CorruptDataError, InvalidInput, UnavailableError))


async def test_a_database_of_another_program_is_refused_and_stays_as_it_is(file: Path) -> None:
    """Every verb is InvalidInput: it was a wrong name, and nothing of the other program's is touched."""
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE conversations (id, title)")
        database.execute("INSERT INTO conversations VALUES (1, 'mine')")
        database.commit()
    await _refused_and_untouched(file, (InvalidInput,))


async def _refused_and_untouched(file: Path, errors: tuple[type[StoreError], ...]) -> None:
    before, modified = file.read_bytes(), file.stat().st_mtime_ns
    async with convostore.open(file) as store:
        for call in (
            lambda: store.find_by_id("c"),
            lambda: store.load_messages("c"),
            lambda: store.list_conversations(),
            lambda: store.find_latest("x", "s"),
            lambda: store.sessions.load_todos("c"),
            lambda: store.sessions.list(),
            lambda: store.chat.get_all_conversations(),
            lambda: store.create_conversation("x", "s"),
            lambda: store.sessions.save_messages("c", [{"role": "user", "content": ""}]),
            lambda: store.delete_conversation("c"),
        ):
            with pytest.raises(errors) as refused:
                await call()
            assert type(refused.value) in errors
    assert (before, modified) == (file.read_bytes(), file.stat().st_mtime_ns)
    assert [file.name] == [each.name for each in file.parent.iterdir()]


async def test_an_empty_file_is_a_new_store(file: Path) -> None:
    """A file of no bytes, as made by a tool for temporary files, holds nothing that could be lost."""
    file.touch()
    async with convostore.open(file) as store:
        assert await store.find_by_id("c") is None
        await store.create_conversation("x", "s", id="c")
        assert [] == await store.load_messages("c")


async def test_a_folder_and_a_missing_folder_are_invalid_input(file: Path) -> None:
    """Neither is a place for a database, and nothing is made there."""
    file.mkdir()
    with pytest.raises(InvalidInput):
        blocking.open(file)
    for url in (f"sqlite:///{file}", f"sqlite:///{file}/no/s.db"):
        async with convostore.open(url) as store:
            with pytest.raises(InvalidInput):
                await store.create_conversation("x", "s")
            with pytest.raises(InvalidInput):
                await store.load_messages("c")
    assert [] == os.listdir(file)
