"""B6: what a change expects of the conversation, of an entry and of the owner, and that a revision never recurs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from convostore.contracts.backend import Backend, Change, Receipt
from convostore.errors import (
    ConflictError,
    ConversationExistsError,
    ConversationNotFoundError,
    NotFoundError,
    RevisionConflictError,
)
from convostore.testing.drafts import census, change, creation, entries_of, entry, entry_ids
from convostore.testing.suite import Samples, Suite, clause
from convostore.testing.workers import second_handle

__all__ = ["GuardClauses"]


class GuardClauses(Suite):
    """A guard that does not hold refuses the change and changes nothing."""

    @clause("B6")
    async def test_a_stale_revision_is_refused(self, backend: Backend, samples: Samples) -> None:
        """Every kind of change with an expected_revision of the past raises RevisionConflictError with both revisions."""
        made = await backend.commit(creation(samples.id("c"), entry("a")))
        now = await backend.commit(change(samples.id("c"), entry("b")))
        assert made.head is not None
        assert now.head is not None
        before = await census(backend, samples.prefix)
        kinds: list[dict[str, Any]] = [
            {"append": (entry("x"),)},
            {"cut_after": 0},
            {"remove": ("a",)},
            {"replace": (entry("a", b"new"),)},
            {"fields": {"title": b"t"}},
            {"documents": {"todos": b"t"}},
            {"set_subject": samples.id("owner")},
            {"delete": True},
            {"existence": "may_create"},
            {},
        ]
        for kind in kinds:
            stale = Change(
                conversation_id=samples.id("c"),
                revision=samples.id(f"r{kinds.index(kind)}"),
                at_ms=0,
                expected_revision=made.head.revision,
                **kind,
            )
            with pytest.raises(RevisionConflictError) as raised:
                await backend.commit(stale)
            assert (made.head.revision, now.head.revision) == (raised.value.expected, raised.value.actual)
            assert before == await census(backend, samples.prefix), kind

    @clause("B6")
    async def test_the_present_revision_passes(self, backend: Backend, samples: Samples) -> None:
        """With the head's own revision expected, each change happens and gives the conversation its revision."""
        receipt = await backend.commit(creation(samples.id("c")))
        for number in range(3):
            assert receipt.head is not None
            guarded = change(samples.id("c"), entry(f"e{number}"), expected_revision=receipt.head.revision)
            receipt = await backend.commit(guarded)
            assert receipt.head is not None
            assert guarded.revision == receipt.head.revision
        assert receipt.head is not None
        await backend.commit(change(samples.id("c"), delete=True, expected_revision=receipt.head.revision))
        assert await backend.read(samples.id("c")) is None

    @clause("B6")
    async def test_a_revision_of_nothing_is_refused(self, backend: Backend, samples: Samples) -> None:
        """On an absent conversation, an expected_revision that may create is a conflict with nothing; else it is not found."""
        with pytest.raises(RevisionConflictError) as raised:
            await backend.commit(change(samples.id("c"), entry("x"), existence="may_create", expected_revision="r"))
        assert ("r", None) == (raised.value.expected, raised.value.actual)
        with pytest.raises(ConversationNotFoundError):
            await backend.commit(change(samples.id("c"), entry("x"), expected_revision="r"))
        assert await backend.read(samples.id("c")) is None

    @clause("B6")
    async def test_one_of_many_with_the_same_expectation_wins(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Ten writers on two handles that expect the same revision: one commits, nine are told the winner's revision."""
        made = await backend.commit(creation(samples.id("c")))
        assert made.head is not None
        expected = made.head.revision
        async with second_handle(backend, factory) as other:
            done = await asyncio.gather(
                *(
                    (other if number % 2 else backend).commit(
                        change(samples.id("c"), entry(f"e{number}"), expected_revision=expected)
                    )
                    for number in range(10)
                ),
                return_exceptions=True,
            )
        won = [each for each in done if isinstance(each, Receipt)]
        lost = [each for each in done if isinstance(each, RevisionConflictError)]
        assert (1, 9) == (len(won), len(lost))
        assert won[0].head is not None
        assert {won[0].head.revision} == {each.actual for each in lost}
        assert [won[0].appended[0].entry_id] == await entry_ids(backend, samples.id("c"))

    @clause("B6")
    async def test_a_revision_never_recurs(self, backend: Backend, samples: Samples) -> None:
        """What expected a revision before deletion and re-creation is refused after it."""
        old = await backend.commit(creation(samples.id("c"), entry("a")))
        await backend.commit(change(samples.id("c"), delete=True))
        new = await backend.commit(creation(samples.id("c"), entry("a")))
        assert old.head is not None
        assert new.head is not None
        assert 4 == len({old.head.born, new.head.born} | {f"{old.head.revision}.", f"{new.head.revision}."})
        with pytest.raises(RevisionConflictError):
            await backend.commit(change(samples.id("c"), entry("b"), expected_revision=old.head.revision))
        assert ["a"] == await entry_ids(backend, samples.id("c"))

    @clause("B6")
    async def test_a_stale_stamp_is_refused(self, backend: Backend, samples: Samples) -> None:
        """An entry that changed since it was read is not replaced; the error names it and both stamps; nothing changes."""
        made = await backend.commit(creation(samples.id("c"), entry("a"), entry("b")))
        await backend.commit(change(samples.id("c"), replace=(entry("b", b"1"),)))
        now = (await entries_of(backend, samples.id("c")))[1]
        before = await census(backend, samples.prefix)
        stale = (
            entry("a", b"2", expected_stamp=made.appended[0].stamp),
            entry("b", b"2", expected_stamp=made.appended[1].stamp),
        )
        with pytest.raises(RevisionConflictError) as raised:
            await backend.commit(change(samples.id("c"), entry("x"), replace=stale))
        assert ("b", made.appended[1].stamp, now.stamp) == (
            raised.value.entry_id,
            raised.value.expected,
            raised.value.actual,
        )
        assert before == await census(backend, samples.prefix)
        await backend.commit(change(samples.id("c"), replace=(entry("b", b"2", expected_stamp=now.stamp),)))
        assert b"2" == (await entries_of(backend, samples.id("c")))[1].body

    @clause("B6")
    async def test_one_of_many_with_the_same_stamp_wins(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Ten writers on two handles that replace one entry as they read it: one does, nine raise RevisionConflictError."""
        made = await backend.commit(creation(samples.id("c"), entry("a")))
        stamp = made.appended[0].stamp
        async with second_handle(backend, factory) as other:
            done = await asyncio.gather(
                *(
                    (other if number % 2 else backend).commit(
                        change(samples.id("c"), replace=(entry("a", b"%d" % number, expected_stamp=stamp),))
                    )
                    for number in range(10)
                ),
                return_exceptions=True,
            )
        won = [number for number, each in enumerate(done) if isinstance(each, Receipt)]
        assert (1, 9) == (len(won), sum(isinstance(each, RevisionConflictError) for each in done))
        assert b"%d" % won[0] == (await entries_of(backend, samples.id("c")))[0].body

    @clause("B6")
    async def test_a_replacement_without_a_stamp_does_not_ask(self, backend: Backend, samples: Samples) -> None:
        """Without expected_stamp the entry is replaced whatever its stamp; one that is not there is NotFoundError."""
        await backend.commit(creation(samples.id("c"), entry("a")))
        for body in (b"1", b"2"):
            await backend.commit(change(samples.id("c"), replace=(entry("a", body),)))
        with pytest.raises(NotFoundError):
            await backend.commit(change(samples.id("c"), replace=(entry("b"),)))
        assert [b"2"] == [each.body for each in await entries_of(backend, samples.id("c"))]

    @clause("B6")
    async def test_only_subject_makes_others_conversations_absent(self, backend: Backend, samples: Samples) -> None:
        """With only_subject, a conversation of someone else or of nobody is not found, and creating over it is refused."""
        mine, theirs = samples.id("me"), samples.id("them")
        await backend.commit(creation(samples.id("theirs"), entry("a"), subject_id=theirs))
        await backend.commit(creation(samples.id("nobody's"), entry("a")))
        await backend.commit(creation(samples.id("mine"), entry("a"), subject_id=mine, only_subject=mine))
        before = await census(backend, samples.prefix)
        for name in (samples.id("theirs"), samples.id("nobody's")):
            for kind in ({"append": (entry("x"),)}, {"append": (entry("a"),)}, {"cut_after": 0}, {"delete": True}):
                with pytest.raises(ConversationNotFoundError):
                    await backend.commit(
                        Change(conversation_id=name, revision=samples.id("r"), at_ms=0, only_subject=mine, **kind)
                    )
            repeated = before[name].head.revision
            with pytest.raises(ConversationNotFoundError):
                await backend.commit(change(name, entry("a"), revision=repeated, only_subject=mine))
            for existence in ("may_create", "must_create"):
                with pytest.raises(ConversationExistsError):
                    await backend.commit(change(name, entry("x"), existence=existence, only_subject=mine))
        assert before == await census(backend, samples.prefix)
        await backend.commit(change(samples.id("mine"), entry("x"), only_subject=mine))
        assert ["a", "x"] == await entry_ids(backend, samples.id("mine"))
        await backend.commit(change(samples.id("mine"), delete=True, only_subject=mine))
        assert await backend.read(samples.id("mine")) is None

    @clause("B6")
    async def test_set_subject_gives_an_owner_once(self, backend: Backend, samples: Samples) -> None:
        """A conversation without an owner gets one, the same again is harmless, another is ConflictError."""
        owner = samples.id("owner")
        await backend.commit(creation(samples.id("c"), context=samples.id("ctx")))
        for _ in range(2):
            receipt = await backend.commit(change(samples.id("c"), set_subject=owner))
            assert receipt.head is not None
            assert (owner, samples.id("ctx")) == (receipt.head.subject_id, receipt.head.context)
        with pytest.raises(ConflictError):
            await backend.commit(change(samples.id("c"), set_subject=samples.id("thief")))
        read = await backend.read(samples.id("c"))
        assert read is not None
        assert owner == read.head.subject_id

    @clause("B6")
    async def test_guards_are_asked_in_their_order(self, backend: Backend, samples: Samples) -> None:
        """Owner, existence, revision, set_subject, replace, append: of two that do not hold, the earlier one answers."""
        name, other = samples.id("c"), samples.id("other")
        await backend.commit(creation(name, entry("a"), subject_id=samples.id("owner")))
        wrong: list[tuple[type[Exception], dict[str, Any]]] = [
            (ConversationExistsError, {"existence": "must_create"}),
            (RevisionConflictError, {"expected_revision": "another"}),
            (ConflictError, {"set_subject": other}),
            (NotFoundError, {"replace": (entry("gone"),)}),
        ]
        for first in range(len(wrong)):
            error = wrong[first][0]
            together = {key: value for _, guard in wrong[first:] for key, value in guard.items()}
            with pytest.raises(error) as raised:
                await backend.commit(change(name, entry("a", b"other"), **together))
            assert error is type(raised.value), together
        with pytest.raises(ConversationNotFoundError):
            await backend.commit(change(name, only_subject=other, expected_revision="another"))
        with pytest.raises(ConversationExistsError):
            await backend.commit(change(name, only_subject=other, existence="may_create", expected_revision="another"))
