"""B2, B13 and B14: what was answered survives, opening is safe to race, and a newer store is left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from convostore.contracts.backend import Backend, HeadQuery, Window
from convostore.errors import SchemaTooNewError
from convostore.testing.drafts import census, change, creation, entry, entry_ids
from convostore.testing.jobs import commit_and_die, create
from convostore.testing.suite import Samples, Suite, clause
from convostore.testing.workers import in_processes, in_threads, opened, until_killed

__all__ = ["DurabilityClauses"]


class DurabilityClauses(Suite):
    """What survives a restart, and who may open a store."""

    @pytest.fixture
    def newer(self) -> Callable[[], Callable[[], None]] | None:
        """Return a callable that marks this test's storage as written by a newer version, and returns one that undoes it.

        A backend that declares `durable` must provide it.
        """
        return None

    @pytest.fixture
    def next_version(self) -> Callable[[], Any] | None:
        """Return a callable that opens this test's storage as the next version of the backend will, upgrading it.

        None, the default: there is no way to try.
        """
        return None

    @clause("B2")
    async def test_what_was_answered_is_there_after_a_restart(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """With `durable`, a handle opened later shows all that was committed, counters included, and goes on from there."""
        if "durable" not in backend.capabilities:
            pytest.skip("not declared: durable")
        for number in range(3):
            await backend.commit(
                creation(
                    samples.id(f"c{number}"),
                    entry("a"),
                    fields={"f": b"1"},
                    documents={"d": b"1"},
                    subject_id=samples.id("s"),
                )
            )
            await backend.commit(change(samples.id(f"c{number}"), entry("b"), remove=("a",), documents={"e": b"2"}))
        before = await census(backend, samples.prefix)
        await backend.aclose()
        async with opened(factory) as later:
            assert before == await census(later, samples.prefix)
            made = await later.commit(change(samples.id("c0"), entry("c")))
            assert made.appended[0].position > before[samples.id("c0")].head.last_stamp
            created = await later.scan_heads(HeadQuery(subject_id=samples.id("s"), order="created"))
            assert list(before) == [each.conversation_id for each in created.items]

    @clause("B2")
    async def test_closing_loses_nothing_that_was_accepted(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """With `durable`, a handle that was never closed may be left behind: its commits are there for the next one."""
        if "durable" not in backend.capabilities:
            pytest.skip("not declared: durable")
        await backend.commit(creation(samples.id("c"), entry("a")))
        async with opened(factory) as later:
            assert ["a"] == await entry_ids(later, samples.id("c"))

    @clause("B2", "B1")
    async def test_what_was_answered_survives_a_kill(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any], process_factory: Callable[[], Any] | None
    ) -> None:
        """With `durable` and `multi_process`, a process that dies by SIGKILL right after the answer has lost nothing."""
        if not {"durable", "multi_process"} <= backend.capabilities:
            pytest.skip("not declared: durable and multi_process")
        assert process_factory is not None, "multi_process is declared: define the fixture process_factory"
        answered = await until_killed((commit_and_die, (process_factory, samples.id("c"))), 1)
        async with opened(factory) as later:
            snapshot = await later.read(samples.id("c"), Window(), None)
        assert snapshot is not None
        assert answered == [snapshot.head.revision]
        assert (["a", "b"], {"d": b"1"}) == ([each.entry_id for each in snapshot.entries], snapshot.documents)

    @clause("B13", needs_fresh=True)
    async def test_many_threads_may_open_what_does_not_exist(
        self, factory: Callable[[], Any], samples: Samples
    ) -> None:
        """Eight threads that open a store which is not there yet all succeed, and all that they commit is kept."""

        async def begin(number: int) -> frozenset[str]:
            async with opened(factory) as backend:
                await backend.commit(creation(samples.id(f"c{number}"), entry("a")))
                assert ["a"] == await entry_ids(backend, samples.id(f"c{number}"))
                return frozenset(backend.capabilities)

        done = await in_threads(*(lambda number=number: begin(number) for number in range(8)))
        if "durable" in done[0]:
            async with opened(factory) as backend:
                assert {samples.id(f"c{number}") for number in range(8)} == set(await census(backend))

    @clause("B13", needs_fresh=True)
    async def test_many_processes_may_open_what_does_not_exist(
        self, factory: Callable[[], Any], samples: Samples, process_factory: Callable[[], Any] | None
    ) -> None:
        """With `multi_process`, four processes that open a store which is not there yet at the same moment all succeed."""
        if process_factory is None:
            async with opened(factory) as backend:
                assert "multi_process" not in backend.capabilities, "define the fixture process_factory"
            pytest.skip("not declared: multi_process")
        names = [samples.id(f"c{number}") for number in range(4)]
        await in_processes(*((create, (process_factory, name)) for name in names))
        async with opened(factory) as backend:
            if "multi_process" in backend.capabilities:
                assert set(names) == set(await census(backend))

    @clause("B13")
    async def test_opening_a_store_again_changes_nothing(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """A second handle opened and closed beside the first leaves what is stored, and the first handle, as they were."""
        await backend.commit(creation(samples.id("c"), entry("a"), documents={"d": b"1"}))
        before = await census(backend, samples.prefix)
        for _ in range(3):
            async with opened(factory) as other:
                await other.scan_heads(HeadQuery())
        assert before == await census(backend, samples.prefix)
        await backend.commit(change(samples.id("c"), entry("b")))
        assert ["a", "b"] == await entry_ids(backend, samples.id("c"))

    @clause("B14", needs_fresh=True)
    async def test_a_newer_store_is_refused_untouched(
        self,
        backend: Backend,
        samples: Samples,
        factory: Callable[[], Any],
        newer: Callable[[], Callable[[], None]] | None,
    ) -> None:
        """A handle opened before the upgrade and one opened after it raise SchemaTooNewError, and write nothing."""
        if "durable" not in backend.capabilities:
            pytest.skip("not declared: durable")
        assert newer is not None, "durable is declared: define the fixture newer"
        await backend.commit(creation(samples.id("c"), entry("a")))
        before = await census(backend)
        undo = newer()
        with pytest.raises(SchemaTooNewError):
            await backend.commit(change(samples.id("c"), entry("x")))
        with pytest.raises(SchemaTooNewError):
            await backend.commit(creation(samples.id("d"), entry("x")))
        for _ in range(2):
            with pytest.raises(SchemaTooNewError):
                async with opened(factory) as later:
                    await later.read(samples.id("c"), Window())
            with pytest.raises(SchemaTooNewError):
                async with opened(factory) as later:
                    await later.commit(creation(samples.id("d"), entry("x")))
        undo()
        async with opened(factory) as later:
            assert before == await census(later)
            await later.commit(change(samples.id("c"), entry("b")))
            assert ["a", "b"] == await entry_ids(later, samples.id("c"))

    @clause("B14", "B13", needs_fresh=True)
    async def test_an_older_store_is_upgraded_whole(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any], next_version: Callable[[], Any] | None
    ) -> None:
        """Four threads that upgrade a store at once all find everything in it; who opened it before is refused."""
        if next_version is None:
            pytest.skip("not given: next_version")
        for number in range(3):
            await backend.commit(
                creation(samples.id(f"c{number}"), entry("a"), fields={"f": b"1"}, documents={"d": b"1"})
            )
        before = await census(backend)

        async def upgrade(number: int) -> object:
            async with opened(next_version) as later:
                found = await census(later, samples.id("c"))
                await later.commit(creation(samples.id(f"new{number}"), entry("a")))
                return found

        assert [before] * 4 == await in_threads(*(lambda number=number: upgrade(number) for number in range(4)))
        with pytest.raises(SchemaTooNewError):
            await backend.commit(change(samples.id("c0"), entry("late")))
        with pytest.raises(SchemaTooNewError):
            async with opened(factory) as older:
                await older.read(samples.id("c0"))
        async with opened(next_version) as later:
            assert before.keys() | {samples.id(f"new{number}") for number in range(4)} == (await census(later)).keys()
