"""B15: event loops, threads, forks, leaving and closing."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convostore.contracts.backend import Backend, FindingEntries, HeadQuery, Receipt, Window
from convostore.errors import ClosedError, ConversationNotFoundError
from convostore.testing.drafts import change, creation, entry, entry_ids, refused
from convostore.testing.jobs import fork, use_and_leave
from convostore.testing.suite import Samples, Suite, clause
from convostore.testing.workers import in_processes, in_threads, opened

__all__ = ["LifecycleClauses"]


class LifecycleClauses(Suite):
    """From opening to closing."""

    @clause("B15")
    async def test_one_handle_serves_many_event_loops_one_after_the_other(
        self, backend: Backend, samples: Samples
    ) -> None:
        """Thirty asyncio.run calls on one handle all work, and neither threads nor descriptors grow."""
        await backend.commit(creation(samples.id("c")))

        async def use(number: int) -> None:
            await backend.commit(change(samples.id("c"), entry(f"e{number}")))
            await asyncio.gather(*(entry_ids(backend, samples.id("c")) for _ in range(3)))
            await backend.scan_heads(HeadQuery(prefix=samples.prefix))

        def run_all() -> list[tuple[int, int]]:
            counts = []
            for numbers in (range(5), range(5, 30)):
                for number in numbers:
                    asyncio.run(use(number))
                gc.collect()
                counts.append((threading.active_count(), _descriptors()))
            return counts

        before, after = await asyncio.to_thread(run_all)
        assert after[0] <= before[0], "threads grew"
        assert after[1] <= before[1], "descriptors grew"
        assert [f"e{number}" for number in range(30)] == await entry_ids(backend, samples.id("c"))

    @clause("B15")
    async def test_one_handle_serves_several_event_loops_at_once(self, backend: Backend, samples: Samples) -> None:
        """Four threads, each with its event loop, use one handle together, also while tasks of theirs are cancelled."""

        async def use(number: int) -> None:
            name = samples.id(f"c{number}")
            await backend.commit(creation(name))
            for step in range(8):
                doomed = asyncio.create_task(entry_ids(backend, name))
                await asyncio.sleep(0)
                doomed.cancel()
                await backend.commit(change(name, entry(f"e{step}")))
                await asyncio.gather(doomed, return_exceptions=True)
            assert [f"e{step}" for step in range(8)] == await entry_ids(backend, name)

        await in_threads(*(lambda number=number: use(number) for number in range(4)))

    @clause("B15")
    async def test_use_leaves_nothing_open(self, backend: Backend, samples: Samples) -> None:
        """A hundred commits, reads, listings and refusals leave as many threads and descriptors as ten did."""

        async def use(numbers: range) -> tuple[int, int]:
            for number in numbers:
                await backend.commit(creation(samples.id(f"c{number}"), entry("a")))
                await refused(ConversationNotFoundError, backend.commit(change(samples.id("gone"), entry("a"))))
                await backend.read(samples.id(f"c{number}"), Window(), None)
                await backend.scan_heads(HeadQuery(prefix=samples.prefix, limit=3))
            gc.collect()
            return threading.active_count(), _descriptors()

        threads, descriptors = await use(range(10))
        threads_later, descriptors_later = await use(range(10, 110))
        assert threads_later <= threads
        assert descriptors_later <= descriptors

    @clause("B15", "E1")
    async def test_a_closed_handle_says_so(self, backend: Backend, samples: Samples) -> None:
        """After aclose, which may be repeated, every call raises ClosedError."""
        await backend.commit(creation(samples.id("c"), entry("a")))
        await backend.aclose()
        await backend.aclose()
        await refused(ClosedError, backend.commit(change(samples.id("c"), entry("b"))))
        await refused(ClosedError, backend.read(samples.id("c")))
        await refused(ClosedError, backend.scan_heads(HeadQuery()))
        if isinstance(backend, FindingEntries):
            await refused(ClosedError, backend.find_entry("a"))

    @clause("B15", "B1", "B2")
    async def test_closing_finishes_what_was_accepted(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Each commit that races aclose is answered, and then kept, or raises ClosedError; none hangs."""
        await backend.commit(creation(samples.id("c")))
        commits = [
            asyncio.create_task(backend.commit(change(samples.id("c"), entry(f"e{number}")))) for number in range(20)
        ]
        await asyncio.sleep(0)
        await backend.aclose()
        done = await asyncio.wait_for(asyncio.gather(*commits, return_exceptions=True), 30)
        assert all(isinstance(each, Receipt | ClosedError) for each in done), done
        if "durable" in backend.capabilities:
            async with opened(factory) as later:
                kept = set(await entry_ids(later, samples.id("c")))
            assert {f"e{number}" for number, each in enumerate(done) if isinstance(each, Receipt)} == kept

    @clause("B15")
    async def test_a_handle_never_used_can_be_closed(self, factory: Callable[[], Any]) -> None:
        """Opening and closing without a call in between, ten times, leaves no thread behind."""
        before = threading.active_count()
        for _ in range(10):
            async with opened(factory):
                pass
        assert threading.active_count() <= before

    @clause("B15")
    async def test_leaving_without_closing_does_not_hang(
        self, factory: Callable[[], Any], samples: Samples, process_factory: Callable[[], Any] | None
    ) -> None:
        """A process that used a handle and ends without closing it ends."""
        await _need_process_factory(factory, process_factory)
        assert ["a"] == (await in_processes((use_and_leave, (process_factory, samples.id("left")))))[0]

    @clause("B15")
    async def test_after_a_fork_both_sides_work(
        self, backend: Backend, samples: Samples, process_factory: Callable[[], Any] | None, factory: Callable[[], Any]
    ) -> None:
        """With `multi_process`, a forked child uses the handle it inherited by opening anew; the parent's goes on working."""
        if "multi_process" not in backend.capabilities or not hasattr(os, "fork"):
            pytest.skip("not declared: multi_process (or no fork here)")
        await _need_process_factory(factory, process_factory)
        await backend.commit(creation(samples.id("c"), entry("begin")))
        (status,) = await in_processes((fork, (process_factory, samples.id("c"))))
        assert status == 0, "the forked child failed"
        there = await entry_ids(backend, samples.id("c"))
        assert ["begin", "before"] == there[:2]
        assert sorted(f"{who}{number}" for who in ("child", "parent") for number in range(5)) == sorted(there[2:-1])
        assert "after" == there[-1]


async def _need_process_factory(factory: Callable[[], Any], process_factory: Callable[[], Any] | None) -> None:
    if process_factory is None:
        async with opened(factory) as backend:
            assert "multi_process" not in backend.capabilities, "define the fixture process_factory"
        pytest.skip("not declared: multi_process, and no process_factory to try it with")


def _descriptors() -> int:
    """Return how many descriptors are open, where the system lets one count them."""
    listed = Path("/proc/self/fd")
    return len(list(listed.iterdir())) if listed.exists() else 0
