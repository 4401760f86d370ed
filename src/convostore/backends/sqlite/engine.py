"""The engine of one process: its connections, its writer and its readers, from the first call to the last.

A small read is answered where it was asked, on a connection kept for that: passing it to a thread would cost several times
what it does. It is passed on all the same when that connection is taken or not open yet, when the answer turns out to be
large, and when another process holds a lock.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from typing import TypeVar

from convostore.backends.sqlite import forks
from convostore.backends.sqlite.connection import Database, Handle
from convostore.backends.sqlite.failures import SQLITE_ERRORS, is_busy, translated
from convostore.backends.sqlite.snapshots import TooLarge, in_snapshot
from convostore.backends.sqlite.threads import Readers, answer_one
from convostore.backends.sqlite.writer import Writer
from convostore.contracts.backend import Change, Receipt
from convostore.errors import ClosedError

__all__ = ["Engine"]

T = TypeVar("T")


class Engine:
    """Everything that one backend has open in one process. Making one opens nothing."""

    def __init__(self, database: Database, readers: int) -> None:
        self._database = database
        self._inline = Handle(database, waits=False)
        # There is only one connection to a database in memory, and everyone waits for it.
        self._writing = self._inline if database.path is None else Handle(database, waits=False)
        self._reading = (self._inline,) if database.path is None else tuple(Handle(database) for _ in range(readers))
        self._closed = False
        self._begin()
        forks.watch(self)

    def _begin(self) -> None:
        self._closing = threading.Lock()
        self._writer = Writer(self._database, self._writing)
        self._readers = Readers(self._reading)

    @property
    def _handles(self) -> frozenset[Handle]:
        return frozenset({self._inline, self._writing, *self._reading})

    def commit(self, change: Change) -> asyncio.Future[Receipt]:
        """Return a future for the receipt of a change that has been checked."""
        return self._writer.submit(change)

    async def read(
        self,
        read: Callable[[sqlite3.Connection, bool], T],
        conversation_id: str = "",
        *,
        small: bool = True,
        one_statement: bool = False,
    ) -> T:
        """Return what `read` returns, given a connection in a snapshot and whether it must keep itself small.

        `small` False: it never is. `one_statement`: see `in_snapshot`.

        Raises:
            StoreError: `read` does, or sqlite3 did.
            ClosedError: after `close`.
        """
        if self._closed:
            raise ClosedError("this store was closed; open it again")
        connection = self._inline.take_now() if small else None
        if connection is not None:
            try:
                return self._read_small(connection, read, one_statement)
            except TooLarge:
                pass
            except SQLITE_ERRORS as error:
                if not is_busy(error):
                    raise translated(error, self._database.path, conversation_id) from error
        result: T = await self._readers.submit(lambda handle: self._read(handle, read, conversation_id))
        return result

    def _read_small(
        self, connection: sqlite3.Connection, read: Callable[[sqlite3.Connection, bool], T], one_statement: bool
    ) -> T:
        try:
            result = in_snapshot(
                connection,
                self._database.version,
                lambda connection: read(connection, True),
                one_statement=one_statement,
            )
        except BaseException as error:
            self._inline.give_back(error)
            raise
        self._inline.give_back()
        return result

    def _read(self, handle: Handle, read: Callable[[sqlite3.Connection, bool], T], conversation_id: str) -> T:
        try:
            # The connection for small reads is opened here, by the first read: opening waits for the disk.
            with handle if self._inline.is_open else self._inline as connection:
                return in_snapshot(connection, self._database.version, lambda connection: read(connection, False))
        except SQLITE_ERRORS as error:
            raise translated(error, self._database.path, conversation_id) from error

    async def aclose(self) -> None:
        """Close without blocking the loop; see `close`."""
        future = asyncio.get_running_loop().create_future()

        def close() -> None:
            self.close()
            answer_one(future, None)

        thread = threading.Thread(target=close, name="convostore-closing", daemon=True)
        thread.start()
        await future
        thread.join()  # it has answered, and has nothing left to do but to end

    def close(self) -> None:
        """Finish what was accepted, end the threads and close the connections. May be repeated, from any thread."""
        self._closed = True
        with self._closing:
            self._writer.stop()
            self._readers.stop()
            for handle in self._handles:
                handle.close()

    def before_fork(self) -> None:
        """Close every connection to a file, and keep everyone out until `after_fork_in_parent`."""
        for handle in self._handles:
            handle.before_fork()

    def after_fork_in_parent(self) -> None:
        """Let everyone in again."""
        for handle in self._handles:
            handle.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        """Begin anew, with locks, threads and connections of this process. What waits is the parent's to answer."""
        for handle in self._handles:
            handle.after_fork_in_child()
        self._begin()
