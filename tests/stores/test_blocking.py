"""The blocking facade has every verb of the contracts, and each does what the asynchronous one does."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convostore import blocking, errors
from convostore.contracts.conversation_store import ConversationStore
from convostore.contracts.session_store import SessionStore
from convostore.contracts.storage_adapter import StorageAdapter
from convostore.model.message import Message, ToolCallRecord
from convostore.model.todo import TodoItem, TodoSnapshot
from convostore.testing.session_saving_suite import session_messages
from convostore.testing.session_suite import SessionSuite
from convostore.testing.storage_adapter_suite import StorageAdapterSuite, chat_items, conversation


class Awaited:
    """A blocking store with every call handed to a thread, so that a suite can await it."""

    def __init__(self, store: blocking.BlockingStore, contract: Any) -> None:
        self._store = store
        self._contract = contract

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._contract, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(functools.partial(method, *args, **kwargs))

        return call

    async def aclose(self) -> None:
        await asyncio.to_thread(self._store.close)


class TestBlockingSessions(SessionSuite):
    """S without await."""

    @pytest.fixture
    def factory(self, tmp_path: Path) -> Callable[[], Awaited]:
        def make() -> Awaited:
            store = blocking.open(tmp_path / "chats.db")
            return Awaited(store, store.sessions)

        return make


class TestBlockingChat(StorageAdapterSuite):
    """A without await."""

    @pytest.fixture
    def factory(self, tmp_path: Path) -> Callable[[], Awaited]:
        def make() -> Awaited:
            store = blocking.open(tmp_path / "chats.db")
            return Awaited(store, store.chat)

        return make


def test_every_verb_is_there_with_its_parameters() -> None:
    """Each verb of each contract is there without await, with the same parameters."""
    with blocking.open("memory://") as store:
        contracts: tuple[tuple[type, Any], ...] = (
            (ConversationStore, store),
            (SessionStore, store.sessions),
            (StorageAdapter, store.chat),
        )
        for contract, offered in contracts:
            for name, verb in vars(contract).items():
                if name.startswith("_") or not inspect.isfunction(verb):
                    continue
                method = getattr(offered, name)
                expected = list(inspect.signature(verb).parameters)[1:]
                assert expected == list(inspect.signature(method).parameters), name


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_conversation_without_await(kind: str, tmp_path: Path) -> None:
    """Create, append, finish, load, rate, show as session and as chat: all without await."""
    url = "memory://" if kind == "memory" else f"sqlite:///{tmp_path / 'chats.db'}"
    with blocking.open(url) as store:
        made = store.create_conversation("admin_assistant", "org-7", metadata={"n": 1})
        call = ToolCallRecord("look", "c", "pending", {})
        store.append_messages(
            made.id, [Message(role="user", content="hi"), Message(role="assistant", tool_calls=(call,))]
        )
        assert ["c"] == [each.tool_call_id for each in store.open_tool_calls(made.id)]
        store.finish_tool_call(made.id, "c", "success", {"success": True, "message": "12"})
        store.rate(made.id, 5, "Very helpful!")
        found = store.find_latest("admin_assistant", "org-7")
        assert found is not None
        assert (made.id, 5, "Very helpful!") == (found.id, found.rating, found.rating_comment)
        assert ["hi", ""] == [each.content for each in store.load_messages(made.id)]
        assert ["user", "assistant", "toolResult"] == [each["role"] for each in store.sessions.load_messages(made.id)]
        assert ["message", "tool_call"] == [each["type"] for each in store.chat.get_conversation_items(made.id)]
        store.sessions.save_messages("s", session_messages())
        store.sessions.save_todos("s", TodoSnapshot((TodoItem("1", "x"),)))
        store.chat.save_conversation(conversation("c", *chat_items()))
        assert [made.id, "s", "c"] == [each["id"] for each in store.chat.iterate_conversations()]
        assert [made.id] == [each.id for each in store.for_subject("org-7").list_conversations().items]
        with pytest.raises(errors.ConversationNotFoundError):
            store.append_messages("missing", [Message(role="user", content="x")])
    with pytest.raises(errors.ClosedError):
        store.find_by_id(made.id)
