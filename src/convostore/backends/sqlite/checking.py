"""The self-check: what SQLite finds wrong with the structure of a database, and what of the schema is missing.

Records are checked where they are read. What no read can see is an index that lost a key, or leads somewhere else.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Final

from convostore.backends.sqlite.schema import Migration, prepare

__all__ = ["findings"]

_findings_max: Final = 100
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
    return (*found, *(f"the {kind} {name} is missing" for kind, name in sorted(missing)))
