"""Copying: everything arrives once, whatever interrupts it, and nothing there is overwritten."""

from __future__ import annotations

import pytest
from msgspec import structs

from convostore.backends.memory import MemoryBackend
from convostore.contracts.backend import Change, HeadPage, HeadQuery, Receipt, Snapshot, Window
from convostore.errors import InvalidInput, UnavailableError
from convostore.ids import new_id
from convostore.interchange import replay
from convostore.operations.copy import copy
from convostore.operations.verify import fingerprint
from tests.interchange.conversations import add, content, entry, filled


async def test_everything_arrives() -> None:
    """Heads, entries, documents, times and the order of creation are the same in the copy."""
    source, target = await filled(), MemoryBackend()
    report = await copy(source, target)
    assert (3, 0, 9, [], []) == (report.copied, report.already_there, report.entries, report.refused, report.differing)
    assert await content(source) == await content(target)
    for name in ("zulu", "alpha"):
        assert await fingerprint(source, name) == await fingerprint(target, name)


async def test_repeating_adds_nothing() -> None:
    """A second copy, and one back, commit nothing."""
    source, target = await filled(), Counting()
    await copy(source, target)
    target.commits = 0
    report = await copy(source, target)
    assert (0, 3, 0) == (report.copied, report.already_there, target.commits)
    back = await copy(target, source)
    assert (0, 3) == (back.copied, back.already_there)


async def test_what_is_new_is_added() -> None:
    """When the source has grown, a second copy adds what is new and takes over fields and documents."""
    source, target = await filled(), MemoryBackend()
    await copy(source, target)
    await add(source, "zulu", b"new", fields={"title": None, "rating": b"5"}, documents={"blob": None, "info": b"{}"})
    await add(source, "newborn", b"1")
    report = await copy(source, target)
    assert (1, 1, 2) == (report.copied, report.completed, report.already_there)
    assert await content(source) == await content(target)


@pytest.mark.parametrize("answer_is_lost", [False, True])
async def test_an_interrupted_copy_resumes(monkeypatch: pytest.MonkeyPatch, answer_is_lost: bool) -> None:
    """Interrupted at every commit, before it or behind it, repeating until it is through gives one equal copy."""
    monkeypatch.setattr(replay, "_CHANGE_ENTRIES", 2)
    monkeypatch.setattr(replay, "_CHANGE_DOCUMENTS", 1)
    source, target = await filled(), Failing(answer_is_lost)
    failures = 0
    while True:
        target.may_commit = 1 if not answer_is_lost else 0
        try:
            await copy(source, target)
        except UnavailableError:
            failures += 1
            continue
        break
    # zulu takes 3 + 2 commits, alpha 2, the empty one 1.
    assert (8 if answer_is_lost else 7) == failures
    assert _but_times(await content(source)) == _but_times(await content(target))


