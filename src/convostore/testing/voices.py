"""One log written in every voice: what the crossing suites write, and how they look at it.

A *voice* is one of the ways to write: the three stores, the OpenAI message dialect, and a dialect nobody here knows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

from convostore.contracts.backend import Change, Entry, NewEntry, Snapshot, Window
from convostore.dialects import openai_chat
from convostore.ids import new_id
from convostore.model.chat_item import ChatItem
from convostore.model.message import Message, OpaquePart, ThinkingPart, ToolCallRecord
from convostore.model.session_message import SessionMessage
from convostore.opening import Store
from convostore.testing.session_saving_suite import session_messages
from convostore.testing.storage_adapter_suite import chat_items

__all__ = [
    "Voice",
    "conversation_messages",
    "dump",
    "invisible_in_chat",
    "invisible_in_session",
    "openai_messages",
    "voices",
]

Voice: TypeAlias = Callable[[Store, str], Awaitable[None]]


def conversation_messages() -> list[Message]:
    """Return what an agent service says: every role, calls in every state, a result that is a message, odd values."""
    done = ToolCallRecord(
        "book", "call_1", "success", {"n": 10**40}, {"success": True, "message": "ok", "data": [1, -0.0]}
    )
    return [
        Message(role="system", content="You are helpful.", id="hub-s"),
        Message(role="user", content="Book it", metadata={"ip": None, "a": 1}, id="hub-1"),
        Message(
            role="assistant", content="Booking.", tool_calls=(done,), parts=(ThinkingPart("hm", "sig"),), id="hub-2"
        ),
        Message(
            role="assistant",
            tool_calls=(
                ToolCallRecord("look", "c1", "pending", "not an object"),
                ToolCallRecord("look", "c2", "error", {}, {"success": False, "message": "no", "error": "no"}),
                ToolCallRecord("look", "c3", "success", None, [None]),
            ),
            id="hub-3",
        ),
        Message(role="tool", content="found", tool_call_id="c1", id="hub-4"),
        Message(role="assistant", content="See", parts=(OpaquePart("other/1", {"z": 1, "a": 2}),), id="hub-5"),
        Message(role="user", content="yes", id="hub-6"),
        Message(role="user", content="yes", id="hub-7"),
    ]


def openai_messages() -> list[dict[str, Any]]:
    """Return what a chat completions log holds."""
    call = {"id": "o1", "type": "function", "function": {"name": "look", "arguments": '{"b": 1, "a": 2}'}}
    odd = {"id": "o2", "type": "function", "function": {"name": "look", "arguments": "not JSON"}}
    return [
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "http://x/y"}}],
        },
        {"role": "assistant", "content": None, "tool_calls": [call, odd], "refusal": None},
        {"role": "tool", "tool_call_id": "o1", "content": "12"},
        {"role": "assistant", "content": "Twelve.", "name": "bot", "annotations": []},
    ]


async def _begin(store: Store, conversation_id: str) -> None:
    if await store.find_by_id(conversation_id) is None:
        await store.create_conversation(
            conversation_id, conversation_id, id=conversation_id, metadata={"b": 1, "a": None}
        )


async def _commit(store: Store, conversation_id: str, entries: list[NewEntry]) -> None:
    await store.backend.commit(
        Change(conversation_id=conversation_id, revision=new_id(), at_ms=1_764_500_000_000, append=tuple(entries))
    )


async def say_conversation(store: Store, conversation_id: str) -> None:
    """Append as an agent service does."""
    await _begin(store, conversation_id)
    await store.append_messages(conversation_id, conversation_messages())


async def say_session(store: Store, conversation_id: str) -> None:
    """Append as an agent runtime does."""
    await _begin(store, conversation_id)
    await store.sessions.append_messages(conversation_id, session_messages())


async def say_chat(store: Store, conversation_id: str) -> None:
    """Append as a chat interface does."""
    await _begin(store, conversation_id)
    for each in chat_items():
        await store.chat.append_item(conversation_id, each)


async def say_openai(store: Store, conversation_id: str) -> None:
    """Append what an importer of chat completions keeps."""
    await _begin(store, conversation_id)
    entries = [
        openai_chat.write(each, entry_id=f"openai-{n}", created_at_ms=1_764_500_000_000 + n)
        for n, each in enumerate(openai_messages())
    ]
    await _commit(store, conversation_id, entries)


async def say_unknown(store: Store, conversation_id: str) -> None:
    """Append what a later version may have written."""
    await _begin(store, conversation_id)
    bodies = (b'{"text":"from the future","n":1}', b"\xff\x00 no JSON", b"")
    roles = ("user", None, "oracle")
    entries = [
        NewEntry(entry_id=f"future-{n}", kind="message", role=role, dialect="future/9", created_at_ms=n, body=body)
        for n, (body, role) in enumerate(zip(bodies, roles, strict=True))
    ]
    await _commit(store, conversation_id, entries)


async def say_all(store: Store, conversation_id: str) -> None:
    """Append in every voice, one after the other."""
    for say in (say_session, say_chat, say_openai, say_conversation, say_unknown):
        await say(store, conversation_id)
    await store.sessions.append_messages(conversation_id, [cast(SessionMessage, {"role": "user", "content": "last"})])


voices: dict[str, Voice] = {
    "C": say_conversation,
    "S": say_session,
    "A": say_chat,
    "openai": say_openai,
    "unknown": say_unknown,
    "all": say_all,
}


async def dump(store: Store, conversation_id: str) -> Snapshot:
    """Return everything the backend holds of a conversation."""
    snapshot: Snapshot | None = await store.backend.read(conversation_id, Window(), None)
    assert snapshot is not None
    return snapshot


def invisible_in_chat(snapshot: Snapshot) -> list[Entry]:
    """Return the entries that a chat interface never shows: system messages."""
    return [each for each in snapshot.entries if each.role == "system"]


def invisible_in_session(snapshot: Snapshot) -> list[Entry]:
    """Return the entries that a runtime never sees: cards."""
    return [each for each in snapshot.entries if each.dialect.startswith("chat_item/") and b'"card"' in each.body]


def text_item(id: str) -> ChatItem:
    """Return a message item to add."""
    return {"id": id, "type": "message", "content": f"added {id}", "role": "user"}
