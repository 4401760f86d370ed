"""What a backend declares is there, and what it does not declare is not there, or refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, get_args

import pytest

from convostore.contracts.backend import Backend, Capability, FindingEntries, Snapshot, Watching
from convostore.errors import UnsupportedError
from convostore.testing.drafts import change, creation, entry
from convostore.testing.suite import Samples, Suite, clause
from convostore.testing.workers import second_handle

__all__ = ["CapabilityClauses"]


class CapabilityClauses(Suite):
    """Declared, never guessed."""

    @clause("E1")
    async def test_capabilities_are_known_words_and_do_not_change(self, backend: Backend, samples: Samples) -> None:
        """`capabilities` is a frozenset of the contract's words, the same before and after use."""
        declared = backend.capabilities
        assert isinstance(declared, frozenset)
        assert declared <= set(get_args(Capability))
        await backend.commit(creation(samples.id("c")))
        assert declared == backend.capabilities

    @clause("E1")
    async def test_what_is_not_declared_is_not_there(self, backend: Backend) -> None:
        """Without `find_entry`, `watch`, `search` or `self_check` there is no such method, or it raises UnsupportedError."""
        for name, *arguments in (("find_entry", "x"), ("watch", "x"), ("search", "x"), ("self_check",)):
            if name in backend.capabilities:
                assert callable(getattr(backend, name, None)), f"{name} is declared and not there"
            elif hasattr(backend, name):
                with pytest.raises(UnsupportedError):
                    await _used(getattr(backend, name), *arguments)

    @clause("B9", "B8")
    async def test_find_entry_names_the_conversations_that_hold_it(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """With `find_entry`: every conversation that holds the id now, sorted, through any handle; () when none does."""
        if "find_entry" not in backend.capabilities:
            pytest.skip("not declared: find_entry")
        assert isinstance(backend, FindingEntries)
        same = samples.id("same")
        assert () == await backend.find_entry(same)
        for name in ("c", "a", "b"):
            await backend.commit(creation(samples.id(name), entry(same), entry(f"{same}-{name}")))
        async with second_handle(backend, factory) as other:
            assert isinstance(other, FindingEntries)
            assert tuple(samples.id(name) for name in "abc") == await other.find_entry(same)
            assert (samples.id("a"),) == await other.find_entry(f"{same}-a")
            await other.commit(change(samples.id("b"), remove=(same,)))
            await other.commit(change(samples.id("c"), delete=True))
            await other.commit(change(samples.id("a"), replace=(entry(same, b"new"),)))
        assert (samples.id("a"),) == await backend.find_entry(same)
        assert () == await backend.find_entry(f"{same}-c")

    @clause("B4", "B5")
    async def test_watch_yields_what_changed(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """With `watch`: first what changed after the stamp, then each commit's entries, whoever committed them."""
        if "watch" not in backend.capabilities:
            pytest.skip("not declared: watch")
        assert isinstance(backend, Watching)
        made = await backend.commit(creation(samples.id("c"), entry("a"), entry("b")))
        changes = backend.watch(samples.id("c"), made.appended[0].stamp)
        first = await asyncio.wait_for(anext(changes), 10)
        assert ["b"] == [each.entry_id for each in first.entries]
        async with second_handle(backend, factory) as other:
            await other.commit(change(samples.id("c"), entry("c"), replace=(entry("a", b"new"),)))
            seen: list[str] = []
            while {"a", "c"} - set(seen):
                snapshot: Snapshot = await asyncio.wait_for(anext(changes), 10)
                seen += [each.entry_id for each in snapshot.entries]
        assert "b" not in seen
        await changes.aclose()  # type: ignore[attr-defined]  # an async generator, as the protocol's callers may rely on


async def _used(method: Callable[..., Any], *arguments: str) -> None:
    """Call a method, await what it returns, or begin to iterate over it."""
    made = method(*arguments)
    if hasattr(made, "__anext__"):
        await anext(made)
    else:
        await made
