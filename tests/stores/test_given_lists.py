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
