"""Clauses A1 to A4 and A10 as tests, with what this library promises beyond the original contract.

Refusals, exactness, the verbs of our own, and a second handle on the same storage. Ours is tested as
``lambda: FullStorageAdapterSuite.view(convostore.open(url))``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar, cast

import pytest

from convostore.contracts.storage_adapter import StorageAdapter
from convostore.errors import InvalidInput
from convostore.model.chat_item import ChatConversation, ChatItem
from convostore.testing.awkward import refused_ids, refused_values
from convostore.testing.contract_view import ContractView, second_store
from convostore.testing.storage_adapter_suite import StorageAdapterSuite, chat_items, conversation, message, tool_call
from convostore.testing.suite import Samples, clause

__all__ = ["FullStorageAdapterSuite"]


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
        ids = samples.look_alikes
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
            for name, value in samples.payloads.items()
            for item in (
                message(name, value if isinstance(value, str) else "x", timestamp=name, extra=value),
                tool_call(name, name, "completed", result=value, extra={"v": value}),
                cast(ChatItem, {"id": name, "type": "card", "card": {"id": "c", "type": "t", "content": {"v": value}}}),
                cast(ChatItem, {"id": name, "type": "other", "value": value}),
            )
        ]
        items += [message(each, timestamp=each) for each in samples.texts.values()]
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

    @clause("A2", "B5")
    async def test_one_call_added_at_once_is_one_item(
        self, store: StorageAdapter, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """The same new call, added through two handles at once in different states, is one item, with one of the states."""
        await store.save_conversation(conversation(samples.id("c"), message("before")))
        async with second_store(store, factory) as other:
            states = [tool_call(n, "call_1", status) for n, status in enumerate(("pending", "executing", "completed"))]
            await asyncio.gather(
                *(
                    handle.append_item(samples.id("c"), each)
                    for handle, each in zip((store, other, store), states, strict=True)
                )
            )
        items = await store.get_conversation_items(samples.id("c"))
        assert 2 == len(items)
        assert items[1] in states

    @clause("A1", "A3")
    async def test_unknown_fields_of_a_conversation_survive(self, store: StorageAdapter, samples: Samples) -> None:
        """What an interface keeps beside title and items comes back, and goes when it is saved without."""
        saved: Any = {"pinned": True, **conversation(samples.id("c"), message(1)), "tags": {"b": [1], "a": None}}
        await store.save_conversation(saved)
        got: Any = await store.get_conversation(samples.id("c"))
        assert saved == got
        assert repr(saved["tags"]) == repr(got["tags"])
        await store.append_item(samples.id("c"), message(2))
        got = await store.get_conversation(samples.id("c"))
        assert {**saved, "items": [message(1), message(2)]} == got
        await store.save_conversation(conversation(samples.id("c")))
        assert conversation(samples.id("c")) == await store.get_conversation(samples.id("c"))

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
