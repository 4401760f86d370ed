"""What the tests of the SQLite backend share: a raw look into a store, and the statements that a connection runs."""

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
