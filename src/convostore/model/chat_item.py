"""Conversations and items of a chat interface, as the storage adapter contract's own JSON: plain dicts, typed.

Field names are the wire's. Unknown item types and unknown fields survive. Item ids are strings or any JSON number.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

from convostore.model.exact_json import JsonObject, JsonValue

__all__ = [
    "Card",
    "CardAction",
    "CardItem",
    "ChatConversation",
    "ChatItem",
    "ChatMessage",
    "ItemId",
    "MessageItem",
    "ToolCall",
    "ToolCallItem",
    "ToolCallStatus",
]

ItemId: TypeAlias = str | int | float
ToolCallStatus: TypeAlias = Literal["pending", "executing", "completed", "error"]


class ChatMessage(TypedDict):
    """A message without an item around it."""

    id: ItemId
    content: str
    role: Literal["user", "assistant"]
    timestamp: NotRequired[str]


class MessageItem(TypedDict):
    """Something said."""

    id: ItemId
    type: Literal["message"]
    content: str
    role: Literal["user", "assistant"]
    timestamp: NotRequired[str]


class ToolCall(TypedDict):
    """A call and, once there is one, its result or error."""

    id: str
    name: str
    arguments: JsonObject
    status: ToolCallStatus
    result: NotRequired[JsonValue]
    error: NotRequired[str]


class ToolCallItem(TypedDict):
    """A tool call shown in the chat."""

    id: ItemId
    type: Literal["tool_call"]
    toolCall: ToolCall


class CardAction(TypedDict):
    """A button of a card."""

    id: str
    label: str
    type: str
    action: str
    data: NotRequired[JsonValue]


class Card(TypedDict):
    """A rich card."""

    id: str
    type: str
    title: NotRequired[str]
    content: JsonObject
    actions: NotRequired[list[CardAction]]


class CardItem(TypedDict):
    """A card shown in the chat; no model ever sees it."""

    id: ItemId
    type: Literal["card"]
    card: Card


ChatItem: TypeAlias = MessageItem | ToolCallItem | CardItem


class ChatConversation(TypedDict):
    """A conversation with all its items, oldest first."""

    id: str
    title: str
    items: list[ChatItem]
