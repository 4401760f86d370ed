"""Clauses A1 to A4 and A10 as tests, as far as any adapter goes, one written by hand on `StorageAdapterMixin` included.

`factory` returns the adapter. What this library's own does on top is in `full_storage_adapter_suite`.
"""

from __future__ import annotations

from typing import Any, cast

from convostore.contracts.storage_adapter import StorageAdapter
from convostore.model.chat_item import ChatConversation, ChatItem, ChatMessage
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["StorageAdapterSuite", "chat_items", "conversation", "message", "tool_call"]


def chat_items() -> list[ChatItem]:
    """Return every item type, an unknown one, unknown fields, ids of every kind, and timestamps that are none."""
    items: list[Any] = [
        {"id": "msg_1", "type": "message", "content": "Hello", "role": "user", "timestamp": "2026-11-30T12:00:00Z"},
        {"id": 1, "type": "message", "content": "", "role": "assistant", "timestamp": "yesterday, ca. noon"},
        {
            "id": "tool_1",
            "type": "tool_call",
            "toolCall": {
                "id": "call_1",
                "name": "get_weather",
                "arguments": {"location": "NYC", "depth": {"z": 1, "a": [10**40, -0.0]}},
                "status": "completed",
                "result": {"temperature": "22\u00b0C"},
                "startedAt": 5,
            },
        },
        {
            "id": "1",
            "type": "card",
            "card": {
                "id": "card_1",
                "type": "weather",
                "title": "NYC",
                "content": {"rows": [], "a": None},
                "actions": [{"id": "x", "label": "More", "type": "button", "action": "more", "data": {"n": 1}}],
            },
        },
        {"id": 1.5, "type": "poll", "question": {"text": "?"}, "options": [1, "1", None]},
        {
            "type": "tool_call",
            "toolCall": {"status": "error", "error": "timeout", "arguments": {}, "name": "late", "id": "call_2"},
            "id": "tool_2",
        },
        {
            "id": "msg_2",
            "type": "message",
            "content": "Bye",
            "role": "user",
            "likes": {"b": 1, "a": 2},
            "timestamp": "",
        },
    ]
    return cast(list[ChatItem], items)


def conversation(id: str, *items: ChatItem, title: str = "My Chat") -> ChatConversation:
    """Return a conversation of these items."""
    return {"id": id, "title": title, "items": list(items)}


def message(id: str | int | float, content: str = "hi", **fields: Any) -> ChatItem:
    """Return a message item."""
    return cast(ChatItem, {"id": id, "type": "message", "content": content, "role": "user", **fields})


def tool_call(id: str | int, call_id: str, status: str = "executing", **fields: Any) -> ChatItem:
    """Return a tool call item."""
    call = {"id": call_id, "name": "look", "arguments": {}, "status": status, **fields}
    return cast(ChatItem, {"id": id, "type": "tool_call", "toolCall": call})


