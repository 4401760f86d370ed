"""One read of one conversation: head, window and documents of one snapshot, each record checked.

A window costs what it returns: it is a range of keys, or ids found through their index. What changed after a stamp is
everything appended since, which is a range too, and the few older entries that were replaced, which an index of their own
names.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

from convostore.backends.sqlite.failures import is_corrupt
from convostore.backends.sqlite.rows import (
    ENTRY_COLUMNS,
    HEAD_COLUMNS,
    NOT_WRITTEN,
    POSITION_MAX,
    Row,
    StoredHead,
    decode_entries,
    decode_head,
    salvage_entries,
    salvage_head,
)
from convostore.backends.sqlite.snapshots import TooLarge
from convostore.contracts.backend import Damage, Entry, Head, Snapshot, Window
from convostore.contracts.checksum import document_checksum
from convostore.errors import CorruptDataError

__all__ = ["SELECT_HEAD", "head_of_damaged", "read_conversation", "rows_by_id"]

SELECT_HEAD: Final = f"SELECT {HEAD_COLUMNS} FROM conversations INDEXED BY heads_id WHERE conversation_id = ?"  # noqa: S608 - names of our own

_SELECT_NUMBERED: Final = f"SELECT {HEAD_COLUMNS} FROM conversations WHERE number = ?"  # noqa: S608 - names of our own
small_rows_max: Final = 100
small_body_bytes_max: Final = 16 * 1024

# A body that is too large for a small read is left where it is: SQLite knows a blob's length without reading it.
_SMALL_COLUMNS: Final = ENTRY_COLUMNS.replace(
    "body", f"CASE WHEN length(body) <= {small_body_bytes_max} THEN body END, length(body)"
)
_ids_per_statement: Final = 256


class _Statements:
    """The statements that read entries, with one list of columns."""

    def __init__(self, columns: str) -> None:
        select = f"SELECT {columns} FROM entries"  # noqa: S608 - names of our own
        self.first = f"{select} WHERE key > ? AND key < ? ORDER BY key LIMIT ?"
        self.last = f"{select} WHERE key > ? AND key < ? ORDER BY key DESC LIMIT ?"
        self.one = f"{select} WHERE key = ?"
        self.named = {
            count: f"{select} INDEXED BY entries_id WHERE entry_id IN ({', '.join('?' * count)}) AND key >> 32 = ?"
            for count in (1, 2, 4, 8, 16, 32, 64, 128, _ids_per_statement)
        }


_WHOLE: Final = _Statements(ENTRY_COLUMNS)
_SMALL: Final = _Statements(_SMALL_COLUMNS)
_SELECT_CHANGED: Final = (
    "SELECT key FROM entries INDEXED BY entries_changed WHERE stamp IS NOT NULL AND key >> 32 = ? AND stamp > ? LIMIT ?"
)
_SELECT_DOCUMENT: Final = "SELECT value FROM documents WHERE number = ? AND name = ?"


def read_conversation(
    connection: sqlite3.Connection,
    conversation_id: str,
    window: Window | None,
    documents: Sequence[str] | None,
    *,
    small: bool = False,
) -> Snapshot | None:
    """Return the snapshot that `Backend.read` promises, inside the caller's transaction.

    Raises:
        TooLarge: `small`, and it would return more than `small_rows_max` entries or a body, or any document, that is large.
        CorruptDataError: something asked for is damaged, and the window does not say "report".
    """
    return _Reading(connection, conversation_id, small).snapshot(window, documents)


def head_of_damaged(connection: sqlite3.Connection, row: Row, conversation_id: str) -> StoredHead:
    """Return what a damaged head still says; of number 0, which has no entries, if the index leads to another conversation.

    SQLite takes the columns that an index has from the index, so a sound row looks damaged when it is not the one the index
    means. Its entries are then not those that were asked for.
    """
    by_number = connection.execute(_SELECT_NUMBERED, row[:1]).fetchone()
    if by_number is not None and decode_head(by_number) is not None:
        return StoredHead(0, Head(conversation_id, "", "", 0, 0, None, None, 0, 0, 0))
    return salvage_head(row, conversation_id)


def rows_by_id(
    connection: sqlite3.Connection, number: int, entry_ids: Iterable[str], *, small: bool = False
) -> list[Row]:
    """Return the rows of the named entries of one conversation, in no order; with `small`, each body's length behind."""
    named = (_SMALL if small else _WHOLE).named
    wanted = list(dict.fromkeys(entry_ids))
    rows: list[Row] = []
    for begin in range(0, len(wanted), _ids_per_statement):
        some = wanted[begin : begin + _ids_per_statement]
        # Filled up to a power of two, so that a handful of prepared statements serve all.
        count = 1 << (len(some) - 1).bit_length()
        some += some[-1:] * (count - len(some))
        rows += connection.execute(named[count], (*some, number)).fetchall()
    return rows


