"""Messages of an agent runtime, as the session contract's own JSON: plain dicts, typed so that editors help.

Field names are the wire's. Unknown fields survive. `timestamp` is milliseconds since 1970 UTC.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

from convostore.model.exact_json import JsonObject, JsonValue

__all__ = [
    "AssistantMessage",
    "Cost",
    "ImageContent",
    "SessionMessage",
    "SystemMessage",
    "TextContent",
    "ThinkingContent",
    "ToolCallContent",
    "ToolResultMessage",
    "Usage",
    "UserMessage",
]


class TextContent(TypedDict):
    """Text."""

    type: Literal["text"]
    text: str
    textSignature: NotRequired[str]


class ThinkingContent(TypedDict):
    """A model's reasoning."""

    type: Literal["thinking"]
    thinking: str
    thinkingSignature: NotRequired[str]
    redacted: NotRequired[bool]


class ImageContent(TypedDict):
    """A base64 image."""

    type: Literal["image"]
    data: str
    mimeType: str


class ToolCallContent(TypedDict):
    """A call of a tool; its result is a message of role toolResult."""

    type: Literal["toolCall"]
    id: str
    name: str
    arguments: JsonObject
    thoughtSignature: NotRequired[str]


class Cost(TypedDict):
    """Money, in the provider's currency."""

    input: float
    output: float
    cacheRead: float
    cacheWrite: float
    total: float


class Usage(TypedDict):
    """Tokens of one model call."""

    input: int
    output: int
    cacheRead: int
    cacheWrite: int
    totalTokens: int
    cost: Cost


class SystemMessage(TypedDict):
    """Instructions."""

    role: Literal["system"]
    content: str | list[TextContent]
    timestamp: NotRequired[int]


class UserMessage(TypedDict):
    """What a person said."""

    role: Literal["user"]
    content: str | list[TextContent | ImageContent]
    timestamp: NotRequired[int]


class AssistantMessage(TypedDict):
    """What the model said."""

    role: Literal["assistant"]
    content: list[TextContent | ThinkingContent | ToolCallContent]
    api: str
    provider: str
    model: str
    usage: Usage
    stopReason: Literal["stop", "length", "toolUse", "error", "aborted"]
    errorMessage: NotRequired[str]
    timestamp: NotRequired[int]


class ToolResultMessage(TypedDict):
    """What a tool returned."""

    role: Literal["toolResult"]
    toolCallId: str
    toolName: str
    content: list[TextContent | ImageContent]
    details: NotRequired[JsonValue]
    isError: bool
    timestamp: NotRequired[int]


SessionMessage: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage
