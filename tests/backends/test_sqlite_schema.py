"""Versions of the SQLite store: made once, upgraded in one transaction, refused when foreign or newer."""

import asyncio
import gzip
import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from contextlib import closing
from pathlib import Path

import pytest

from convostore.backends.memory import MemoryBackend
from convostore.backends.sqlite import SqliteBackend
from convostore.backends.sqlite.schema import APPLICATION_ID, MIGRATIONS, Migration
from convostore.contracts.backend import Backend, HeadQuery
from convostore.errors import InvalidInput, SchemaTooNewError
from convostore.testing.drafts import AT, census, change, creation, entry, entry_ids, refused
from convostore.testing.workers import in_processes
from tests.backends.sqlite_files import raw

STORED = Path(__file__).parents[1] / "stored"
SECOND: tuple[Migration, ...] = (
    *MIGRATIONS,
    ("ALTER TABLE conversations ADD COLUMN later TEXT", "UPDATE conversations SET later = 'upgraded'"),
)
BROKEN: tuple[Migration, ...] = (*MIGRATIONS, ("ALTER TABLE conversations ADD COLUMN later TEXT", "SELECT nonsense"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


async def _fill(backend: Backend) -> None:
    """Put something of every kind into a store, always the same; the golden stores were made by this."""
    numbers = iter(range(100))

    def revision() -> str:
        return f"r{next(numbers):02}"

    await backend.commit(
        creation(
            "c",
            *(entry(f"e{n}", f"body {n}".encode()) for n in range(4)),
            context="k",
            subject_id="s",
            revision=revision(),
        )
    )
    await backend.commit(
        change(
            "c",
            entry("call", b"\x00\xff", kind="note", role=None, dialect="other/2", created_at_ms=AT + 5),
            fields={"title": b'"t"', "metadata": b"{}"},
            documents={"todos": b"[]", "info": b"{}"},
            remove=("e1",),
            replace=(entry("e2", b"replaced"),),
            revision=revision(),
            at_ms=AT + 9,
        )
    )
    await backend.commit(creation("\u05e9\u05dc\u05d5\u05dd \U0001f600", revision=revision()))
    await backend.commit(creation("gone", entry("x"), revision=revision()))
    await backend.commit(change("gone", delete=True, revision=revision()))
    await backend.commit(creation("last", entry("e0"), subject_id="s", revision=revision()))


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS) + 1))
async def test_a_store_of_every_version_reads_as_it_was_written(path: Path, version: int) -> None:
    """A store that an earlier version wrote shows, byte for byte, what the memory backend shows of the same changes."""
    path.write_bytes(gzip.decompress((STORED / f"sqlite-{version}.db.gz").read_bytes()))
    memory, backend = MemoryBackend(), SqliteBackend(path)
    await _fill(memory)
    assert await census(memory) == await census(backend)
    for order in ("created", "updated"):
        expected = await memory.scan_heads(HeadQuery(order=order))
        assert expected.items == (await backend.scan_heads(HeadQuery(order=order))).items
    receipt = await backend.commit(change("c", entry("new")))
    assert 8 == receipt.appended[0].position
    assert ("last",) == (await backend.find_entry("e0"))[1:]
    await backend.aclose()
    assert [(len(MIGRATIONS),)] == raw(path, "PRAGMA user_version")


async def test_the_golden_store_is_what_this_version_writes(path: Path) -> None:
    """The schema in use is the stored one: whoever changes it must add a migration and a golden store."""
    stored = path.with_name("stored.db")
    stored.write_bytes(gzip.decompress((STORED / f"sqlite-{len(MIGRATIONS)}.db.gz").read_bytes()))
    backend = SqliteBackend(path)
    await _fill(backend)
    await backend.aclose()
    for statement in (
        "SELECT name, sql FROM sqlite_master ORDER BY name",
        "SELECT * FROM conversations",
        "SELECT * FROM entries",
        "SELECT * FROM documents",
        "PRAGMA application_id",
    ):
        assert raw(stored, statement) == raw(path, statement)


async def test_an_old_store_is_upgraded_once(path: Path) -> None:
    """Opening runs what is missing in one transaction; what was stored is still there."""
    backend = SqliteBackend(path)
    await _fill(backend)
    before = await census(backend)
    await backend.aclose()
    later = SqliteBackend(path, migrations=SECOND)
    assert before == await census(later)
    await later.aclose()
    assert [(2,)] == raw(path, "PRAGMA user_version")
    assert ["upgraded"] * 3 == [row[0] for row in raw(path, "SELECT later FROM conversations")]


async def test_an_upgrade_that_fails_leaves_the_old_store(path: Path) -> None:
    """All of a migration or none of it."""
    backend = SqliteBackend(path)
    await _fill(backend)
    await backend.aclose()
    broken = SqliteBackend(path, migrations=BROKEN)
    with pytest.raises(Exception, match="nonsense"):
        await broken.read("c")
    await broken.aclose()
    assert [(1,)] == raw(path, "PRAGMA user_version")
    assert "later" not in [row[1] for row in raw(path, "PRAGMA table_info(conversations)")]
    backend = SqliteBackend(path)
    assert "new" in [(await backend.commit(change("c", entry("new")))).appended[0].entry_id]
    await backend.aclose()


async def _open_upgraded(path: Path) -> int:
    backend = SqliteBackend(path, migrations=SECOND)
    count = len(await census(backend))
    await backend.aclose()
    return count


