"""The self-check: what SQLite finds wrong with the structure of a database, and what of the schema is missing.

Records are checked where they are read. What no read can see is an index that lost a key or leads somewhere else, and what is
left of a conversation whose head is gone.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Final

from convostore.backends.sqlite.schema import Migration, prepare

__all__ = ["findings"]

_findings_max: Final = 100
_SELECT_ORPHANS: Final = (
    "SELECT 'entries', key >> 32, count(*) FROM entries"
    " WHERE key >> 32 NOT IN (SELECT number FROM conversations) GROUP BY key >> 32"
    " UNION ALL SELECT 'documents', number, count(*) FROM documents"
    " WHERE number NOT IN (SELECT number FROM conversations) GROUP BY number"
)
_SELECT_OBJECTS: Final = "SELECT type, name FROM sqlite_master"


def findings(connection: sqlite3.Connection, migrations: tuple[Migration, ...]) -> tuple[str, ...]:
    """Return what is wrong, in words; () when nothing is. Cost: every page of the database is read.

    Raises:
        sqlite3.Error: the database is too damaged to be looked through.
    """
    found = [str(line) for (line,) in connection.execute(f"PRAGMA integrity_check({_findings_max})")]
    if found == ["ok"]:
        found = []
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as sound:
        prepare(sound, migrations)
        missing = {*sound.execute(_SELECT_OBJECTS)} - {*connection.execute(_SELECT_OBJECTS)}
    found += [f"the {kind} {name} is missing" for kind, name in sorted(missing)]
    if not missing:
        orphans = connection.execute(_SELECT_ORPHANS).fetchmany(_findings_max)
        found += [
            f"{many} {table} belong to conversation number {number}, which has no head"
            for table, number, many in orphans
        ]
    return tuple(found)
