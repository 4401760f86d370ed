"""``hub/1``: the hub message as stored, and as the conversation contract's JSON.

A body holds what is the message's own: content, parts, toolCalls, toolCallId, metadata; what is empty is left out. Role, id
and time are the entry's, and are not written twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, get_args

import msgspec
from msgspec import Raw, Struct

from convostore.contracts.backend import Damage, Entry, NewEntry
from convostore.errors import CorruptDataError, InvalidInput
from convostore.ids import check_id
from convostore.model import exact_json
from convostore.model.exact_json import JsonObject
from convostore.model.message import (
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallRecord,
    ToolCallState,
    ToolResultPart,
)
from convostore.model.times import datetime_from_ms, iso_from_ms, ms_from_datetime, ms_from_iso

__all__ = [
    "DIALECT",
    "KIND",
    "check_message",
    "message_from_wire",
    "message_to_wire",
    "read",
    "read_all",
    "write",
    "write_checked",
]

DIALECT = "hub/1"
KIND = "message"

_ROLES = frozenset(get_args(Role))
_STATES = frozenset(get_args(ToolCallState))
_PARTS: tuple[type, ...] = get_args(Part)
_NULL = Raw(b"null")


class _Call(Struct, rename="camel", gc=False):
    tool_name: str
    tool_call_id: str
    state: ToolCallState
    input: Raw
    output: Raw = _NULL


class _ToolResult(Struct, tag="toolResult", rename="camel", omit_defaults=True, gc=False):
    output: Raw
    is_error: bool = False
    tool_call_id: str | None = None


class _Opaque(Struct, tag="opaque", gc=False):
    dialect: str
    value: Raw


class _Body(Struct, rename="camel", omit_defaults=True, gc=False):
    content: str = ""
    parts: tuple[TextPart | ThinkingPart | ImagePart | FilePart | _ToolResult | _Opaque, ...] = ()
    tool_calls: tuple[_Call, ...] = ()
    tool_call_id: str | None = None
    metadata: dict[str, Any] | None = None


_decode_body = msgspec.json.Decoder(_Body).decode


def write(message: Message, *, entry_id: str, created_at_ms: int) -> NewEntry:
    """Return the entry that keeps `message`, exactly.

    Raises:
        InvalidInput: the message is not well formed, or JSON cannot carry a value in it exactly.
    """
    check_message(message)
    return write_checked(message, entry_id=entry_id, created_at_ms=created_at_ms)


def write_checked(message: Message, *, entry_id: str, created_at_ms: int) -> NewEntry:
    """Return the entry that keeps a message that `check_message` has passed.

    Raises:
        InvalidInput: JSON cannot carry a value in it exactly.
    """
    return NewEntry(
        entry_id=entry_id,
        kind=KIND,
        role=message.role,
        dialect=DIALECT,
        created_at_ms=created_at_ms,
        body=_encoded(message),
    )


def read(entry: Entry, conversation_id: str | None = None) -> Message:
    """Return the message in an entry of this dialect; free JSON in it is decoded when touched.

    Raises:
        CorruptDataError: the body is not one of this dialect.
    """
    return read_all((entry,), conversation_id)[0]


def read_all(entries: Sequence[Entry], conversation_id: str | None) -> list[Message]:
    """Return the messages in entries of this dialect: what `read` returns, in one loop.

    Raises:
        CorruptDataError: a body is not one of this dialect.
    """
    messages: list[Message] = []
    append, decode = messages.append, _decode_body
    for entry in entries:
        try:
            body = decode(entry.body)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            body = _decode_again(entry, conversation_id)
        parts: Any = body.parts
        tool_calls: Any = body.tool_calls
        append(
            Message(
                role=entry.role,  # type: ignore[arg-type]  # written by `write`, so it is one
                content=body.content,
                parts=tuple([_part_from(each) for each in parts]) if parts else parts,
                tool_calls=tuple([_call_from(each) for each in tool_calls]) if tool_calls else tool_calls,
                tool_call_id=body.tool_call_id,
                metadata=body.metadata,
                id=entry.entry_id,
                conversation_id=conversation_id,
                created_at=datetime_from_ms(entry.created_at_ms),
            )
        )
    return messages


def _decode_again(entry: Entry, conversation_id: str | None) -> _Body:
    """Read a body that msgspec refuses, for a lone surrogate in it or for damage."""
    try:
        return _decode_with_surrogates(entry.body)
    except ValueError as error:
        damage = Damage(conversation_id or "", f"not a {DIALECT} body: {error}", entry.position, entry.entry_id)
        raise CorruptDataError(conversation_id or "", [damage]) from error


def message_to_wire(message: Message) -> JsonObject:
    """Return the conversation contract's JSON of a message: content always there, what is absent absent."""
    wire: JsonObject = {}
    if message.id is not None:
        wire["id"] = message.id
    if message.conversation_id is not None:
        wire["conversationId"] = message.conversation_id
    wire |= {"role": message.role, "content": message.content}
    wire |= exact_json.decode(_encoded(message))
    if message.created_at is not None:
        wire["createdAt"] = iso_from_ms(ms_from_datetime(message.created_at))
    return wire