def _but_times(kept: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Leave out the time of the last commit: in many commits it grows by a millisecond each."""
    return [(*each[:4], *each[5:]) for each in kept]


async def test_a_copy_in_many_commits_keeps_the_time_of_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many commits a copy takes, updated_at is the source's where there is room for them before it."""
    monkeypatch.setattr(replay, "_CHANGE_BYTES", 1)
    source, target = MemoryBackend(), MemoryBackend()
    await add(source, "c", b"1", b"2", at_ms=1_000)
    await add(source, "c", b"3", at_ms=2_000)
    await copy(source, target)
    assert await content(source) == await content(target)


@pytest.mark.parametrize(
    "elsewhere",
    [
        Change(conversation_id="alpha", revision="r", at_ms=1, existence="must_create"),
        Change(conversation_id="alpha", revision="r", at_ms=1, existence="must_create", append=(entry("e1", b"!"),)),
        Change(conversation_id="alpha", revision="r", at_ms=1, existence="must_create", context="other"),
    ],
)
async def test_conflicts_are_named_and_nothing_is_written(elsewhere: Change) -> None:
    """A conversation that is there with other content is named, and nothing is written until it is left out on purpose."""
    source, target = await filled(), MemoryBackend()
    await target.commit(elsewhere)
    before = await content(target)
    report = await copy(source, target)
    assert (["alpha"], 0) == ([each.conversation_id for each in report.refused], report.copied)
    assert before == await content(target)
    report = await copy(source, target, skip_refused=True)
    assert (["alpha"], 2) == ([each.conversation_id for each in report.refused], report.copied)


async def test_what_was_written_to_since_is_a_conflict() -> None:
    """A copy that somebody appended to or rated is not overwritten, also when the source has grown."""
    source, target = await filled(), MemoryBackend()
    await copy(source, target)
    await target.commit(Change(conversation_id="zulu", revision=new_id(), at_ms=1, append=(entry("mine", b"!"),)))
    await target.commit(Change(conversation_id="alpha", revision=new_id(), at_ms=1, fields={"rating": b"1"}))
    await add(source, "alpha", b"more")
    before = await content(target)
    report = await copy(source, target)
    assert ["zulu", "alpha"] == [each.conversation_id for each in report.refused]
    assert before == await content(target)


async def test_a_rewritten_source_is_a_conflict() -> None:
    """A conversation whose history was rewritten after the first copy is named, not mixed with the older copy."""
    source, target = await filled(), MemoryBackend()
    await copy(source, target)
    new = entry("e1", b"rewritten")
    await source.commit(Change(conversation_id="zulu", revision=new_id(), at_ms=1, replace=(new,)))
    report = await copy(source, target)
    assert ["zulu"] == [each.conversation_id for each in report.refused]


class Counting(MemoryBackend):
    """A backend that counts its commits."""

    commits = 0

    async def commit(self, change: Change, /) -> Receipt:
        self.commits += 1
        return await super().commit(change)


class Failing(MemoryBackend):
    """A backend that becomes unavailable after `may_commit` commits: before the next, or after it with the answer lost."""

    def __init__(self, answer_is_lost: bool) -> None:
        super().__init__()
        self.answer_is_lost = answer_is_lost
        self.may_commit = 0

    async def commit(self, change: Change, /) -> Receipt:
        if self.may_commit <= 0 and not self.answer_is_lost:
            raise UnavailableError("gone; try again")
        receipt = await super().commit(change)
        self.may_commit -= 1
        if self.may_commit < 0:
            raise UnavailableError("the answer is lost; try again")
        return receipt


class Picky(MemoryBackend):
    """A backend that refuses some ids on every verb, as B8 lets it."""

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: object = (), /
    ) -> Snapshot | None:
        if conversation_id == "alpha" or "e5" in ((window and window.entry_ids) or ()):
            raise InvalidInput("that id cannot be kept here")
        return await super().read(conversation_id, window, documents)  # type: ignore[arg-type]  # handed on

    async def commit(self, change: Change, /) -> Receipt:
        raise AssertionError("nothing is written when anything is refused")


class PickyAboutSubjects(Picky):
    """A backend that refuses subjects with a slash."""

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        raise InvalidInput(f"{query.subject_id} cannot be kept here")


async def test_refused_ids_are_listed_first() -> None:
    """Conversation ids and entry ids that the target cannot keep are all named before anything is written."""
    report = await copy(await filled(), Picky())
    assert {"alpha": "that id cannot be kept here", "zulu": "that id cannot be kept here"} == {
        each.conversation_id: each.reason for each in report.refused
    }


async def test_refused_subjects_are_listed_first() -> None:
    """A subject that the target cannot keep is named before anything is written."""
    source = MemoryBackend()
    await add(source, "c", b"1", subject_id="s/1")
    report = await copy(source, PickyAboutSubjects())
    assert [("c", "s/1 cannot be kept here")] == [(each.conversation_id, each.reason) for each in report.refused]


class Forgetful(MemoryBackend):
    """A backend that keeps something else than it was given."""

    async def commit(self, change: Change, /) -> Receipt:
        return await super().commit(structs.replace(change, append=change.append[:-1]))


async def test_a_copy_is_read_back() -> None:
    """A target that keeps something else than it was given is found out."""
    report = await copy(await filled(), Forgetful())
    assert ["zulu", "alpha"] == [each.conversation_id for each in report.differing]
    assert 1 == report.copied
