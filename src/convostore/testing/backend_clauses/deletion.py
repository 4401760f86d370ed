"""B9: a delete leaves nothing readable, and only a change that may create brings a conversation back, as a new one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from convostore.contracts.backend import Backend, Change, FindingEntries, HeadQuery, Window
from convostore.errors import ConversationNotFoundError, RevisionConflictError
from convostore.testing.drafts import AT, census, change, creation, entry, entry_ids
from convostore.testing.suite import Samples, Suite, clause
from convostore.testing.workers import opened, second_handle

__all__ = ["DeletionClauses"]


class DeletionClauses(Suite):
    """Gone is gone."""

    @clause("B9")
    async def test_nothing_readable_is_left(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """No read, listing or search through any handle shows a deleted conversation; its neighbours stay."""
        await _full(backend, samples, "c")
        await _full(backend, samples, "neighbour")
        async with second_handle(backend, factory) as other:
            receipt = await backend.commit(change(samples.id("c"), delete=True))
            assert (None, True, ()) == (receipt.head, receipt.applied, receipt.appended)
            for through in (backend, other):
                assert await through.read(samples.id("c"), Window(), None) is None
                assert {samples.id("neighbour")} == set(await census(through, samples.prefix))
                for order in ("created", "updated"):
                    page = await through.scan_heads(HeadQuery(context=samples.id("ctx"), order=order))
                    assert [samples.id("neighbour")] == [each.conversation_id for each in page.items]
                if isinstance(through, FindingEntries):
                    assert (samples.id("neighbour"),) == await through.find_entry(samples.id("e1"))

    @clause("B9")
    async def test_a_new_conversation_of_the_same_id_shows_nothing_of_the_old_one(
        self, backend: Backend, samples: Samples
    ) -> None:
        """Re-created, it has its own birth, context, owner, entries, fields and documents, and none of before."""
        old = await _full(backend, samples, "c")
        await backend.commit(change(samples.id("c"), delete=True))
        new = await backend.commit(creation(samples.id("c"), entry("new"), at_ms=AT + 5))
        assert new.head is not None
        assert (new.head.revision, AT + 5, AT + 5, None, None, {}) == (
            new.head.born,
            new.head.created_at_ms,
            new.head.updated_at_ms,
            new.head.context,
            new.head.subject_id,
            new.head.fields,
        )
        snapshot = await backend.read(samples.id("c"), Window(), None)
        named = await backend.read(samples.id("c"), Window(entry_ids=(samples.id("e1"),)), ["todos", "info"])
        assert snapshot is not None
        assert named is not None
        assert (new.head, new.appended, {}) == (snapshot.head, snapshot.entries, snapshot.documents)
        assert ((), {}) == (named.entries, named.documents)
        assert old.born != new.head.born
        if isinstance(backend, FindingEntries):
            assert () == await backend.find_entry(samples.id("e1"))

    @clause("B9")
    async def test_a_late_commit_does_not_resurrect(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Every kind of change after the delete raises ConversationNotFoundError, naming the id, and stores nothing."""
        await _full(backend, samples, "c")
        kinds: list[dict[str, Any]] = [
            {"append": (entry("late"),)},
            {"replace": (entry(samples.id("e1"), b"late"),)},
            {"remove": (samples.id("e1"),)},
            {"cut_after": 0},
            {"fields": {"title": b"late"}},
            {"documents": {"todos": b"late"}},
            {"set_subject": samples.id("late")},
            {"delete": True},
            {"delete": True, "existence": "may_create"},
            {},
        ]
        async with second_handle(backend, factory) as other:
            await backend.commit(change(samples.id("c"), delete=True))
            for number, kind in enumerate(kinds):
                late = Change(conversation_id=samples.id("c"), revision=samples.id(f"r{number}"), at_ms=AT, **kind)
                with pytest.raises(ConversationNotFoundError) as raised:
                    await (other if number % 2 else backend).commit(late)
                assert {"id": samples.id("c")} == raised.value.context
        assert {} == await census(backend, samples.prefix)

    @clause("B9", "B6")
    async def test_only_what_may_create_creates(self, backend: Backend, samples: Samples) -> None:
        """After a delete, may_create begins a new conversation; expecting a revision of the old one is refused."""
        old = await _full(backend, samples, "c")
        await backend.commit(change(samples.id("c"), delete=True))
        for existence in ("may_create", "must_create"):
            with pytest.raises(RevisionConflictError):
                await backend.commit(
                    change(samples.id("c"), entry("late"), existence=existence, expected_revision=old.revision)
                )
        made = await backend.commit(change(samples.id("c"), entry("new"), existence="may_create"))
        assert made.head is not None
        assert made.head.revision == made.head.born != old.born
        assert ["new"] == await entry_ids(backend, samples.id("c"))

    @clause("B9")
    async def test_a_delete_takes_exactly_what_it_names(self, backend: Backend, samples: Samples) -> None:
        """Deleting ``foo`` leaves ``foobar``, ``foo*``, ``Foo`` and ``fo`` as they were, and the other way round."""
        names = [samples.id(name) for name in ("fo", "foo", "foobar", "foo*", "foo%", "fo_", "Foo", "foo/1")]
        for name in names:
            await backend.commit(creation(name, entry("a", name.encode()), documents={"d": name.encode()}))
        for number, name in enumerate(names):
            before = await census(backend, samples.prefix)
            await backend.commit(change(name, delete=True))
            del before[name]
            assert before == await census(backend, samples.prefix), f"deleting {name!r}"
            assert len(names) - number - 1 == len(before)

    @clause("B9")
    async def test_a_guarded_delete_deletes_what_was_read(self, backend: Backend, samples: Samples) -> None:
        """With a stale expected_revision nothing is deleted; with the present one all is."""
        old = await _full(backend, samples, "c")
        now = (await backend.commit(change(samples.id("c"), entry("x")))).head
        assert now is not None
        before = await census(backend, samples.prefix)
        with pytest.raises(RevisionConflictError):
            await backend.commit(change(samples.id("c"), delete=True, expected_revision=old.revision))
        assert before == await census(backend, samples.prefix)
        await backend.commit(change(samples.id("c"), delete=True, expected_revision=now.revision))
        assert {} == await census(backend, samples.prefix)

    @clause("B9")
    async def test_what_is_dropped_is_gone(self, backend: Backend, samples: Samples) -> None:
        """A removed, cut or overwritten entry and a dropped document or field are in no read and no search any more."""
        await _full(backend, samples, "c")
        await backend.commit(
            change(samples.id("c"), remove=(samples.id("e1"),), fields={"title": None}, documents={"todos": None})
        )
        await backend.commit(change(samples.id("c"), cut_after=1))
        snapshot = await backend.read(samples.id("c"), Window(entry_ids=(samples.id("e1"), samples.id("e2"))), None)
        assert snapshot is not None
        assert ((), {"info": b"i"}, {}) == (snapshot.entries, snapshot.documents, snapshot.head.fields)
        if isinstance(backend, FindingEntries):
            for name in ("e1", "e2"):
                assert () == await backend.find_entry(samples.id(name))
            assert (samples.id("c"),) == await backend.find_entry(samples.id("e0"))

    @clause("B9", "B5")
    async def test_a_delete_among_writers_leaves_no_residue(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Appends that race a delete happen before it and are gone, or come after it and are not found."""
        await _full(backend, samples, "c")

        async def append(through: Backend, number: int) -> None:
            for step in range(5):
                try:
                    await through.commit(
                        change(samples.id("c"), entry(f"{number}-{step}"), documents={f"d{number}": b""})
                    )
                except ConversationNotFoundError:
                    assert await through.read(samples.id("c")) is None
                await asyncio.sleep(0)

        async def delete(through: Backend) -> None:
            await asyncio.sleep(0)
            await through.commit(change(samples.id("c"), delete=True))

        async with second_handle(backend, factory) as other:
            await asyncio.gather(*(append(other if n % 2 else backend, n) for n in range(6)), delete(other))
        assert {} == await census(backend, samples.prefix)
        await backend.commit(creation(samples.id("c")))
        snapshot = await backend.read(samples.id("c"), Window(), None)
        assert snapshot is not None
        assert ((), {}, 0) == (snapshot.entries, snapshot.documents, snapshot.head.entry_count)

    @clause("B9", "B2")
    async def test_a_delete_survives_a_restart(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """With `durable`, a handle opened later finds nothing either."""
        if "durable" not in backend.capabilities:
            pytest.skip("not declared: durable")
        await _full(backend, samples, "c")
        await backend.commit(change(samples.id("c"), delete=True))
        await backend.aclose()
        async with opened(factory) as later:
            assert {} == await census(later, samples.prefix)
            if isinstance(later, FindingEntries):
                assert () == await later.find_entry(samples.id("e1"))


async def _full(backend: Backend, samples: Samples, name: str) -> Any:
    """Create a conversation that has some of everything; return its head."""
    receipt = await backend.commit(
        creation(
            samples.id(name),
            *(entry(samples.id(f"e{number}")) for number in range(3)),
            context=samples.id("ctx"),
            subject_id=samples.id("owner"),
            fields={"title": b"t"},
            documents={"todos": b"t", "info": b"i"},
        )
    )
    return receipt.head
