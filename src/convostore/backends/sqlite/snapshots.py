"""Snapshots: what a read sees is one state of the database, of the schema version that this process knows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from convostore.backends.sqlite.failures import is_undecodable
from convostore.backends.sqlite.schema import check_version

__all__ = ["TooLarge", "in_snapshot", "lenient"]

T = TypeVar("T")


class TooLarge(Exception):
    """A read that was to be small is not; nothing was returned."""


def in_snapshot(
    connection: sqlite3.Connection,
    version: int,
    read: Callable[[sqlite3.Connection], T],
    *,
    one_statement: bool = False,
) -> T:
    """Return what `read` returns, all of it from one state of the database at schema `version`.

    `one_statement` says that `read` runs one statement only, which is a snapshot without a transaction around it.
    """
    try:
        if one_statement:
            result = read(connection)
            check_version(connection, version)
            return result
        return _in_snapshot(connection, version, read)
    except sqlite3.OperationalError as error:
        if not is_undecodable(error):
            raise
    # A damaged text column must not hide the rows beside it; a text that is no UTF-8 fails its row's checksum instead.
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    connection.text_factory = lenient
    try:
        return _in_snapshot(connection, version, read)
    finally:
        connection.text_factory = str


def lenient(text: bytes) -> str:
    """Decode a damaged text to something that is not what was written."""
    return text.decode("utf-8", "replace")


def _in_snapshot(connection: sqlite3.Connection, version: int, read: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute("BEGIN")
    result = read(connection)
    check_version(connection, version)
    connection.execute("ROLLBACK")  # nothing was written, and a COMMIT fails again on the damage that a read survived
    return result
