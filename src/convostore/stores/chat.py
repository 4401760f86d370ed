"""The storage adapter on any backend, without synchronization."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

from msgspec import structs

from convostore import limits
from convostore.contracts.backend import Backend, Change, HeadQuery, NewEntry, Snapshot, Window
from convostore.contracts.storage_adapter import StorageAdapterMixin
from convostore.contracts.walking import pages
from convostore.dialects import chat_item
from convostore.errors import (
    ConversationNotFoundError,
    CorruptDataError,
    DuplicateEntryError,
    InvalidInput,
    NotFoundError,
    RevisionConflictError,
)
from convostore.ids import Clock, Mint, check_id, derived_id, new_id, now_ms
from convostore.model.chat_item import ChatConversation, ChatItem
from convostore.model.exact_json import JsonObject
from convostore.stores.heads import AGENT_ID, CHAT_EXTRA, TITLE, delete, encoded, field
from convostore.stores.item_view import ItemView, edit_call
from convostore.stores.list_saving import save_list
from convostore.stores.saving import reworded
from convostore.stores.tool_calls import find_call
from convostore.stores.transcript import Call, Transcript, transcribe

__all__ = ["Chat"]

_OWN = frozenset({"id", "title", "items"})


class Chat(StorageAdapterMixin):
    """What a chat interface asks of a store; see `contracts.storage_adapter` for every promise."""

    def __init__(self, backend: Backend, *, clock: Clock = now_ms, mint: Mint = new_id) -> None:
        self._backend = backend
        self._clock = clock
        self._mint = mint
        self._view = ItemView()

    async def save_conversation(self, conversation: ChatConversation) -> None:
        """Insert or replace a conversation: title and items, in one commit."""
        if type(conversation) is not dict:
            raise InvalidInput(f"a conversation must be a dict, not {type(conversation).__name__}")
        plain = cast(JsonObject, conversation)
        conversation_id = check_id(plain.get("id"), "conversation id")
        items = plain.get("items")
        if type(items) is not list:
            raise InvalidInput(f"the items of a conversation must be a list, not {type(items).__name__}")
        if type(plain.get("title")) is not str:
            raise InvalidInput(f"the title of a conversation must be a string, not {plain.get('title')!r:.80}")
        extra = {name: value for name, value in plain.items() if name not in _OWN}
        await save_list(
            self._backend,
            self._view,
            conversation_id,
            list(items),
            # A conversation without a title is shown with an empty one; saving that back must not give it one.
            fields=encoded(**{TITLE: plain["title"] or None, CHAT_EXTRA: extra or None}),
            clock=self._clock,
            mint=self._mint,
        )

    async def get_conversation(self, id: str) -> ChatConversation | None:
        """Return a conversation with all its items, or None."""
        snapshot = await self._backend.read(id, Window())
        return None if snapshot is None else self._shown(snapshot)

    def _shown(self, snapshot: Snapshot) -> ChatConversation:
        head = snapshot.head
        items = self._view.project(transcribe(snapshot.entries, head.conversation_id))
        plain = {
            "id": head.conversation_id,
            "title": field(head, TITLE) or "",
            "items": [each.value for each in items],
            **(field(head, CHAT_EXTRA) or {}),
        }
        return cast(ChatConversation, plain)

    async def get_all_conversations(self) -> list[ChatConversation]:
        """Return every conversation with all its items, in creation order."""
        return [each async for each in self.iterate_conversations()]

    async def iterate_conversations(self) -> AsyncIterator[ChatConversation]:
        """Yield every conversation with all its items, in creation order; one that is deleted meanwhile is left out."""
        async for page in pages(self._backend, HeadQuery(order="created", limit=limits.page_heads_default)):
            if page.damage:
                raise CorruptDataError(page.damage[0].conversation_id, page.damage)
            for head in page.items:
                conversation = await self.get_conversation(head.conversation_id)
                if conversation is not None:
                    yield conversation

    async def delete_conversation(self, id: str) -> bool:
        """Delete a conversation, its agent mapping with it; False when there was none."""
        return await delete(self._backend, id, clock=self._clock, mint=self._mint)

    async def add_item(self, conversation_id: str, item: ChatItem) -> ChatConversation | None:
        """Add an item and return the whole conversation; None when there is none. Cost: reading all of it."""
        if not await self.append_item(conversation_id, item):
            return None
        return await self.get_conversation(conversation_id)

    async def append_item(self, conversation_id: str, item: ChatItem) -> bool:
        """Add an item; False when there is no such conversation.

        Cost: that of the item, except for a tool call, whose like is looked for from the end of the log.
        """
        check_id(conversation_id, "conversation id")
        now = self._clock()
        entry = chat_item.write(item, entry_id=self._mint(), now_ms=now)
        try:
            if entry.kind == "tool_call":
                await self._put_tool_call(conversation_id, cast(JsonObject, item))
            else:
                await self._backend.commit(structs.replace(self._change(conversation_id), append=(entry,)))
        except ConversationNotFoundError:
            return False
        return True

    async def _put_tool_call(self, conversation_id: str, item: JsonObject) -> None:
        """Replace the shown tool call of the same toolCall.id, whoever recorded it, or append the item."""
        call_id = item["toolCall"]["id"]
        collided = False
        while True:
            head, transcript, where = await find_call(
                self._backend, conversation_id, lambda t, c: t.call(c).tool_call_id == call_id
            )
            change = self._change(conversation_id)
            if where is None:
                # Derived from what was read, so that two who add the same call at once cannot both append it. If the id is
                # taken and the call still is not there, its entry was changed into something else since.
                derived = derived_id("tool_call", conversation_id, head.born, call_id)
                entry_id = self._mint() if collided else derived
                entry = chat_item.write(cast(ChatItem, item), entry_id=entry_id, now_ms=change.at_ms)
                change = structs.replace(change, append=(entry,))
            else:
                change = structs.replace(change, replace=_with_call(transcript, where, item))
                if not change.replace:
                    return
            try:
                await self._backend.commit(change)
            except ConversationNotFoundError:
                raise
            except DuplicateEntryError:
                collided = True
            except (RevisionConflictError, NotFoundError):
                continue
            else:
                return

    async def get_conversation_items(self, conversation_id: str) -> list[ChatItem]:
        """Return the items, oldest first; [] when there is no such conversation."""
        conversation = await self.get_conversation(conversation_id)
        return [] if conversation is None else conversation["items"]

    async def clear_conversation_history(self, conversation_id: str) -> None:
        """Remove every item; the conversation stays, and with it what is not an item."""
        check_id(conversation_id, "conversation id")
        await save_list(
            self._backend, self._view, conversation_id, [], may_create=False, clock=self._clock, mint=self._mint
        )

    async def set_conversation_agent(self, conversation_id: str, agent_id: str) -> None:
        """Map the conversation to an agent, creating it, empty, when there is none."""
        fields = encoded(**{AGENT_ID: check_id(agent_id, "agent id")})
        change = structs.replace(self._change(conversation_id), existence="may_create", fields=fields)
        await self._backend.commit(change)

    async def get_conversation_agent(self, conversation_id: str) -> str | None:
        """Return the agent the conversation is mapped to, or None."""
        snapshot = await self._backend.read(conversation_id)
        return None if snapshot is None else field(snapshot.head, AGENT_ID)

    def _change(self, conversation_id: str) -> Change:
        return Change(conversation_id=conversation_id, revision=self._mint(), at_ms=self._clock())


def _with_call(transcript: Transcript, where: Call, item: JsonObject) -> tuple[NewEntry, ...]:
    """Return the entries that change so that the call at `where` is what `item` says."""
    record = transcript.records[where.record]
    if record.entry.dialect == chat_item.DIALECT:
        entry = chat_item.write(cast(ChatItem, item), entry_id=record.entry.entry_id, now_ms=record.entry.created_at_ms)
        return (structs.replace(entry, expected_stamp=record.entry.stamp),)
    entries = []
    for index, message in (edit_call(transcript, where, item) or {}).items():
        record = transcript.records[index]
        if message != record.message:
            said = reworded(record.entry, record.message, message)
            assert said is not None  # only dialects that we know have calls
            entries.append(structs.replace(said, expected_stamp=record.entry.stamp))
    return tuple(entries)
