"""The writer: one thread through which every change of this process goes, whatever waits in one transaction.

A commit costs a sync of the disk, whoever pays for it. So while one transaction is being synced the changes that arrive
wait, and go into the next one together (group commit). Each stays atomic by itself: the law refuses a change before anything
is written for it, and when anything else goes wrong the transaction is rolled back and its changes are run one by one, so
that only the guilty one fails.
"""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from copy import copy
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

from convostore.backends.sqlite.committing import apply
from convostore.backends.sqlite.connection import Database, Handle, pause
from convostore.backends.sqlite.failures import SQLITE_ERRORS, is_busy, translated
from convostore.backends.sqlite.schema import check_version
from convostore.backends.sqlite.snapshots import lenient
from convostore.backends.sqlite.threads import answer, answer_one
from convostore.contracts.backend import Change, Receipt
from convostore.errors import ClosedError, StoreError

__all__ = ["Writer"]

_Job: TypeAlias = tuple[Change, "asyncio.Future[Receipt]"]

group_changes_max: Final = 512
group_bytes_max: Final = 8 * 1024 * 1024


class Writer:
    """The thread that writes to one database, and the queue in front of it.

    A change is handed over at once while changes come one by one. Once several have shared a transaction, those of one pass
    of an event loop are handed over together at its end: the thread wakes once, and has the interpreter to itself while the
    loop waits for it, instead of wresting it from the tasks that are still preparing theirs.
    """

    def __init__(self, database: Database, handle: Handle) -> None:
        self._database = database
        self._handle = handle
        self._queue: SimpleQueue[list[_Job] | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._thread: threading.Thread | None = None
        self._gathering: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        self._crowded = False
        self._behind: list[_Job] = []  # taken from the queue and too much for their group
        self._stopped = False

    def submit(self, change: Change) -> asyncio.Future[Receipt]:
        """Return a future of the running loop for the receipt of a change that has been checked.

        Raises:
            ClosedError: after `stop`.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Receipt] = loop.create_future()
        with self._gate:
            if self._stopped:
                raise ClosedError("this store was closed; open it again")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="convostore-writer", daemon=True)
                self._thread.start()
            gathered = self._gathering.get(loop)
            if gathered is not None:
                gathered.append((change, future))
            elif self._crowded:
                self._gathering[loop] = [(change, future)]
                loop.call_soon(self._hand_over, loop)
            else:
                self._queue.put([(change, future)])
        return future

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._gate:
            if gathered := self._gathering.pop(loop, None):
                self._queue.put(gathered)

    def stop(self) -> None:
        """Finish what was accepted, and end the thread; returns when it has ended."""
        with self._gate:
            self._stopped = True
            if self._thread is not None:
                for gathered in self._gathering.values():
                    self._queue.put(gathered)
                self._gathering = {}
                self._queue.put(None)
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while group := self._next_group():
            outcomes = self._commit([change for change, _ in group])
            self._crowded = len(group) > 1
            if len(group) == 1:
                answer_one(group[0][1], outcomes[0])
            else:
                answer([(future, outcome) for (_, future), outcome in zip(group, outcomes, strict=True)])
            del group, outcomes

    def _next_group(self) -> list[_Job]:
        """Wait for changes and return them with those that wait behind them, within bounds; empty when told to stop."""
        jobs = self._behind or self._queue.get()
        while jobs is not None:
            size, full = _fitting(jobs)
            if full:
                self._behind = jobs[size:]
                return jobs[:size]
            try:
                more = self._queue.get_nowait()
            except Empty:
                break
            if more is None:
                self._queue.put(None)  # for the next time
                break
            jobs += more
        self._behind = []
        return jobs or []

    def _commit(self, changes: list[Change]) -> list[Receipt | Exception]:
        deadline = time.monotonic() + self._database.busy_timeout_s
        for hopeful in (True, False):
            try:
                return self._transaction(changes, deadline, hopeful=hopeful)
            except StoreError as error:
                # Nothing has begun: the store cannot be opened, stays locked or was upgraded.
                return [copy(error) for _ in changes]
            except sqlite3.IntegrityError:
                continue  # some change is repeated; look up what is there
            except Exception:  # noqa: BLE001 - whatever it is must neither end the thread nor hit the innocent
                break
        return [self._alone(each, deadline) for each in changes]

    def _alone(self, change: Change, deadline: float) -> Receipt | Exception:
        try:
            (outcome,) = self._transaction([change], deadline, text_factory=lenient)
        except SQLITE_ERRORS as error:
            return translated(error, self._database.path, change.conversation_id)
        except Exception as error:  # noqa: BLE001 - it is the caller's, who made it happen
            return error
        return outcome

    def _transaction(
        self,
        changes: list[Change],
        deadline: float,
        *,
        hopeful: bool = False,
        text_factory: Callable[[bytes], str] = str,
    ) -> list[Receipt | Exception]:
        for attempt in itertools.count():
            # The handle is given back between attempts, so that waiting for another process holds up no fork.
            with self._handle as connection:
                if self._begin(connection, deadline):
                    check_version(connection, self._database.version)
                    if text_factory is str:
                        return self._inside(connection, changes, hopeful)
                    connection.text_factory = text_factory
                    try:
                        return self._inside(connection, changes, hopeful)
                    finally:
                        connection.text_factory = str
            pause(attempt)
        raise AssertionError

    def _begin(self, connection: sqlite3.Connection, deadline: float) -> bool:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if is_busy(error) and time.monotonic() < deadline:
                return False
            raise translated(error, self._database.path) from error
        return True

    def _inside(
        self, connection: sqlite3.Connection, changes: list[Change], hopeful: bool
    ) -> list[Receipt | Exception]:
        outcomes: list[Receipt | Exception] = []
        for change in changes:
            try:
                outcomes.append(apply(connection, change, hopeful=hopeful))
            except StoreError as refusal:
                outcomes.append(refusal.with_traceback(None))
        connection.execute("COMMIT")
        return outcomes


def _fitting(jobs: Sequence[_Job]) -> tuple[int, bool]:
    """Return how many of `jobs` go into one transaction, at least one, and whether it is full with them."""
    left = group_bytes_max
    for size, (change, _) in enumerate(jobs[:group_changes_max]):
        left -= 1000 + sum([len(each.body) for each in (*change.append, *change.replace)])
        if left < 0 and size:
            return size, True
    return min(len(jobs), group_changes_max), len(jobs) >= group_changes_max
