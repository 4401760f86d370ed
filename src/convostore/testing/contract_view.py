"""What a suite of a store holds on to: one contract of a store by itself, and a second handle."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from convostore.contracts.backend import Backend
from convostore.opening import Store
from convostore.testing.workers import opened

__all__ = ["ContractView", "second_store"]


class ContractView:
    """The verbs of `contract`, which is ``store.sessions`` or ``store.chat``, closed with the store."""

    def __init__(self, store: Store, contract: Any) -> None:
        self._store = store
        self._contract = contract

    def __getattr__(self, name: str) -> Any:
        return getattr(self._contract, name)

    @property
    def backend(self) -> Backend:
        """The store's backend."""
        return self._store.backend

    async def aclose(self) -> None:
        """Close the store."""
        await self._store.aclose()


@asynccontextmanager
async def second_store(store: Any, factory: Callable[[], Any]) -> AsyncIterator[Any]:
    """Open another handle on the same storage; `store` itself where its backend keeps to one process."""
    backend = getattr(store, "backend", None)
    if backend is not None and "multi_process" not in backend.capabilities:
        yield store
        return
    async with opened(factory) as other:
        yield other
