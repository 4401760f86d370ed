"""The floor: what a careful engineer writes by hand for one application, with sqlite3 in one thread.

The same tables and indexes, made by the library's own schema module; WAL, synchronous=FULL, one transaction a turn; prepared
statements, msgspec in typed structs, time-ordered ids. It keeps the same bytes and gives the same objects.

It leaves out what the library promises beyond that and what an application can do without: checking what it is given, checksums
(the column gets a constant), repeated commits recognised, guards, other threads, waiting for other processes, secure deletion.
So it is a low floor, and everything in that list is paid for by the library's side of a ratio.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
import uuid_utils
from msgspec import Struct

from convostore.backends.sqlite import schema
from convostore.model.conversation import Conversation
from convostore.model.message import (
    FilePart,
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallRecord,
    ToolCallState,
    ToolResultPart,
)

__all__ = ["Floor"]

_CHECKSUM: Final = 1_000_000_000
_LAST: Final = (1 << 32) - 1
_ROLES: Final[dict[str, Role]] = {f"message\n{role}\nhub/1": role for role in get_args(Role)}
_WORDS: Final[dict[Role, str]] = {role: words for words, role in _ROLES.items()}


class _Call(Struct, rename="camel"):
    tool_name: str
    tool_call_id: str
    state: ToolCallState
    input: Any
    output: Any = None


class _ToolResult(Struct, tag="toolResult", rename="camel", omit_defaults=True):
    output: Any
    is_error: bool = False
    tool_call_id: str | None = None


class _Body(Struct, rename="camel", omit_defaults=True):
    content: str = ""
    parts: tuple[TextPart | ThinkingPart | ImagePart | FilePart | _ToolResult, ...] = ()
    tool_calls: tuple[_Call, ...] = ()
    tool_call_id: str | None = None
    metadata: dict[str, Any] | None = None


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Body).decode
_decode_fields: Final = msgspec.msgpack.Decoder(dict[str, bytes]).decode
_decode_json: Final = msgspec.json.Decoder().decode


class Floor:
    """One open database."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        schema.prepare(self._connection)
        self._execute = self._connection.execute
        # What costs or saves time is as in the library; what protects is left at SQLite's defaults.
        self._execute("PRAGMA synchronous = FULL")
        self._execute("PRAGMA wal_autocheckpoint = 2000")
        self._execute("PRAGMA cache_size = -8192")

    def close(self) -> None:
        self._connection.close()

    def create(self, context: str, subject_id: str) -> str:
        conversation_id = str(uuid_utils.uuid7())
        now = time.time_ns() // 1_000_000
        self._execute(
            "INSERT INTO conversations (conversation_id, born, revision, created_at_ms, updated_at_ms, context, subject_id,"
            " entry_count, last_stamp, last_rewrite, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, 0, ?)",
            (conversation_id, conversation_id, conversation_id, now, now, context, subject_id, _CHECKSUM),
        )
        return conversation_id

    def append(self, conversation_id: str, messages: Sequence[Message]) -> list[str]:
        """Append in one transaction and return the new ids."""
        now = time.time_ns() // 1_000_000
        ids = [str(uuid_utils.uuid7()) for _ in messages]
        bodies = [_encode(_body(message)) for message in messages]
        execute = self._execute
        execute("BEGIN IMMEDIATE")
        number, last, updated = execute(
            "SELECT number, last_stamp, updated_at_ms FROM conversations WHERE conversation_id = ?", (conversation_id,)
        ).fetchone()
        first = (number << 32) + last + 1
        rows = [
            (first + index, ids[index], _WORDS[message.role], now, _CHECKSUM, bodies[index])
            for index, message in enumerate(messages)
        ]
        self._connection.executemany(
            "INSERT INTO entries (key, entry_id, words, created_at_ms, checksum, body) VALUES (?, ?, ?, ?, ?, ?)", rows
        )
        execute(
            "UPDATE conversations SET revision = ?, updated_at_ms = ?, entry_count = entry_count + ?, last_stamp = ?"
            " WHERE number = ?",
            (str(uuid_utils.uuid7()), max(now, updated + 1), len(rows), last + len(rows), number),
        )
        execute("COMMIT")
        return ids

    def load(self, conversation_id: str, limit: int | None = None) -> list[Message]:
        """Return all messages, or the last `limit`."""
        (number,) = self._execute(
            "SELECT number FROM conversations WHERE conversation_id = ?", (conversation_id,)
        ).fetchone()
        low = number << 32
        columns = "SELECT entry_id, words, created_at_ms, body FROM entries WHERE key BETWEEN ? AND ? ORDER BY key"
        if limit is None:
            rows = self._execute(columns, (low, low + _LAST)).fetchall()
        else:
            rows = self._execute(f"{columns} DESC LIMIT ?", (low, low + _LAST, limit)).fetchall()
            rows.reverse()
        return [
            _message(_decode(body), entry_id, _ROLES[words], conversation_id, created_at_ms)
            for entry_id, words, created_at_ms, body in rows
        ]

    def find_latest(self, context: str, subject_id: str) -> Conversation | None:
        row = self._execute(
            f"SELECT {_HEAD} FROM conversations WHERE context = ? AND subject_id = ? ORDER BY number DESC LIMIT 1",
            (context, subject_id),
        ).fetchone()
        return None if row is None else _conversation(*row)

    def first_page(self, limit: int) -> list[Conversation]:
        """Return the conversations changed last."""
        rows = self._execute(
            f"SELECT {_HEAD} FROM conversations ORDER BY updated_at_ms DESC, number DESC LIMIT ?", (limit,)
        )
        return [_conversation(*row) for row in rows]


