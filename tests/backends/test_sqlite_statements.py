"""How many statements and transactions the calls of the SQLite backend cost."""

import asyncio
import re
from pathlib import Path

import pytest

from convostore.backends.sqlite import SqliteBackend
from convostore.contracts.backend import HeadQuery, Window
from convostore.testing.drafts import change, creation, entry, entry_ids
from tests.backends.sqlite_files import listen, raw


def _words(log: list[str]) -> list[str]:
    """Return the first words of each statement, the repetitions of one that runs for many rows once."""
    words = [" ".join(re.split(r"[\s(]+", each.strip())[:3]) for each in log]
    return [each for at, each in enumerate(words) if not at or each != words[at - 1]]


async def test_an_append_is_six_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One transaction: the version, the head, the entries, the head again."""
    log = listen(monkeypatch)
    backend = SqliteBackend(tmp_path / "s.db")
    await backend.commit(creation("c", entry("a")))
    log.clear()
    await backend.commit(change("c", *(entry(f"e{number}") for number in range(4))))
    assert [
        "BEGIN IMMEDIATE",
        "PRAGMA user_version",
        "SELECT number, conversation_id,",
        "INSERT INTO entries",
        "UPDATE conversations SET",
        "COMMIT",
    ] == _words(log)
    assert 4 == sum(each.startswith("INSERT") for each in log)
    await backend.aclose()


async def test_an_append_costs_the_same_in_a_long_conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statements for the two hundredth entry are those for the fifth."""
    log = listen(monkeypatch)
    backend = SqliteBackend(tmp_path / "s.db")
    await backend.commit(creation("c"))
    counts = []
    for number in range(200):
        log.clear()
        await backend.commit(change("c", entry(f"e{number}")))
        counts.append(len(log))
    assert counts[5] == counts[199]
    await backend.aclose()


async def test_a_repetition_is_looked_up_only_when_it_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index of ids refuses a repeated entry; then the change is run again, knowing what is there."""
    log = listen(monkeypatch)
    backend = SqliteBackend(tmp_path / "s.db")
    first = await backend.commit(creation("c", entry("a")))
    await backend.commit(change("c", entry("b")))
    log.clear()
    repeated = await backend.commit(change("c", entry("a")))
    assert (False, first.appended) == (repeated.applied, repeated.appended)
    assert ["BEGIN IMMEDIATE", "ROLLBACK", "BEGIN IMMEDIATE", "COMMIT"] == [
        each for each in log if each.split()[0] in ("BEGIN", "ROLLBACK", "COMMIT")
    ]
    await backend.aclose()


async def test_what_waits_shares_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty-four tasks that commit at once need a few transactions, not sixty-four; each gets its own receipt."""
    log = listen(monkeypatch)
    backend = SqliteBackend(tmp_path / "s.db")
    await asyncio.gather(*(backend.commit(creation(f"c{number}")) for number in range(64)))
    log.clear()
    receipts = await asyncio.gather(*(backend.commit(change(f"c{number}", entry("a"))) for number in range(64)))
    assert [f"c{number}" for number in range(64)] == [each.head.conversation_id for each in receipts if each.head]
    assert 1 <= log.count("COMMIT") <= 8
    assert log.count("BEGIN IMMEDIATE") == log.count("COMMIT")
    await backend.aclose()


async def test_changes_of_one_conversation_in_one_transaction_see_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty appends to one conversation that share a transaction follow each other without a gap."""
    log = listen(monkeypatch)
    backend = SqliteBackend(tmp_path / "s.db")
    await backend.commit(creation("c"))
    log.clear()
    await asyncio.gather(*(backend.commit(change("c", entry(f"a{n}"), entry(f"b{n}"))) for n in range(30)))
    assert log.count("COMMIT") < 30
    rows = raw(tmp_path / "s.db", "SELECT key & 0xffffffff, entry_id FROM entries ORDER BY key")
    assert [(at + 1, f"{'ab'[at % 2]}{at // 2}") for at in range(60)] == rows
    await backend.aclose()


async def test_a_read_is_one_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Head, entries and documents are read in one transaction, and the version at its end."""
    backend = SqliteBackend(tmp_path / "s.db")
    await backend.commit(creation("c", entry("a"), documents={"d": b"1"}))
    log = listen(monkeypatch)
    reader = SqliteBackend(tmp_path / "s.db")
    await reader.read("c", Window(), None)
    log.clear()
    await reader.read("c", Window(limit=20, newest=True))
    assert [
        "BEGIN",
        "SELECT number, conversation_id,",
        "SELECT key, stamp,",
        "PRAGMA user_version",
        "ROLLBACK",
    ] == _words(log)
    for each in (backend, reader):
        await each.aclose()


