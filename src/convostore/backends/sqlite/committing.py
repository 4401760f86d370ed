"""One change as statements: read the head, ask the law, write its verdict. Inside a transaction that the caller opens."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final

from convostore.backends.sqlite.reading import SELECT_HEAD, head_of_damaged, rows_by_id
from convostore.backends.sqlite.rows import (
    ENTRY_COLUMNS,
    HEAD_COLUMNS,
    NOT_WRITTEN,
    NUMBER_MAX,
    POSITION_MAX,
    Row,
    StoredHead,
    decode_entries,
    decode_head,
    encode_entry,
    encode_head,
)
from convostore.contracts.backend import Change, Damage, Entry, Head, Receipt
from convostore.contracts.checksum import document_checksum
from convostore.contracts.law import Verdict, decide
from convostore.errors import CorruptDataError, InvalidInput, StoreError

__all__ = ["apply"]

_INSERT_HEAD: Final = f"INSERT INTO conversations ({HEAD_COLUMNS}) VALUES ({', '.join('?' * 14)})"  # noqa: S608 - names of our own
# The columns that most commits change. SQLite leaves an index alone when none of its columns is named.
_UPDATE_HEAD: Final = (
    "UPDATE conversations SET revision = ?, updated_at_ms = ?, entry_count = ?, last_stamp = ?, last_rewrite = ?,"
    " fields = ?, documents = ?, checksum = ? WHERE number = ?"
)
_UPDATE_SUBJECT: Final = "UPDATE conversations SET subject_id = ? WHERE number = ?"
# What can be no number is damage, and must not keep new conversations from getting theirs.
_NEXT_NUMBER: Final = (
    "SELECT 1 + max("  # noqa: S608 - numbers of our own
    "ifnull((SELECT max(seq) FROM sqlite_sequence WHERE name = 'conversations' AND typeof(seq) = 'integer'"
    f" AND seq <= {NUMBER_MAX}), 0),"
    f" ifnull((SELECT max(number) FROM conversations WHERE number <= {NUMBER_MAX}), 0),"
    f" ifnull((SELECT max(key) >> 32 FROM entries WHERE key < {(NUMBER_MAX + 1) << 32}), 0))"
)
_INSERT_ENTRY: Final = f"INSERT INTO entries ({ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - names of our own
_UPDATE_ENTRY: Final = (
    "UPDATE entries SET stamp = ?, words = ?, created_at_ms = ?, checksum = ?, body = ? WHERE key = ?"
)
_UPSERT_DOCUMENT: Final = (
    "INSERT INTO documents (number, name, value) VALUES (?, ?, ?)"
    " ON CONFLICT (number, name) DO UPDATE SET value = excluded.value"
)


def apply(connection: sqlite3.Connection, change: Change, *, hopeful: bool) -> Receipt:
    """Do what `Backend.commit` promises, but for the transaction: whoever calls it commits, or rolls back on other errors.

    With `hopeful`, ids that are only appended are not looked up first: they are new, or the index of ids will say so.

    Raises:
        sqlite3.IntegrityError: `hopeful` was wrong; roll back, and apply it again without.
        StoreError: the change is refused and nothing was written for it.
        sqlite3.Error: something may have been written; roll back.
    """
    there = _head(connection, change)
    head = None if there is None else there.head
    log = _Log(connection, change, 0 if there is None else there.number)
    log.hopeful = hopeful and not change.remove and not change.replace
    if log.hopeful and head is not None and head.revision == change.revision:
        log.hopeful = False
    try:
        verdict = decide(change, head, log)
    except StoreError:
        if not log.hopeful:
            raise
        log.hopeful = False
        verdict = decide(change, head, log)  # it may have happened already, which goes before any refusal
    if not verdict.receipt.applied:
        return verdict.receipt
    if verdict.receipt.head is None:
        assert there is not None
        _delete(connection, there)
    else:
        _write(connection, there, verdict, verdict.receipt.head, log)
    return verdict.receipt


class _Log:
    """The entries of one conversation as the law asks for them."""

    def __init__(self, connection: sqlite3.Connection, change: Change, number: int) -> None:
        self._connection = connection
        self._change = change
        self._number = number
        self.hopeful = False
        self.keys: dict[str, int] = {}

    def find(self, entry_ids: Iterable[str], /) -> Mapping[str, Entry]:
        if self.hopeful:
            return {}
        rows = rows_by_id(self._connection, self._number, entry_ids)
        if not rows:
            return {}
        self.keys = {row[2]: row[0] for row in rows}
        try:
            return {each.entry_id: each for each in decode_entries(rows, self._number << 32)}
        except NOT_WRITTEN:
            return {each.entry_id: each for row in rows for each in self._careful(row)}

    def _careful(self, row: Row) -> list[Entry]:
        """Decode one row; a damaged one can still be removed or replaced, but nothing can be told from its content."""
        try:
            return decode_entries((row,), self._number << 32)
        except NOT_WRITTEN:
            key, stamp, entry_id = row[:3]
            position = key & POSITION_MAX
            if any(each.entry_id == entry_id for each in self._change.append) and entry_id not in self._change.remove:
                damage = Damage(self._change.conversation_id, "it is not what was written", position, entry_id)
                raise CorruptDataError(self._change.conversation_id, [damage]) from None
            return [Entry(position, stamp if type(stamp) is int else position, entry_id, "", None, "", 0, b"")]

    def count_after(self, position: int, /) -> int:
        low = (self._number << 32) + min(position, POSITION_MAX)
        statement = "SELECT count(*) FROM entries WHERE key > ? AND key < ?"
        (count,) = self._connection.execute(statement, (low, (self._number + 1) << 32)).fetchone()
        assert isinstance(count, int)
        return count


def _head(connection: sqlite3.Connection, change: Change) -> StoredHead | None:
    row = connection.execute(SELECT_HEAD, (change.conversation_id,)).fetchone()
    if row is None:
        return None
    there = decode_head(row)
    if there is not None:
        return there
    if change.delete and change.only_subject is None and change.expected_revision is None:
        salvaged = head_of_damaged(connection, row, change.conversation_id)
        if salvaged.number == row[0]:
            return salvaged  # deleting it needs nothing that may be wrong
    damage = Damage(change.conversation_id, "its head is not what was written")
    raise CorruptDataError(change.conversation_id, [damage])


def _write(connection: sqlite3.Connection, there: StoredHead | None, verdict: Verdict, head: Head, log: _Log) -> None:
    if head.last_stamp > POSITION_MAX:
        raise InvalidInput(
            f"conversation {head.conversation_id!r} has used all {POSITION_MAX} positions; continue in another one"
        )
    number = _next_number(connection) if there is None else there.number
    base = number << 32
    if verdict.cut_after is not None:
        bounds = (base + verdict.cut_after, base + POSITION_MAX + 1)
        connection.execute("DELETE FROM entries WHERE key > ? AND key < ?", bounds)
    if verdict.removed:
        keys = [(log.keys[entry_id],) for entry_id in verdict.removed]
        connection.executemany("DELETE FROM entries WHERE key = ?", keys)
    if verdict.replaced:
        rows = [encode_entry(number, each) for each in verdict.replaced]
        connection.executemany(_UPDATE_ENTRY, [(row[1], *row[3:], row[0]) for row in rows])
    if verdict.appended:
        connection.executemany(_INSERT_ENTRY, [encode_entry(number, each) for each in verdict.appended])
    documents = {} if there is None else there.documents
    if verdict.documents:
        documents = _write_documents(connection, number, documents, verdict.documents)
    if there is None:
        connection.execute(_INSERT_HEAD, encode_head(number, head, None, documents))
        return
    row = encode_head(number, head, there.fields if head.fields is there.head.fields else None, documents)
    connection.execute(_UPDATE_HEAD, (row[3], row[5], *row[8:], number))
    if head.subject_id != there.head.subject_id:
        connection.execute(_UPDATE_SUBJECT, (head.subject_id, number))


def _write_documents(
    connection: sqlite3.Connection, number: int, there: Mapping[str, int], changes: Mapping[str, bytes | None]
) -> Mapping[str, int]:
    checksums = dict(there)
    for name, value in changes.items():
        if value is not None:
            checksums[name] = document_checksum(name, value)
            connection.execute(_UPSERT_DOCUMENT, (number, name, value))
        elif checksums.pop(name, None) is not None:
            connection.execute("DELETE FROM documents WHERE number = ? AND name = ?", (number, name))
    return checksums


def _delete(connection: sqlite3.Connection, there: StoredHead) -> None:
    bounds = (there.base, there.base + POSITION_MAX + 1)
    connection.execute("DELETE FROM entries WHERE key > ? AND key < ?", bounds)
    connection.execute("DELETE FROM documents WHERE number = ?", (there.number,))
    connection.execute("DELETE FROM conversations WHERE number = ?", (there.number,))


def _next_number(connection: sqlite3.Connection) -> int:
    (number,) = connection.execute(_NEXT_NUMBER).fetchone()
    assert isinstance(number, int)
    if number > NUMBER_MAX:
        raise InvalidInput(f"this store has used all {NUMBER_MAX} numbers for conversations; begin another one")
    return number