def message_from_wire(wire: JsonObject) -> Message:
    """Return the message that `wire` is the JSON of.

    Raises:
        InvalidInput: it is not one; an unknown field is named rather than dropped.
    """
    if not isinstance(wire, dict):
        raise InvalidInput(f"a message must be a JSON object, not {type(wire).__name__}")
    if unknown := set(wire) - _WIRE_FIELDS:
        raise InvalidInput(f"a message has no field {sorted(map(str, unknown))[0]!r}; put your own into metadata")
    exact_json.check(wire, "message")
    own = {name: value for name, value in wire.items() if name not in ("id", "conversationId", "role", "createdAt")}
    if own.get("toolCalls", ()) is None:
        del own["toolCalls"]
    try:
        body = msgspec.convert(_with_raw_payloads(own), _Body)
    except (msgspec.ValidationError, TypeError, AttributeError, KeyError) as error:
        raise InvalidInput(f"not a message: {error}") from error
    message = Message(
        role=wire.get("role"),  # type: ignore[arg-type]  # check_message refuses what is none
        content=body.content,
        parts=tuple(map(_part_from, body.parts)),
        tool_calls=tuple(map(_call_from, body.tool_calls)),
        tool_call_id=body.tool_call_id,
        metadata=body.metadata,
        id=wire.get("id"),
        conversation_id=wire.get("conversationId"),
        created_at=datetime_from_ms(ms_from_iso(wire["createdAt"], "createdAt")) if wire.get("createdAt") else None,
    )
    check_message(message)
    return message


_WIRE_FIELDS = frozenset(
    {"id", "conversationId", "role", "content", "parts", "toolCalls", "toolCallId", "metadata", "createdAt"}
)


def check_message(message: object) -> None:
    """Raise InvalidInput unless `message` is a well-formed Message; free JSON in it is checked when it is encoded."""
    if not isinstance(message, Message):
        raise InvalidInput(f"a message must be a convostore.Message, not {type(message).__name__}")
    if message.role not in _ROLES:
        raise InvalidInput(f"role must be one of {sorted(_ROLES)}, not {message.role!r}")
    if type(message.content) is not str:
        raise InvalidInput(
            f"content must be a string, not {type(message.content).__name__}; use parts for more than text"
        )
    if message.id is not None:
        check_id(message.id, "message id")
    if message.metadata is not None and type(message.metadata) is not dict:
        raise InvalidInput(f"metadata must be a dict or None, not {type(message.metadata).__name__}")
    _check_optional_text(message.tool_call_id, "tool_call_id")
    if message.parts != ():
        _check_items("parts", message.parts, _PARTS)
    if message.tool_calls != ():
        _check_items("tool_calls", message.tool_calls, (ToolCallRecord,))
        for call in message.tool_calls:
            check_call(call)


def _check_items(name: str, items: object, kinds: tuple[type, ...]) -> None:
    if not isinstance(items, tuple | list):
        raise InvalidInput(f"{name} must be a tuple, not {type(items).__name__}")
    for each in items:
        if not isinstance(each, kinds):
            raise InvalidInput(f"{name} holds a {type(each).__name__}, which is none of {[k.__name__ for k in kinds]}")