def _body(message: Message) -> _Body:
    return _Body(
        message.content,
        tuple([_part(part) for part in message.parts]),
        tuple(
            [
                _Call(call.tool_name, call.tool_call_id, call.state, call.input, call.output)
                for call in message.tool_calls
            ]
        ),
        message.tool_call_id,
        message.metadata,
    )


def _part(part: Part) -> Any:
    if type(part) is ToolResultPart:
        return _ToolResult(part.output, part.is_error, part.tool_call_id)
    return part


def _message(body: _Body, entry_id: str, role: Role, conversation_id: str, created_at_ms: int) -> Message:
    parts: Any = body.parts
    if parts:
        parts = tuple(
            [
                ToolResultPart(each.output, each.is_error, each.tool_call_id) if type(each) is _ToolResult else each
                for each in parts
            ]
        )
    calls: tuple[ToolCallRecord, ...] = ()
    if body.tool_calls:
        calls = tuple(
            [
                ToolCallRecord(each.tool_name, each.tool_call_id, each.state, each.input, each.output)
                for each in body.tool_calls
            ]
        )
    return Message(
        role=role,
        content=body.content,
        parts=parts,
        tool_calls=calls,
        tool_call_id=body.tool_call_id,
        metadata=body.metadata,
        id=entry_id,
        conversation_id=conversation_id,
        created_at=datetime.fromtimestamp(created_at_ms / 1000, UTC),
    )


_HEAD: Final = "conversation_id, context, subject_id, created_at_ms, updated_at_ms, entry_count, revision, fields"


def _conversation(
    conversation_id: str,
    context: str | None,
    subject_id: str | None,
    created_at_ms: int,
    updated_at_ms: int,
    entry_count: int,
    revision: str,
    fields: bytes | None,
) -> Conversation:
    values = {} if fields is None else {name: _decode_json(text) for name, text in _decode_fields(fields).items()}
    return Conversation(
        id=conversation_id,
        context=context,
        subject_id=subject_id,
        created_at=datetime.fromtimestamp(created_at_ms / 1000, UTC),
        updated_at=datetime.fromtimestamp(updated_at_ms / 1000, UTC),
        message_count=entry_count,
        revision=revision,
        **values,
    )
