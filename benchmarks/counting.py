"""Counting: what an append does, in numbers that do not vary from run to run.

Statements and transactions are counted by sqlite3's own trace of every connection that the store opens; syncs by the kernel,
in a process of its own; wake-ups are the times the writer's thread calls an event loop, which is how often an answer
crosses between threads.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import convostore
from benchmarks.result import Line, Setting
from benchmarks.workload import turns
from tests.faults.syscalls import run_supervised, unavailable

__all__ = ["measure", "traced"]

_APPENDS = 50
_TASKS = 64


async def measure(setting: Setting) -> list[Line]:
    lines = await _one_writer(setting.folder) + await _many_tasks(setting.folder) + await _small_read(setting.folder)
    if (reason := unavailable()) is not None:
        setting.say(f"syncs are not counted here: {reason}")
        return lines
    syncs = await asyncio.to_thread(_count_syncs, setting.folder)
    return [*lines, Line(what="syncs an append, one writer", measured=syncs, unit="")]


@contextmanager
def traced(statements: list[str]) -> Iterator[None]:
    """Note every statement on connections that are opened inside the block."""
    connect = sqlite3.connect

    def connect_traced(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)
        connection.set_trace_callback(statements.append)
        return connection

    sqlite3.connect = connect_traced  # type: ignore[assignment]  # put back below
    try:
        yield
    finally:
        sqlite3.connect = connect


class _Wakeups:
    """Counts how often other threads call the running loop."""

    def __init__(self) -> None:
        self.count = 0
        loop: Any = asyncio.get_running_loop()
        call = loop.call_soon_threadsafe

        def counted(*args: Any, **options: Any) -> Any:
            self.count += 1
            return call(*args, **options)

        loop.call_soon_threadsafe = counted


async def _one_writer(folder: Path) -> list[Line]:
    statements: list[str] = []
    wakeups = _Wakeups()
    material = turns(_APPENDS + 1)
    with traced(statements):
        async with convostore.open(folder / "counting.db") as store:
            conversation = await store.create_conversation("bench", "subject")
            await store.append_messages(conversation.id, material[0])
            statements.clear()
            wakeups.count = 0
            for turn in material[1:]:
                await store.append_messages(conversation.id, turn)
            done = list(statements)
            crossed = wakeups.count
    return [
        Line(what="statements an append of four messages, one writer", measured=len(done) / _APPENDS, unit=""),
        Line(what="transactions an append, one writer", measured=done.count("COMMIT") / _APPENDS, unit=""),
        Line(what="wake-ups an append, one writer", measured=crossed / _APPENDS, unit=""),
    ]


async def _many_tasks(folder: Path) -> list[Line]:
    statements: list[str] = []
    wakeups = _Wakeups()
    material = turns(_TASKS)
    with traced(statements):
        async with convostore.open(folder / "counting-tasks.db") as store:
            ids = [(await store.create_conversation("bench", "subject")).id for _ in range(_TASKS)]
            statements.clear()
            wakeups.count = 0
            for _ in range(4):
                await asyncio.gather(*map(store.append_messages, ids, material))
            commits = statements.count("COMMIT")
    appends = 4 * _TASKS
    return [
        Line(what="transactions an append, 64 tasks", measured=commits / appends, unit=""),
        Line(what="wake-ups an append, 64 tasks", measured=wakeups.count / appends, unit=""),
    ]


async def _small_read(folder: Path) -> list[Line]:
    statements: list[str] = []
    wakeups = _Wakeups()
    with traced(statements):
        async with convostore.open(folder / "counting.db") as store:
            conversation = await store.find_latest("bench", "subject")
            assert conversation is not None
            await store.load_messages(conversation.id, limit=20)
            statements.clear()
            wakeups.count = 0
            messages = await store.load_messages(conversation.id, limit=20)
            assert len(messages) == 20
            done, crossed = len(statements), wakeups.count
    return [
        Line(what="statements a read of the last 20", measured=done, unit=""),
        Line(what="wake-ups a read of the last 20", measured=crossed, unit=""),
    ]


_COUNT_SYNCS = """
import asyncio, json, sys
from pathlib import Path
from tests.faults.syscalls import supervise

with supervise(under=sys.argv[1]) as calls:
    import convostore
    from benchmarks.workload import turns

    async def main():
        async with convostore.open(Path(sys.argv[1]) / "syncs.db") as store:
            conversation = await store.create_conversation("bench", "subject")
            material = turns(int(sys.argv[2]) + 1)
            await store.append_messages(conversation.id, material[0])
            before = calls.count("fsync", "fdatasync")
            for turn in material[1:]:
                await store.append_messages(conversation.id, turn)
            print(json.dumps(calls.count("fsync", "fdatasync") - before))

    asyncio.run(main())
"""


def _count_syncs(folder: Path) -> float:
    done = run_supervised(_COUNT_SYNCS, str(folder), str(_APPENDS))
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, [sys.executable], done.stdout, done.stderr)
    return float(json.loads(done.stdout)) / _APPENDS
