"""The writer of the SQLite backend: groups in which only the guilty fails, locks that are waited for, loops that die."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from convostore.backends.sqlite import SqliteBackend, committing
from convostore.backends.sqlite.connection import Database, Handle
from convostore.backends.sqlite.reading import SELECT_HEAD
from convostore.backends.sqlite.rows import decode_head, encode_entry, encode_head
from convostore.contracts.backend import Entry, Receipt, Window
from convostore.errors import (
    ConversationNotFoundError,
    DuplicateEntryError,
    InvalidInput,
    UnavailableError,
    UnsupportedError,
)
from convostore.testing.drafts import change, creation, entry, entry_ids, refused
from tests.backends.sqlite_files import listen


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
async def backend(path: Path) -> AsyncIterator[SqliteBackend]:
    made = SqliteBackend(path)
    await made.commit(creation("c"))
    yield made
    await made.aclose()


@pytest.fixture
def bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the writing of an entry called 'bomb' fail, after the rows before it were written."""
    encode = encode_entry

    def encode_unless_bomb(number: int, each: Entry) -> Any:
        if each.entry_id == "bomb":
            raise ZeroDivisionError("bomb")
        return encode(number, each)

    monkeypatch.setattr(committing, "encode_entry", encode_unless_bomb)


def _hold(path: Path) -> sqlite3.Connection:
    """Return a connection that has the write lock."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    return connection


@pytest.mark.usefixtures("bomb")
async def test_only_the_guilty_change_of_a_group_fails(backend: SqliteBackend, path: Path) -> None:
    """Something unexpected in one change of a transaction leaves the nine others as if it had not been there."""
    with closing(_hold(path)) as other:
        ids = [*(f"e{number}" for number in range(5)), "bomb", *(f"e{number}" for number in range(5, 9))]
        waiting = [asyncio.create_task(backend.commit(change("c", entry(each)))) for each in ids]
        await asyncio.sleep(0)
        other.execute("ROLLBACK")
    done = dict(zip(ids, await asyncio.gather(*waiting, return_exceptions=True), strict=True))
    assert isinstance(done.pop("bomb"), ZeroDivisionError)
    assert all(isinstance(each, Receipt) and each.applied for each in done.values())
    assert list(done) == await entry_ids(backend, "c")


async def test_refused_changes_disturb_nobody(
    backend: SqliteBackend, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one transaction a refusal of the law is the caller's alone, and costs no other transaction."""
    log = listen(monkeypatch)
    other = SqliteBackend(path)
    await other.commit(change("c", entry("e", b"1")))
    log.clear()
    with closing(_hold(path)) as lock:
        waiting = [
            asyncio.create_task(other.commit(each))
            for each in (
                change("c", entry("a")),
                change("absent", entry("a")),
                change("c", entry("b"), expected_revision="old"),
                change("c", entry("d")),
            )
        ]
        await asyncio.sleep(0)
        lock.execute("ROLLBACK")
    first, absent, conflict, last = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(first, Receipt)
    assert isinstance(absent, ConversationNotFoundError)
    assert "REVISION_CONFLICT" == getattr(conflict, "code", conflict)
    assert isinstance(last, Receipt)
    assert "ROLLBACK" not in log
    await refused(DuplicateEntryError, other.commit(change("c", entry("e", b"2"))))
    assert ["e", "a", "d"] == await entry_ids(backend, "c")
    await other.aclose()


async def test_a_repetition_among_others_is_recognised(backend: SqliteBackend) -> None:
    """Ten changes at once, three of them repeated: each repetition gets what is there, the others are applied."""
    for number in range(3):
        await backend.commit(change("c", entry(f"e{number}")))
    receipts = await asyncio.gather(*(backend.commit(change("c", entry(f"e{number}"))) for number in range(10)))
    assert [False] * 3 + [True] * 7 == [each.applied for each in receipts]
    assert [1, 2, 3] == [each.appended[0].position for each in receipts[:3]]
    assert [f"e{number}" for number in range(10)] == sorted(await entry_ids(backend, "c"))