async def test_processes_may_race_to_upgrade(path: Path) -> None:
    """Four processes open an old store at the same moment; it is upgraded once and all of them read it."""
    backend = SqliteBackend(path)
    await _fill(backend)
    await backend.aclose()
    assert [3, 3, 3, 3] == await in_processes(*((_open_upgraded, (path,)) for _ in range(4)))
    assert [(2,)] == raw(path, "PRAGMA user_version")


async def test_a_process_that_opened_it_before_the_upgrade_is_refused(path: Path) -> None:
    """Reads and commits on connections that are open notice the new version, and write nothing."""
    backend = SqliteBackend(path)
    await _fill(backend)
    await backend.read("c")
    later = SqliteBackend(path, migrations=SECOND)
    await later.read("c")
    entries = raw(path, "SELECT * FROM entries")
    await refused(SchemaTooNewError, backend.commit(change("c", entry("x"))))
    await refused(SchemaTooNewError, backend.commit(creation("x")))
    await refused(SchemaTooNewError, backend.read("c"))
    await refused(SchemaTooNewError, backend.scan_heads(HeadQuery()))
    await refused(SchemaTooNewError, backend.find_entry("e0"))
    errors = await asyncio.gather(
        *(backend.commit(change("c", entry(f"x{n}"))) for n in range(5)), return_exceptions=True
    )
    assert 5 == len({id(each) for each in errors}), "one error object was given to several callers"
    assert entries == raw(path, "SELECT * FROM entries")
    for each in (backend, later):
        await each.aclose()


async def test_a_newer_store_is_refused_untouched(path: Path) -> None:
    """Not a byte changes, and the message says both versions."""
    backend = SqliteBackend(path, migrations=SECOND)
    await _fill(backend)
    await backend.aclose()
    content = path.read_bytes()
    backend = SqliteBackend(path)
    error = await refused(SchemaTooNewError, backend.read("c"))
    assert {"version": 2, "known": 1} == error.context
    await refused(SchemaTooNewError, backend.commit(creation("x")))
    await backend.aclose()
    assert content == path.read_bytes()


@pytest.mark.parametrize("mark", ["CREATE TABLE notes (text)", "PRAGMA user_version = 3", "PRAGMA application_id = 77"])
async def test_another_programs_database_is_refused_untouched(path: Path, mark: str) -> None:
    """A SQLite database that is neither empty nor ours stays as it is."""
    raw(path, mark)
    content = path.read_bytes()
    backend = SqliteBackend(path)
    await refused(InvalidInput, backend.read("c"))
    await refused(InvalidInput, backend.commit(creation("c")))
    await backend.aclose()
    assert content == path.read_bytes()
    assert [path.name] == [each.name for each in path.parent.iterdir()]


async def test_an_empty_file_becomes_a_store(path: Path) -> None:
    """A file of no bytes, as mktemp leaves it, is as good as none."""
    path.touch()
    backend = SqliteBackend(path)
    await _fill(backend)
    await backend.aclose()
    assert [(APPLICATION_ID,)] == raw(path, "PRAGMA application_id")


async def test_a_store_in_another_journal_mode_is_switched_back(path: Path) -> None:
    """What VACUUM INTO made, or someone switched, is written ahead again once it is opened."""
    backend = SqliteBackend(path)
    await _fill(backend)
    await backend.aclose()
    copy = path.with_name("copy.db")
    raw(path, f"VACUUM INTO '{copy}'")
    backend = SqliteBackend(copy)
    assert ["e0", "e2", "e3", "call"] == await entry_ids(backend, "c")
    assert [("wal",)] == raw(copy, "PRAGMA journal_mode")
    await backend.aclose()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="rights are another matter here")
async def test_an_old_store_without_the_right_to_write_is_too_old() -> None:
    """It says so; a store of this version without that right can be read, and a commit is unavailable."""
    # Not below tmp_path, whose parents only their owner may enter.
    with tempfile.TemporaryDirectory() as folder:
        await _without_the_right_to_write(Path(folder) / "s.db")


async def _without_the_right_to_write(path: Path) -> None:
    backend = SqliteBackend(path)
    await _fill(backend)
    await backend.aclose()
    program = """
        import asyncio, os, pathlib, sys
        from convostore.backends.sqlite import SqliteBackend
        from convostore.errors import SchemaTooOldError, UnavailableError
        from convostore.testing.drafts import change, entry, entry_ids, refused
        from tests.backends.test_sqlite_schema import SECOND

        async def main(path):
            old = SqliteBackend(path, migrations=SECOND)
            await refused(SchemaTooOldError, old.read("c"))
            await refused(SchemaTooOldError, old.commit(change("c", entry("x"))))
            await old.aclose()
            backend = SqliteBackend(path)
            assert 4 == len(await entry_ids(backend, "c"))
            await refused(UnavailableError, backend.commit(change("c", entry("x"))))
            await backend.aclose()

        path = pathlib.Path(sys.argv[1])
        if os.geteuid() == 0:
            os.setuid(65534)
        asyncio.run(main(path))
    """
    raw(path, "PRAGMA journal_mode = delete")
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), path], capture_output=True, text=True, check=False
        )
    finally:
        path.parent.chmod(0o755)
    assert (0, "") == (done.returncode, done.stderr)


async def test_the_schema_is_checked_inside_the_write(path: Path) -> None:
    """An upgrade that commits while a commit waits for its turn is noticed before anything is written."""
    backend = SqliteBackend(path)
    await _fill(backend)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(backend.commit(change("c", entry("x"))))
        await asyncio.sleep(0)
        other.execute("PRAGMA user_version = 2")
        other.execute("COMMIT")
    await refused(SchemaTooNewError, waiting)
    assert [] == raw(path, "SELECT * FROM entries WHERE entry_id = 'x'")
    await backend.aclose()
