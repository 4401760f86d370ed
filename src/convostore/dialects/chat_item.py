"""``chat_item/1``: items of a chat interface, in the storage adapter contract's own JSON."""

from __future__ import annotations

import math
from typing import cast

from msgspec import UNSET

from convostore import limits
from convostore.contracts.backend import Entry, NewEntry
from convostore.errors import InvalidInput
from convostore.ids import check_id
from convostore.model import exact_json
from convostore.model.chat_item import ChatItem, ToolCallStatus
from convostore.model.exact_json import JsonObject
from convostore.model.message import Message, OpaquePart, Role, ToolCallRecord, ToolCallState
from convostore.model.times import datetime_from_ms, iso_from_ms, ms_from_datetime
from convostore.model.tool_output import as_object, from_object, has_shape, output_of, value_of

__all__ = [
    "DIALECT",
    "call_from_item",
    "call_item",
    "message_item",
    "native",
    "read",
    "revise",
    "tool_call_of",
    "write",
]

DIALECT = "chat_item/1"
_STATES: dict[str, ToolCallState] = {
    "pending": "pending",
    "executing": "pending",
    "completed": "success",
    "error": "error",
}
_STATUSES: dict[ToolCallState, ToolCallStatus] = {"pending": "pending", "success": "completed", "error": "error"}


def write(item: ChatItem, *, entry_id: str, now_ms: int) -> NewEntry:
    """Return the entry that keeps `item` exactly.

    Raises:
        InvalidInput: it is not a chat item, or JSON cannot carry it exactly.
    """
    plain = _checked(item)
    kind = plain["type"]
    roles = {"message": plain.get("role"), "tool_call": "assistant"}
    return NewEntry(
        entry_id=entry_id, kind=kind, role=roles.get(kind), dialect=DIALECT, created_at_ms=now_ms,
        body=exact_json.encode(plain, "item"),
    )  # fmt: skip


def _checked(item: object) -> JsonObject:
    if type(item) is not dict:
        raise InvalidInput(f"an item must be a dict, not {type(item).__name__}")
    _need(item, "id", "an item", str, int, float)
    if isinstance(item["id"], float) and not math.isfinite(item["id"]):
        raise InvalidInput(f"the id of an item must be a string or a JSON number, not {item['id']}")
    kind = check_id(item.get("type"), "the type of an item", bytes_max=limits.name_bytes_max)
    if kind == "message":
        _need(item, "content", "a message item", str)
        if item.get("role") not in ("user", "assistant"):
            raise InvalidInput(f"the role of a message item must be user or assistant, not {item.get('role')!r}")
    elif kind == "tool_call":
        call = _need(item, "toolCall", "a tool_call item", dict)
        _need(call, "id", "toolCall", str)
        _need(call, "name", "toolCall", str)
        _need(call, "arguments", "toolCall", dict)
        if call.get("status") not in _STATES:
            raise InvalidInput(f"the status of a toolCall must be one of {sorted(_STATES)}, not {call.get('status')!r}")
    elif kind == "card":
        card = _need(item, "card", "a card item", dict)
        _need(card, "id", "card", str)
        _need(card, "type", "card", str)
        _need(card, "content", "card", dict)
    return item


def _need(owner: JsonObject, name: str, what: str, *kinds: type) -> JsonObject:
    value = owner.get(name)
    if type(value) not in kinds:
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise InvalidInput(f"{what} needs {name!r} as {wanted}, not {value!r:.80}")
    return cast(JsonObject, value)


def native(entry: Entry) -> JsonObject:
    """Return the item as it was written.

    Raises:
        ValueError: the body is not a JSON object.
    """
    return exact_json.decode_object(entry.body)


def read(entry: Entry, conversation_id: str | None = None) -> Message:
    """Return the hub's reading of an item: a message, an assistant message with one call, or an opaque part.

    Raises:
        ValueError: the body is not a JSON object.
    """
    plain = native(entry)
    role = entry.role if entry.role in ("user", "assistant") else "assistant"
    call = tool_call_of(plain) if entry.kind == "tool_call" else None
    shown = entry.kind == "message" or call is not None
    content = plain.get("content") if entry.kind == "message" else ""
    return Message(
        role=cast(Role, role),
        content=content if isinstance(content, str) else "",
        parts=() if shown else (OpaquePart(DIALECT, plain),),
        tool_calls=() if call is None else (call,),
        id=entry.entry_id,
        conversation_id=conversation_id,
        created_at=datetime_from_ms(entry.created_at_ms),
    )


def tool_call_of(item: JsonObject) -> ToolCallRecord | None:
    """Return the call in a tool_call item, or None when there is none that can be read."""
    call = item.get("toolCall")
    if not isinstance(call, dict) or not isinstance(call.get("id"), str) or not isinstance(call.get("name"), str):
        return None
    return call_from_item(call, ToolCallRecord(call["name"], call["id"], "pending", call.get("arguments")))


def call_from_item(call: JsonObject, before: ToolCallRecord) -> ToolCallRecord:
    """Return `before` as a toolCall object now has it: name, arguments, status, result and error."""
    state = _STATES.get(str(call.get("status")), "pending")
    error = call.get("error")
    output = None
    if state != "pending":
        output = output_of(
            success=state == "success",
            message=error if isinstance(error, str) else "",
            data=call.get("result", UNSET),
            error=error if isinstance(error, str) else None,
        )
    arguments = from_object(as_object(call.get("arguments")), before.input)
    return ToolCallRecord(str(call.get("name")), before.tool_call_id, state, arguments, output)


def message_item(message: Message, item_id: str) -> JsonObject:
    """Return the text of a user or assistant message as an item."""
    item: JsonObject = {"id": item_id, "type": "message", "content": message.content, "role": message.role}
    if message.created_at is not None:
        item["timestamp"] = iso_from_ms(ms_from_datetime(message.created_at))
    return item


def call_item(call: ToolCallRecord, item_id: str) -> JsonObject:
    """Return a call, with its result if it has one, as an item."""
    return {"id": item_id, "type": "tool_call", "toolCall": _call_object(call)}


def _call_object(call: ToolCallRecord) -> JsonObject:
    plain: JsonObject = {
        "id": call.tool_call_id,
        "name": call.tool_name,
        "arguments": as_object(call.input),
        "status": _STATUSES[call.state],
    }
    if call.state == "pending":
        return plain
    output = call.output
    if (result := value_of(output)) is not UNSET:
        plain["result"] = result
    elif has_shape(output) and output["message"] and call.state == "success":
        plain["result"] = output["message"]
    if call.state == "error":
        error = (output.get("error") or output["message"]) if has_shape(output) else None
        if error:
            plain["error"] = error
    return plain


def revise(entry: Entry, old: Message, new: Message) -> JsonObject:
    """Return the native item of `entry` with what changed from `old` to `new`, two hub readings of it."""
    plain = dict(native(entry))
    if entry.kind == "message":
        return plain | {"content": new.content, "role": new.role}
    if entry.kind == "tool_call" and new.tool_calls and new.tool_calls != old.tool_calls:
        before = dict(plain["toolCall"])
        after = _call_object(new.tool_calls[0])
        if after["status"] == "pending" and before.get("status") == "executing":
            after["status"] = "executing"
        for name in ("result", "error"):
            before.pop(name, None)
        return plain | {"toolCall": before | after}
    return plain
