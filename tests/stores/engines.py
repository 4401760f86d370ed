"""Stores to test: how each backend gives several handles on the same storage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from convostore import opening
from convostore.backends.memory import MemoryBackend
from convostore.contracts.backend import Backend, Capability, Change, HeadPage, HeadQuery, Receipt, Snapshot, Window
from convostore.errors import ClosedError
from convostore.ids import Clock, now_ms
from convostore.opening import Store

__all__ = ["OnMemory", "OnSQLite"]


class Handle:
    """A backend of its own to whoever closes it, on storage that others go on using.

    Every call lets other tasks run first, as storage outside the process does.
    """

    def __init__(self, shared: Backend) -> None:
        self._shared: Backend | None = shared

    @property
    def _open(self) -> Backend:
        if self._shared is None:
            raise ClosedError("this handle was closed")
        return self._shared

    @property
    def capabilities(self) -> frozenset[Capability]:
        # There is another handle to be had, which is what the suites want to know.
        return self._open.capabilities | {"multi_process"}

    async def commit(self, change: Change, /) -> Receipt:
        await asyncio.sleep(0)
        return await self._open.commit(change)

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: Sequence[str] | None = (), /
    ) -> Snapshot | None:
        await asyncio.sleep(0)
        return await self._open.read(conversation_id, window, documents)

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        await asyncio.sleep(0)
        return await self._open.scan_heads(query)

    async def aclose(self) -> None:
        self._shared = None


class OnMemory:
    """Handles on one memory backend, which nobody but the end of the test closes."""

    @pytest.fixture
    def opener(self) -> Callable[[Clock], Store]:
        backend = MemoryBackend()
        return lambda clock: Store(Handle(backend), clock=clock)

    @pytest.fixture
    def factory(self, opener: Callable[[Clock], Store]) -> Callable[[], Any]:
        return lambda: opener(now_ms)

    @pytest.fixture
    def clocked(self, opener: Callable[[Clock], Store]) -> Callable[[Clock], Store]:
        return opener


class OnSQLite(OnMemory):
    """Handles on one SQLite file, each opened by its URL."""

    @pytest.fixture
    def opener(self, tmp_path: Path) -> Callable[[Clock], Store]:
        return lambda clock: opening.open(f"sqlite:///{tmp_path / 'chats.db'}", clock=clock)