class _Reading:
    """The state of one read: where it reads, and what damage it has met."""

    def __init__(self, connection: sqlite3.Connection, conversation_id: str, small: bool) -> None:
        self._connection = connection
        self._conversation_id = conversation_id
        self._small = small
        self._statements = _SMALL if small else _WHOLE
        self._damage: list[Damage] = []

    def snapshot(self, window: Window | None, documents: Sequence[str] | None) -> Snapshot | None:
        row = self._connection.execute(SELECT_HEAD, (self._conversation_id,)).fetchone()
        if row is None:
            return None
        there = decode_head(row)
        sound = there is not None
        if there is None:
            there = head_of_damaged(self._connection, row, self._conversation_id)
            self._damaged("its head is not what was written")
        entries = () if window is None or window.limit == 0 else self._entries(there, window, sound)
        kept = {} if documents is not None and not documents else self._documents(there, documents)
        if self._damage and (window is None or window.damaged == "raise"):
            raise CorruptDataError(self._conversation_id, self._damage)
        return Snapshot(there.head, entries, kept, tuple(self._damage))

    def _damaged(self, what: str) -> None:
        self._damage.append(Damage(self._conversation_id, what))

    def _entries(self, there: StoredHead, window: Window, sound: bool) -> tuple[Entry, ...]:
        if sound and not self._small and window.entry_ids is None and not window.changed_after:
            streamed = self._streamed(there, window)
            if streamed is not None:
                return streamed
        if window.entry_ids is not None:
            rows = self._named(there.number, window)
        elif window.changed_after:
            rows = self._changed(there, window, sound)
        else:
            rows = self._range(there, window.after, window.before, window.limit, window.newest)
            places = [row[0] & POSITION_MAX for row in (*rows[:1], *rows[-1:])]
            if sound and (missing := _missing(there.head, window, len(rows), places)):
                self._damaged(missing)
        if self._small:
            rows = _small_rows(rows)
        try:
            return _in_order(decode_entries(rows, there.base))
        except NOT_WRITTEN:
            entries, damage = salvage_entries(self._conversation_id, rows, there.base)
        self._damage += damage
        if not damage:
            self._damaged("its entries do not come in their order, each once")
        return tuple(entries)

    def _streamed(self, there: StoredHead, window: Window) -> tuple[Entry, ...] | None:
        """Return the entries of a range of positions, each decoded as SQLite comes to it; None where anything is wrong."""
        statement = self._statements.last if window.newest else self._statements.first
        bounds = _bounds(there, window.after, window.before, window.limit)
        try:
            entries = decode_entries(self._connection.execute(statement, bounds), there.base)
        except (*NOT_WRITTEN, sqlite3.DatabaseError):
            return None  # whoever looks carefully finds out what it was
        if window.newest:
            entries.reverse()
        places = [each.position for each in (*entries[:1], *entries[-1:])]
        if _missing(there.head, window, len(entries), places):
            return None
        try:
            return _in_order(entries)
        except ValueError:
            return None

    def _range(self, there: StoredHead, after: int, before: int | None, limit: int | None, newest: bool) -> list[Row]:
        """Return the first rows of a range of positions, or with `newest` the last ones, in position order."""
        bounds = _bounds(there, after, before, limit)
        if self._small:
            # Positions that are left bound the rows from above without looking at them.
            left = min(bounds[1] - 1, there.base + there.head.last_stamp) - bounds[0]
            if min(left, there.head.entry_count, left if limit is None else limit) > small_rows_max:
                raise TooLarge
        try:
            rows = self._connection.execute(
                self._statements.last if newest else self._statements.first, bounds
            ).fetchall()
        except sqlite3.DatabaseError as error:
            if not is_corrupt(error):
                raise
            return self._around_damage(bounds, newest, error)
        if newest:
            rows.reverse()
        return rows

    def _around_damage(self, bounds: tuple[int, int, int], newest: bool, error: sqlite3.DatabaseError) -> list[Row]:
        """Return what can be fetched from either end of a range whose middle lies on a damaged page."""
        self._damaged(f"some of its entries lie on a damaged page ({error})")
        limit = bounds[2]
        rows: dict[int, Row] = {}
        for statement in (self._statements.first, self._statements.last):
            try:
                for row in self._connection.execute(statement, bounds):
                    rows[row[0]] = row
            except sqlite3.DatabaseError as again:
                if not is_corrupt(again):
                    raise
        found = [rows[key] for key in sorted(rows)]
        if limit < 0:
            return found
        return found[max(0, len(found) - limit) :] if newest else found[:limit]

    def _changed(self, there: StoredHead, window: Window, sound: bool) -> list[Row]:
        """Return what was appended after a stamp, and before it in position order what was replaced after it."""
        stamp, limit = window.changed_after, window.limit
        assert stamp is not None
        old: list[Row] = []
        if not sound or there.head.last_rewrite > stamp:
            old = self._replaced(there.number, stamp, window)
            if limit is not None and not window.newest:
                old = old[:limit]
        new = self._range(there, max(window.after, stamp), window.before, limit, window.newest)
        if limit is not None:
            if window.newest:
                old = old[max(0, len(old) - (limit - len(new))) :]
            else:
                new = new[: limit - len(old)]
        return [*old, *new]

    def _replaced(self, number: int, stamp: int, window: Window) -> list[Row]:
        """Return the entries of a window that are not newer than a stamp but were replaced after it."""
        bound = small_rows_max + 1 if self._small else -1
        found = self._connection.execute(_SELECT_CHANGED, (number, min(stamp, POSITION_MAX), bound)).fetchall()
        if self._small and len(found) > small_rows_max:
            raise TooLarge
        top = stamp if window.before is None else min(stamp, window.before - 1)
        keys = sorted(key for (key,) in found if window.after < (key & POSITION_MAX) <= top)
        rows = [self._connection.execute(self._statements.one, (key,)).fetchone() for key in keys]
        if None in rows:
            self._damaged("the index of replaced entries leads to one that is not there")
        return [row for row in rows if row is not None]

    def _named(self, number: int, window: Window) -> list[Row]:
        assert window.entry_ids is not None
        if self._small and len(window.entry_ids) > small_rows_max:
            raise TooLarge
        found = rows_by_id(self._connection, number, window.entry_ids, small=self._small)
        rows = sorted((row for row in found if _within(row, window)), key=lambda row: int(row[0]))
        if window.limit is None:
            return rows
        return rows[max(0, len(rows) - window.limit) :] if window.newest else rows[: window.limit]

    def _documents(self, there: StoredHead, names: Sequence[str] | None) -> dict[str, bytes]:
        """Return those of the named documents that the head says are there; None names all of them."""
        if self._small and there.documents:
            raise TooLarge
        kept: dict[str, bytes] = {}
        for name in there.documents if names is None else dict.fromkeys(names):
            if name not in there.documents:
                continue
            row = self._connection.execute(_SELECT_DOCUMENT, (there.number, name)).fetchone()
            if row is None:
                self._damaged(f"its document {name!r} is missing")
            elif type(row[0]) is not bytes or document_checksum(name, row[0]) != there.documents[name]:
                self._damaged(f"its document {name!r} is not what was written")
            else:
                kept[name] = row[0]
        return kept