async def test_another_process_that_writes_is_waited_for(backend: SqliteBackend, path: Path) -> None:
    """A commit that finds the store locked is answered once the lock is gone; reads go on meanwhile."""
    with closing(_hold(path)) as other:
        waiting = asyncio.create_task(backend.commit(change("c", entry("a"))))
        for _ in range(20):
            assert [] == await entry_ids(backend, "c")
            await asyncio.sleep(0.005)
        assert not waiting.done()
        other.execute("ROLLBACK")
        await waiting
    assert ["a"] == await entry_ids(backend, "c")


async def test_a_lock_that_stays_is_unavailable(path: Path) -> None:
    """After busy_timeout_s every change that waits raises an UnavailableError of its own, with sqlite3's as its cause."""
    backend = SqliteBackend(path, busy_timeout_s=0.05)
    await backend.commit(creation("c"))
    with closing(_hold(path)):
        waiting = (backend.commit(change("c", entry(f"e{number}"))) for number in range(3))
        errors = await asyncio.gather(*waiting, return_exceptions=True)
    assert 3 == len({id(each) for each in errors})
    for error in errors:
        assert isinstance(error, UnavailableError)
        assert isinstance(error.__cause__, sqlite3.OperationalError)
        assert "busy_timeout_s" in str(error)
    await backend.commit(change("c", entry("later")))
    assert ["later"] == await entry_ids(backend, "c")
    await backend.aclose()


async def test_a_full_store_fails_the_one_that_does_not_fit(backend: SqliteBackend) -> None:
    """When a large change finds no room, small ones beside it are kept, and so is everything once there is room again."""
    with backend._engine._writing as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 10}")
    large = change("c", entry("large", bytes(1_000_000)))
    done = await asyncio.gather(
        backend.commit(change("c", entry("a"))),
        backend.commit(large),
        backend.commit(change("c", entry("b"))),
        return_exceptions=True,
    )
    assert isinstance(done[1], UnavailableError)
    assert "disk is full" in str(done[1])
    assert ["a", "b"] == await entry_ids(backend, "c")
    with backend._engine._writing as connection:
        connection.execute("PRAGMA max_page_count = 100000")
    await backend.commit(large)
    assert ["a", "b", "large"] == await entry_ids(backend, "c")


async def test_a_cancelled_caller_holds_up_nobody(backend: SqliteBackend, path: Path) -> None:
    """Its commit happens or not, whole; those that wait beside it are answered."""
    with closing(_hold(path)) as other:
        doomed = asyncio.create_task(backend.commit(change("c", entry("doomed1"), entry("doomed2"))))
        waiting = asyncio.create_task(backend.commit(change("c", entry("a"))))
        await asyncio.sleep(0)
        doomed.cancel()
        await asyncio.gather(doomed, return_exceptions=True)
        assert doomed.cancelled()
        other.execute("ROLLBACK")
    await waiting
    assert await entry_ids(backend, "c") in (["doomed1", "doomed2", "a"], ["a"])


async def test_a_loop_that_was_closed_does_not_stop_the_writer(backend: SqliteBackend, path: Path) -> None:
    """A commit whose event loop is gone before the answer is kept, and the next one works."""

    def leave() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(backend.commit(change("c", entry("left"))))
        loop.run_until_complete(asyncio.sleep(0))
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()

    with closing(_hold(path)) as other:
        await asyncio.to_thread(leave)
        other.execute("ROLLBACK")
    await backend.commit(change("c", entry("a")))
    assert ["left", "a"] == await entry_ids(backend, "c")


