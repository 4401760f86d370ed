"""B12 and E2: damage is named, hides nothing else, and is never taken for absence; nor is a storage that cannot answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, Protocol

import pytest

from convostore.contracts.backend import Backend, HeadQuery, SelfChecking, Window
from convostore.errors import CorruptDataError, StoreError, UnavailableError
from convostore.testing.drafts import census, change, creation, entry, entry_ids
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["DamageClauses", "Damager"]


class Damager(Protocol):
    """Damages what is stored, below the backend."""

    def __call__(self, conversation_id: str, what: Literal["entry", "document", "head"], name: str = "", /) -> None:
        """Change bytes of the entry or document `name`, or of the head's fields, so that they are not what was written."""
        ...


class DamageClauses(Suite):
    """What is damaged, and what cannot be reached."""

    @pytest.fixture
    def damage(self) -> Damager | None:
        """Return what damages a stored record of this test's storage; a backend that declares `durable` must provide it."""
        return None

    @pytest.fixture
    def structural_damage(self) -> Callable[[Backend], object] | None:
        """Return what damages the structure, an index say, but no record, of the storage that a handle is open on.

        A backend that declares `self_check` must provide it.
        """
        return None

    @pytest.fixture
    def outage(self) -> Callable[[], AbstractContextManager[object]] | None:
        """Return what makes the storage unable to take a commit while the context it returns is entered.

        A lock that somebody holds, a full disk, a cut connection. A backend that declares `durable` must provide it.
        """
        return None

    @clause("B12", needs_fresh=True)
    async def test_every_damaged_entry_is_named(
        self, backend: Backend, samples: Samples, damage: Damager | None
    ) -> None:
        """A read that meets damage raises CorruptDataError with every damaged entry in it, and does so again."""
        damager = _required(damage, backend)
        await _ten(backend, samples, damager)
        for _ in range(2):
            with pytest.raises(CorruptDataError) as raised:
                await backend.read(samples.id("c"), Window())
            assert samples.id("c") == raised.value.conversation_id == raised.value.session_id
            assert ["e3", "e7"] == [each.entry_id for each in raised.value.damage]  # type: ignore[attr-defined]
            assert "e3" in str(raised.value)
            assert "e7" in str(raised.value)

    @clause("B12", needs_fresh=True)
    async def test_a_report_gives_the_sound_entries_and_the_damage(
        self, backend: Backend, samples: Samples, damage: Damager | None
    ) -> None:
        """With damaged="report" a read returns every sound entry and names the others with their places."""
        damager = _required(damage, backend)
        positions = await _ten(backend, samples, damager)
        snapshot = await backend.read(samples.id("c"), Window(damaged="report"))
        assert snapshot is not None
        assert [f"e{number}" for number in range(10) if number not in (3, 7)] == [e.entry_id for e in snapshot.entries]
        assert [("e3", positions[3]), ("e7", positions[7])] == [(e.entry_id, e.position) for e in snapshot.damage]
        assert {samples.id("c")} == {each.conversation_id for each in snapshot.damage}
        assert all(each.what for each in snapshot.damage)

    @clause("B12", needs_fresh=True)
    async def test_damage_hides_nothing_else(self, backend: Backend, samples: Samples, damage: Damager | None) -> None:
        """Windows beside the damage, the head, documents, listings and other conversations read; appending goes on."""
        damager = _required(damage, backend)
        positions = await _ten(backend, samples, damager)
        await backend.commit(creation(samples.id("other"), entry("a")))
        mine = samples.id("c")
        assert ["e8", "e9"] == await entry_ids(backend, mine, Window(limit=2, newest=True))
        assert ["e0", "e1", "e2"] == await entry_ids(backend, mine, Window(before=positions[3]))
        assert ["e4"] == await entry_ids(backend, mine, Window(entry_ids=("e4",)))
        snapshot = await backend.read(mine, None, None)
        assert snapshot is not None
        assert (10, {"d": b"1"}) == (snapshot.head.entry_count, snapshot.documents)
        page = await backend.scan_heads(HeadQuery(prefix=samples.prefix))
        assert [mine, samples.id("other")] == [each.conversation_id for each in page.items]
        assert ["a"] == await entry_ids(backend, samples.id("other"))
        await backend.commit(change(mine, entry("later")))
        assert ["e9", "later"] == await entry_ids(backend, mine, Window(limit=2, newest=True))

    @clause("B12", "E2", needs_fresh=True)
    async def test_reading_damage_changes_nothing(
        self, backend: Backend, samples: Samples, damage: Damager | None
    ) -> None:
        """However often it is read or reported, damage stays and what is sound stays; no revision moves."""
        damager = _required(damage, backend)
        await _ten(backend, samples, damager)
        window = Window(damaged="report")
        first = await backend.read(samples.id("c"), window, None)
        for _ in range(3):
            with pytest.raises(CorruptDataError):
                await backend.read(samples.id("c"), Window(), None)
            assert first == await backend.read(samples.id("c"), window, None)

    @clause("B12", needs_fresh=True)
    async def test_a_damaged_document_is_named(
        self, backend: Backend, samples: Samples, damage: Damager | None
    ) -> None:
        """Asked for, it raises or is reported; what does not ask for it reads."""
        damager = _required(damage, backend)
        mine = samples.id("c")
        await backend.commit(creation(mine, entry("a"), documents={"todos": b"t", "info": b"i"}))
        damager(mine, "document", "todos")
        with pytest.raises(CorruptDataError) as raised:
            await backend.read(mine, Window(), None)
        assert "todos" in str(raised.value)
        with pytest.raises(CorruptDataError):
            await backend.read(mine, None, ["todos"])
        snapshot = await backend.read(mine, Window(damaged="report"), None)
        assert snapshot is not None
        assert ({"info": b"i"}, 1) == (snapshot.documents, len(snapshot.damage))
        assert "todos" in snapshot.damage[0].what
        sound = await backend.read(mine, Window(), ["info"])
        assert sound is not None
        assert (["a"], {"info": b"i"}) == ([each.entry_id for each in sound.entries], sound.documents)
        await backend.commit(change(mine, documents={"todos": b"new"}))
        mended = await backend.read(mine, Window(), None)
        assert mended is not None
        assert {"todos": b"new", "info": b"i"} == mended.documents

    @clause("B12", "E2", needs_fresh=True)
    async def test_a_damaged_head_is_neither_absent_nor_overwritten(
        self, backend: Backend, samples: Samples, damage: Damager | None
    ) -> None:
        """A conversation whose head is damaged is named in listings, is not None when read, and is not created anew."""
        damager = _required(damage, backend)
        mine = samples.id("c")
        await backend.commit(creation(mine, entry("a"), fields={"title": b"t"}, context=samples.id("ctx")))
        await backend.commit(creation(samples.id("other"), entry("a"), context=samples.id("ctx")))
        damager(mine, "head")
        with pytest.raises(CorruptDataError) as raised:
            await backend.read(mine, Window())
        assert mine == raised.value.conversation_id
        page = await backend.scan_heads(HeadQuery(prefix=samples.prefix))
        assert [samples.id("other")] == [each.conversation_id for each in page.items]
        assert [mine] == [each.conversation_id for each in page.damage]
        for existence in ("may_create", "must_create"):
            with pytest.raises(StoreError):
                await backend.commit(change(mine, entry("new"), existence=existence, fields={"title": b"new"}))
        with pytest.raises(CorruptDataError):
            await backend.read(mine, Window())

    @clause("B12", needs_fresh=True)
    async def test_a_self_check_finds_nothing_wrong_with_what_is_sound(
        self, backend: Backend, samples: Samples
    ) -> None:
        """With `self_check`: no findings in an empty storage, nor after entries came, were replaced and went."""
        checked = _self_checking(backend)
        assert () == await checked.self_check()
        await _some_of_everything(backend, samples)
        assert () == await checked.self_check()

    @clause("B12", needs_fresh=True)
    async def test_a_self_check_finds_damage_of_the_structure(
        self, backend: Backend, samples: Samples, structural_damage: Callable[[Backend], object] | None
    ) -> None:
        """With `self_check`: what is wrong is said in words, and again the next time, since looking mends nothing."""
        checked = _self_checking(backend)
        assert structural_damage is not None, "self_check is declared: define the fixture structural_damage"
        await _some_of_everything(backend, samples)
        structural_damage(backend)
        found = await checked.self_check()
        assert found
        assert all(type(each) is str and each for each in found)
        assert found == await checked.self_check()

    @clause("E2", "E3", needs_fresh=True)
    async def test_an_outage_is_unavailable_and_not_absence(
        self, backend: Backend, samples: Samples, outage: Callable[[], AbstractContextManager[object]] | None
    ) -> None:
        """What cannot be answered raises UnavailableError, retryable and chained to its cause; afterwards all is as before."""
        if outage is None:
            assert "durable" not in backend.capabilities, "durable is declared: define the fixture outage"
            pytest.skip("not declared: durable")
        await backend.commit(creation(samples.id("c"), entry("a")))
        before = await census(backend, samples.prefix)
        lost = change(samples.id("c"), entry("b"), existence="may_create")
        with outage():
            for commit in (lost, creation(samples.id("d"), entry("a"))):
                with pytest.raises(UnavailableError) as raised:
                    await backend.commit(commit)
                assert raised.value.retryable
                assert raised.value.__cause__ is not None, "the driver's own error is not chained"
                assert not isinstance(raised.value.__cause__, StoreError)
            try:
                assert before[samples.id("c")] == await backend.read(samples.id("c"), Window(), None)
                assert 1 == len((await backend.scan_heads(HeadQuery(prefix=samples.prefix))).items)
            except UnavailableError as unanswered:
                assert unanswered.__cause__ is not None  # noqa: PT017  a read may answer or not
        assert before == await census(backend, samples.prefix)
        await backend.commit(lost)
        assert ["a", "b"] == await entry_ids(backend, samples.id("c"))


