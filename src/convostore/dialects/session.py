"""``session/1``: messages of an agent runtime, in the session contract's own JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from msgspec import UNSET

from convostore.contracts.backend import Entry, NewEntry
from convostore.errors import InvalidInput
from convostore.model import exact_json
from convostore.model.exact_json import JsonObject
from convostore.model.message import (
    ImagePart,
    Message,
    OpaquePart,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallRecord,
    ToolResultPart,
)
from convostore.model.session_message import SessionMessage
from convostore.model.times import datetime_from_ms, ms_from_datetime, ms_max, ms_min
from convostore.model.tool_output import as_object, output_of, result_in, text_of, value_of

__all__ = ["DIALECT", "from_hub", "native", "read", "result_of", "revise", "write"]

DIALECT = "session/1"
KIND = "message"
_HUB_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "toolResult": "tool"}


def write(message: SessionMessage, *, entry_id: str, now_ms: int) -> NewEntry:
    """Return the entry that keeps `message` exactly; its time is the message's timestamp, if it has a usable one.

    Raises:
        InvalidInput: it is not a session message, or JSON cannot carry it exactly.
    """
    plain = _checked(message)
    timestamp = plain.get("timestamp")
    if type(timestamp) is not int or not ms_min <= timestamp <= ms_max:
        timestamp = now_ms
    return NewEntry(
        entry_id=entry_id,
        kind=KIND,
        role=_HUB_ROLES[plain["role"]],
        dialect=DIALECT,
        created_at_ms=timestamp,
        body=exact_json.encode(plain, "message"),
    )


def _checked(message: object) -> JsonObject:
    if type(message) is not dict:
        raise InvalidInput(f"a session message must be a dict, not {type(message).__name__}")
    role, content = message.get("role"), message.get("content")
    if type(role) is not str or role not in _HUB_ROLES:
        raise InvalidInput(f"the role of a session message must be one of {sorted(_HUB_ROLES)}, not {role!r}")
    if type(content) is list:
        for block in content:
            if type(block) is not dict or type(block.get("type")) is not str:
                raise InvalidInput(f"content of a {role} message holds {block!r:.80}; each part needs a 'type'")
    elif type(content) is not str:
        raise InvalidInput(f"content of a {role} message must be a string or a list, not {type(content).__name__}")
    if role == "toolResult" and type(message.get("toolCallId")) is not str:
        raise InvalidInput("a toolResult message needs a 'toolCallId'")
    return message


def native(entry: Entry) -> JsonObject:
    """Return the message as it was written.

    Raises:
        ValueError: the body is not a JSON object.
    """
    return exact_json.decode_object(entry.body)


def read(entry: Entry, conversation_id: str | None = None) -> Message:
    """Return the hub's reading of an entry of this dialect.

    Raises:
        ValueError: the body is not a JSON object.
    """
    return _to_hub(native(entry), entry, conversation_id)


def _to_hub(plain: JsonObject, entry: Entry, conversation_id: str | None) -> Message:
    content = plain.get("content")
    blocks = (
        content
        if isinstance(content, list)
        else [{"type": "text", "text": content if isinstance(content, str) else ""}]
    )
    texts = [block["text"] for block in blocks if _is_text(block)]
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        parts = []
    role: Role = cast(Role, entry.role)
    if role == "tool":
        parts = [part for part in parts if not isinstance(part, TextPart)]
        failed = plain.get("isError") is True
        output = output_of(success=not failed, message="\n".join(texts), data=plain.get("details", UNSET))
        parts.append(ToolResultPart(output=output, is_error=failed))
    call_id = plain.get("toolCallId")
    return Message(
        role=role,
        content="\n".join(texts),
        parts=tuple(parts),
        tool_calls=tuple(_call(block) for block in blocks if _is_call(block)),
        tool_call_id=call_id if isinstance(call_id, str) else None,
        id=entry.entry_id,
        conversation_id=conversation_id,
        created_at=datetime_from_ms(entry.created_at_ms),
    )


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _is_call(block: Any) -> bool:
    return (
        isinstance(block, dict)
        and block.get("type") == "toolCall"
        and isinstance(block.get("id"), str)
        and isinstance(block.get("name"), str)
    )


def _call(block: JsonObject) -> ToolCallRecord:
    return ToolCallRecord(block["name"], block["id"], "pending", block.get("arguments"))


def _part(block: Any) -> Part | None:
    if _is_call(block):
        return None
    if _is_text(block):
        return TextPart(block["text"])
    if isinstance(block, dict):
        if block.get("type") == "thinking" and isinstance(block.get("thinking"), str):
            signature = block.get("thinkingSignature")
            return ThinkingPart(
                block["thinking"], signature if isinstance(signature, str) else None, block.get("redacted") is True
            )
        if block.get("type") == "image" and isinstance(block.get("data"), str):
            media_type = block.get("mimeType")
            return ImagePart(media_type if isinstance(media_type, str) else None, block["data"])
    return OpaquePart(DIALECT, block)


def from_hub(message: Message, *, tool_name: str = "unknown") -> SessionMessage:
    """Return `message` in this dialect, with the defaults of X5 for what the hub does not know.

    `tool_name` is that of the call a "tool" message answers.
    """
    timestamp = ms_from_datetime(message.created_at) if message.created_at is not None else 0
    plain: JsonObject
    if message.role == "tool":
        state, output = result_in(message)
        content = [{"type": "text", "text": message.content}] if message.content else []
        plain = {
            "role": "toolResult",
            "toolCallId": message.tool_call_id or "unknown",
            "toolName": tool_name,
            "content": content + [block for part in message.parts if (block := _image(part))],
        }
        if (details := value_of(output)) is not UNSET:
            plain["details"] = details
        plain |= {"isError": state == "error", "timestamp": timestamp}
    elif message.role == "assistant":
        plain = {
            "role": "assistant",
            "content": _blocks(message) + [call_block(call) for call in message.tool_calls],
            "api": "unknown",
            "provider": "unknown",
            "model": "unknown",
            "usage": {
                "input": 0,
                "output": 0,
                "cacheRead": 0,
                "cacheWrite": 0,
                "totalTokens": 0,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
            },
            "stopReason": "toolUse" if message.tool_calls else "stop",
            "timestamp": timestamp,
        }
    else:
        blocks = _blocks(message)
        rich = any(block["type"] != "text" for block in blocks) or len(blocks) > 1
        plain = {"role": message.role, "content": blocks if rich else message.content, "timestamp": timestamp}
    return cast(SessionMessage, plain)


def call_block(call: ToolCallRecord) -> JsonObject:
    """Return a call as a content part of an assistant message."""
    return {"type": "toolCall", "id": call.tool_call_id, "name": call.tool_name, "arguments": as_object(call.input)}


def _blocks(message: Message) -> list[JsonObject]:
    if not any(isinstance(part, TextPart) for part in message.parts) and message.content:
        text: list[JsonObject] = [{"type": "text", "text": message.content}]
    else:
        text = []
    thinking: list[JsonObject] = []
    others: list[JsonObject] = []
    for part in message.parts:
        if isinstance(part, ThinkingPart):
            block: JsonObject = {"type": "thinking", "thinking": part.text}
            if part.signature is not None:
                block["thinkingSignature"] = part.signature
            if part.redacted:
                block["redacted"] = True
            # Where no text part says otherwise, thinking comes before the text it led to.
            (others if not text else thinking).append(block)
        elif isinstance(part, TextPart):
            others.append({"type": "text", "text": part.text})
        elif (image := _image(part)) is not None:
            others.append(image)
        elif isinstance(part, OpaquePart) and part.dialect == DIALECT and isinstance(part.value, dict):
            others.append(part.value)
    return thinking + text + others


def _image(part: Part) -> JsonObject | None:
    if isinstance(part, ImagePart) and part.data is not None:
        return {"type": "image", "data": part.data, "mimeType": part.media_type or "application/octet-stream"}
    return None


def result_of(call: ToolCallRecord, message: Message) -> SessionMessage:
    """Return the toolResult message of a finished call whose result is in its own record, in `message`."""
    output = call.output
    plain: JsonObject = {
        "role": "toolResult",
        "toolCallId": call.tool_call_id,
        "toolName": call.tool_name,
        "content": [{"type": "text", "text": text_of(output)}],
    }
    if (details := value_of(output)) is not UNSET:
        plain["details"] = details
    timestamp = ms_from_datetime(message.created_at) if message.created_at is not None else 0
    return cast(SessionMessage, plain | {"isError": call.state == "error", "timestamp": timestamp})


def revise(entry: Entry, old: Message, new: Message) -> JsonObject:
    """Return the native message of `entry` with what changed from `old` to `new`, two hub readings of it."""
    plain = dict(native(entry))
    if new.role == "tool":
        state, output = result_in(new)
        plain["isError"] = state == "error"
        if (details := value_of(output)) is UNSET:
            plain.pop("details", None)
        else:
            plain["details"] = details
    content = plain.get("content")
    if isinstance(content, str) and not new.tool_calls:
        return plain | {"content": new.content}
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    if new.content != old.content:
        blocks = _with_text(blocks, new.content)
    return plain | {"content": _with_calls(blocks, new.tool_calls)}


def _with_text(blocks: Sequence[Any], text: str) -> list[Any]:
    """Put `text` in the place of the first text part and drop the others; without any, put it before the calls."""
    where = next((i for i, block in enumerate(blocks) if _is_text(block)), None)
    if where is None:
        where = next((i for i, block in enumerate(blocks) if _is_call(block)), len(blocks))
        return [*blocks[:where], {"type": "text", "text": text}, *blocks[where:]]
    fresh = [{**blocks[where], "text": text}] if text else []
    return [*blocks[:where], *fresh, *(block for block in blocks[where + 1 :] if not _is_text(block))]


def _with_calls(blocks: Sequence[Any], calls: Sequence[ToolCallRecord]) -> list[Any]:
    wanted = {call.tool_call_id: call for call in calls}
    kept: list[Any] = []
    for block in blocks:
        if not _is_call(block):
            kept.append(block)
        elif (call := wanted.pop(block["id"], None)) is not None:
            same = _call(block).input == call.input and block["name"] == call.tool_name
            kept.append(block if same else block | {"name": call.tool_name, "arguments": as_object(call.input)})
    return kept + [call_block(call) for call in wanted.values()]
