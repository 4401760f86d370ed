"""The hub message: the one form that every dialect can be read as.

A message is text first (`content` is always a string: the contract's field) and, where there is more to it, `parts` and
`tool_calls`. Everything here is frozen. Free JSON inside (a call's input and output, a tool result's output, an
opaque part's value) may still be undecoded text when it comes out of a store: it is decoded when first touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Raw, Struct

from convostore.model import exact_json
from convostore.model.exact_json import JsonObject, JsonValue

__all__ = [
    "FilePart",
    "ImagePart",
    "Message",
    "OpaquePart",
    "Part",
    "Role",
    "TextPart",
    "ThinkingPart",
    "ToolCallRecord",
    "ToolCallState",
    "ToolResultPart",
]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
ToolCallState: TypeAlias = Literal["pending", "success", "error"]


_new = object.__new__
_assign = object.__setattr__


class _Undecoded:
    """Payload fields whose JSON text is at hand and whose value nobody has asked for yet."""

    __slots__ = ("_texts",)
    _texts: Mapping[str, bytes | Raw]

    def __getattr__(self, name: str) -> JsonValue:
        # Python asks here only when the slot `name` is empty, so a touched payload costs nothing the second time.
        if name == "_texts":
            raise AttributeError(name)
        try:
            text = self._texts[name]
        except (KeyError, AttributeError):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None
        value = exact_json.decode(bytes(text))
        _assign(self, name, value)
        return value

    def payload(self, name: str, what: str) -> JsonValue | Raw:
        """Return a payload to encode: its JSON text while untouched, else its value, checked.

        Raises:
            InvalidInput: JSON cannot carry the value exactly; `what` names it.
        """
        try:
            value = object.__getattribute__(self, name)
        except AttributeError:
            text = self._texts[name]
            return text if isinstance(text, Raw) else Raw(text)
        exact_json.check(value, what)
        return value


@dataclass(frozen=True, slots=True)
class ToolCallRecord(_Undecoded):
    """One call of a tool by the assistant, and its result once there is one.

    `input` and `output` are any JSON; `output` is None while `state` is "pending". The contract's own shape of an output
    is ``{"success": bool, "message": str, "data"?: any, "error"?: str}``.
    """

    tool_name: str
    tool_call_id: str
    state: ToolCallState
    input: JsonValue
    output: JsonValue = None

    @classmethod
    def undecoded(
        cls, tool_name: str, tool_call_id: str, state: ToolCallState, input_json: bytes | Raw, output_json: bytes | Raw
    ) -> ToolCallRecord:
        """Return a record whose payloads are decoded when first touched."""
        record = _new(cls)
        _assign(record, "tool_name", tool_name)
        _assign(record, "tool_call_id", tool_call_id)
        _assign(record, "state", state)
        _assign(record, "_texts", {"input": input_json, "output": output_json})
        return record


class TextPart(Struct, frozen=True, tag="text"):
    """Text, where its place among other parts matters; a message's `content` holds the text of all of them."""

    text: str


class ThinkingPart(Struct, frozen=True, tag="thinking", omit_defaults=True):
    """A model's reasoning; `signature` is the provider's proof of it, opaque to us."""

    text: str
    signature: str | None = None
    redacted: bool = False


class ImagePart(Struct, frozen=True, tag="image", rename="camel", omit_defaults=True):
    """An image: base64 `data` with its `media_type`, or a `url`."""

    media_type: str | None = None
    data: str | None = None
    url: str | None = None


class FilePart(Struct, frozen=True, tag="file", rename="camel", omit_defaults=True):
    """A file: base64 `data`, a `url`, or a provider's `file_id`."""

    name: str | None = None
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResultPart(_Undecoded):
    """What a tool returned, where it is more than the message's text. `tool_call_id` None: the message's own."""

    output: JsonValue
    is_error: bool = False
    tool_call_id: str | None = None

    @classmethod
    def undecoded(cls, output_json: bytes | Raw, is_error: bool, tool_call_id: str | None) -> ToolResultPart:
        """Return a part whose output is decoded when first touched."""
        part = _new(cls)
        _assign(part, "is_error", is_error)
        _assign(part, "tool_call_id", tool_call_id)
        _assign(part, "_texts", {"output": output_json})
        return part


@dataclass(frozen=True, slots=True)
class OpaquePart(_Undecoded):
    """Something the hub has no word for: `value` is its JSON in the words of `dialect`."""

    dialect: str
    value: JsonValue

    @classmethod
    def undecoded(cls, dialect: str, value_json: bytes | Raw) -> OpaquePart:
        """Return a part whose value is decoded when first touched."""
        part = _new(cls)
        _assign(part, "dialect", dialect)
        _assign(part, "_texts", {"value": value_json})
        return part


Part: TypeAlias = TextPart | ThinkingPart | ImagePart | FilePart | ToolResultPart | OpaquePart


class Message(Struct, frozen=True, kw_only=True):
    """One message of a conversation.

    `id`, `conversation_id` and `created_at` are None until a store has given them; an id or time of the caller's own is kept.
    `created_at` is aware and exact to the millisecond. `metadata` None means there is none. In a "tool" message
    `tool_call_id` names the call it answers.
    """

    role: Role
    content: str = ""
    parts: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCallRecord, ...] = ()
    tool_call_id: str | None = None
    metadata: JsonObject | None = None
    id: str | None = None
    conversation_id: str | None = None
    created_at: datetime | None = None
