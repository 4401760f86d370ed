"""Clauses A1 to A4 and A10 as tests: the suites of the chat interface's contract.

`StorageAdapterSuite` asks what any adapter must do, one written by hand on `StorageAdapterMixin` included: `factory` returns
the adapter. `FullStorageAdapterSuite` asks what this library's own adapter does on top: refusals, exactness, the verbs and
promises beyond the original contract, and a second handle on the same storage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar, cast

import pytest

from convostore.contracts.storage_adapter import StorageAdapter
from convostore.errors import InvalidInput
from convostore.model.chat_item import ChatConversation, ChatItem, ChatMessage
from convostore.testing.awkward import hostile_ids, kept_texts, kept_values, refused_ids, refused_values
from convostore.testing.contract_view import ContractView, second_store
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["FullStorageAdapterSuite", "StorageAdapterSuite", "chat_items", "conversation"]


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


class FullStorageAdapterSuite(StorageAdapterSuite):
    """A1 to A4 and A10, with all that this library promises beyond the original contract."""

    contracts: ClassVar[tuple[str, ...]] = ("convostore.contracts.storage_adapter",)

    @staticmethod
    def view(store: Any) -> Any:
        """Return the chat contract of one of our stores by itself."""
        return ContractView(store, store.chat)

    @clause("A1")
    async def test_another_handle_sees_the_same(
        self, store: StorageAdapter, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """What is saved through one handle is got through another, byte for byte, and iterated in creation order."""
        names = [samples.id(each) for each in ("b", "a", "c")]
        async with second_store(store, factory) as other:
            for each in names:
                await store.save_conversation(conversation(each, *chat_items(), title=each))
            for each in names:
                assert repr(conversation(each, *chat_items(), title=each)) == repr(await other.get_conversation(each))
            iterated = [each async for each in other.iterate_conversations() if each["id"] in names]
            assert names == [each["id"] for each in iterated]
            got = [each for each in await other.get_all_conversations() if each["id"] in names]
            assert repr(iterated) == repr(got)

    @clause("A1", "B10", needs_fresh=True)
    async def test_all_means_more_than_a_page(self, store: StorageAdapter, samples: Samples) -> None:
        """Conversations beyond any page size are all there, each once."""
        names = [samples.id(f"{n:03}") for n in range(130)]
        await asyncio.gather(*(store.save_conversation(conversation(each)) for each in names))
        assert names == sorted(each["id"] for each in await store.get_all_conversations() if each["id"] in set(names))

    @clause("A1")
    async def test_what_cannot_be_kept_is_refused(self, store: StorageAdapter, samples: Samples) -> None:
        """A conversation or item that is none, or that JSON cannot carry, is InvalidInput; the old one stays, whole."""
        old = conversation(samples.id("c"), *chat_items())
        await store.save_conversation(old)
        bad_items: list[Any] = [None, "text", 5, [], {}, {"id": 1}, {"type": "message"}, {"id": None, "type": "x"}]
        bad_items += [
            {"id": True, "type": "x"},
            {"id": [1], "type": "x"},
            {"id": float("nan"), "type": "x"},
            {"id": 1, "type": 5},
        ]
        for value in refused_values.values():
            bad_items += [
                message(1, extra=value),
                tool_call(1, "c", "completed", result=value),
                {"id": 1, "type": "card", "card": {"id": "c", "type": "t", "content": {"v": value}}},
            ]
        for each in bad_items:
            with pytest.raises(InvalidInput):
                await store.save_conversation(conversation(samples.id("c"), message("good"), each, title="new"))
            with pytest.raises(InvalidInput):
                await store.add_item(samples.id("c"), each)
            with pytest.raises(InvalidInput):
                await store.append_item(samples.id("c"), each)
        bad: list[Any] = [
            None, [], {}, {"id": samples.id("c")}, {"id": samples.id("c"), "title": "t"}, {"title": "t", "items": []},
            {"id": samples.id("c"), "title": 5, "items": []}, {"id": samples.id("c"), "title": "t", "items": {}},
        ]  # fmt: skip
        for each in bad:
            with pytest.raises(InvalidInput):
                await store.save_conversation(each)
        assert repr(old) == repr(await store.get_conversation(samples.id("c")))

    @clause("A1", "A2", "B8")
    async def test_bad_ids_are_refused(self, store: StorageAdapter, samples: Samples) -> None:
        """What cannot be a conversation id or agent id is InvalidInput on every verb alike."""
        await store.save_conversation(conversation(samples.id("c")))
        for bad in refused_ids.values():
            for call in (
                lambda bad=bad: store.save_conversation(conversation(bad)),
                lambda bad=bad: store.get_conversation(bad),
                lambda bad=bad: store.delete_conversation(bad),
                lambda bad=bad: store.add_item(bad, message(1)),
                lambda bad=bad: store.append_item(bad, message(1)),
                lambda bad=bad: store.add_message(bad, {"id": 1, "content": "x", "role": "user"}),
                lambda bad=bad: store.get_conversation_items(bad),
                lambda bad=bad: store.get_conversation_history(bad),
                lambda bad=bad: store.clear_conversation_history(bad),
                lambda bad=bad: store.set_conversation_agent(bad, "agent"),
                lambda bad=bad: store.get_conversation_agent(bad),
            ):
                with pytest.raises(InvalidInput):
                    await call()
        for agent in ("", 5, None, b"x"):
            with pytest.raises(InvalidInput):
                await store.set_conversation_agent(samples.id("c"), cast(Any, agent))

    @clause("A1", "B8")
    async def test_ids_that_look_alike_are_different(self, store: StorageAdapter, samples: Samples) -> None:
        """Conversations whose ids look alike do not mix."""
        ids = list(hostile_ids(samples.id()))
        for each in ids:
            await store.save_conversation(conversation(each, message(1, each), title=each))
        for each in ids:
            assert conversation(each, message(1, each), title=each) == await store.get_conversation(each)

    @clause("A3", "B11")
    async def test_items_are_kept_exactly(
        self, store: StorageAdapter, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Awkward texts, ids and values come back exactly, wherever they stand, and the next item is added."""
        items = [
            item
            for name, value in kept_values.items()
            for item in (
                message(name, value if isinstance(value, str) else "x", timestamp=name, extra=value),
                tool_call(name, name, "completed", result=value, extra={"v": value}),
                cast(ChatItem, {"id": name, "type": "card", "card": {"id": "c", "type": "t", "content": {"v": value}}}),
                cast(ChatItem, {"id": name, "type": "other", "value": value}),
            )
        ]
        items += [message(each, timestamp=each) for each in kept_texts.values()]
        await store.save_conversation(conversation(samples.id("c"), *items, title="\ud83d \u2028"))
        assert await store.append_item(samples.id("c"), message("next"))
        async with second_store(store, factory) as other:
            got = await other.get_conversation(samples.id("c"))
        assert repr(conversation(samples.id("c"), *items, message("next"), title="\ud83d \u2028")) == repr(got)

    @clause("A2")
    async def test_repeated_ids_are_kept(self, store: StorageAdapter, samples: Samples) -> None:
        """An item whose id is there already is another item, whether saved or added, equal or not."""
        items = [
            message(1, "a"),
            message(1, "a"),
            message(1, "b"),
            message("1", "a"),
            tool_call(1, "c"),
            tool_call(1, "d"),
        ]
        await store.save_conversation(conversation(samples.id("c"), *items))
        assert repr(items) == repr(await store.get_conversation_items(samples.id("c")))
        for each in (message(1, "a"), message(1, "b"), tool_call(1, "e")):
            assert await store.append_item(samples.id("c"), each)
            items.append(each)
            assert repr(items) == repr(await store.get_conversation_items(samples.id("c")))
        items.reverse()
        await store.save_conversation(conversation(samples.id("c"), *items))
        assert repr(items) == repr(await store.get_conversation_items(samples.id("c")))

    @clause("A2")
    async def test_append_item_says_whether(
        self, store: StorageAdapter, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """append_item adds to the end and says True; for a conversation that is not there False, and creates nothing."""
        assert await store.append_item(samples.id("c"), message(1)) is False
        assert await store.get_conversation(samples.id("c")) is None
        await store.save_conversation(conversation(samples.id("c")))
        async with second_store(store, factory) as other:
            for each in chat_items():
                assert await other.append_item(samples.id("c"), each) is True
        assert repr(chat_items()) == repr(await store.get_conversation_items(samples.id("c")))

    @clause("A2")
    async def test_a_tool_call_is_replaced_in_place(
        self, store: StorageAdapter, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """An added tool call whose toolCall.id is there takes that item's place, whatever the item's own id."""
        await store.save_conversation(
            conversation(
                samples.id("c"), message("a"), tool_call("t1", "call_1"), tool_call("t2", "call_2"), message("b")
            )
        )
        done = tool_call("t1", "call_1", "completed", result={"n": 1}, note="new field")
        updated = await store.add_item(samples.id("c"), done)
        expected = conversation(samples.id("c"), message("a"), done, tool_call("t2", "call_2"), message("b"))
        assert repr(expected) == repr(updated)
        renamed = tool_call("another id", "call_2", "error", error="no")
        async with second_store(store, factory) as other:
            assert await other.append_item(samples.id("c"), renamed)
        expected = conversation(samples.id("c"), message("a"), done, renamed, message("b"))
        assert repr(expected) == repr(await store.get_conversation(samples.id("c")))
        await store.add_item(samples.id("c"), tool_call("t1", "call_3"))
        items = await store.get_conversation_items(samples.id("c"))
        assert repr([*expected["items"], tool_call("t1", "call_3")]) == repr(items)

    @clause("A2", "B5")
    async def test_items_added_at_once_are_all_there(
        self, store: StorageAdapter, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Items added, and calls finished, through two handles at once: none is lost, none is doubled."""
        calls = [tool_call(n, f"call_{n}") for n in range(6)]
        await store.save_conversation(conversation(samples.id("c"), *calls))
        async with second_store(store, factory) as other:
            await asyncio.gather(
                *((store, other)[n % 2].append_item(samples.id("c"), message(f"m{n}")) for n in range(20)),
                *(
                    (store, other)[n % 2].add_item(samples.id("c"), tool_call(n, f"call_{n}", "completed", result=n))
                    for n in range(6)
                ),
            )
        items = await store.get_conversation_items(samples.id("c"))
        assert [tool_call(n, f"call_{n}", "completed", result=n) for n in range(6)] == items[:6]
        assert {f"m{n}" for n in range(20)} == {each["id"] for each in items[6:]}
        assert 26 == len(items)

    @clause("A1", "B4")
    async def test_a_save_is_seen_whole(
        self, store: StorageAdapter, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Title and items belong together, for whoever reads while others save."""
        saved = [
            conversation(samples.id("c"), *(message(n, name) for n in range(15)), title=name) for name in ("one", "two")
        ]
        await store.save_conversation(saved[0])
        async with second_store(store, factory) as other:

            async def save(handle: StorageAdapter, each: ChatConversation) -> None:
                for _ in range(5):
                    await handle.save_conversation(each)

            async def watch() -> None:
                for _ in range(20):
                    assert await other.get_conversation(samples.id("c")) in saved

            await asyncio.gather(save(store, saved[1]), save(other, saved[0]), watch())

    @clause("A4")
    async def test_mapping_an_agent_creates_the_conversation(
        self, store: StorageAdapter, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """A conversation that was not there is there, empty, once an agent is mapped to it; items stay otherwise."""
        await store.set_conversation_agent(samples.id("c"), "agent-123")
        async with second_store(store, factory) as other:
            assert "agent-123" == await other.get_conversation_agent(samples.id("c"))
            got = await other.get_conversation(samples.id("c"))
            assert got is not None
            assert [] == got["items"]
            assert await other.append_item(samples.id("c"), message(1))
            await other.set_conversation_agent(samples.id("c"), "agent-124")
        assert [message(1)] == await store.get_conversation_items(samples.id("c"))
        await store.save_conversation(conversation(samples.id("c"), message(2)))
        assert "agent-124" == await store.get_conversation_agent(samples.id("c"))

    @clause("A1", "B16")
    async def test_conversations_are_the_callers_own(self, store: StorageAdapter, samples: Samples) -> None:
        """Changing what was saved, added or got changes nothing stored."""
        given = conversation(samples.id("c"), *chat_items())
        await store.save_conversation(given)
        given["items"].pop()
        cast(Any, given["items"][0])["content"] = "changed"
        item = message("added")
        got = await store.add_item(samples.id("c"), item)
        assert got is not None
        cast(Any, item)["content"] = "changed"
        cast(Any, got["items"][2])["toolCall"]["arguments"].clear()
        got["items"].clear()
        expected = conversation(samples.id("c"), *chat_items(), message("added"))
        assert repr(expected) == repr(await store.get_conversation(samples.id("c")))
