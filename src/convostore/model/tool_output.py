"""A tool's input and output, as each contract says it.

The conversation contract's output is ``{"success": bool, "message": str, "data"?: any, "error"?: str}``, though any JSON is
kept. The session contract has a text, `details` and `isError`; the chat contract `result`, `error` and a status.
"""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, UnsetType

from convostore.model import exact_json
from convostore.model.exact_json import JsonObject, JsonValue
from convostore.model.message import Message, ToolCallRecord, ToolCallState, ToolResultPart

__all__ = [
    "as_object",
    "finished",
    "from_object",
    "has_shape",
    "output_of",
    "result_in",
    "text_of",
    "value_of",
]

_SHAPE: Final = frozenset({"success", "message", "data", "error"})


def output_of(
    *, success: bool, message: str, data: JsonValue | UnsetType = UNSET, error: str | None = None
) -> JsonObject:
    """Return an output in the conversation contract's shape; absent stays absent."""
    output: JsonObject = {"success": success, "message": message}
    if data is not UNSET:
        output["data"] = data
    if error is not None:
        output["error"] = error
    return output


def has_shape(output: JsonValue) -> bool:
    """Say whether `output` has the conversation contract's shape."""
    return (
        isinstance(output, dict)
        and output.keys() <= _SHAPE
        and isinstance(output.get("success"), bool)
        and isinstance(output.get("message"), str)
    )


def value_of(output: JsonValue) -> JsonValue | UnsetType:
    """Return what the tool returned: `data` of the shape (UNSET when it has none), else the output as it is."""
    if has_shape(output):
        return output.get("data", UNSET)
    return output


def text_of(output: JsonValue) -> str:
    """Return the output as text: `message` of the shape, a string as it is, anything else as JSON."""
    if has_shape(output):
        return str(output["message"])
    return output if isinstance(output, str) else exact_json.encode_checked(output).decode()


def as_object(value: JsonValue) -> JsonObject:
    """Return an input as the object that the session and chat contracts need."""
    return value if isinstance(value, dict) else {"value": value}


def from_object(edited: JsonValue, original: JsonValue) -> JsonValue:
    """Undo `as_object`, if `original` was wrapped by it."""
    wrapped = not isinstance(original, dict) and isinstance(edited, dict) and edited.keys() == {"value"}
    return edited["value"] if wrapped else edited


def result_in(message: Message) -> tuple[ToolCallState, JsonValue]:
    """Return the state and output that a "tool" message gives to its call."""
    for part in message.parts:
        if isinstance(part, ToolResultPart) and part.tool_call_id in (None, message.tool_call_id):
            return "error" if part.is_error else "success", part.output
    return "success", output_of(success=True, message=message.content)


def finished(call: ToolCallRecord, state: ToolCallState, output: JsonValue) -> ToolCallRecord:
    """Return `call` with a result."""
    return ToolCallRecord(call.tool_name, call.tool_call_id, state, call.input, output)