async def test_a_page_is_one_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing fifty heads asks once for all of them, and never for entries."""
    log = listen(monkeypatch)
    backend = SqliteBackend(tmp_path / "s.db")
    await asyncio.gather(*(backend.commit(creation(f"c{n:03}", entry("a"), context="k")) for n in range(60)))
    await backend.read("c000")
    log.clear()
    page = await backend.scan_heads(HeadQuery(context="k", order="updated"))
    assert 50 == len(page.items)
    assert ["SELECT number, conversation_id,", "PRAGMA user_version"] == _words(log)
    log.clear()
    await backend.scan_heads(HeadQuery(context="k", order="updated", cursor=page.cursor))

    assert ["BEGIN", "SELECT", "SELECT", "PRAGMA", "ROLLBACK"] == [each.split()[0] for each in log]
    await backend.aclose()


async def test_polling_for_changes_reads_no_old_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When nothing was replaced since, the index of replaced entries is not even asked."""
    log = listen(monkeypatch)
    backend = SqliteBackend(tmp_path / "s.db")
    await backend.commit(creation("c", entry("a"), entry("b")))
    await backend.commit(change("c", replace=(entry("a", b"new"),)))
    await backend.read("c", Window())
    log.clear()
    assert ["a"] == await entry_ids(backend, "c", Window(changed_after=2))
    assert 1 == sum("entries_changed" in each for each in log)
    log.clear()
    assert [] == await entry_ids(backend, "c", Window(changed_after=3))
    assert 0 == sum("entries_changed" in each for each in log)
    await backend.aclose()


async def test_rows_are_as_documented(tmp_path: Path) -> None:
    """A raw look: key and stamp of a fresh and a replaced entry, words a line each, ids and bodies as they were given."""
    backend = SqliteBackend(tmp_path / "s.db")
    await backend.commit(creation("first"))
    await backend.commit(creation("c", entry("a", b"\x00\xff"), entry("b", b"2"), documents={"d": b"\x00"}))
    await backend.commit(change("c", entry("e", role=None), replace=(entry("b", b"3"),)))
    await backend.aclose()
    rows = raw(tmp_path / "s.db", "SELECT key >> 32, key & 0xffffffff, stamp, entry_id, words, body FROM entries")
    assert [
        (2, 1, None, "a", "message\nuser\nsample/1", b"\x00\xff"),
        (2, 2, 3, "b", "message\nuser\nsample/1", b"3"),
        (2, 4, None, "e", "message\n\nsample/1", b'{"text":"hello"}'),
    ] == rows
    assert [(2, "d", b"\x00")] == raw(tmp_path / "s.db", "SELECT number, name, value FROM documents")
    assert [("wal",)] == raw(tmp_path / "s.db", "PRAGMA journal_mode")
    assert [("ok",)] == raw(tmp_path / "s.db", "PRAGMA integrity_check")


async def test_deleting_leaves_no_row_and_gives_no_number_twice(tmp_path: Path) -> None:
    """After the newest conversation is deleted, its rows and its text are gone, and the next one has a new number."""
    path = tmp_path / "s.db"
    backend = SqliteBackend(path)
    await backend.commit(creation("c", entry("a", b"secret words" * 1000), documents={"d": b"secret words"}))
    await backend.commit(change("c", delete=True))
    await backend.commit(creation("d"))
    await backend.aclose()
    assert [(0, 0)] == raw(path, "SELECT (SELECT count(*) FROM entries), (SELECT count(*) FROM documents)")
    assert [(2, "d")] == raw(path, "SELECT number, conversation_id FROM conversations")
    assert b"secret words" not in path.read_bytes()
