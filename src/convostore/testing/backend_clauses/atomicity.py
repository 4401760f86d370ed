"""B1: all of a commit or nothing, after a refusal, a cancellation at any await, and SIGKILL; and the steps in their order."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import pytest

from convostore import limits
from convostore.contracts.backend import Backend, Change, Receipt, Window
from convostore.errors import (
    ConflictError,
    ConversationExistsError,
    ConversationNotFoundError,
    DuplicateEntryError,
    InvalidInput,
    NotFoundError,
    RevisionConflictError,
    StoreError,
)
from convostore.testing.drafts import census, change, creation, entries_of, entry, entry_ids
from convostore.testing.jobs import append_for_ever
from convostore.testing.suite import Samples, Suite, clause
from convostore.testing.workers import opened, until_killed

__all__ = ["AtomicityClauses"]

_awaits_max = 200


class AtomicityClauses(Suite):
    """A commit happens as a whole or not at all."""

    @clause("B1")
    async def test_one_change_does_everything_in_its_order(self, backend: Backend, samples: Samples) -> None:
        """cut, remove, replace, append, fields and documents of one change all happen, in that order."""
        first = await backend.commit(
            creation(
                samples.id("c"),
                *(entry(f"e{number}") for number in range(6)),
                context=samples.id("ctx"),
                fields={"title": b"old", "gone": b"x", "stays": b"y"},
                documents={"todos": b"old", "gone": b"x", "stays": b"y"},
            )
        )
        receipt = await backend.commit(
            change(
                samples.id("c"),
                entry("e1", b"again"),
                entry("e5", b"again"),
                set_subject=samples.id("owner"),
                cut_after=first.appended[3].position,
                remove=("e1", "never was", "e4"),
                replace=(entry("e2", b"new"),),
                fields={"title": b"new", "gone": None, "never": None},
                documents={"todos": b"new", "gone": None, "never": None},
            )
        )
        snapshot = await backend.read(samples.id("c"), Window(), None)
        assert snapshot is not None
        assert [("e0", b'{"text":"hello"}'), ("e2", b"new"), ("e3", b'{"text":"hello"}')] == [
            (each.entry_id, each.body) for each in snapshot.entries[:3]
        ]
        assert [("e1", b"again"), ("e5", b"again")] == [(each.entry_id, each.body) for each in snapshot.entries[3:]]
        assert snapshot.entries[3:] == receipt.appended
        assert snapshot.entries[1].stamp < snapshot.entries[3].position
        assert {"title": b"new", "stays": b"y"} == snapshot.head.fields
        assert {"todos": b"new", "stays": b"y"} == snapshot.documents
        assert (5, samples.id("owner"), samples.id("ctx")) == (
            snapshot.head.entry_count,
            snapshot.head.subject_id,
            snapshot.head.context,
        )
        assert receipt.applied
        assert snapshot.head == receipt.head

    @clause("B1", "B6", "B7")
    async def test_a_refused_change_leaves_no_trace(self, backend: Backend, samples: Samples) -> None:
        """Whichever step refuses, nothing of the steps before it or after it is there, and the next commit works."""
        mine = samples.id("c")
        await backend.commit(
            creation(
                mine,
                entry("a"),
                entry("b"),
                subject_id=samples.id("owner"),
                fields={"title": b"old"},
                documents={"todos": b"old"},
            )
        )
        everything: dict[str, Any] = {"fields": {"title": b"new"}, "documents": {"todos": b"new"}, "remove": ("a",)}
        refused: list[tuple[type[StoreError], Change]] = [
            (DuplicateEntryError, change(mine, entry("x"), entry("b", b"other"), **everything)),
            (DuplicateEntryError, change(mine, entry("x"), entry("b"), **everything)),
            (NotFoundError, change(mine, entry("x"), replace=(entry("gone"),), **everything)),
            (NotFoundError, change(mine, entry("x"), replace=(entry("b", b"new"), entry("a")), **everything)),
            (RevisionConflictError, change(mine, replace=(entry("b", expected_stamp=999_999),), **everything)),
            (RevisionConflictError, change(mine, entry("x"), expected_revision="another", **everything)),
            (RevisionConflictError, change(mine, expected_revision="another", delete=True)),
            (ConflictError, change(mine, entry("x"), set_subject=samples.id("thief"), **everything)),
            (ConversationExistsError, creation(mine, entry("x"), **everything)),
            (ConversationNotFoundError, change(mine, entry("x"), only_subject=samples.id("thief"), **everything)),
            (ConversationNotFoundError, change(samples.id("nowhere"), entry("x"), **everything)),
            (InvalidInput, change(mine, entry("x"), entry("x"), **everything)),
            (InvalidInput, change(mine, entry("x"), cut_after=0, fields={"big": bytes(limits.fields_bytes_max)})),
        ]
        before = await census(backend, samples.prefix)
        for error, each in refused:
            with pytest.raises(error) as raised:
                await backend.commit(each)
            assert error is type(raised.value), each
            assert before == await census(backend, samples.prefix), f"a trace of {each}"
        await backend.commit(change(mine, entry("x"), **everything))
        assert ["b", "x"] == await entry_ids(backend, mine)

    @clause("B1")
    async def test_a_refused_creation_creates_nothing(self, backend: Backend, samples: Samples) -> None:
        """A change that may create and is refused in a later step leaves no conversation behind."""
        for existence in ("may_create", "must_create"):
            others: list[dict[str, Any]] = [{"replace": (entry("gone"),)}, {"expected_revision": "another"}]
            for number, other in enumerate(others):
                name = samples.id(f"{existence}-{number}")
                with pytest.raises(StoreError):
                    await backend.commit(change(name, entry("x"), existence=existence, **other))
                assert await backend.read(name) is None
        assert {} == await census(backend, samples.prefix)

    @clause("B1")
    async def test_commits_at_once_are_refused_one_by_one(self, backend: Backend, samples: Samples) -> None:
        """Among many changes handed in at once, those that are refused take none of the others with them."""
        await backend.commit(creation(samples.id("taken"), entry("a")))
        changes = [
            change(samples.id("taken"), entry("x"), entry("a", b"other"))
            if number % 3 == 0
            else creation(samples.id(f"c{number}"), entry("a"), entry("b"))
            for number in range(24)
        ]
        done = await asyncio.gather(*map(backend.commit, changes), return_exceptions=True)
        kinds = [type(each) for each in done]
        assert [DuplicateEntryError if number % 3 == 0 else Receipt for number in range(24)] == kinds
        found = await census(backend, samples.prefix)
        assert {samples.id("taken"), *(samples.id(f"c{number}") for number in range(24) if number % 3)} == set(found)
        assert ["a"] == [each.entry_id for each in found.pop(samples.id("taken")).entries]
        assert [["a", "b"]] * 16 == [[each.entry_id for each in one.entries] for one in found.values()]

    @clause("B1", "B7")
    async def test_a_cancelled_commit_happened_or_did_not(self, backend: Backend, samples: Samples) -> None:
        """Cancelled at any await, early or late, all of a change is there or none, and repeating it settles which."""
        await backend.commit(creation(samples.id("c"), entry("first")))
        expected = ["first"]
        for late in (False, True):
            for number in range(_awaits_max):
                name = f"{'late' if late else 'early'}-{number}"
                wanted = change(
                    samples.id("c"), *(entry(f"{name}-{each}") for each in range(3)), fields={"n": name.encode()}
                )
                finished = await _cancelled_at(backend.commit(wanted), number, late=late)
                async with asyncio.timeout(20):
                    snapshot = await backend.read(samples.id("c"), Window())
                    await backend.commit(wanted)
                assert snapshot is not None
                there = [each.entry_id for each in snapshot.entries]
                batch = [each.entry_id for each in wanted.append]
                assert there in (expected, expected + batch)
                assert (name.encode() == snapshot.head.fields.get("n")) == (there != expected)
                expected += batch
                assert expected == await entry_ids(backend, samples.id("c"))
                if finished:
                    break
            else:
                raise AssertionError(f"a commit still awaits after {_awaits_max} steps")

    @clause("B1", "B15")
    async def test_cancelled_commits_leave_the_way_free(self, backend: Backend, samples: Samples) -> None:
        """Twenty of forty commits cancelled while they wait hinder none of the other twenty."""
        await backend.commit(creation(samples.id("c")))
        tasks = [
            asyncio.create_task(backend.commit(change(samples.id("c"), entry(f"{number}-a"), entry(f"{number}-b"))))
            for number in range(40)
        ]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
        assert all(isinstance(each, Receipt | asyncio.CancelledError) for each in done)
        await backend.commit(change(samples.id("c"), entry("end")))
        there = await entry_ids(backend, samples.id("c"))
        assert "end" == there.pop()
        pairs = list(zip(there[::2], there[1::2], strict=True))
        assert all((f"{a.split('-')[0]}-a", f"{a.split('-')[0]}-b") == (a, b) for a, b in pairs)
        acknowledged = {f"{number}-a" for number, each in enumerate(done) if isinstance(each, Receipt)}
        assert acknowledged <= set(there)

    @clause("B1", "B2")
    async def test_a_killed_writer_leaves_whole_batches_and_all_it_acknowledged(
        self, backend: Backend, samples: Samples, process_factory: Callable[[], Any] | None, factory: Callable[[], Any]
    ) -> None:
        """After SIGKILL in the middle of writing, every acknowledged change is there, and of others all or nothing."""
        if "multi_process" not in backend.capabilities:
            pytest.skip("not declared: multi_process")
        assert process_factory is not None, "multi_process is declared: define the fixture process_factory"
        await backend.commit(creation(samples.id("c")))
        acknowledged = await until_killed((append_for_ever, (process_factory, samples.id("c"))), 20)
        async with opened(factory) as later:
            there = await entry_ids(later, samples.id("c"))
            assert len(acknowledged) * 3 <= len(there)
            assert [f"{number}-{each}" for number in range(len(there) // 3) for each in range(3)] == there
            await later.commit(change(samples.id("c"), entry("end")))
        assert "end" == (await entries_of(backend, samples.id("c")))[-1].entry_id


@types.coroutine
def _cancelled_at(commit: Coroutine[Any, Any, object], number: int, *, late: bool) -> Generator[Any, None, bool]:
    """Drive `commit` and cancel it at its await number `number`; return True if it ended without coming so far.

    `late`: what it awaits there is waited for before the cancellation arrives.
    """
    step = 0
    throw = False
    while True:
        try:
            awaited = commit.throw(asyncio.CancelledError()) if throw else commit.send(None)
        except StopIteration:
            return step <= number
        except asyncio.CancelledError:
            return False
        throw = step == number
        step += 1
        if throw and not late:
            continue
        yield awaited
