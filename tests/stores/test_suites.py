"""The stores keep every clause of their contracts, on every backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from convostore.ids import now_ms
from convostore.testing.conversation_suite import ConversationSuite
from convostore.testing.crossing_suite import CrossingSuite
from convostore.testing.full_storage_adapter_suite import FullStorageAdapterSuite
from convostore.testing.session_suite import SessionSuite
from tests.stores.engines import OnMemory, OnSQLite


class TestConversationsOnMemory(OnMemory, ConversationSuite):
    """C on ``memory://``."""


class TestConversationsOnSQLite(OnSQLite, ConversationSuite):
    """C on a SQLite file."""


class _Sessions:
    @pytest.fixture
    def factory(self, opener: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: SessionSuite.view(opener(now_ms))


class TestSessionsOnMemory(_Sessions, OnMemory, SessionSuite):
    """S on ``memory://``."""


class TestSessionsOnSQLite(_Sessions, OnSQLite, SessionSuite):
    """S on a SQLite file."""


class _Chats:
    @pytest.fixture
    def factory(self, opener: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: FullStorageAdapterSuite.view(opener(now_ms))


class TestChatsOnMemory(_Chats, OnMemory, FullStorageAdapterSuite):
    """A on ``memory://``."""


class TestChatsOnSQLite(_Chats, OnSQLite, FullStorageAdapterSuite):
    """A on a SQLite file."""


class TestCrossingOnMemory(OnMemory, CrossingSuite):
    """X on ``memory://``."""


class TestCrossingOnSQLite(OnSQLite, CrossingSuite):
    """X on a SQLite file."""
