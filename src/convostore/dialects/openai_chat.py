"""``openai_chat/1``: messages as the OpenAI chat completions API has them.

Format: the request messages of the API reference, as found in the files of `examples/transcripts` and in fine-tuning
sets: content a string, null or a list of parts; tool_calls with arguments as JSON text; role "tool" for results;
"developer" for system; the older "function".
"""

from __future__ import annotations

import re
from typing import Any, cast

from convostore.contracts.backend import Entry, NewEntry
from convostore.errors import InvalidInput
from convostore.model import exact_json
from convostore.model.exact_json import JsonObject, JsonValue
from convostore.model.message import (
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    Role,
    TextPart,
    ToolCallRecord,
)
from convostore.model.times import datetime_from_ms
from convostore.model.tool_output import result_in, text_of

__all__ = ["DIALECT", "native", "read", "revise", "write"]

DIALECT = "openai_chat/1"
KIND = "message"
_HUB_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_DATA_URL = re.compile(r"data:([\w.+/-]+);base64,(.*)", re.DOTALL)


def write(message: JsonObject, *, entry_id: str, created_at_ms: int, text: bytes | None = None) -> NewEntry:
    """Return the entry that keeps `message`; `text` is the JSON it was read from, kept byte for byte when given.

    Raises:
        InvalidInput: it is not a chat completions message, or JSON cannot carry it exactly.
    """
    if type(message) is not dict:
        raise InvalidInput(f"a message must be a JSON object, not {type(message).__name__}")
    role = message.get("role")
    if type(role) is not str or role not in _HUB_ROLES:
        raise InvalidInput(f"the role of a message must be one of {sorted(_HUB_ROLES)}, not {role!r:.80}")
    if message.get("content") is not None and type(message["content"]) not in (str, list):
        raise InvalidInput(f"content must be a string, a list or null, not {type(message['content']).__name__}")
    body = exact_json.encode(message, "message")
    return NewEntry(
        entry_id=entry_id,
        kind=KIND,
        role=_HUB_ROLES[role],
        dialect=DIALECT,
        created_at_ms=created_at_ms,
        body=body if text is None else text,
    )


def native(entry: Entry) -> JsonObject:
    """Return the message as it was written.

    Raises:
        ValueError: the body is not a JSON object.
    """
    return exact_json.decode_object(entry.body)


def read(entry: Entry, conversation_id: str | None = None) -> Message:
    """Return the hub's reading of an entry of this dialect; what the hub has no word for becomes opaque parts.

    Raises:
        ValueError: the body is not a JSON object.
    """
    plain = native(entry)
    role = cast(Role, entry.role)
    content = plain.get("content")
    blocks = content if isinstance(content, list) else []
    parts = [_part(block) for block in blocks]
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    text = content if isinstance(content, str) else "\n".join(texts)
    if isinstance(plain.get("refusal"), str):
        parts.append(OpaquePart(DIALECT, {"type": "refusal", "refusal": plain["refusal"]}))
    if len(parts) == len(texts) == 1:
        parts = []
    call_id = plain.get("tool_call_id")
    if plain.get("role") == "function":
        call_id = plain.get("name")  # a result is linked by the function's name
    return Message(
        role=role,
        content=text,
        parts=tuple(parts),
        tool_calls=tuple(_calls(plain, entry.entry_id)) if role == "assistant" else (),
        tool_call_id=call_id if isinstance(call_id, str) else None,
        id=entry.entry_id,
        conversation_id=conversation_id,
        created_at=datetime_from_ms(entry.created_at_ms),
    )


def _part(block: Any) -> Part:
    if isinstance(block, dict):
        kind = block.get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            return TextPart(block["text"])
        if kind == "image_url" and isinstance(block.get("image_url"), dict):
            url = block["image_url"].get("url")
            if isinstance(url, str) and block.keys() == {"type", "image_url"} and block["image_url"].keys() == {"url"}:
                if found := _DATA_URL.fullmatch(url):
                    return ImagePart(media_type=found[1], data=found[2])
                return ImagePart(url=url)
        if kind == "file" and isinstance(block.get("file"), dict):
            file = block["file"]
            if all(isinstance(file.get(name), str | None) for name in ("filename", "file_data", "file_id")):
                return FilePart(name=file.get("filename"), data=file.get("file_data"), file_id=file.get("file_id"))
    return OpaquePart(DIALECT, block)


def _calls(plain: JsonObject, entry_id: str) -> list[ToolCallRecord]:
    """Return the calls; one without an id, as some files have them, gets one from its entry's and its place."""
    calls = []
    listed = plain.get("tool_calls")
    for place, each in enumerate(listed if isinstance(listed, list) else []):
        if not isinstance(each, dict):
            continue
        call_id = each["id"] if isinstance(each.get("id"), str) else f"{entry_id}:{place}"
        function = each.get("function")
        custom = each.get("custom")
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            calls.append(ToolCallRecord(function["name"], call_id, "pending", _arguments(function.get("arguments"))))
        elif isinstance(custom, dict) and isinstance(custom.get("name"), str):
            calls.append(ToolCallRecord(custom["name"], call_id, "pending", custom.get("input")))
    function = plain.get("function_call")
    if isinstance(function, dict) and isinstance(function.get("name"), str):
        calls.append(
            ToolCallRecord(function["name"], function["name"], "pending", _arguments(function.get("arguments")))
        )
    return calls


def _arguments(text: JsonValue) -> JsonValue:
    """Return the arguments that `text` is the JSON of; models do write broken JSON, which stays text."""
    if not isinstance(text, str):
        return text
    try:
        return exact_json.decode(text.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return text


def revise(entry: Entry, old: Message, new: Message) -> JsonObject:
    """Return the native message of `entry` with what changed from `old` to `new`, two hub readings of it."""
    plain = dict(native(entry))
    if new.content != old.content:
        plain["content"] = new.content
    elif new.role == "tool" and new.parts != old.parts:
        plain["content"] = text_of(result_in(new)[1])
    if new.tool_calls != old.tool_calls and isinstance(plain.get("tool_calls"), list):
        before = {call.tool_call_id: call for call in old.tool_calls}
        after = {call.tool_call_id: call for call in new.tool_calls}
        calls = []
        for each in plain["tool_calls"]:
            call = after.get(str(each.get("id"))) if isinstance(each, dict) else None
            if call is None and isinstance(each, dict) and each.get("id") in before:
                continue
            if call is None or call.input == before[call.tool_call_id].input or "function" not in each:
                calls.append(each)
            else:
                arguments = exact_json.encode(call.input, "arguments").decode()
                calls.append(each | {"function": each["function"] | {"name": call.tool_name, "arguments": arguments}})
        plain["tool_calls"] = calls
        if not calls:
            del plain["tool_calls"]
    return plain
