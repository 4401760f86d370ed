"""Clause X1 as tests: saving a list through one store never destroys what that store cannot see."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any, cast

import pytest

from convostore.contracts.backend import Entry, Snapshot
from convostore.errors import InvalidInput
from convostore.model.chat_item import ChatConversation, ChatItem
from convostore.model.message import Message
from convostore.model.session_message import SessionMessage
from convostore.model.times import datetime_from_ms
from convostore.model.todo import TodoItem, TodoSnapshot
from convostore.opening import Store
from convostore.testing.contract_view import second_store
from convostore.testing.suite import Samples, Suite, clause
from convostore.testing.voices import dump, invisible_in_chat, invisible_in_session, text_item, voices

__all__ = ["SavingAcross"]

_ADDED = cast(SessionMessage, {"role": "user", "content": "added"})


async def _chat(store: Store, conversation_id: str) -> ChatConversation:
    got = await store.chat.get_conversation(conversation_id)
    assert got is not None
    return got


async def _save_items(store: Store, conversation_id: str, items: list[ChatItem]) -> None:
    conversation = await _chat(store, conversation_id)
    await store.chat.save_conversation({**conversation, "items": items})


def _said(snapshot: Snapshot) -> list[tuple[str, str, int, bytes]]:
    """Return what the entries are and say, without where they stand."""
    return [(each.entry_id, each.dialect, each.created_at_ms, each.body) for each in snapshot.entries]


def _touched(before: Snapshot, after: Snapshot) -> tuple[list[Entry], list[Entry]]:
    """Return the entries that are no more as they were, and those that were not there like this."""
    gone = [each for each in before.entries if each not in after.entries]
    new = [each for each in after.entries if each not in before.entries]
    return gone, new


def _edited(value: Any, text: str) -> Any:
    """Return a copy of a message or item with another text, or None where it has none."""
    changed = copy.deepcopy(value)
    content = changed.get("content")
    if isinstance(content, str):
        changed["content"] = text
        return changed
    for part in content if isinstance(content, list) else ():
        if part.get("type") == "text":
            part["text"] = text
            return changed
    return None


class SavingAcross(Suite):
    """X1, for every voice that wrote and every store that saves."""

    @clause("X1")
    async def test_loading_and_saving_changes_nothing(self, store: Store, samples: Samples) -> None:
        """Loaded and saved without an edit, nothing is written: the same head, entries, positions, stamps, documents."""
        for voice, say in voices.items():
            conversation_id = samples.id(voice)
            await say(store, conversation_id)
            await store.sessions.save_todos(conversation_id, TodoSnapshot((TodoItem("1", "x"),)))
            await store.rate(conversation_id, 5, "kept")
            before = await dump(store, conversation_id)
            messages = await store.sessions.load_messages(conversation_id)
            await store.sessions.save_messages(conversation_id, messages)
            assert before == await dump(store, conversation_id), voice
            await store.chat.save_conversation(await _chat(store, conversation_id))
            assert before == await dump(store, conversation_id), voice

    @clause("X1", "S5", "A2")
    async def test_one_more_is_one_more_row(self, store: Store, samples: Samples) -> None:
        """Loaded, one added, saved: every entry is as it was, with one more behind them."""
        for voice, say in voices.items():
            conversation_id = samples.id(voice)
            await say(store, conversation_id)

            async def save_session(conversation_id: str = conversation_id) -> None:
                messages = await store.sessions.load_messages(conversation_id)
                await store.sessions.save_messages(conversation_id, [*messages, _ADDED])
                assert repr([*messages, _ADDED]) == repr(await store.sessions.load_messages(conversation_id))

            async def save_chat(conversation_id: str = conversation_id) -> None:
                items = (await _chat(store, conversation_id))["items"]
                await _save_items(store, conversation_id, [*items, text_item("new")])
                assert repr([*items, text_item("new")]) == repr(
                    await store.chat.get_conversation_items(conversation_id)
                )

            for act in (
                save_session,
                save_chat,
                lambda conversation_id=conversation_id: store.sessions.append_messages(conversation_id, [_ADDED]),
                lambda conversation_id=conversation_id: store.chat.append_item(conversation_id, text_item("newer")),
                lambda conversation_id=conversation_id: store.chat.add_item(conversation_id, text_item("newest")),
                lambda conversation_id=conversation_id: store.append_messages(
                    conversation_id, [Message(role="user", content="added")]
                ),
            ):
                before = await dump(store, conversation_id)
                await act()
                after = await dump(store, conversation_id)
                assert before.entries == after.entries[:-1], voice
                assert before.documents == after.documents
                assert len(before.entries) + 1 == len(after.entries) == after.head.entry_count

    @clause("X1")
    async def test_an_edit_by_a_runtime_touches_one_record(self, store: Store, samples: Samples) -> None:
        """Each text edited through S is read back, and no other entry is touched."""
        for voice, say in voices.items():
            conversation_id = samples.id(voice)
            await say(store, conversation_id)
            messages = await store.sessions.load_messages(conversation_id)
            for index, message in enumerate(messages):
                edited = _edited(message, f"edited {index}")
                if edited is None:
                    continue
                before = await dump(store, conversation_id)
                messages[index] = edited
                await store.sessions.save_messages(conversation_id, messages)
                after = await dump(store, conversation_id)
                gone, new = _touched(before, after)
                where = (voice, index, message, gone, new)
                assert repr(messages) == repr(await store.sessions.load_messages(conversation_id)), where
                if message["role"] == "toolResult":
                    continue  # the record of the call may have no place for that text; then a record is added
                assert (1, 1) == (len(gone), len(new)), where
                assert gone[0].position == new[0].position, where

    @clause("X1")
    async def test_an_edit_by_a_chat_touches_one_record(self, store: Store, samples: Samples) -> None:
        """Each text edited through A is read back, and no other entry is touched."""
        for voice, say in voices.items():
            conversation_id = samples.id(voice)
            await say(store, conversation_id)
            items = (await _chat(store, conversation_id))["items"]
            for index, item in enumerate(items):
                edited = _edited(item, f"edited {index}")
                if edited is None:
                    continue
                before = await dump(store, conversation_id)
                items[index] = edited
                await _save_items(store, conversation_id, items)
                after = await dump(store, conversation_id)
                gone, new = _touched(before, after)
                where = (voice, index, item, gone, new)
                assert (1, 1) == (len(gone), len(new)), where
                assert gone[0].position == new[0].position, where
                assert repr(items) == repr(await store.chat.get_conversation_items(conversation_id)), where

    @clause("X1")
    async def test_a_removal_by_a_runtime_leaves_the_rest(self, store: Store, samples: Samples) -> None:
        """Each message removed through S is gone, the others and what S cannot see are as they were."""
        for voice, say in voices.items():
            conversation_id = samples.id(voice)
            await say(store, conversation_id)
            count = len(await store.sessions.load_messages(conversation_id))
            await store.delete_conversation(conversation_id)
            for index in range(count):
                await say(store, conversation_id)
                before = await dump(store, conversation_id)
                messages = await store.sessions.load_messages(conversation_id)
                removed = messages.pop(index)
                await store.sessions.save_messages(conversation_id, messages)
                after = await dump(store, conversation_id)
                where = (voice, index, removed)
                assert repr(messages) == repr(await store.sessions.load_messages(conversation_id)), where
                assert invisible_in_session(before) == invisible_in_session(after), where
                assert len(set(_said(before)) - set(_said(after))) <= 3, where  # a record and its results
                await store.delete_conversation(conversation_id)

    @clause("X1")
    async def test_a_removal_by_a_chat_leaves_the_rest(self, store: Store, samples: Samples) -> None:
        """Each item removed through A is gone, the others and what A cannot see are as they were."""
        for voice, say in voices.items():
            conversation_id = samples.id(voice)
            await say(store, conversation_id)
            count = len((await _chat(store, conversation_id))["items"])
            await store.delete_conversation(conversation_id)
            for index in range(count):
                await say(store, conversation_id)
                before = await dump(store, conversation_id)
                items = (await _chat(store, conversation_id))["items"]
                removed = items.pop(index)
                await _save_items(store, conversation_id, items)
                after = await dump(store, conversation_id)
                where = (voice, index, removed)
                assert repr(items) == repr(await store.chat.get_conversation_items(conversation_id)), where
                assert invisible_in_chat(before) == invisible_in_chat(after), where
                assert len(set(_said(before)) - set(_said(after))) <= 3, where  # a record and its results
                await store.delete_conversation(conversation_id)

    @clause("X1")
    async def test_an_insertion_by_a_runtime_loses_nothing(self, store: Store, samples: Samples) -> None:
        """A message inserted anywhere through S stands there, everything said stays said, cards stay where they are."""
        for voice, say in voices.items():
            conversation_id = samples.id(voice)
            await say(store, conversation_id)
            count = len(await store.sessions.load_messages(conversation_id))
            await store.delete_conversation(conversation_id)
            for index in range(count + 1):
                await say(store, conversation_id)
                before = await dump(store, conversation_id)
                messages = await store.sessions.load_messages(conversation_id)
                messages.insert(index, _ADDED)
                await store.sessions.save_messages(conversation_id, messages)
                after = await dump(store, conversation_id)
                where = (voice, index)
                assert repr(messages) == repr(await store.sessions.load_messages(conversation_id)), where
                assert invisible_in_session(before) == invisible_in_session(after), where
                assert len(set(_said(before)) - set(_said(after))) <= 3, where
                await store.delete_conversation(conversation_id)

    @clause("X1")
    async def test_an_insertion_by_a_chat_loses_nothing(self, store: Store, samples: Samples) -> None:
        """An item inserted anywhere through A stands there, everything said stays said, system messages stay."""
        for voice, say in voices.items():
            conversation_id = samples.id(voice)
            await say(store, conversation_id)
            count = len((await _chat(store, conversation_id))["items"])
            await store.delete_conversation(conversation_id)
            for index in range(count + 1):
                await say(store, conversation_id)
                before = await dump(store, conversation_id)
                items = (await _chat(store, conversation_id))["items"]
                items.insert(index, text_item("inserted"))
                await _save_items(store, conversation_id, items)
                after = await dump(store, conversation_id)
                where = (voice, index)
                assert repr(items) == repr(await store.chat.get_conversation_items(conversation_id)), where
                assert invisible_in_chat(before) == invisible_in_chat(after), where
                assert len(set(_said(before)) - set(_said(after))) <= 3, where
                await store.delete_conversation(conversation_id)

    @clause("X1")
    async def test_a_moved_message_keeps_its_words(self, store: Store, samples: Samples) -> None:
        """Moved through S or A, a message is where it was moved to, with all that S and A cannot see of it."""
        for kind in "SA":
            conversation_id = samples.id(kind)
            await store.create_conversation(conversation_id, conversation_id, id=conversation_id)
            stored = await store.append_messages(
                conversation_id, [Message(role="user", content=str(n), metadata={"n": n}) for n in range(5)]
            )
            if kind == "S":
                messages = await store.sessions.load_messages(conversation_id)
                messages.insert(1, messages.pop(3))
                await store.sessions.save_messages(conversation_id, messages)
            else:
                items = (await _chat(store, conversation_id))["items"]
                items.insert(1, items.pop(3))
                await _save_items(store, conversation_id, items)
            assert [stored[n] for n in (0, 3, 1, 2, 4)] == await store.load_messages(conversation_id)

    @clause("X1")
    async def test_moves_among_equals_keep_all_words(self, store: Store, samples: Samples) -> None:
        """Where values look alike, those that are still in the list keep their words, however they were moved."""
        conversation_id = samples.id("c")
        await store.create_conversation(conversation_id, conversation_id, id=conversation_id)
        await store.append_messages(
            conversation_id,
            [
                Message(role="user", metadata={"n": n}, created_at=datetime_from_ms(ms))
                for n, ms in enumerate((1, 1, 2, 2, 3))
            ],
        )
        messages = await store.sessions.load_messages(conversation_id)
        messages.append(messages.pop(0))
        messages.insert(1, messages.pop(0))
        await store.sessions.save_messages(conversation_id, messages)
        assert repr(messages) == repr(await store.sessions.load_messages(conversation_id))
        loaded = await store.load_messages(conversation_id)
        assert [{"n": n} for n in range(5)] == sorted([each.metadata or {} for each in loaded], key=repr)

    @clause("X1")
    async def test_repeated_and_moved_values_stand_where_they_were_put(self, store: Store, samples: Samples) -> None:
        """Each value of a list, doubled or moved to either end, is read back so; plain words stay as they were said."""
        for voice in ("C", "S", "A", "openai"):
            for kind in "SA":
                conversation_id = samples.id(f"{voice} {kind}")
                count = 1
                index = 0
                while index < count:
                    for what in ("repeat", "to the front", "to the end"):
                        await voices[voice](store, conversation_id)
                        before = await dump(store, conversation_id)
                        values: list[Any] = await self._load(store, conversation_id, kind)
                        count = len(values)
                        value = copy.deepcopy(values[index]) if what == "repeat" else values.pop(index)
                        values.insert({"repeat": index, "to the front": 0, "to the end": count}[what], value)
                        await self._save(store, conversation_id, kind, values)
                        where = (voice, kind, what, index)
                        assert repr(values) == repr(await self._load(store, conversation_id, kind)), where
                        gone = set(_said(before)) - set(_said(await dump(store, conversation_id)))
                        assert len(gone) <= 4, (where, gone)  # a record and its results
                        await store.delete_conversation(conversation_id)
                    index += 1

    async def _load(self, store: Store, conversation_id: str, kind: str) -> list[Any]:
        if kind == "S":
            return list(await store.sessions.load_messages(conversation_id))
        return list((await _chat(store, conversation_id))["items"])

    async def _save(self, store: Store, conversation_id: str, kind: str, values: list[Any]) -> None:
        if kind == "S":
            await store.sessions.save_messages(conversation_id, values)
        else:
            await _save_items(store, conversation_id, values)

    @clause("X1")
    async def test_clearing_leaves_what_is_not_seen(self, store: Store, samples: Samples) -> None:
        """Emptied through S, cards stay; emptied through A, system messages stay; the head's facts stay in both."""
        for voice, say in voices.items():
            for kind in ("S", "A"):
                conversation_id = samples.id(f"{voice} {kind}")
                await say(store, conversation_id)
                await store.rate(conversation_id, 4, "kept")
                before = await dump(store, conversation_id)
                if kind == "S":
                    await store.sessions.save_messages(conversation_id, [])
                    assert [] == await store.sessions.load_messages(conversation_id)
                    invisible = invisible_in_session
                else:
                    await store.chat.clear_conversation_history(conversation_id)
                    assert [] == await store.chat.get_conversation_items(conversation_id)
                    invisible = invisible_in_chat
                after = await dump(store, conversation_id)
                assert invisible(before) == invisible(after), (voice, kind)
                assert before.head.fields == after.head.fields

    @clause("X1", "B5")
    async def test_what_others_add_while_a_list_is_saved_stays(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Cards that a chat adds while a runtime saves its list, twice at once, are all there in the end, in order."""
        conversation_id = samples.id("c")
        await store.create_conversation(conversation_id, conversation_id, id=conversation_id)
        async with second_store(store, factory) as other:

            async def save() -> None:
                for turn in range(10):
                    await store.sessions.save_messages(conversation_id, [_ADDED] * (turn % 4))

            async def add() -> None:
                for number in range(10):
                    card = {"id": number, "type": "card", "card": {"id": "k", "type": "t", "content": {}}}
                    assert await other.chat.append_item(conversation_id, cast(ChatItem, card))

            await asyncio.gather(save(), add(), save())
            items = await other.chat.get_conversation_items(conversation_id)
        assert list(range(10)) == [each["id"] for each in items if each["type"] == "card"]
        assert [_ADDED] == await store.sessions.load_messages(conversation_id)

    @clause("X1", "X7")
    async def test_editing_text_in_a_chat_keeps_thinking_and_calls(self, store: Store, samples: Samples) -> None:
        """A's edit of the text of a runtime's message changes that text only: thinking, calls, usage, odd fields stay."""
        await voices["S"](store, samples.id("c"))
        messages: Any = await store.sessions.load_messages(samples.id("c"))
        items: Any = (await _chat(store, samples.id("c")))["items"]
        (index,) = [n for n, each in enumerate(items) if each.get("content") == "Let me look."]
        items[index]["content"] = "Let me see."
        await _save_items(store, samples.id("c"), items)
        (part,) = [
            part
            for each in messages
            if isinstance(each["content"], list)
            for part in each["content"]
            if part.get("text") == "Let me look."
        ]
        part["text"] = "Let me see."
        assert repr(messages) == repr(await store.sessions.load_messages(samples.id("c")))

    @clause("X1", "X7")
    async def test_an_update_without_a_change_changes_no_reading(self, store: Store, samples: Samples) -> None:
        """C's update of a message with itself leaves every reading as it was, whoever wrote it."""
        for voice, say in voices.items():
            conversation_id = samples.id(voice)
            await say(store, conversation_id)
            readings = await self._readings(store, conversation_id)
            for each in await store.load_messages(conversation_id, system=True):
                await store.update_message(conversation_id, each)
                assert readings == await self._readings(store, conversation_id), (voice, each)

    @clause("X1", "X7")
    async def test_words_nobody_here_knows_are_not_edited(self, store: Store, samples: Samples) -> None:
        """A change to a message of an unknown dialect is InvalidInput, and changes nothing."""
        await voices["unknown"](store, samples.id("c"))
        before = await dump(store, samples.id("c"))
        for each in await store.load_messages(samples.id("c"), system=True):
            with pytest.raises(InvalidInput):
                await store.update_message(samples.id("c"), Message(role="user", content="edited", id=each.id))
        assert before == await dump(store, samples.id("c"))

    async def _readings(self, store: Store, conversation_id: str) -> tuple[str, str, str]:
        return (
            repr(await store.load_messages(conversation_id, system=True)),
            repr(await store.sessions.load_messages(conversation_id)),
            repr(await store.chat.get_conversation(conversation_id)),
        )
