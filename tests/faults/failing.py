"""A store on which one kind of system call fails from the nth on, for many n: ``run_supervised(SOURCE, call, errno, ...)``.

The same work is done each time. A step that fails is healed and repeated on the same store object, as a caller would, so each n
meets another step in another state: the opening, the creation of tables, a commit, a rewrite, a deletion, the closing.
"""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import convostore
from convostore import TodoItem, TodoSnapshot
from convostore.errors import AppendUnavailable, UnavailableError
from convostore.operations.verify import verify
from tests.crash.batches import batch, judge_file, judge_messages, key_of
from tests.faults.forks import in_fork
from tests.faults.syscalls import Calls, supervise

__all__ = ["SOURCE", "main"]

SOURCE = """
import sys
from tests.faults.failing import main
main(*sys.argv[1:])
"""

_points_max = 5000
_TODOS = TodoSnapshot((TodoItem("1", "x" * 3000),))


def main(call: str, error: str, first: str, step: str, folder: str) -> None:
    """Print as JSON how many points there were, how many steps failed at them, and what was wrong at which."""
    root, points, failures, wrong = Path(folder), 0, 0, []
    for nth in range(int(first), _points_max, int(step)):
        work = root / f"{nth}"
        work.mkdir()
        ended = in_fork(lambda tell, nth=nth, work=work: _act(work, call, getattr(errno, error), nth, tell))  # type: ignore[misc]
        told: dict[str, Any] = ended.told[-1] if ended.code == 0 else {"wrong": ["it failed, see above"], "failures": 0}
        if told["wrong"]:
            wrong.append([nth, told["wrong"]])
        failures += told["failures"]
        shutil.rmtree(work)
        if not told.get("met", True):
            break
        points += 1
    print(json.dumps({"points": points, "failures": failures, "wrong": wrong}))


def _act(folder: Path, call: str, error: int, nth: int, tell: Callable[[Any], None]) -> None:
    with supervise(under=folder) as calls:
        calls.fail(call, error, after=nth)
        work = _Work(folder, calls)
        asyncio.run(work.all_of_it())
        met = calls.count(call) > nth
    tell({"met": met, "failures": work.failures, "wrong": work.wrong + asyncio.run(_judge(folder))})


class _Work:
    """The steps, and what was wrong with them."""

    def __init__(self, folder: Path, calls: Calls) -> None:
        self._store = convostore.open(folder / "s.db")
        self._file = folder / "s.db"
        self._calls = calls
        self.failures = 0
        self.wrong: list[str] = []

    async def all_of_it(self) -> None:
        store = self._store
        await self._step("create", lambda: store.create_conversation("x", "s", id="c"))
        await self._step("create another", lambda: store.sessions.append_messages("other", [_said("a"), _said("b")]))
        await self._append(0, 3)
        await self._step("save todos", lambda: store.sessions.save_todos("other", _TODOS))
        await self._append(1, 1)
        await self._step("rewrite", lambda: store.sessions.save_messages("other", [_said("b"), _said("c")]))
        self._checkpoint()
        await self._append(2, 2)
        await self._step("delete", lambda: store.delete_conversation("other"))
        await self._step("read", lambda: store.load_messages("c"))
        await store.aclose()

    async def _append(self, number: int, size: int) -> None:
        name = (0, number)
        await self._step(
            f"append {number}",
            lambda: self._store.append_messages("c", batch(name, size), idempotency_key=key_of(name)),
            AppendUnavailable,
        )

    async def _step(
        self, what: str, do: Callable[[], Awaitable[object]], expected: type[Exception] = UnavailableError
    ) -> None:
        try:
            await do()
        except expected as failure:
            self.failures += 1
            if "s.db" not in str(failure):
                self.wrong.append(f"{what}: the message does not say which database: {failure}")
            if not isinstance(failure.__cause__, UnavailableError if expected is AppendUnavailable else sqlite3.Error):
                self.wrong.append(f"{what}: no cause: {failure!r}")
            self._calls.heal()
        except Exception as failure:  # noqa: BLE001 - what it is, is what is asked
            self.wrong.append(f"{what} raised {failure!r}")
            self._calls.heal()
        else:
            return
        try:
            await do()
        except convostore.ConversationExistsError:
            # The residue of B7: a commit that was reported as failed may be there.
            if what != "create":
                raise

    def _checkpoint(self) -> None:
        """Empty the log, so that the next append begins it anew. That it may fail is this connection's own affair."""
        with closing(sqlite3.connect(self._file, isolation_level=None)) as database:
            try:
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except sqlite3.Error:
                self._calls.heal()


def _said(text: str) -> Any:
    return {"role": "user", "content": text}


async def _judge(folder: Path) -> list[str]:
    async with convostore.open(folder / "s.db") as store:
        wrong = judge_messages(await store.load_messages("c"), {(0, 0), (0, 1), (0, 2)})
        if await store.find_by_id("other") is not None:
            wrong.append("what was deleted is there")
        if (counted := (await verify(store.backend)).conversations) != 1:
            wrong.append(f"there are {counted} conversations")
        return wrong + await judge_file(store, folder / "s.db")
