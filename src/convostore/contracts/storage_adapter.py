"""The contract of a chat interface: conversations of rich items, saved whole or item by item.

Clauses:
    A1: save_conversation inserts or replaces title and items in one commit (X1); get_conversation returns it or None;
        get_all_conversations is in creation order, with an iterator beside it; delete_conversation says whether there was
        one and takes the agent mapping with it.
    A2: add_item returns the updated conversation, or None when there is none; add_message makes an item of a message;
        append_item is the form that costs the same however long the conversation. Item ids are strings or any JSON number and
        come back as they were. A tool_call item whose toolCall.id is there already replaces that item in place; any other
        repeated id is kept as another item.
    A3: Items are the original's JSON; unknown types and fields survive; timestamp is any string, kept as it is.
    A4: set_conversation_agent and get_conversation_agent. Mapping an agent to a conversation that is not there creates it.
    A10: initialize takes an optional config. The contract is a Protocol; the convenience methods come as a mixin.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol, cast

from convostore.model.chat_item import ChatConversation, ChatItem, ChatMessage

__all__ = ["StorageAdapter", "StorageAdapterMixin"]


class StorageAdapter(Protocol):
    """What a chat interface asks of a store."""

    async def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Make ready; may be called more than once."""
        ...

    async def save_conversation(self, conversation: ChatConversation) -> None:
        """Insert or replace a conversation: title and items, in one commit; what is equal already is not written again.

        Raises:
            InvalidInput: the conversation or an item is not one, or cannot be kept exactly; nothing was changed.
        """
        ...

    async def get_conversation(self, id: str) -> ChatConversation | None:
        """Return a conversation with all its items, or None."""
        ...

    async def get_all_conversations(self) -> list[ChatConversation]:
        """Return every conversation with all its items, in creation order."""
        ...

    def iterate_conversations(self) -> AsyncIterator[ChatConversation]:
        """Yield what get_all_conversations returns, one at a time."""
        ...

    async def delete_conversation(self, id: str) -> bool:
        """Delete a conversation, its agent mapping with it; False when there was none."""
        ...

    async def add_item(self, conversation_id: str, item: ChatItem) -> ChatConversation | None:
        """Add an item and return the whole conversation; None, and nothing is stored, when there is none."""
        ...

    async def append_item(self, conversation_id: str, item: ChatItem) -> bool:
        """Add an item; False, and nothing is stored, when there is no such conversation."""
        ...

    async def add_message(self, conversation_id: str, message: ChatMessage) -> ChatConversation | None:
        """Add a message as an item; None when there is no such conversation."""
        ...

    async def get_conversation_items(self, conversation_id: str) -> list[ChatItem]:
        """Return the items, oldest first; [] when there is no such conversation."""
        ...

    async def get_conversation_history(self, conversation_id: str) -> list[ChatMessage]:
        """Return the message items as messages."""
        ...

    async def clear_conversation_history(self, conversation_id: str) -> None:
        """Remove every item; the conversation stays."""
        ...

    async def set_conversation_agent(self, conversation_id: str, agent_id: str) -> None:
        """Map the conversation to an agent, creating it, empty, when there is none."""
        ...

    async def get_conversation_agent(self, conversation_id: str) -> str | None:
        """Return the agent the conversation is mapped to, or None."""
        ...


class StorageAdapterMixin:
    """The convenience methods, for an adapter written by hand: they need `add_item` and `get_conversation_items` only."""

    async def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Do nothing."""

    async def add_message(self: StorageAdapter, conversation_id: str, message: ChatMessage) -> ChatConversation | None:
        """Add a message as an item; None when there is no such conversation."""
        return await self.add_item(conversation_id, cast(ChatItem, {"type": "message", **message}))

    async def get_conversation_history(self: StorageAdapter, conversation_id: str) -> list[ChatMessage]:
        """Return the message items as messages, without their `type`."""
        items = await self.get_conversation_items(conversation_id)
        return [
            cast(ChatMessage, {name: value for name, value in item.items() if name != "type"})
            for item in items
            if item["type"] == "message"
        ]
