"""What the tests of the SQLite backend share: a raw look into a store, an index made to lose its keys, statements that run."""

import sqlite3
from contextlib import closing
from os import PathLike
from typing import Any

import pytest

from convostore.backends.sqlite import connection


def raw(path: str | PathLike[str], statement: str, *values: object) -> list[Any]:
    """Run one statement on a connection of its own, committed at once."""
    with closing(sqlite3.connect(path, isolation_level=None)) as made:
        return made.execute(statement, values).fetchall()


def lose_keys(database: sqlite3.Connection, index: str) -> None:
    """Take all keys out of an index, as if its pages had been: SQLite is made to believe that it holds nothing."""
    ((definition,),) = database.execute("SELECT sql FROM sqlite_master WHERE name = ?", (index,)).fetchall()
    for sql in (f"{definition} WHERE false", definition):
        ((version,),) = database.execute("PRAGMA schema_version").fetchall()
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, index))
        database.execute(f"PRAGMA schema_version = {version + 1}")  # so that every connection reads it anew
        database.execute("PRAGMA writable_schema = RESET")
        if sql != definition:
            database.execute(f"REINDEX {index}")


def listen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by every statement of every connection opened from now on."""
    log: list[str] = []
    connect = connection.Database.connect

    def connect_and_listen(self: connection.Database, *, waits: bool) -> sqlite3.Connection:
        made = connect(self, waits=waits)
        made.set_trace_callback(log.append)
        return made

    monkeypatch.setattr(connection.Database, "connect", connect_and_listen)
    return log
