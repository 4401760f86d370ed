"""What somebody may try: ids of other people's conversations, writers who never stop, heads that cannot be found."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import convostore
from convostore import Message
from convostore.ids import derived_id
from convostore.operations.verify import verify


async def test_a_squatted_id_is_never_given_to_another_subject(tmp_path: Path) -> None:
    """Whoever creates a conversation under the id that another's call derives neither gets its messages nor blocks it."""
    async with convostore.open(tmp_path / "s.db") as store:
        evil = store.for_subject("B")
        for key in ("latest_or_create 0", "latest_or_create 1", "latest_or_create 2", "key"):
            await evil.sessions.append_messages(
                derived_id("create", "context", "A", key), [{"role": "user", "content": "mine"}]
            )
        for view in (store, store.for_subject("A")):
            conversation = await view.latest_or_create("context", "A")
            assert ("context", "A") == (conversation.context, conversation.subject_id)
            with pytest.raises(convostore.ConversationExistsError):
                await view.create_conversation("context", "A", idempotency_key="key")


@pytest.mark.parametrize("url", ["memory://", "sqlite:///s.db"])
async def test_halves_of_a_pair_are_refused(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two surrogates that JSON would join into one character are refused everywhere; one alone is kept."""
    monkeypatch.chdir(tmp_path)
    halves = "\ud83d" + "\ude00"
    async with convostore.open(url) as store:
        conversation = await store.create_conversation("context", "subject", metadata={"k": "\ud83d"})
        call = convostore.ToolCallRecord("t", "c", "success", {"x": halves}, None)
        user: Any = {"role": "user", "content": halves}
        item: Any = {"id": 1, "type": "message", "role": "user", "content": halves}
        for refused in (
            store.append_messages(conversation.id, [Message(role="user", content=halves)]),
            store.append_messages(conversation.id, [Message(role="assistant", tool_calls=(call,))]),
            store.append_messages(conversation.id, [Message(role="user", metadata={halves: 1, "\U0001f600": 2})]),
            store.update_conversation(conversation.id, title=halves),
            store.rate(conversation.id, 3, halves),
            store.sessions.append_messages(conversation.id, [user]),
            store.chat.append_item(conversation.id, item),
        ):
            with pytest.raises(convostore.InvalidInput, match="surrogate pair"):
                await refused
        assert [] == await store.load_messages(conversation.id)


async def test_a_save_ends_beside_a_steady_writer() -> None:
    """A list is saved although somebody appends whenever the save looks; what was appended meanwhile stays."""
    store = convostore.InMemoryConversationStore()
    await store.sessions.append_messages("s", [{"role": "user", "content": "first"}])
    original = store.backend.read
    appended = 0

    async def read_and_append(*arguments: Any) -> Any:
        nonlocal appended
        snapshot = await original(*arguments)
        appended += 1
        await store.sessions.append_messages("s", [{"role": "user", "content": f"meanwhile {appended}"}])
        return snapshot

    saver = convostore.InMemoryConversationStore()
    saver.backend.read = read_and_append  # type: ignore[method-assign]
    saver.backend.commit = store.backend.commit  # type: ignore[method-assign]
    await asyncio.wait_for(saver.sessions.save_messages("s", [{"role": "user", "content": "saved"}]), 20)
    said = [each["content"] for each in await store.sessions.load_messages("s")]
    assert "saved" in said
    assert f"meanwhile {appended}" in said
    assert "first" not in said


async def test_erasing_goes_on_behind_damage(tmp_path: Path) -> None:
    """A conversation whose id was damaged is named in the end; the subject's others are gone."""
    path = tmp_path / "s.db"
    async with convostore.open(path) as store:
        for name in "abc":
            await store.create_conversation("context", "subject", id=name)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE conversations SET conversation_id = x'ff' WHERE conversation_id = 'b'")
    async with convostore.open(path) as store:
        with pytest.raises(convostore.CorruptDataError):
            await asyncio.wait_for(store.erase_subject("subject"), 20)
        assert [] == list((await store.list_conversations(subject_id="subject")).items)


async def test_verify_names_what_has_lost_its_head(tmp_path: Path) -> None:
    """Entries and documents of a conversation whose head row is gone are no sound store."""
    path = tmp_path / "s.db"
    async with convostore.open(path) as store:
        await store.sessions.append_messages("s", [{"role": "user", "content": "x"}])
        await store.sessions.save_todos("s", convostore.TodoSnapshot(()))
        assert () == (await verify(store.backend)).damage
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("DELETE FROM conversations")
    async with convostore.open(path) as store:
        assert 2 == sum("no head" in str(each) for each in (await verify(store.backend)).damage)