def _required(damage: Damager | None, backend: Backend) -> Damager:
    if damage is None:
        assert "durable" not in backend.capabilities, "durable is declared: define the fixture damage"
        pytest.skip("not declared: durable, and no damage to try it with")
    return damage


def _self_checking(backend: Backend) -> SelfChecking:
    if "self_check" not in backend.capabilities:
        pytest.skip("not declared: self_check")
    assert isinstance(backend, SelfChecking)
    return backend


async def _some_of_everything(backend: Backend, samples: Samples) -> None:
    for name in ("c", "gone"):
        await backend.commit(creation(samples.id(name), entry("a"), entry("b"), documents={"d": b"1"}))
        await backend.commit(change(samples.id(name), entry("e"), replace=(entry("a", b"new"),), remove=("b",)))
    await backend.commit(change(samples.id("gone"), delete=True))


async def _ten(backend: Backend, samples: Samples, damager: Damager) -> list[int]:
    """Create a conversation of ten entries, damage two, return all positions."""
    receipt = await backend.commit(
        creation(samples.id("c"), *(entry(f"e{number}") for number in range(10)), documents={"d": b"1"})
    )
    damager(samples.id("c"), "entry", "e3")
    damager(samples.id("c"), "entry", "e7")
    return [each.position for each in receipt.appended]
