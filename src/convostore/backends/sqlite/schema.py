"""The tables: what they are, how a store gets them, how it is told that someone has changed them since.

Three tables hold everything. ``conversations`` has one row per head. ``entries`` has one row per entry under the key
``number << 32 | position``, so a conversation's log lies together in position order and its end is found without reading
the rest; a plain rowid table, because WITHOUT ROWID keeps bodies in the inner pages too and grows by two thirds. ``documents``
has one row per document. Every row carries, or has in its head, a checksum (`convostore.backends.sqlite.rows`).

`PRAGMA application_id` says that a database is ours, `PRAGMA user_version` which migrations it has seen. Migrations are never
edited once released: `tests/stored` keeps a store of every version.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from convostore.backends.sqlite.failures import is_read_only
from convostore.errors import InvalidInput, SchemaTooNewError, SchemaTooOldError, UnavailableError

__all__ = ["APPLICATION_ID", "MIGRATIONS", "Migration", "check_version", "prepare"]

Migration = tuple[str, ...]
"""The statements that lead from one version to the next."""

APPLICATION_ID: Final = 0x636F6E76
"""'conv' in ASCII, at offset 68 of the file."""

_VERSION_1: Migration = (
    # AUTOINCREMENT: a number is never given twice, so creation order is number order, a cursor stays good, and entries that
    # lost their head by damage never turn up in another conversation.
    """
    CREATE TABLE conversations (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation_id TEXT,
        born TEXT,
        revision TEXT,
        created_at_ms INTEGER,
        updated_at_ms INTEGER,
        context TEXT,
        subject_id TEXT,
        entry_count INTEGER,
        last_stamp INTEGER,
        last_rewrite INTEGER,
        fields BLOB,     -- msgpack of the mapping, NULL when empty
        documents BLOB,  -- msgpack of each document's checksum by name, NULL when there are none
        checksum INTEGER
    )
    """,
    # One index per order and filter, so that what a filter excludes costs nothing. An index ends in the row's number.
    "CREATE UNIQUE INDEX heads_id ON conversations (conversation_id)",
    "CREATE INDEX heads_id_context ON conversations (context, conversation_id)",
    "CREATE INDEX heads_id_subject ON conversations (subject_id, conversation_id)",
    "CREATE INDEX heads_id_both ON conversations (context, subject_id, conversation_id)",
    "CREATE INDEX heads_created_context ON conversations (context)",
    "CREATE INDEX heads_created_subject ON conversations (subject_id)",
    "CREATE INDEX heads_created_both ON conversations (context, subject_id)",
    "CREATE INDEX heads_updated ON conversations (updated_at_ms)",
    "CREATE INDEX heads_updated_context ON conversations (context, updated_at_ms)",
    "CREATE INDEX heads_updated_subject ON conversations (subject_id, updated_at_ms)",
    "CREATE INDEX heads_updated_both ON conversations (context, subject_id, updated_at_ms)",
    """
    CREATE TABLE entries (
        key INTEGER PRIMARY KEY,  -- number << 32 | position
        stamp INTEGER,            -- NULL: the position
        entry_id TEXT,
        words TEXT,               -- kind, role and dialect, a line each
        created_at_ms INTEGER,
        checksum INTEGER,
        body BLOB
    )
    """,
    "CREATE UNIQUE INDEX entries_id ON entries (entry_id, key >> 32)",
    "CREATE INDEX entries_changed ON entries (key >> 32, stamp) WHERE stamp IS NOT NULL",
    "CREATE TABLE documents (number INTEGER, name TEXT, value BLOB)",
    "CREATE UNIQUE INDEX documents_name ON documents (number, name)",
)

MIGRATIONS: Final[tuple[Migration, ...]] = (_VERSION_1,)
"""In order; a store's version is how many it has seen."""


def prepare(connection: sqlite3.Connection, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Bring the connected database to the newest version; create the tables if it is empty.

    One transaction does it all, so any number of processes may try at once. Nothing is written unless something is missing.

    Raises:
        InvalidInput: it is another program's database; untouched.
        SchemaTooNewError: a newer convostore has upgraded it; untouched.
        SchemaTooOldError: it must be upgraded and may not be written.
        sqlite3.Error: among others SQLITE_BUSY, which a patient caller tries again.
    """
    connection.execute("BEGIN")
    version = _identify(connection, migrations)
    connection.execute("COMMIT")
    try:
        # SQLITE_BUSY at once, whatever the timeout, when another connection switches too.
        if _one(connection, "PRAGMA journal_mode") == "delete" and _one(connection, "PRAGMA journal_mode=WAL") != "wal":
            raise UnavailableError(
                "the file system cannot share memory between processes, which write-ahead logging needs;"
                " put the database on a local disk"
            )
        if version < len(migrations):
            _upgrade(connection, migrations)
    except sqlite3.OperationalError as error:
        if not is_read_only(error):
            raise
        if version < len(migrations):
            raise SchemaTooOldError(
                f"the store is at version {version}, this convostore needs {len(migrations)}, and the database may not"
                " be written; open it once with the rights to upgrade it",
                context={"version": version, "needed": len(migrations)},
            ) from error


def check_version(connection: sqlite3.Connection, version: int) -> None:
    """Raise unless the database is still at `version`: inside a write before anything is written, in a read at its end.

    Versions only grow, so a read that finds the version unchanged afterwards was of that version.
    """
    found = _one(connection, "PRAGMA user_version")
    if found == version:
        return
    assert isinstance(found, int)
    if found > version:
        raise _too_new(found, version)
    raise SchemaTooOldError(
        f"the store is at version {found} and was at {version} when it was opened; open it again",
        context={"version": found, "needed": version},
    )


def _identify(connection: sqlite3.Connection, migrations: tuple[Migration, ...]) -> int:
    application_id = _one(connection, "PRAGMA application_id")
    version = _one(connection, "PRAGMA user_version")
    assert isinstance(version, int)
    if application_id == APPLICATION_ID:
        if version > len(migrations):
            raise _too_new(version, len(migrations))
    elif application_id or version or _one(connection, "SELECT count(*) FROM sqlite_master"):
        raise InvalidInput("this is a SQLite database of another program; it was not touched, name another file")
    return version


def _upgrade(connection: sqlite3.Connection, migrations: tuple[Migration, ...]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _identify(connection, migrations)  # someone may have been faster
        for statements in migrations[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _too_new(found: int, version: int) -> SchemaTooNewError:
    return SchemaTooNewError(
        f"a newer convostore has upgraded this store to version {found}; this one knows {version}."
        " Nothing was touched; upgrade convostore here too",
        context={"version": found, "known": version},
    )


def _one(connection: sqlite3.Connection, statement: str) -> object:
    (value,) = connection.execute(statement).fetchone()
    return value