class StorageAdapterSuite(Suite):
    """A1 to A4 and A10, as far as any adapter goes."""

    @clause("A1")
    async def test_a_saved_conversation_is_got_as_it_was(self, store: StorageAdapter, samples: Samples) -> None:
        """Title and items come back as they were saved, and None for what was never saved."""
        assert await store.get_conversation(samples.id("c")) is None
        await store.save_conversation(conversation(samples.id("c"), *chat_items()))
        assert repr(conversation(samples.id("c"), *chat_items())) == repr(await store.get_conversation(samples.id("c")))
        assert repr(chat_items()) == repr(await store.get_conversation_items(samples.id("c")))
        assert await store.get_conversation(samples.id("C")) is None
        assert [] == await store.get_conversation_items(samples.id("missing"))

    @clause("A1")
    async def test_saving_again_replaces(self, store: StorageAdapter, samples: Samples) -> None:
        """After each save the conversation is the saved one: retitled, grown, cut, reordered, emptied."""
        a, b, c = (message(each, each) for each in "abc")
        edited = message("b", "edited")
        for title, items in (
            ("one", [a]), ("one", [a, b, c]), ("two", [a, b, c]), ("two", [a, edited, c]), ("two", [a, c]), ("two", [c, a]),
            ("", [b, c, a]), ("", []), ("three", chat_items()), ("three", chat_items()[::-1]), ("three", chat_items()[2:4]),
        ):  # fmt: skip
            await store.save_conversation(conversation(samples.id("c"), *items, title=title))
            expected = conversation(samples.id("c"), *items, title=title)
            assert repr(expected) == repr(await store.get_conversation(samples.id("c")))

    @clause("A1", needs_fresh=True)
    async def test_all_conversations_in_creation_order(self, store: StorageAdapter, samples: Samples) -> None:
        """All conversations come with all items, in the order of their first save, whatever was saved again since."""
        names = [samples.id(each) for each in ("m", "z", "a", "k")]
        for each in names:
            await store.save_conversation(conversation(each, message(1, each), title=each))
        await store.save_conversation(conversation(names[0], message(1, "again"), title="again"))
        await store.add_item(names[1], message(2))
        own = [each for each in await store.get_all_conversations() if each["id"] in names]
        expected = [
            conversation(names[0], message(1, "again"), title="again"),
            conversation(names[1], message(1, names[1]), message(2), title=names[1]),
            conversation(names[2], message(1, names[2]), title=names[2]),
            conversation(names[3], message(1, names[3]), title=names[3]),
        ]
        assert expected == own

    @clause("A1", "A4")
    async def test_delete_takes_the_agent_along(self, store: StorageAdapter, samples: Samples) -> None:
        """Deleting says whether there was one, takes the agent mapping with it, and leaves the others."""
        for name in ("c", "cc"):
            await store.save_conversation(conversation(samples.id(name), message(1)))
            await store.set_conversation_agent(samples.id(name), "agent-123")
        assert await store.delete_conversation(samples.id("c")) is True
        assert await store.delete_conversation(samples.id("c")) is False
        assert await store.get_conversation(samples.id("c")) is None
        assert [] == await store.get_conversation_items(samples.id("c"))
        assert await store.get_conversation_agent(samples.id("c")) is None
        assert "agent-123" == await store.get_conversation_agent(samples.id("cc"))
        await store.save_conversation(conversation(samples.id("c"), title="new"))
        assert conversation(samples.id("c"), title="new") == await store.get_conversation(samples.id("c"))
        assert await store.get_conversation_agent(samples.id("c")) is None

    @clause("A2")
    async def test_add_item_returns_the_conversation(self, store: StorageAdapter, samples: Samples) -> None:
        """Each added item goes to the end, and the whole conversation comes back, as it is then got."""
        await store.save_conversation(conversation(samples.id("c")))
        for n, item in enumerate(chat_items(), 1):
            updated = await store.add_item(samples.id("c"), item)
            assert repr(conversation(samples.id("c"), *chat_items()[:n])) == repr(updated)
            assert repr(updated) == repr(await store.get_conversation(samples.id("c")))

    @clause("A2")
    async def test_adding_to_the_unknown_creates_nothing(self, store: StorageAdapter, samples: Samples) -> None:
        """Adding to a conversation that is not there gives None and does not create it."""
        assert await store.add_item(samples.id("missing"), message(1)) is None
        assert await store.add_message(samples.id("missing"), {"id": 1, "content": "x", "role": "user"}) is None
        assert await store.get_conversation(samples.id("missing")) is None

    @clause("A2")
    async def test_item_ids_come_back_as_they_were(self, store: StorageAdapter, samples: Samples) -> None:
        """1, "1", 1.5 and the like are different ids, and each keeps its type."""
        ids: tuple[Any, ...] = (1, "1", 1.5, "1.5", 0, -1, "", "a b", 2**53 + 1, "\u00e9")
        await store.save_conversation(conversation(samples.id("c"), *(message(each, repr(each)) for each in ids)))
        assert repr(list(ids)) == repr([each["id"] for each in await store.get_conversation_items(samples.id("c"))])
        await store.save_conversation(conversation(samples.id("d")))
        for each in ids:
            await store.add_item(samples.id("d"), message(each, repr(each)))
        items = await store.get_conversation_items(samples.id("d"))
        assert repr([message(each, repr(each)) for each in ids]) == repr(items)

    @clause("A2")
    async def test_add_message_makes_an_item(self, store: StorageAdapter, samples: Samples) -> None:
        """A message becomes a message item with the same fields, and history gives it back as a message."""
        messages: list[ChatMessage] = [
            {"id": 1, "content": "Hello", "role": "user"},
            {"id": "2", "content": "Hi", "role": "assistant", "timestamp": "noon"},
        ]
        await store.save_conversation(conversation(samples.id("c"), chat_items()[2]))
        for each in messages:
            updated = await store.add_message(samples.id("c"), each)
            assert updated is not None
            assert {"type": "message", **each} == updated["items"][-1]
        assert [chat_items()[2], *({"type": "message", **each} for each in messages)] == (
            await store.get_conversation_items(samples.id("c"))
        )
        assert messages == await store.get_conversation_history(samples.id("c"))

    @clause("A3")
    async def test_unknown_types_and_fields_survive(self, store: StorageAdapter, samples: Samples) -> None:
        """What this version does not know comes back as it was, and timestamps are any string."""
        items: list[Any] = [
            {"id": 1, "type": "video", "url": "x", "frames": [{"n": 1}]},
            {"id": 2, "type": "message", "content": "x", "role": "user", "timestamp": "not a time"},
            {"id": 3, "type": "message", "content": "x", "role": "assistant", "timestamp": "2026-11-30T12:00:00+09:30"},
            {"id": 4, "type": "message", "content": "x", "role": "user", "html": {"z": 1, "a": None}},
            {"id": 5, "type": "card", "card": {"id": "c", "type": "t", "content": {}, "width": 1.0}, "pinned": True},
        ]
        await store.save_conversation(conversation(samples.id("c"), *items))
        assert repr(items) == repr(await store.get_conversation_items(samples.id("c")))

    @clause("A4")
    async def test_agents_are_mapped(self, store: StorageAdapter, samples: Samples) -> None:
        """A conversation has the agent that was set last, and none before."""
        await store.save_conversation(conversation(samples.id("c"), message(1)))
        assert await store.get_conversation_agent(samples.id("c")) is None
        for agent in ("agent-123", "agent 124 \u00e9"):
            await store.set_conversation_agent(samples.id("c"), agent)
            assert agent == await store.get_conversation_agent(samples.id("c"))
        await store.save_conversation(conversation(samples.id("c")))
        await store.clear_conversation_history(samples.id("c"))
        assert "agent 124 \u00e9" == await store.get_conversation_agent(samples.id("c"))
        assert await store.get_conversation_agent(samples.id("missing")) is None

    @clause("A10")
    async def test_initialize_may_be_called(self, store: StorageAdapter, samples: Samples) -> None:
        """Initialize takes a configuration or none, more than once, and loses nothing."""
        await store.initialize()
        await store.save_conversation(conversation(samples.id("c"), message(1)))
        await store.initialize({"anything": True})
        assert conversation(samples.id("c"), message(1)) == await store.get_conversation(samples.id("c"))

    @clause("A10")
    async def test_history_is_the_messages(self, store: StorageAdapter, samples: Samples) -> None:
        """History holds the message items only, as messages; clearing removes every item and keeps the conversation."""
        await store.save_conversation(conversation(samples.id("c"), *chat_items()))
        expected = [
            {name: value for name, value in each.items() if name != "type"}
            for each in chat_items()
            if each["type"] == "message"
        ]
        assert expected == await store.get_conversation_history(samples.id("c"))
        await store.clear_conversation_history(samples.id("c"))
        assert conversation(samples.id("c")) == await store.get_conversation(samples.id("c"))
        assert [] == await store.get_conversation_history(samples.id("c"))
        assert [] == await store.get_conversation_history(samples.id("missing"))
        await store.clear_conversation_history(samples.id("missing"))
        assert await store.get_conversation(samples.id("missing")) is None
