"""The backend: the contract's four methods, `find_entry` and `self_check`, on one SQLite database."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence

from msgspec import structs

from convostore.backends.sqlite.checking import findings
from convostore.backends.sqlite.connection import Database
from convostore.backends.sqlite.engine import Engine
from convostore.backends.sqlite.listing import conversations_with_entry, is_one_statement, page_of_heads
from convostore.backends.sqlite.reading import read_conversation
from convostore.backends.sqlite.schema import MIGRATIONS, Migration
from convostore.contracts.backend import Capability, Change, HeadPage, HeadQuery, Receipt, Snapshot, Window
from convostore.contracts.law import check_change, check_query, check_read
from convostore.errors import InvalidInput
from convostore.ids import check_id

__all__ = ["SqliteBackend"]

_IN_MEMORY: frozenset[Capability] = frozenset({"indexed", "find_entry", "self_check"})
_IN_A_FILE: frozenset[Capability] = _IN_MEMORY | {"durable", "multi_process"}


class SqliteBackend:
    """The backend contract on one SQLite database: a file, or with `path` None in memory.

    Nothing is opened, and no file made, before the first call. One object serves every task, thread and event loop of its
    process; other processes open the same file on their own. In memory the database is this object's alone; it is gone when
    that is closed, and a fork gives the child a copy.

    Args:
        path: the file, whose folder must be there; relative to the working directory of now.
        busy_timeout_s: how long to wait for other processes before UnavailableError.
        readers: how many large reads run at once, each in a thread with a connection of its own.
        migrations: the schema's history; for tests.

    Raises:
        InvalidInput: an option is out of bounds.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        *,
        busy_timeout_s: float = 30.0,
        readers: int = 2,
        migrations: tuple[Migration, ...] = MIGRATIONS,
    ) -> None:
        if not 0 <= busy_timeout_s <= 3600:
            raise InvalidInput(f"busy_timeout_s must be from 0 to 3600 seconds, not {busy_timeout_s!r}")
        if not 1 <= readers <= 64:
            raise InvalidInput(f"readers must be from 1 to 64, not {readers!r}")
        if path is not None:
            path = os.fspath(path)
            if not path or "\0" in path:
                raise InvalidInput(f"{path!r} names no file; None is a database in memory")
            path = os.path.abspath(path)
        self._path = path
        database = Database(path=path, busy_timeout_s=busy_timeout_s, migrations=migrations)
        self._migrations = migrations
        self._engine = Engine(database, readers)
        # Whoever forgets to close loses neither threads nor files for longer than the object itself.
        weakref.finalize(self, _close_later, self._engine).atexit = False

    def __repr__(self) -> str:
        return f"SqliteBackend({self._path!r})"

    @property
    def path(self) -> str | None:
        """The file, absolute; None in memory."""
        return self._path

    @property
    def capabilities(self) -> frozenset[Capability]:
        """`indexed`, `find_entry` and `self_check`; in a file `durable` and `multi_process` too."""
        return _IN_MEMORY if self._path is None else _IN_A_FILE

    async def commit(self, change: Change, /) -> Receipt:
        """Apply `change`; see the contract. Cost: one sync of the disk, shared with what is committed at the same time."""
        if change.fields or change.documents:
            # The caller may change these while the change waits.
            change = structs.replace(change, fields=dict(change.fields), documents=dict(change.documents))
        check_change(change)
        return await self._engine.commit(change)

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: Sequence[str] | None = (), /
    ) -> Snapshot | None:
        """Return one revision; see the contract."""
        check_read(conversation_id, window, documents)
        names = None if documents is None else tuple(documents)
        return await self._engine.read(
            lambda connection, small: read_conversation(connection, conversation_id, window, names, small=small),
            conversation_id,
            one_statement=window is None and names == (),
        )

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        """Return one page; see the contract."""
        check_query(query)
        return await self._engine.read(
            lambda connection, small: page_of_heads(connection, query, small=small),
            one_statement=is_one_statement(query),
        )

    async def find_entry(self, entry_id: str, /) -> tuple[str, ...]:
        """Return the ids of the conversations that hold an entry of this id, sorted. Cost: that of what is found."""
        check_id(entry_id, "entry id")
        return await self._engine.read(
            lambda connection, small: conversations_with_entry(connection, entry_id), small=False
        )

    async def self_check(self) -> tuple[str, ...]:
        """Return what SQLite's integrity check finds, a hundred findings at most, and which tables and indexes are missing.

        () when nothing is. Cost: the whole database is read, in a thread; nobody waits for it but in memory.

        Raises:
            CorruptDataError: it is too damaged for SQLite to look through it.
        """
        return await self._engine.read(lambda connection, small: findings(connection, self._migrations), small=False)

    async def aclose(self) -> None:
        """Finish what was accepted and free every handle; see the contract."""
        await self._engine.aclose()


def _close_later(engine: Engine) -> None:
    # Not here: a finalizer may run anywhere, and closing waits.
    threading.Thread(target=engine.close, name="convostore-closing", daemon=True).start()