async def test_what_the_caller_changes_while_it_waits_is_not_stored(backend: SqliteBackend, path: Path) -> None:
    """Fields and documents are those of the call."""
    fields: dict[str, bytes | None] = {"title": b"given"}
    documents: dict[str, bytes | None] = {"d": b"given"}
    with closing(_hold(path)) as other:
        waiting = asyncio.create_task(backend.commit(change("c", fields=fields, documents=documents)))
        await asyncio.sleep(0)
        fields["title"] = documents["d"] = b"changed"
        other.execute("ROLLBACK")
    await waiting
    snapshot = await backend.read("c", None, None)
    assert snapshot is not None
    assert ({"title": b"given"}, {"d": b"given"}) == (snapshot.head.fields, snapshot.documents)


async def test_a_conversation_without_positions_left_is_refused(backend: SqliteBackend) -> None:
    """The last position is 2**32 - 1; an append behind it changes nothing and reaches no other conversation's keys."""
    await backend.commit(creation("next", entry("a")))
    with backend._engine._writing as connection:
        there = decode_head(connection.execute(SELECT_HEAD, ("c",)).fetchone())
        assert there is not None
        near = structs.replace(there.head, last_stamp=(1 << 32) - 2, last_rewrite=(1 << 32) - 2)
        row = encode_head(1, near, None, {})
        statement = "UPDATE conversations SET last_stamp = ?, last_rewrite = ?, checksum = ? WHERE number = 1"
        connection.execute(statement, (row[9], row[10], row[13]))
    await refused(InvalidInput, backend.commit(change("c", entry("a"), entry("b"))))
    await backend.commit(change("c", entry("last")))
    await refused(InvalidInput, backend.commit(change("c", entry("b"))))
    assert ["last"] == await entry_ids(backend, "c", Window(limit=5, newest=True))
    assert ["a"] == await entry_ids(backend, "next")


def test_a_handle_comes_back_without_a_transaction(path: Path) -> None:
    """What a failed statement left open is rolled back before anyone else gets the connection."""
    handle = Handle(Database(path=str(path), busy_timeout_s=1.0))
    with handle as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DROP TABLE documents")
    with handle as again:
        assert again is connection
        assert not again.in_transaction
        assert [] == again.execute("SELECT * FROM documents").fetchall()
    handle.close()


@pytest.mark.parametrize("code", [10, 11, 14, 26])
def test_a_connection_in_doubt_is_opened_anew(path: Path, code: int) -> None:
    """After an I/O error or worse the next use has a fresh connection; after a refusal it has the same."""
    handle = Handle(Database(path=str(path), busy_timeout_s=1.0))
    error = sqlite3.OperationalError("as told by the disk")
    error.sqlite_errorcode = code | 256
    with pytest.raises(sqlite3.OperationalError), handle as connection:
        raise error
    with handle as fresh:
        assert fresh is not connection
    with pytest.raises(InvalidInput), handle:
        raise InvalidInput("as told by the law")
    with handle as same:
        assert fresh is same
    handle.close()


async def test_a_sqlite_without_upsert_is_unsupported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A SQLite older than 3.24 is refused at the first use, with what is needed, before any file is made; 3.24 will do."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 23, 1))
    backend = SqliteBackend(path.with_name("new.db"))
    for call in (backend.read("c"), backend.commit(creation("c"))):
        error = await refused(UnsupportedError, call)
        assert "3.24.0 or newer" in str(error)
    assert not path.with_name("new.db").exists()
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 24, 0))
    await backend.commit(creation("c"))
    await backend.aclose()


async def test_threads_are_few_and_end(path: Path) -> None:
    """One writer and at most two readers, whatever the load; closing ends them."""
    before = threading.active_count()
    backend = SqliteBackend(path)
    await backend.commit(creation("c", *(entry(f"e{n}") for n in range(200))))
    await asyncio.gather(*(entry_ids(backend, "c") for _ in range(50)))
    assert ["convostore-reader", "convostore-reader", "convostore-writer"] == sorted(
        each.name for each in threading.enumerate() if each.name.startswith("convostore")
    )
    await backend.aclose()
    await asyncio.to_thread(_until_threads, before)


def _until_threads(count: int) -> None:
    for each in threading.enumerate():
        if each.name.startswith("convostore"):
            each.join(10)
    assert threading.active_count() <= count + 1  # this one
