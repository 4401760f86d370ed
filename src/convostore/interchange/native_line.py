"""One line of the native format: the five kinds of lines, and their form on disk.

A line is a JSON object in UTF-8 that ends with ``,"crc":N}`` and a newline; N is the CRC-32 of every byte before that
comma, so a damaged line is known by itself. Bytes travel as text where they are UTF-8 and as base64 where they are not.
docs/native-format.md is the description for other programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar
from zlib import crc32

import msgspec
from msgspec import Struct

from convostore import limits
from convostore.contracts.backend import Entry, Head
from convostore.contracts.checksum import document_checksum, entry_checksum, fields_checksum

__all__ = [
    "ConversationLine",
    "DocumentLine",
    "EndLine",
    "EntryLine",
    "EofLine",
    "Line",
    "OpeningLine",
    "decode_line",
    "decode_opening",
    "decode_own",
    "document_value",
    "encode_line",
    "entry_of",
    "fields_of",
    "line_bytes_max",
    "line_of_document",
    "line_of_entry",
    "line_of_head",
    "version",
]

version: Final = "native/1"

line_bytes_max: Final = 6 * limits.body_bytes_max + 1024 * 1024
r"""No line is longer: a byte of a body takes six at most (``\u0000``)."""


class OpeningLine(Struct, frozen=True):
    """The first line of a stream; it has `convostore` where the others have `line`."""

    convostore: str
    written_at_ms: int


class ConversationLine(Struct, frozen=True, kw_only=True, tag_field="line", tag="conversation", omit_defaults=True):
    """A conversation begins."""

    id: str
    context: str | None
    subject_id: str | None
    created_at_ms: int
    updated_at_ms: int
    born: str
    revision: str
    last_stamp: int
    last_rewrite: int
    fields: dict[str, str]
    fields64: dict[str, bytes] = {}
    checksum: int


class EntryLine(Struct, frozen=True, kw_only=True, tag_field="line", tag="entry", omit_defaults=True):
    """One entry; exactly one of `body` and `body64` is there."""

    position: int
    stamp: int
    id: str
    kind: str
    role: str | None
    dialect: str
    created_at_ms: int
    checksum: int
    body: str | None = None
    body64: bytes | None = None


class DocumentLine(Struct, frozen=True, kw_only=True, tag_field="line", tag="document", omit_defaults=True):
    """One document; exactly one of `value` and `value64` is there."""

    name: str
    checksum: int
    value: str | None = None
    value64: bytes | None = None


class EndLine(Struct, frozen=True, kw_only=True, tag_field="line", tag="end", omit_defaults=True):
    """A conversation ends; `sha256` is over its lines before this one. `damage`: what the writer could not read."""

    id: str
    entries: int
    documents: int
    sha256: str
    damage: tuple[str, ...] = ()


class EofLine(Struct, frozen=True, kw_only=True, tag_field="line", tag="eof"):
    """The stream ends; `sha256` is over all its end lines."""

    conversations: int
    sha256: str


Line: TypeAlias = ConversationLine | EntryLine | DocumentLine | EndLine | EofLine

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode
_decode_opening = msgspec.json.Decoder(OpeningLine).decode
_MARK = b',"crc":'


def encode_line(line: Line | OpeningLine) -> bytes:
    """Return a line's bytes, the newline included."""
    data = _encode(line)[:-1]
    return b'%b,"crc":%d}\n' % (data, crc32(data))


def decode_opening(data: bytes) -> OpeningLine:
    """Return the first line of a stream.

    Raises:
        ValueError: it is none, or damaged.
    """
    return _decode_checked(data, _decode_opening)


def decode_line(data: bytes) -> Line:
    """Return any line behind the first.

    Raises:
        ValueError: it is not what was written; the message says how that shows.
    """
    return _decode_checked(data, _decode)


def decode_own(data: bytes) -> Line:
    """Return a line that was checked before, and has not left this process since."""
    return _decode(data)


def _decode_checked(data: bytes, decode: Callable[[bytes], T]) -> T:
    if len(data) > line_bytes_max:
        raise ValueError("longer than any line of this format")
    if not data.endswith(b"\n"):
        raise ValueError("cut off before its end")
    at = data.rfind(_MARK)
    if at < 0:
        raise ValueError("no line of this format: it has no checksum at its end")
    if data[at + len(_MARK) :] != b"%d}\n" % crc32(data[:at]):
        raise ValueError("damaged: its checksum does not match")
    try:
        return decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"no line of {version}: {error}") from error


def line_of_head(head: Head) -> ConversationLine:
    """Return the line that begins a conversation."""
    texts, others = {}, {}
    for name, value in head.fields.items():
        if (text := _as_text(value)) is None:
            others[name] = value
        else:
            texts[name] = text
    return ConversationLine(
        id=head.conversation_id,
        context=head.context,
        subject_id=head.subject_id,
        created_at_ms=head.created_at_ms,
        updated_at_ms=head.updated_at_ms,
        born=head.born,
        revision=head.revision,
        last_stamp=head.last_stamp,
        last_rewrite=head.last_rewrite,
        fields=texts,
        fields64=others,
        checksum=fields_checksum(head.conversation_id, head.fields),
    )


def fields_of(line: ConversationLine) -> Mapping[str, bytes]:
    """Return a conversation's fields.

    Raises:
        ValueError: they do not match their checksum.
    """
    fields = {name: text.encode() for name, text in line.fields.items()} | line.fields64
    if fields_checksum(line.id, fields) != line.checksum:
        raise ValueError("damaged: the fields do not match their checksum")
    return fields


def line_of_entry(entry: Entry) -> EntryLine:
    """Return an entry's line."""
    text = _as_text(entry.body)
    return EntryLine(
        position=entry.position,
        stamp=entry.stamp,
        id=entry.entry_id,
        kind=entry.kind,
        role=entry.role,
        dialect=entry.dialect,
        created_at_ms=entry.created_at_ms,
        checksum=entry_checksum(entry.entry_id, entry.kind, entry.role, entry.dialect, entry.created_at_ms, entry.body),
        body=text,
        body64=entry.body if text is None else None,
    )


def entry_of(line: EntryLine, *, own: bool = False) -> Entry:
    """Return a line's entry; `own` as in `decode_own`.

    Raises:
        ValueError: it does not match its checksum, or has no body.
    """
    body = _only("body", line.body, line.body64)
    if not own and line.checksum != entry_checksum(
        line.id, line.kind, line.role, line.dialect, line.created_at_ms, body
    ):
        raise ValueError(f"damaged: entry {line.id!r} does not match its checksum")
    return Entry(line.position, line.stamp, line.id, line.kind, line.role, line.dialect, line.created_at_ms, body)


def line_of_document(name: str, value: bytes) -> DocumentLine:
    """Return a document's line."""
    text = _as_text(value)
    return DocumentLine(
        name=name,
        checksum=document_checksum(name, value),
        value=text,
        value64=value if text is None else None,
    )


def document_value(line: DocumentLine) -> bytes:
    """Return a line's document.

    Raises:
        ValueError: it does not match its checksum, or has no value.
    """
    value = _only("value", line.value, line.value64)
    if line.checksum != document_checksum(line.name, value):
        raise ValueError(f"damaged: document {line.name!r} does not match its checksum")
    return value


def _as_text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _only(what: str, text: str | None, data: bytes | None) -> bytes:
    if (text is None) == (data is None):
        raise ValueError(f"it needs one of {what} and {what}64")
    if data is not None:
        return data
    assert text is not None
    return text.encode()
