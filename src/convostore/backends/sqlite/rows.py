"""Rows: heads and entries as columns, and back, each checked against its checksum.

An entry's kind, role and dialect are one column, a line each; the line of an absent role is empty, and no name holds a line
break. Its checksum is the CRC-32 of key, stamp, time and the words' own CRC-32 as fixed-size numbers, then its id, then its
body, so that a row which turns up in another place, or with another stamp, is noticed too. A head's is the CRC-32 of its
other columns as one msgpack array, types included. Both are kept less 2**31, as signed 32-bit numbers, which take one to
four bytes. A column of the wrong type, NULL or cut short never passes for sound: either it raises here or it changes the
checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias
from zlib import crc32

import msgspec
from msgspec import Struct

from convostore.contracts.backend import Damage, Entry, Head

__all__ = [
    "ENTRY_COLUMNS",
    "HEAD_COLUMNS",
    "NOT_WRITTEN",
    "NUMBER_MAX",
    "POSITION_MAX",
    "Row",
    "StoredHead",
    "decode_entries",
    "decode_head",
    "encode_entry",
    "encode_head",
    "salvage_entries",
    "salvage_head",
]

Row: TypeAlias = Sequence[Any]
"""A row as sqlite3 gives or takes it."""

POSITION_MAX: Final = (1 << 32) - 1
"""The last position and the last stamp of a conversation: what a key has room for."""

NUMBER_MAX: Final = (1 << 31) - 2
"""The last number of a conversation."""

ENTRY_COLUMNS: Final = "key, stamp, entry_id, words, created_at_ms, checksum, body"
HEAD_COLUMNS: Final = (
    "number, conversation_id, born, revision, created_at_ms, updated_at_ms, context, subject_id,"
    " entry_count, last_stamp, last_rewrite, fields, documents, checksum"
)

NOT_WRITTEN: Final = (ValueError, TypeError, struct.error)
"""What decoding a row raises that is not what was written."""

_BIAS: Final = 1 << 31
_pack = struct.Struct("<qqqI").pack

_encode = msgspec.msgpack.Encoder().encode
_decode_fields = msgspec.msgpack.Decoder(dict[str, bytes]).decode
_decode_documents = msgspec.msgpack.Decoder(dict[str, int]).decode


class StoredHead(Struct, frozen=True):
    """A head with its number, its fields as stored, and the checksums of its documents by name."""

    number: int
    head: Head
    fields: bytes | None = None
    documents: Mapping[str, int] = {}

    @property
    def base(self) -> int:
        """What the keys of its entries have in common; 0, which no entry has, when the number is damaged and none at all."""
        return self.number << 32 if 0 < self.number <= NUMBER_MAX else 0


def encode_entry(number: int, entry: Entry) -> Row:
    """Return the row of an entry in the order of `ENTRY_COLUMNS`."""
    position, stamp, entry_id, kind, role, dialect, created_at_ms, body = (
        entry.position,
        entry.stamp,
        entry.entry_id,
        entry.kind,
        entry.role,
        entry.dialect,
        entry.created_at_ms,
        entry.body,
    )
    key = number << 32 | position
    words = _joined(kind, role, dialect)
    place = _pack(key, stamp, created_at_ms, _split(words)[3])
    checksum = crc32(body, crc32(entry_id.encode(), crc32(place))) - _BIAS
    return key, None if stamp == position else stamp, entry_id, words, created_at_ms, checksum, body


@lru_cache(maxsize=1024)
def _joined(kind: str, role: str | None, dialect: str) -> str:
    return f"{kind}\n{role or ''}\n{dialect}"


@lru_cache(maxsize=1024)
def _split(words: object) -> tuple[str, str | None, str, int]:
    """Return kind, role, dialect, and the CRC-32 of all three as they are stored."""
    if type(words) is not str:
        raise TypeError
    kind, role, dialect = words.split("\n")
    return kind, role or None, dialect, crc32(words.encode())


def decode_entries(rows: Iterable[Row], base: int) -> list[Entry]:
    """Return the entries of `rows`, every one of them sound and of the conversation whose keys begin at `base`.

    Raises:
        NOT_WRITTEN: some row is damaged; `salvage_entries` says which.
    """
    entries: list[Entry] = []
    append = entries.append
    for key, stamp, entry_id, words, created_at_ms, checksum, body in rows:
        position = key - base
        if not 0 < position <= POSITION_MAX:
            raise ValueError  # a damaged page led to another conversation
        if stamp is None:
            stamp = position
        if type(entry_id) is not str:
            raise TypeError
        kind, role, dialect, words_checksum = _split(words)
        place = _pack(key, stamp, created_at_ms, words_checksum)  # refuses what is no integer
        if crc32(body, crc32(entry_id.encode(), crc32(place))) - _BIAS != checksum:
            raise ValueError
        append(Entry(position, stamp, entry_id, kind, role, dialect, created_at_ms, body))
    return entries


def salvage_entries(conversation_id: str, rows: Iterable[Row], base: int) -> tuple[list[Entry], list[Damage]]:
    """Return the sound entries of `rows`, and what is wrong with each of the others."""
    entries: list[Entry] = []
    damage: list[Damage] = []
    for row in rows:
        try:
            entries += decode_entries((row,), base)
        except NOT_WRITTEN:
            entry_id = row[2] if type(row[2]) is str else None
            position = row[0] & POSITION_MAX
            damage.append(Damage(conversation_id, "it is not what was written", position, entry_id))
    return entries, damage


def encode_head(number: int, head: Head, fields: bytes | None, documents: Mapping[str, int]) -> Row:
    """Return the row of a head in the order of `HEAD_COLUMNS`; `fields` as stored, or None to encode those of `head`."""
    if fields is None and head.fields:
        fields = _encode(head.fields)
    columns = (
        number,
        head.conversation_id,
        head.born,
        head.revision,
        head.created_at_ms,
        head.updated_at_ms,
        head.context,
        head.subject_id,
        head.entry_count,
        head.last_stamp,
        head.last_rewrite,
        fields,
        _encode(documents) if documents else None,
    )
    return (*columns, crc32(_encode(columns)) - _BIAS)


def decode_head(row: Row) -> StoredHead | None:
    """Return the head in a row of `HEAD_COLUMNS`, with fields that are the caller's own; None if it is damaged."""
    if crc32(_encode(row[:13])) - _BIAS != row[13]:
        return None
    fields, documents = row[11:13]
    head = Head(*(*row[1:11], {} if fields is None else _decode_fields(fields)))
    return StoredHead(row[0], head, fields, {} if documents is None else _decode_documents(documents))


def salvage_head(row: Row, conversation_id: str) -> StoredHead:
    """Return what a damaged row still says: nothing in place of a column of the wrong type."""
    (number, _, born, revision, created_at_ms, updated_at_ms, context, subject_id) = row[:8]
    entry_count, last_stamp, last_rewrite, fields, documents = row[8:13]
    try:
        kept = {} if fields is None else _decode_fields(fields)
    except (msgspec.MsgspecError, TypeError, ValueError):
        kept = {}
    try:
        checksums = {} if documents is None else _decode_documents(documents)
    except (msgspec.MsgspecError, TypeError, ValueError):
        checksums = {}
    head = Head(
        conversation_id,
        born if type(born) is str else "",
        revision if type(revision) is str else "",
        created_at_ms if type(created_at_ms) is int else 0,
        updated_at_ms if type(updated_at_ms) is int else 0,
        context if type(context) is str else None,
        subject_id if type(subject_id) is str else None,
        entry_count if type(entry_count) is int else 0,
        last_stamp if type(last_stamp) is int else 0,
        last_rewrite if type(last_rewrite) is int else 0,
        kept,
    )
    return StoredHead(number, head, None, checksums)