def check_call(call: ToolCallRecord) -> None:
    """Raise InvalidInput unless names are strings, the state is one, and a pending call has no output."""
    if type(call.tool_name) is not str:
        raise InvalidInput(f"tool_name must be a string, not {type(call.tool_name).__name__}")
    if type(call.tool_call_id) is not str:
        raise InvalidInput(f"tool_call_id must be a string, not {type(call.tool_call_id).__name__}")
    if call.state not in _STATES:
        raise InvalidInput(
            f"the state of call {call.tool_call_id!r} must be one of {sorted(_STATES)}, not {call.state!r}"
        )
    if call.state == "pending" and call.output is not None:
        raise InvalidInput(
            f"call {call.tool_call_id!r} is pending and has an output; its output must be None until then"
        )


def _check_optional_text(value: object, what: str) -> None:
    if value is not None and type(value) is not str:
        raise InvalidInput(f"{what} must be a string or None, not {type(value).__name__}")


def _body_of(message: Message) -> _Body:
    if message.metadata is not None:
        exact_json.check(message.metadata, "metadata")
    return _Body(
        content=message.content,
        parts=tuple([_part_to(each) for each in message.parts]) if message.parts else (),
        tool_calls=tuple([_call_to(each) for each in message.tool_calls]) if message.tool_calls else (),
        tool_call_id=message.tool_call_id,
        metadata=message.metadata,
    )


def _encoded(message: Message) -> bytes:
    try:
        return exact_json.encode_checked(_body_of(message))
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"this message cannot be kept exactly: {error}") from error


def _call_to(call: ToolCallRecord) -> _Call:
    what = call.tool_call_id
    return _Call(
        call.tool_name,
        call.tool_call_id,
        call.state,
        call.payload("input", f"the input of tool call {what!r}"),
        call.payload("output", f"the output of tool call {what!r}"),
    )


def _call_from(call: _Call) -> ToolCallRecord:
    return ToolCallRecord.undecoded(call.tool_name, call.tool_call_id, call.state, call.input, call.output)


def _part_to(part: Part) -> TextPart | ThinkingPart | ImagePart | FilePart | _ToolResult | _Opaque:
    if isinstance(part, ToolResultPart):
        return _ToolResult(part.payload("output", "a tool result"), part.is_error, part.tool_call_id)
    if isinstance(part, OpaquePart):
        return _Opaque(part.dialect, part.payload("value", "an opaque part"))
    try:
        return msgspec.convert(msgspec.to_builtins(part), type(part))  # a Struct does not check its fields when built
    except msgspec.ValidationError as error:
        raise InvalidInput(f"not a {type(part).__name__}: {error}") from error


def _part_from(part: TextPart | ThinkingPart | ImagePart | FilePart | _ToolResult | _Opaque) -> Part:
    if isinstance(part, _ToolResult):
        return ToolResultPart.undecoded(part.output, part.is_error, part.tool_call_id)
    if isinstance(part, _Opaque):
        return OpaquePart.undecoded(part.dialect, part.value)
    return part


def _decode_with_surrogates(data: bytes) -> _Body:
    """Read a body that msgspec refuses for a lone surrogate in it."""
    try:
        return msgspec.convert(_with_raw_payloads(exact_json.decode(data)), _Body)
    except (msgspec.ValidationError, TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"not a {DIALECT} body: {error}") from error


def _with_raw_payloads(plain: JsonObject) -> JsonObject:
    """Return the builtins of a body with its free JSON as text again, which is how `_Body` holds it."""
    calls = [
        each | {name: Raw(json.dumps(each[name]).encode()) for name in ("input", "output") if name in each}
        for each in plain.get("toolCalls", ())
    ]
    parts = [
        each | {name: Raw(json.dumps(each[name]).encode()) for name in ("output", "value") if name in each}
        for each in plain.get("parts", ())
    ]
    return plain | ({"toolCalls": calls} if calls else {}) | ({"parts": parts} if parts else {})