def _in_order(entries: list[Entry]) -> tuple[Entry, ...]:
    """Return `entries`.

    Raises:
        ValueError: they are not in position order, each once: a damaged page led to some of them.
    """
    positions = [each.position for each in entries]
    if sorted(set(positions)) != positions:
        raise ValueError
    return tuple(entries)


def _bounds(there: StoredHead, after: int, before: int | None, limit: int | None) -> tuple[int, int, int]:
    """Return the keys, both exclusive, between which a range of positions lies, and SQLite's word for its limit."""
    low = there.base + min(after, POSITION_MAX)
    high = there.base + (POSITION_MAX + 1 if before is None else min(before, POSITION_MAX + 1))
    return low, high, -1 if limit is None else limit


def _missing(head: Head, window: Window, found: int, places: Sequence[int]) -> str | None:
    """Say what the head knows of a window and the table does not have, None where it has all.

    `found` is how many entries the table has, `places` the first and the last one's positions.
    """
    if not head.last_rewrite:  # only appends so far: every position up to the last is taken
        low = window.after + 1
        high = head.last_stamp if window.before is None else min(window.before - 1, head.last_stamp)
        count = max(0, high - low + 1)
        if window.limit is not None and window.limit < count:
            count = window.limit
            low, high = (high - count + 1, high) if window.newest else (low, low + count - 1)
        if found != count or (count and [*places] != [low, high]):
            return f"of its entries {low} to {high} some are missing"
    elif not window.after and window.before is None:
        count = head.entry_count if window.limit is None else min(head.entry_count, window.limit)
        if found != count:
            return f"{count - found} of its {head.entry_count} entries are missing"
    return None


def _within(row: Row, window: Window) -> bool:
    position = row[0] & POSITION_MAX
    stamp: Any = position if row[1] is None else row[1]
    return (
        position > window.after
        and (window.before is None or position < window.before)
        and (window.changed_after is None or type(stamp) is not int or stamp > window.changed_after)
    )


def _small_rows(rows: list[Row]) -> list[Row]:
    """Return rows without the body's length behind, if none is too long."""
    for row in rows:
        if row[7] is None or row[7] > small_body_bytes_max:
            raise TooLarge
    return [row[:7] for row in rows]
