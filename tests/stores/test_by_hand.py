"""Adapters and session stores written by hand, on dictionaries, pass the suites that any such store can be held to."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Any

import pytest

from convostore.contracts.storage_adapter import StorageAdapter, StorageAdapterMixin
from convostore.errors import InvalidInput
from convostore.ids import check_id
from convostore.model import exact_json
from convostore.model.chat_item import ChatConversation, ChatItem
from convostore.model.session_message import SessionMessage
from convostore.model.times import ms_from_datetime
from convostore.model.todo import AgentInfo, TodoSnapshot
from convostore.testing.session_suite import SessionSuite
from convostore.testing.storage_adapter_suite import StorageAdapterSuite


class MockStorageAdapter(StorageAdapterMixin):
    """The original documentation's example of an adapter of one's own."""

    def __init__(self) -> None:
        self.conversations: dict[str, ChatConversation] = {}
        self.agents: dict[str, str] = {}

    async def save_conversation(self, conversation: ChatConversation) -> None:
        self.conversations[conversation["id"]] = copy.deepcopy(conversation)

    async def get_conversation(self, id: str) -> ChatConversation | None:
        return copy.deepcopy(self.conversations.get(id))

    async def get_all_conversations(self) -> list[ChatConversation]:
        return copy.deepcopy(list(self.conversations.values()))

    async def iterate_conversations(self) -> AsyncIterator[ChatConversation]:
        for each in await self.get_all_conversations():
            yield each

    async def delete_conversation(self, id: str) -> bool:
        self.agents.pop(id, None)
        return self.conversations.pop(id, None) is not None

    async def add_item(self, conversation_id: str, item: ChatItem) -> ChatConversation | None:
        if conversation_id not in self.conversations:
            return None
        self.conversations[conversation_id]["items"].append(copy.deepcopy(item))
        return await self.get_conversation(conversation_id)

    async def append_item(self, conversation_id: str, item: ChatItem) -> bool:
        return await self.add_item(conversation_id, item) is not None

    async def get_conversation_items(self, conversation_id: str) -> list[ChatItem]:
        found = await self.get_conversation(conversation_id)
        return found["items"] if found else []

    async def clear_conversation_history(self, conversation_id: str) -> None:
        if conversation_id in self.conversations:
            self.conversations[conversation_id]["items"].clear()

    async def set_conversation_agent(self, conversation_id: str, agent_id: str) -> None:
        self.agents[conversation_id] = agent_id

    async def get_conversation_agent(self, conversation_id: str) -> str | None:
        return self.agents.get(conversation_id)

    async def aclose(self) -> None:
        """Nothing is open."""


class TestAdapterByHand(StorageAdapterSuite):
    """A on a dictionary."""

    @pytest.fixture
    def factory(self) -> Callable[[], MockStorageAdapter]:
        return MockStorageAdapter


def test_an_adapter_by_hand_is_one_to_a_type_checker() -> None:
    """What the mixin and the eleven verbs make is a StorageAdapter."""
    adapter: StorageAdapter = MockStorageAdapter()
    assert isinstance(adapter, StorageAdapterMixin)


class _Session:
    def __init__(self) -> None:
        self.messages: list[SessionMessage] = []
        self.todos: TodoSnapshot | None = None
        self.info: AgentInfo | None = None


class DictSessionStore:
    """A session store of somebody else's make."""

    def __init__(self, sessions: dict[str, _Session]) -> None:
        self.sessions = sessions

    def _of(self, session_id: str) -> _Session:
        return self.sessions.setdefault(check_id(session_id, "session id"), _Session())

    def _get(self, session_id: str) -> _Session:
        return self.sessions.get(check_id(session_id, "session id"), _Session())

    async def save_messages(self, session_id: str, messages: Sequence[SessionMessage]) -> None:
        checked = _checked(messages)
        self._of(session_id).messages = checked

    async def append_messages(self, session_id: str, messages: Sequence[SessionMessage]) -> None:
        if checked := _checked(messages):
            self._of(session_id).messages += checked

    async def load_messages(
        self, session_id: str, *, role: str | None = None, limit: int | None = None, since: int | datetime | None = None
    ) -> list[SessionMessage]:
        if role not in (None, "system", "user", "assistant", "toolResult"):
            raise InvalidInput(f"no role {role!r}")
        if limit is not None and (type(limit) is not int or limit < 0):
            raise InvalidInput(f"no limit {limit!r}")
        if since is not None and type(since) is not int:
            since = ms_from_datetime(since)  # type: ignore[arg-type]  # it says what else is refused
        found = [
            each
            for each in self._get(session_id).messages
            if (role is None or each["role"] == role)
            and (since is None or ("timestamp" in each and each["timestamp"] >= since))
        ]
        return copy.deepcopy(found if limit is None else found[max(0, len(found) - limit) :])

    async def save_todos(self, session_id: str, snapshot: TodoSnapshot) -> None:
        self._of(session_id).todos = snapshot

    async def load_todos(self, session_id: str) -> TodoSnapshot | None:
        return self._get(session_id).todos

    async def save_info(self, session_id: str, info: AgentInfo) -> None:
        self._of(session_id).info = info

    async def load_info(self, session_id: str) -> AgentInfo | None:
        return self._get(session_id).info

    async def exists(self, session_id: str) -> bool:
        return check_id(session_id, "session id") in self.sessions

    async def delete(self, session_id: str) -> None:
        self.sessions.pop(check_id(session_id, "session id"), None)

    async def list(self, prefix: str = "") -> list[str]:
        return sorted(each for each in self.sessions if each.startswith(prefix))

    async def aclose(self) -> None:
        """Nothing is open."""


def _checked(messages: Sequence[Any]) -> list[Any]:
    for each in messages:
        if type(each) is not dict or type(each.get("role")) is not str:
            raise InvalidInput(f"{each!r:.80} is no message")
        exact_json.check(each, "message")
    return copy.deepcopy(list(messages))


class TestSessionsByHand(SessionSuite):
    """S on a dictionary."""

    @pytest.fixture
    def factory(self) -> Callable[[], DictSessionStore]:
        sessions: dict[str, _Session] = {}
        return lambda: DictSessionStore(sessions)
