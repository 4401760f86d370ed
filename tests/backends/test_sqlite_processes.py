"""Forks, many processes, many event loops, and leaving without closing, on the SQLite backend."""

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from convostore.backends.sqlite import SqliteBackend
from convostore.contracts.backend import HeadQuery, Window
from convostore.testing.drafts import census, change, creation, entry, entry_ids
from tests.backends.sqlite_files import raw

PREAMBLE = """
    import asyncio, os, pathlib, sys, threading, time, warnings
    from convostore.backends.sqlite import SqliteBackend
    from convostore.contracts.backend import HeadQuery, Window
    from convostore.testing.drafts import change, creation, entry, entry_ids

    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of every fork of a process with threads
    path = pathlib.Path(sys.argv[1])
    run = asyncio.run

    def fork(child):
        pid = os.fork()
        if not pid:
            code = 1
            try:
                child()
                code = 0
            finally:
                os._exit(code)
        return pid

    def ended(pid):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


def run(program: str, path: Path) -> str:
    """Run a program in a new process; return what it printed."""
    source = textwrap.dedent(PREAMBLE) + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", source, path], capture_output=True, text=True, timeout=60, check=False
    )
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


@needs_fork
def test_a_child_inherits_nothing_that_is_open(path: Path) -> None:
    """Right after a fork no descriptor of the database is open in the child, whatever the parent had open."""
    run(
        """
        backend = SqliteBackend(path)

        async def use():
            await backend.commit(creation("c", *(entry(f"e{n}") for n in range(300))))
            await asyncio.gather(*(entry_ids(backend, "c") for _ in range(4)), backend.read("c"))

        def opened():
            return [os.readlink(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")
                    if os.path.exists(f"/proc/self/fd/{each}")]

        run(use())
        assert any("s.db" in each for each in opened())
        def child():
            assert not any("s.db" in each for each in opened())
            run(backend.commit(change("c", entry("child"))))
            assert any("s.db" in each for each in opened())
            run(backend.aclose())
        assert ended(fork(child)) == 0
        assert run(backend.read("c", Window(limit=1, newest=True))).entries[0].entry_id == "child"
        run(backend.aclose())
        """,
        path,
    )


@needs_fork
def test_a_child_keeps_its_commits_when_the_parent_closes(path: Path) -> None:
    """A parent that closes, and so would end the log if it were the last, takes nothing from a child that goes on."""
    run(
        """
        backend = SqliteBackend(path)
        run(backend.commit(creation("c", entry("parent"))))
        run(backend.read("c"))
        told, tell = os.pipe(), os.pipe()

        def child():
            run(backend.commit(change("c", entry("before"))))
            os.write(tell[1], b".")
            os.read(told[0], 1)
            run(backend.commit(change("c", entry("after"))))

        pid = fork(child)
        os.read(tell[0], 1)
        run(backend.aclose())
        assert pathlib.Path(f"{path}-wal").exists(), "the child has the store open, so its log must stay"
        os.write(told[1], b".")
        assert ended(pid) == 0
        third = SqliteBackend(path)
        assert run(entry_ids(third, "c")) == ["parent", "before", "after"]
        run(third.aclose())
        """,
        path,
    )


@needs_fork
def test_forks_beside_commits_and_reads_lose_nothing(path: Path) -> None:
    """Twenty forks while two threads write and read: every child and the parent go on, and every entry is there once."""
    run(
        """
        backend = SqliteBackend(path)
        run(backend.commit(creation("c")))
        stop = threading.Event()
        written = []

        async def write():
            while not stop.is_set():
                receipt = await backend.commit(change("c", entry(f"parent{len(written)}")))
                written.append(receipt.appended[0].entry_id)

        async def read():
            while not stop.is_set():
                await backend.read("c", Window())

        threads = [threading.Thread(target=run, args=(each(),)) for each in (write, read)]
        for each in threads:
            each.start()
        children = []
        for number in range(20):
            children.append(fork(lambda: run(backend.commit(change("c", entry(f"child{number}"))))))
            time.sleep(0.005)
        assert [ended(each) for each in children] == [0] * 20
        stop.set()
        for each in threads:
            each.join()
        there = run(entry_ids(backend, "c"))
        assert sorted(there) == sorted([*written, *(f"child{n}" for n in range(20))])
        assert [each for each in there if each.startswith("parent")] == written
        run(backend.aclose())
        """,
        path,
    )
    assert [("ok",)] == raw(path, "PRAGMA integrity_check")


@needs_fork
def test_a_fork_copies_a_store_in_memory(path: Path) -> None:
    """The child has a copy of its own, as it has of everything in memory."""
    run(
        """
        backend = SqliteBackend(None)
        run(backend.commit(creation("c", entry("a"))))
        def child():
            run(backend.commit(change("c", entry("child"))))
            assert run(entry_ids(backend, "c")) == ["a", "child"]
        assert ended(fork(child)) == 0
        assert run(entry_ids(backend, "c")) == ["a"]
        run(backend.aclose())
        """,
        path,
    )


@needs_fork
def test_a_closed_backend_is_closed_in_the_child_too(path: Path) -> None:
    """A fork opens nothing again that was closed."""
    run(
        """
        from convostore.errors import ClosedError
        backend = SqliteBackend(path)
        run(backend.commit(creation("c")))
        run(backend.aclose())
        def child():
            for call in (backend.read("c"), backend.commit(change("c", entry("x")))):
                try:
                    run(call)
                except ClosedError:
                    continue
                raise AssertionError
        assert ended(fork(child)) == 0
        """,
        path,
    )


@needs_fork
def test_twenty_processes_may_open_what_does_not_exist(path: Path) -> None:
    """All of them, released at once, create a conversation each; one store comes of it."""
    run(
        """
        gate = os.pipe()
        def child(number):
            backend = SqliteBackend(path)
            os.close(gate[1])
            os.read(gate[0], 1)  # ends when the parent closes its side
            async def work():
                await backend.commit(creation(f"c{number:02}", entry("a")))
                assert await entry_ids(backend, f"c{number:02}") == ["a"]
                await backend.aclose()
            run(work())
        children = [fork(lambda: child(number)) for number in range(20)]
        os.close(gate[1])
        assert [ended(each) for each in children] == [0] * 20
        """,
        path,
    )
    assert [(f"c{number:02}",) for number in range(20)] == raw(
        path, "SELECT conversation_id FROM conversations ORDER BY conversation_id"
    )
    assert [(number + 1,) for number in range(20)] == raw(path, "SELECT number FROM conversations ORDER BY number")


@pytest.mark.parametrize("last", ["backend.commit(creation('c'))", "backend.read('c')", "entry_ids(backend, 'c')"])
def test_leaving_without_closing_ends_the_process(path: Path, last: str) -> None:
    """Whatever the last call was, the interpreter ends, silently, and what was answered is kept."""
    run(f"backend = SqliteBackend(path)\nrun(backend.commit(creation('kept')))\n{_quiet(last)}", path)
    assert ("kept",) in raw(path, "SELECT conversation_id FROM conversations")


def _quiet(call: str) -> str:
    return f"try:\n    run({call})\nexcept AssertionError:\n    pass\n"


def test_leaving_while_a_commit_waits_ends_the_process(path: Path) -> None:
    """A commit that waits for another process's lock does not keep the interpreter."""
    run(
        """
        import sqlite3
        backend = SqliteBackend(path)
        run(backend.commit(creation("c")))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        async def leave():
            asyncio.ensure_future(backend.commit(change("c", entry("a"))))
            await asyncio.sleep(0.01)
        run(leave())
        other.close()
        """,
        path,
    )


def _descriptors() -> int:
    listed = Path("/proc/self/fd")
    return len(list(listed.iterdir())) if listed.exists() else 0


def test_a_hundred_event_loops_leave_nothing_behind(path: Path) -> None:
    """A hundred asyncio.run calls on one backend need the threads and descriptors of the first few."""
    backend = SqliteBackend(path)

    async def use(number: int) -> None:
        if not number:
            await backend.commit(creation("c", *(entry(f"old{n}") for n in range(200))))
        await backend.commit(change("c", entry(f"e{number}")))
        await asyncio.gather(*(backend.read("c", Window()) for _ in range(3)))
        await backend.scan_heads(HeadQuery())

    counts = []
    for number in range(100):
        asyncio.run(use(number))
        counts.append((threading.active_count(), _descriptors()))
    assert counts[5] == counts[-1]
    asyncio.run(backend.aclose())


def test_a_hundred_backends_opened_and_closed_leave_nothing_behind(path: Path) -> None:
    """Each closes its three files and ends its threads."""

    async def use(number: int) -> None:
        backend = SqliteBackend(path)
        await backend.commit(creation(f"c{number}", entry("a")))
        await backend.aclose()

    before = (threading.active_count(), _descriptors())
    for number in range(100):
        asyncio.run(use(number))
    assert before == (threading.active_count(), _descriptors())


def test_a_backend_that_is_forgotten_is_closed(path: Path) -> None:
    """Without aclose, its threads end once nobody holds it any more."""

    def use() -> set[threading.Thread]:
        backend = SqliteBackend(path)
        asyncio.run(backend.commit(creation("c", entry("a"))))
        asyncio.run(entry_ids(backend, "c"))
        return {each for each in threading.enumerate() if each.name.startswith("convostore")}

    gc.collect()
    before = _descriptors()
    threads = use()
    assert threads
    gc.collect()
    for each in [*threads, *(each for each in threading.enumerate() if each.name == "convostore-closing")]:
        each.join(10)
        assert not each.is_alive()
    assert before == _descriptors()


async def test_one_store_in_memory_serves_threads_and_loops(path: Path) -> None:
    """Eight threads with event loops of their own share the one database, and nothing reaches the disk."""
    backend = SqliteBackend(None)
    await backend.commit(creation("c"))

    async def use(number: int) -> None:
        for step in range(10):
            await backend.commit(change("c", entry(f"{number}-{step}")))
            await asyncio.gather(entry_ids(backend, "c"), backend.scan_heads(HeadQuery()))

    await asyncio.gather(*(asyncio.to_thread(lambda n=number: asyncio.run(use(n))) for number in range(8)))  # type: ignore[misc]
    there = await entry_ids(backend, "c")
    for number in range(8):
        assert [f"{number}-{step}" for step in range(10)] == [e for e in there if e.startswith(f"{number}-")]
    other = SqliteBackend(None)
    assert {} == await census(other)
    assert not list(path.parent.iterdir())
    for each in (backend, other):
        await each.aclose()
