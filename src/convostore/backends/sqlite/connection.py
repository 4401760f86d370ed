"""Connections to one database: how they are opened, passed between threads and given up before a fork.

A `Handle` is one connection that one thread uses at a time. It opens when it is first used, and again after it was given up or
met an error that leaves a connection in doubt. SQLite must not be carried over a fork, not even to be closed in the child:
its locks belong to the process, and a child that opens the same file again believes to hold those of its parent. So every
handle is closed before a fork, and both sides open their own when they next need it.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import stat
import threading
import time
from types import TracebackType
from typing import Final

from msgspec import Struct

from convostore.backends.sqlite.failures import SQLITE_ERRORS, SqliteError, is_busy, translated, unusable
from convostore.backends.sqlite.schema import MIGRATIONS, Migration, prepare
from convostore.errors import ClosedError, InvalidInput, StoreError, UnsupportedError

__all__ = ["Database", "Handle", "pause"]

_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",  # an answered commit survives a power cut
    "PRAGMA secure_delete = ON",  # what was deleted is overwritten, not only unlinked
    "PRAGMA cell_size_check = ON",  # a damaged page is reported where it is met
    "PRAGMA trusted_schema = OFF",  # a schema that someone else made runs no functions
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -8192",
    "PRAGMA wal_autocheckpoint = 2000",  # pages; 8 MB
    "PRAGMA journal_size_limit = 67108864",  # a log that a long reader made grow is cut back
)

_version_min: Final = (3, 24, 0)  # knows ON CONFLICT ... DO UPDATE

_graveyard: list[
    sqlite3.Connection
] = []  # a parent's connections that could not be closed before a fork; never closed here


def pause(attempt: int) -> None:
    """Sleep a little before trying again what was busy: SQLite's own waits grow to 100 ms and starve the unlucky."""
    time.sleep(random.uniform(0.0002, min(0.0005 * 2**attempt, 0.01)))


class Database(Struct, frozen=True, kw_only=True):
    """Which database, and how long to wait for those who use it too. `path` None: in memory, gone when it is closed."""

    path: str | None
    busy_timeout_s: float
    migrations: tuple[Migration, ...] = MIGRATIONS

    @property
    def version(self) -> int:
        """The schema version that this process reads and writes."""
        return len(self.migrations)

    def connect(self, *, waits: bool) -> sqlite3.Connection:
        """Return a connection in autocommit mode to an up-to-date store; `waits` False: later, being locked out fails at once.

        Raises:
            StoreError: what `schema.prepare` lists; UnsupportedError when SQLite itself is too old; UnavailableError when the
                database stays locked for `busy_timeout_s`; InvalidInput when the path is a folder, or in none.
        """
        if sqlite3.sqlite_version_info < _version_min:
            needed = ".".join(map(str, _version_min))
            raise UnsupportedError(
                f"this Python was built with SQLite {sqlite3.sqlite_version}; convostore needs {needed} or newer, use a Python"
                " that has it",
                context={"found": sqlite3.sqlite_version, "needed": needed},
            )
        deadline = time.monotonic() + self.busy_timeout_s
        attempt = 0
        while True:
            try:
                return self._connect_once(waits)
            except SQLITE_ERRORS as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise self._refusal(error) from error
            pause(attempt)
            attempt += 1

    def _connect_once(self, waits: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path or ":memory:",
            timeout=min(self.busy_timeout_s, 1.0),
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            prepare(connection, self.migrations)
            for pragma in _PRAGMAS:
                connection.execute(pragma)
            connection.execute(f"PRAGMA busy_timeout = {round(self.busy_timeout_s * 1000) if waits else 0}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _refusal(self, error: SqliteError) -> StoreError:
        folder = os.path.dirname(self.path or "")
        try:
            if self.path is not None and stat.S_ISDIR(os.stat(self.path).st_mode):
                return InvalidInput(f"{self.path!r} is a folder; name a file in it")
        except NotADirectoryError:
            return InvalidInput(f"{folder!r} is a file, so nothing can be put into it; name another folder")
        except FileNotFoundError:
            if not os.path.isdir(folder):
                return InvalidInput(f"there is no folder {folder!r} to put the database into; create it first")
        except OSError:
            pass  # sqlite3's own error says more
        return translated(error, self.path)


class Handle:
    """One connection, used by one thread at a time: ``with handle as connection``."""

    def __init__(self, database: Database, *, waits: bool = True) -> None:
        self._database = database
        self._waits = waits
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self._held_for_fork = False

    def __enter__(self) -> sqlite3.Connection:
        self._lock.acquire()
        if self._connection is None:
            try:
                if self._closed:
                    raise ClosedError("this store was closed; open it again")
                self._connection = self._database.connect(waits=self._waits)
            except BaseException:
                self._lock.release()
                raise
        return self._connection

    @property
    def is_open(self) -> bool:
        """Whether there is a connection now."""
        return self._connection is not None

    def take_now(self) -> sqlite3.Connection | None:
        """Return the connection if it is open and nobody uses it, else None; then `give_back` it."""
        if not self._lock.acquire(blocking=False):
            return None
        connection = self._connection
        if connection is None:
            self._lock.release()
        return connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.give_back(error)

    def give_back(self, error: BaseException | None = None) -> None:
        """Let others have the connection, without the transaction that `error` may have left open."""
        connection = self._connection
        assert connection is not None
        try:
            if connection.in_transaction:
                try:
                    connection.execute("ROLLBACK")
                except sqlite3.Error as failed:
                    error = failed
            if unusable(error) and self._database.path is not None:
                self._drop()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connection, for good, once nobody uses it."""
        with self._lock:
            self._closed = True
            self._drop()

    def before_fork(self) -> None:
        """Close the connection to a file, and keep everyone out until `after_fork_in_parent`."""
        # A thread that stays inside for this long (it cannot be the forking one) leaves its connection to the graveyard.
        self._held_for_fork = self._lock.acquire(timeout=self._database.busy_timeout_s)
        if self._held_for_fork and self._database.path is not None:
            self._drop()

    def after_fork_in_parent(self) -> None:
        """Let the others in again."""
        if self._held_for_fork:
            self._held_for_fork = False
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """Begin anew. A database in memory is the child's own copy from now on."""
        self._lock = threading.Lock()
        self._held_for_fork = False
        if self._connection is not None and self._database.path is not None:
            _graveyard.append(self._connection)
            self._connection = None

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
