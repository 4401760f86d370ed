"""B7: repeating a change is harmless; it is recognised by its revision and its ids, never by what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from convostore.contracts.backend import Backend, Change
from convostore.errors import ConversationExistsError, DuplicateEntryError, RevisionConflictError
from convostore.testing.drafts import AT, census, change, creation, entries_of, entry, entry_ids
from convostore.testing.suite import Samples, Suite, clause
from convostore.testing.workers import second_handle

__all__ = ["RepetitionClauses"]


class RepetitionClauses(Suite):
    """An answer was lost and the caller repeats."""

    @clause("B7")
    async def test_every_kind_of_change_can_be_repeated_at_once(self, backend: Backend, samples: Samples) -> None:
        """The same change again, straight away, changes nothing and returns the same head and entries, applied False."""
        name = samples.id("c")
        await backend.commit(creation(name, *(entry(f"e{number}") for number in range(6))))
        positions = [each.position for each in await entries_of(backend, name)]
        kinds: list[Change] = [
            change(name),
            change(name, entry("x"), entry("y")),
            change(name, fields={"title": b"t"}, documents={"todos": b"d"}),
            change(name, set_subject=samples.id("owner")),
            change(name, remove=("e1",)),
            change(name, replace=(entry("e2", b"new"),)),
            change(name, entry("e1", b"again"), remove=("e1", "e0")),
            change(name, entry("e5", b"again"), entry("z"), cut_after=positions[4]),
            change(name, fields={"title": None}, documents={"todos": None}, cut_after=0),
            creation(samples.id("d"), entry("a"), documents={"todos": b"d"}),
            creation(samples.id("empty")),
        ]
        for wanted in kinds:
            first = await backend.commit(wanted)
            assert first.applied
            after = await census(backend, samples.prefix)
            again = await backend.commit(wanted)
            assert (first.head, False, first.appended) == (again.head, again.applied, again.appended), wanted
            assert after == await census(backend, samples.prefix), wanted

    @clause("B7")
    async def test_a_guarded_change_can_be_repeated(self, backend: Backend, samples: Samples) -> None:
        """Its own success made the expected revision and stamp stale; repeating it is still no conflict."""
        name = samples.id("c")
        made = await backend.commit(creation(name, entry("a")))
        assert made.head is not None
        replacing = change(
            name,
            replace=(entry("a", b"new", expected_stamp=made.appended[0].stamp),),
            expected_revision=made.head.revision,
        )
        first = await backend.commit(replacing)
        again = await backend.commit(replacing)
        assert (first.head, False) == (again.head, again.applied)
        assert first.head is not None
        appending = change(name, entry("b"), expected_revision=first.head.revision)
        receipt = await backend.commit(appending)
        later = await backend.commit(change(name, entry("c")))
        overtaken = await backend.commit(appending)
        assert (later.head, False, receipt.appended) == (overtaken.head, overtaken.applied, overtaken.appended)
        assert ["a", "b", "c"] == await entry_ids(backend, name)

    @clause("B7")
    async def test_an_append_can_be_repeated_after_other_commits(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Overtaken by other writers, an append is still recognised by its ids and shows its entries where they are."""
        name = samples.id("c")
        creating = creation(name, entry("a"), entry("b"))
        first = await backend.commit(creating)
        async with second_handle(backend, factory) as other:
            await other.commit(change(name, entry("c"), fields={"title": b"t"}))
            await other.commit(change(name, entry("d")))
            before = await census(backend, samples.prefix)
            for repeated in (creating, change(name, *creating.append), change(name, *reversed(creating.append))):
                again = await other.commit(repeated)
                assert not again.applied
                assert before[name].head == again.head
                assert [each.entry_id for each in repeated.append] == [each.entry_id for each in again.appended]
                assert set(first.appended) == set(again.appended)
                assert before == await census(backend, samples.prefix)

    @clause("B7")
    async def test_the_time_of_an_entry_is_envelope(self, backend: Backend, samples: Samples) -> None:
        """An entry repeated with another time is the same entry; the time stored first stays."""
        await backend.commit(creation(samples.id("c"), entry("a")))
        await backend.commit(change(samples.id("c"), entry("b")))
        again = await backend.commit(change(samples.id("c"), entry("a", created_at_ms=AT + 77), at_ms=AT + 77))
        assert (False, AT) == (again.applied, again.appended[0].created_at_ms)
        assert ["a", "b"] == await entry_ids(backend, samples.id("c"))

    @clause("B7")
    async def test_an_id_with_other_content_is_refused(self, backend: Backend, samples: Samples) -> None:
        """The same id with another kind, role, dialect or body raises DuplicateEntryError; nothing changes."""
        await backend.commit(creation(samples.id("c"), entry("a"), entry("b")))
        before = await census(backend, samples.prefix)
        others: list[dict[str, Any]] = [
            {"kind": "note"},
            {"role": "assistant"},
            {"role": None},
            {"dialect": "sample/2"},
            {"body": b"other"},
        ]
        for other in others:
            for append in (
                (entry("a", **other),),
                (entry("b"), entry("a", **other)),
                (entry("new"), entry("a", **other)),
            ):
                with pytest.raises(DuplicateEntryError) as raised:
                    await backend.commit(change(samples.id("c"), *append))
                assert raised.value.entry_id in ("a", "b")
                assert before == await census(backend, samples.prefix), other

    @clause("B7")
    async def test_a_partial_repetition_is_refused(self, backend: Backend, samples: Samples) -> None:
        """Some of the ids there and some not is no repetition: DuplicateEntryError, and the new ones are not stored."""
        await backend.commit(creation(samples.id("c"), entry("a"), entry("b")))
        for append in ((entry("a"), entry("new")), (entry("new"), entry("b")), (entry("a"), entry("new"), entry("b"))):
            with pytest.raises(DuplicateEntryError):
                await backend.commit(change(samples.id("c"), *append))
        await backend.commit(change(samples.id("c"), remove=("a",)))
        with pytest.raises(DuplicateEntryError):
            await backend.commit(change(samples.id("c"), entry("a"), entry("b")))
        assert ["b"] == await entry_ids(backend, samples.id("c"))

    @clause("B7")
    async def test_a_change_that_cuts_or_removes_is_not_recognised_by_its_ids(
        self, backend: Backend, samples: Samples
    ) -> None:
        """With other commits between, a rewriting change is carried out anew, and refused where it was guarded."""
        name = samples.id("c")
        made = await backend.commit(creation(name, entry("a"), entry("b")))
        assert made.head is not None
        guarded = change(name, entry("x"), cut_after=0, expected_revision=made.head.revision)
        await backend.commit(guarded)
        await backend.commit(change(name, entry("y")))
        with pytest.raises(RevisionConflictError):
            await backend.commit(guarded)
        assert ["x", "y"] == await entry_ids(backend, name)
        again = await backend.commit(change(name, entry("x"), cut_after=0))
        assert (True, ["x"]) == (again.applied, await entry_ids(backend, name))
        anew = await backend.commit(change(name, entry("x"), remove=("x",)))
        assert anew.applied
        assert anew.appended[0].position > again.appended[0].position

    @clause("B7")
    async def test_a_change_without_entries_is_not_recognised_after_others(
        self, backend: Backend, samples: Samples
    ) -> None:
        """Overtaken, a guarded change without entries is a RevisionConflictError, an unguarded one happens anew."""
        name = samples.id("c")
        creating = creation(name)
        made = await backend.commit(creating)
        assert made.head is not None
        guarded = change(name, fields={"title": b"1"}, expected_revision=made.head.revision)
        await backend.commit(guarded)
        await backend.commit(change(name, fields={"title": b"2"}))
        with pytest.raises(RevisionConflictError):
            await backend.commit(guarded)
        with pytest.raises(ConversationExistsError):
            await backend.commit(creating)
        assert (await backend.commit(change(name, fields={"title": b"3"}))).applied
        read = await backend.read(name)
        assert read is not None
        assert b"3" == read.head.fields["title"]

    @clause("B7")
    async def test_a_repeated_append_leaves_fields_and_documents_alone(
        self, backend: Backend, samples: Samples
    ) -> None:
        """What has happened does not happen again: a later title and later todos survive the repetition."""
        name = samples.id("c")
        first = change(
            name, entry("a"), existence="may_create", fields={"title": b"1"}, documents={"todos": b"1"}, remove=()
        )
        await backend.commit(first)
        await backend.commit(change(name, entry("b"), fields={"title": b"2"}, documents={"todos": b"2"}))
        await backend.commit(first)
        snapshot = await backend.read(name, None, None)
        assert snapshot is not None
        assert ({"title": b"2"}, {"todos": b"2"}) == (snapshot.head.fields, snapshot.documents)

    @clause("B7")
    async def test_equal_content_under_its_own_id_is_kept(self, backend: Backend, samples: Samples) -> None:
        """A second "yes" is a second entry: nothing is deduplicated by content, within a change or across changes."""
        await backend.commit(creation(samples.id("c"), entry("a", b"yes"), entry("b", b"yes")))
        await backend.commit(change(samples.id("c"), entry("c", b"yes")))
        await backend.commit(creation(samples.id("d"), entry("a", b"yes")))
        assert ["a", "b", "c"] == await entry_ids(backend, samples.id("c"))
        assert ["a"] == await entry_ids(backend, samples.id("d"))

    @clause("B7", "B5")
    async def test_the_same_change_many_times_at_once_happens_once(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """A client that repeats before the first answer came, on two handles: one is applied, all get the same entries."""
        wanted = change(samples.id("c"), entry("a"), entry("b"), existence="may_create")
        async with second_handle(backend, factory) as other:
            done = await asyncio.gather(*((other if n % 2 else backend).commit(wanted) for n in range(8)))
        assert 1 == sum(each.applied for each in done)
        assert 1 == len({each.appended for each in done})
        assert ["a", "b"] == await entry_ids(backend, samples.id("c"))
