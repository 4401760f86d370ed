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
from collections.abc import Callable
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
group_bytes_max: Final = 8 * 1024 * 1024  # besides the first change


class Writer:
    """The thread that writes to one database, and the queue in front of it."""

    def __init__(self, database: Database, handle: Handle) -> None:
        self._database = database
        self._handle = handle
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._thread: threading.Thread | None = None
        self._behind: list[_Job | None] = []  # taken from the queue and too much for its group
        self._stopped = False

    def submit(self, change: Change) -> asyncio.Future[Receipt]:
        """Return a future of the running loop for the receipt of a change that has been checked.

        Raises:
            ClosedError: after `stop`.
        """
        future: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        with self._gate:
            if self._stopped:
                raise ClosedError("this store was closed; open it again")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="convostore-writer", daemon=True)
                self._thread.start()
            self._queue.put((change, future))
        return future

    def stop(self) -> None:
        """Finish what was accepted, and end the thread; returns when it has ended."""
        with self._gate:
            self._stopped = True
            if self._thread is not None:
                self._queue.put(None)
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while group := self._next_group():
            outcomes = self._commit([change for change, _ in group])
            if len(group) == 1:
                answer_one(group[0][1], outcomes[0])
            else:
                answer([(future, outcome) for (_, future), outcome in zip(group, outcomes, strict=True)])
            del group, outcomes

    def _next_group(self) -> list[_Job]:
        """Wait for a change and return it with those that wait behind it, within bounds; empty when told to stop."""
        job = self._behind.pop() if self._behind else self._queue.get()
        if job is None:
            return []
        group = [job]
        left = group_bytes_max
        while len(group) < group_changes_max:
            try:
                job = self._queue.get_nowait()
            except Empty:
                break
            if job is None or (left := left - _weight(job[0])) < 0:
                self._behind.append(job)
                break
            group.append(job)
        return group

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


def _weight(change: Change) -> int:
    """Return about how many bytes a change writes."""
    return 1000 + sum([len(each.body) for each in (*change.append, *change.replace)])
