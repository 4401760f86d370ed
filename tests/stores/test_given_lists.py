"""The lists that callers hand over: copied before anything waits, refused when they are none."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import convostore
from convostore import Message


async def test_a_list_that_changes_while_it_waits_is_stored_as_it_was(tmp_path: Path) -> None:
    """What the caller adds to its list during the call is not part of it, and the call returns what it stored."""
    async with convostore.open(tmp_path / "s.db") as store:
        conversation = await store.create_conversation("context", "subject")
        given = [Message(role="user", content="1")]
        call = asyncio.ensure_future(store.append_messages(conversation.id, given))
        await asyncio.sleep(0)
        given.append(Message(role="user", content="2"))
        assert ["1"] == [each.content for each in await call]
        assert ["1"] == [each.content for each in await store.load_messages(conversation.id)]


async def test_an_iterator_is_a_list() -> None:
    """A generator of messages is appended and returned whole."""
    store = convostore.InMemoryConversationStore()
    conversation = await store.create_conversation("context", "subject")
    stored: Any = await store.append_messages(conversation.id, (Message(role="user", content=x) for x in "xy"))  # type: ignore[arg-type]
    assert ["x", "y"] == [each.content for each in stored]


@pytest.mark.parametrize("given", [None, 7, "text", b"bytes", {"role": "user", "content": "x"}, Message(role="user")])
async def test_what_is_no_list_is_refused(given: Any) -> None:
    """One message where a list belongs, or nothing, is InvalidInput on every verb that takes a list."""
    store = convostore.InMemoryConversationStore()
    conversation = await store.create_conversation("context", "subject")
    for call in (
        store.append_messages(conversation.id, given),
        store.sessions.append_messages(conversation.id, given),
        store.sessions.save_messages(conversation.id, given),
    ):
        with pytest.raises(convostore.InvalidInput, match="must be a list"):
            await call


async def test_a_long_list_in_another_order_keeps_its_entries() -> None:
    """However many messages change places, every entry keeps its id; a list of thousands is no matter of minutes."""
    store = convostore.InMemoryConversationStore()
    conversation = await store.create_conversation("context", "subject")
    sent = [Message(role="user", content=str(n), metadata={"n": n}) for n in range(3000)]
    await store.append_messages(conversation.id, sent)
    before = {each.id: each.content for each in await store.load_messages(conversation.id)}
    messages = await store.sessions.load_messages(conversation.id)
    await store.sessions.save_messages(conversation.id, [*messages[1::2], *messages[::2]])
    after = await store.load_messages(conversation.id)
    assert [str(n) for n in (*range(1, 3000, 2), *range(0, 3000, 2))] == [each.content for each in after]
    assert before == {each.id: each.content for each in after}


async def test_a_call_whose_entry_was_changed_into_another_is_added_again() -> None:
    """A tool call can be added and finished although an entry that once held it now holds something else."""
    store = convostore.InMemoryConversationStore()
    item: Any = {
        "id": 1,
        "type": "tool_call",
        "toolCall": {"id": "c", "name": "n", "arguments": {}, "status": "pending"},
    }
    await store.chat.save_conversation({"id": "x", "title": "", "items": []})
    await store.chat.append_item("x", item)
    other: Any = {"id": 1, "type": "message", "role": "user", "content": "instead"}
    await store.chat.save_conversation({"id": "x", "title": "", "items": [other]})
    assert await asyncio.wait_for(store.chat.append_item("x", item), 10)
    assert [other, item] == await store.chat.get_conversation_items("x")
    called: Any = {"type": "toolCall", "id": "s", "name": "n", "arguments": {}}
    asking: Any = {"role": "assistant", "content": [called]}
    await store.sessions.append_messages("y", [asking])
    await store.finish_tool_call("y", "s", "success", 1)
    messages: Any = await store.sessions.load_messages("y")
    messages[1]["toolCallId"] = "other"
    await store.sessions.save_messages("y", messages)
    assert 2 == (await asyncio.wait_for(store.finish_tool_call("y", "s", "success", 2), 10)).output


@pytest.mark.parametrize("kept", ["c0", "c1"])
async def test_a_call_and_its_answer_are_dropped_together(kept: str) -> None:
    """A runtime drops one of two calls, and its result; the other call and its result stay as they were recorded."""
    store = convostore.InMemoryConversationStore()
    conversation = await store.create_conversation("context", "subject")
    calls = (
        convostore.ToolCallRecord("f", "c0", "pending", {}),
        convostore.ToolCallRecord("f", "c1", "success", {}, {"success": True, "message": "m", "data": 1}),
    )
    asked = Message(role="assistant", content="a", tool_calls=calls)
    await store.append_messages(conversation.id, [asked, Message(role="tool", tool_call_id="c0", content="r")])
    messages: Any = await store.sessions.load_messages(conversation.id)
    messages[0]["content"] = [each for each in messages[0]["content"] if each.get("id") in (None, kept)]
    left = [messages[0], *(each for each in messages[1:] if each["toolCallId"] == kept)]
    await store.sessions.save_messages(conversation.id, left)
    assert left == await store.sessions.load_messages(conversation.id)
    (shown,) = [each for each in await store.load_messages(conversation.id) if each.role == "assistant"]
    assert [each for each in calls if each.tool_call_id == kept] == list(shown.tool_calls)
