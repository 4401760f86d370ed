"""Listings: pages of heads, each filter and order along an index of its own.

A cursor holds the sort key of the last sound head of its page. Damaged heads on the way are named, and do not count.
"""

from __future__ import annotations

import sqlite3
from functools import lru_cache, partial
from typing import Final, Literal

from msgspec import UNSET, UnsetType

from convostore.backends.sqlite.rows import HEAD_COLUMNS, StoredHead, decode_head
from convostore.backends.sqlite.snapshots import TooLarge
from convostore.contracts import cursor
from convostore.contracts.backend import Damage, Head, HeadPage, HeadQuery
from convostore.errors import InvalidInput

__all__ = ["conversations_with_entry", "is_one_statement", "page_of_heads", "statements_for"]

small_bytes_max: Final = 128 * 1024
head_bytes_about: Final = 1024  # what a head costs to read, beside its fields
_int_max: Final = (1 << 63) - 1

_ORDERS: Final = {
    "id": "conversation_id",
    "created": "number",
    "updated": "updated_at_ms DESC, number DESC",
}
_BEHIND: Final = {
    "id": "conversation_id > ?",
    "created": "number > ?",
    "updated": "updated_at_ms < ?",
}
_SELECT_HOLDERS: Final = (
    "SELECT DISTINCT conversation_id FROM entries INDEXED BY entries_id"
    " CROSS JOIN conversations ON number = key >> 32 WHERE entry_id = ? ORDER BY conversation_id"
)


def is_one_statement(query: HeadQuery) -> bool:
    """Say whether a page takes one statement only, and so no transaction to be of one snapshot."""
    return query.cursor is None or query.order != "updated"


def page_of_heads(connection: sqlite3.Connection, query: HeadQuery, *, small: bool = False) -> HeadPage:
    """Return the page that `Backend.scan_heads` promises, inside the caller's transaction.

    Raises:
        TooLarge: `small`, and the page is not.
        InvalidInput: a cursor that this query did not give.
    """
    heads: list[Head] = []
    damage: list[Damage] = []
    last: StoredHead | None = None
    left = small_bytes_max
    for statement, values in statements_for(query):
        # No LIMIT: damaged heads do not count. What is not asked for is not fetched, since SQLite steps row by row; but a
        # statement that has more to give keeps its snapshot until it is closed.
        found = connection.execute(statement, values)
        try:
            for row in found:
                if len(heads) == query.limit:
                    assert last is not None
                    return HeadPage(tuple(heads), cursor.encode(query, _sort_key(query, last)), tuple(damage))
                there = decode_head(row)
                if there is None:
                    damage.append(Damage(str(row[1]), "its head is not what was written"))
                    continue
                heads.append(there.head)
                last = there
                left -= head_bytes_about + len(there.fields or b"")
                if small and left < 0:
                    raise TooLarge
        finally:
            found.close()
    return HeadPage(tuple(heads), None, tuple(damage))


def conversations_with_entry(connection: sqlite3.Connection, entry_id: str) -> tuple[str, ...]:
    """Return the ids of the conversations that hold an entry of this id, sorted by code point."""
    return tuple(each for (each,) in connection.execute(_SELECT_HOLDERS, (entry_id,)))


def statements_for(query: HeadQuery) -> list[tuple[str, list[int | str]]]:
    """Return the statements, with their values, that one after the other list what a query asks for."""
    statements: list[tuple[str, list[int | str]]] = []
    terms: list[str] = []
    values: list[int | str] = []
    for column in ("context", "subject_id"):
        value: str | UnsetType | None = getattr(query, column)
        if value is None:
            terms.append(f"{column} IS NULL")
        elif value is not UNSET:
            terms.append(f"{column} = ?")
            values.append(value)
    filters = (query.context is not UNSET, query.subject_id is not UNSET)
    statement = partial(_statement, query.order, query.newest_first, filters)
    begin = None if query.cursor is None else _begin(query)
    if begin and query.order == "updated":
        # The rest of those with the cursor's time is a statement of its own: in one, SQLite would step through all of them.
        statements.append((statement((*terms, "updated_at_ms = ?", "number < ?")), [*values, *begin]))
        begin = begin[:1]
    if begin:
        terms.append("number < ?" if query.order == "created" and query.newest_first else _BEHIND[query.order])
        values += begin
    elif query.prefix:
        terms.append("conversation_id >= ?")  # one lower bound only: with two, SQLite may take the farther one
        values.append(query.prefix)
    if query.prefix and (end := _behind_prefix(query.prefix)) is not None:
        terms.append("conversation_id < ?")
        values.append(end)
    return [*statements, (statement(tuple(terms)), values)]


@lru_cache(maxsize=256)
def _statement(order: str, newest_first: bool, filters: tuple[bool, bool], terms: tuple[str, ...]) -> str:
    words = [
        f"SELECT {HEAD_COLUMNS} FROM conversations",  # noqa: S608 - names of our own
        _index(order, filters),
        "WHERE" if terms else "",
        " AND ".join(terms),
        "ORDER BY",
        "number DESC" if order == "created" and newest_first else _ORDERS[order],
    ]
    return " ".join(words)


def _index(order: str, filters: tuple[bool, bool]) -> str:
    suffix = {(False, False): "", (True, False): "_context", (False, True): "_subject", (True, True): "_both"}[filters]
    if order == "created" and not suffix:
        return "NOT INDEXED"  # the table itself is in that order
    return f"INDEXED BY heads_{order}{suffix}"


def _begin(query: HeadQuery) -> list[int | str] | None:
    kinds: dict[Literal["id", "created", "updated"], tuple[type[int] | type[str], ...]]
    kinds = {"id": (str,), "created": (int,), "updated": (int, int)}
    begin = cursor.decode(query, *kinds[query.order])
    for part in begin or ():
        if isinstance(part, int):
            if abs(part) > _int_max:
                raise InvalidInput("this cursor was given by another backend; begin without one")
        elif any("\ud800" <= character <= "\udfff" for character in part):
            raise InvalidInput("this cursor holds no conversation id; begin without one")
    return begin


def _sort_key(query: HeadQuery, there: StoredHead) -> list[int | str]:
    if query.order == "id":
        return [there.head.conversation_id]
    if query.order == "updated":
        return [there.head.updated_at_ms, there.number]
    return [there.number]


def _behind_prefix(prefix: str) -> str | None:
    """Return the first text by code point that is behind every text with this prefix; None if there is none."""
    while prefix:
        code = ord(prefix[-1]) + 1
        if code <= 0x10FFFF:
            # No text of ours has surrogates, and none can be given to SQLite.
            return prefix[:-1] + chr(0xE000 if code == 0xD800 else code)
        prefix = prefix[:-1]
    return None
