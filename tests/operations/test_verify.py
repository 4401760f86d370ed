"""Verifying: damage of every kind is named, and a sound store is called sound."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from convostore.backends.memory import MemoryBackend
from convostore.backends.sqlite import SqliteBackend
from convostore.contracts.backend import (
    Capability,
    Change,
    Damage,
    Entry,
    Head,
    HeadPage,
    HeadQuery,
    NewEntry,
    Snapshot,
    Window,
)
from convostore.errors import CorruptDataError
from convostore.operations.statistics import statistics
from convostore.operations.verify import fingerprint, verify
from convostore.wrappers.scoped import scoped
from tests.backends.sqlite_files import lose_keys
from tests.interchange.conversations import add, content, filled


async def test_a_sound_store() -> None:
    """A sound store has no damage and every record was read; nothing was changed."""
    backend = await filled()
    before = await content(backend)
    report = await verify(backend)
    assert (3, 9, 2, ()) == (report.conversations, report.entries, report.documents, report.damage)
    assert before == await content(backend)


class Tampered(MemoryBackend):
    """A backend whose reads come out changed."""

    def __init__(self, tamper: Callable[[Snapshot], Snapshot]) -> None:
        super().__init__()
        self.tamper = tamper

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: object = (), /
    ) -> Snapshot | None:
        there = await super().read(conversation_id, window, documents)  # type: ignore[arg-type]  # handed on
        return self.tamper(there) if there and window is not None else there


def _head(**changed: int) -> Callable[[Snapshot], Snapshot]:
    return lambda there: structs.replace(there, head=structs.replace(there.head, **changed))


def _entry(index: int, **changed: object) -> Callable[[Snapshot], Snapshot]:
    def tamper(there: Snapshot) -> Snapshot:
        entries: list[Entry] = list(there.entries)
        entries[index] = structs.replace(entries[index], **changed)
        return structs.replace(there, entries=tuple(entries))

    return tamper


@pytest.mark.parametrize(
    ("tamper", "named"),
    [
        (_head(entry_count=4), "the head says 4 entries, there are 3"),
        (_head(last_rewrite=9), "last rewrite"),
        (_head(updated_at_ms=1), "updated before"),
        (_entry(2, stamp=99), "entry 'e3' at 3: its stamp 99"),
        (_entry(1, stamp=1), "entry 'e2' at 2: its stamp 1"),
        (_entry(2, position=2), "entry 'e3' at 2: its position"),
        (_entry(2, entry_id="e1"), "entry 'e1' at 3: its id"),
        (_entry(1, dialect="hub/1"), "entry 'e2' at 2: its body is not hub/1"),
        (_entry(1, dialect="openai_chat/1", body=b"[1]"), "entry 'e2' at 2: its body is not openai_chat/1"),
    ],
)
async def test_damage_is_named(tamper: Callable[[Snapshot], Snapshot], named: str) -> None:
    """Whatever is wrong about a head or an entry is named with its place."""
    backend = Tampered(tamper)
    await add(backend, "c", b"{", b"{", b"{")
    found = [each for each in (await verify(backend)).damage if named in str(each)]
    assert ["c"] == [each.conversation_id for each in found]


async def test_records_that_the_backend_reports_are_counted() -> None:
    """A damaged entry that the backend itself reports is named once, and counts as there."""
    damage = Damage("c", "checksum", 2, "e2")
    backend = Tampered(lambda there: structs.replace(there, entries=there.entries[::2], damage=(damage,)))
    await add(backend, "c", b"1", b"2", b"3")
    assert (damage,) == (await verify(backend)).damage


class Unreadable(MemoryBackend):
    """A backend with one head that cannot be listed, and one conversation that cannot be read at all."""

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: object = (), /
    ) -> Snapshot | None:
        if conversation_id == "zulu" and window is not None:
            raise CorruptDataError("zulu", [Damage("zulu", "document 'todos': checksum")])
        return await super().read(conversation_id, window, documents)  # type: ignore[arg-type]  # handed on

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        page = await super().scan_heads(query)
        heads: tuple[Head, ...] = tuple(each for each in page.items if each.conversation_id != "alpha")
        return HeadPage(heads, page.cursor, (Damage("alpha", "head: checksum"),))


async def test_damage_hides_nothing() -> None:
    """A head that cannot be listed and a conversation that cannot be read are named; the others are still verified."""
    backend = Unreadable()
    for name in ("zulu", "alpha", "c"):
        await add(backend, name, b"1")
    report = await verify(backend)
    assert ["alpha", "zulu"] == [each.conversation_id for each in report.damage]
    assert 1 == report.entries


async def _damaged(path: Path, index: str) -> SqliteBackend:
    """Return a store of three conversations of which one index has lost its keys."""
    backend = SqliteBackend(path)
    for name in "abc":
        await add(backend, name, b"1", subject_id="s")
    assert () == (await verify(backend)).damage
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        lose_keys(database, index)
    return backend


async def test_conversations_that_are_not_found_by_their_id_are_named(tmp_path: Path) -> None:
    """With the index of ids damaged every read says that nothing is there; verify names each of them, and the index."""
    backend = await _damaged(tmp_path / "s.db", "heads_id")
    assert await backend.read("a") is None
    damage = (await verify(backend)).damage
    assert [(each, "it is listed, but not found by its id") for each in "abc"] == [
        (each.conversation_id, each.what) for each in damage[:3]
    ]
    assert "wrong # of entries in index heads_id" in [each.what for each in damage if each.conversation_id == ""]
    await backend.aclose()


async def test_damage_that_no_read_sees_is_named(tmp_path: Path) -> None:
    """With an index of subjects damaged every conversation reads, and is found by its id; only the storage can tell."""
    backend = await _damaged(tmp_path / "s.db", "heads_created_subject")
    assert () == (await backend.scan_heads(HeadQuery(subject_id="s", order="created"))).items
    report = await verify(backend)
    assert (3, {""}) == (report.conversations, {each.conversation_id for each in report.damage})
    assert "row 1 missing from index heads_created_subject" in [each.what for each in report.damage]
    await backend.aclose()


async def test_what_one_subject_sees_has_no_self_check(tmp_path: Path) -> None:
    """A store limited to one subject tells nothing about the whole: it is verified by its records alone."""
    backend = await _damaged(tmp_path / "s.db", "heads_updated_context")
    limited = scoped(backend, "s")
    assert "self_check" not in limited.capabilities
    assert not hasattr(limited, "self_check")
    report = await verify(limited)
    assert (3, ()) == (report.conversations, report.damage)
    await backend.aclose()


class Vanishing(MemoryBackend):
    """A backend that, once `blind`, does `meanwhile` at the next read, and finds nothing there."""

    def __init__(self, meanwhile: list[Change]) -> None:
        super().__init__()
        self.meanwhile = meanwhile
        self.blind = False

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: object = (), /
    ) -> Snapshot | None:
        if not self.blind:
            return await super().read(conversation_id, window, documents)  # type: ignore[arg-type]  # handed on
        self.blind = False
        for change in self.meanwhile:
            await self.commit(change)
        return None


_DELETION = Change(conversation_id="c", revision="r1", at_ms=1, delete=True)
_RETURN = Change(conversation_id="c", revision="r2", at_ms=2, existence="must_create")


@pytest.mark.parametrize(
    ("meanwhile", "named"), [([], ["c"]), ([_DELETION], []), ([_DELETION, _RETURN], [])], ids=["there", "gone", "new"]
)
async def test_what_was_deleted_meanwhile_is_no_damage(meanwhile: list[Change], named: list[str]) -> None:
    """A listed conversation that is not found is looked for again: it is damaged if it is listed still, and the same one."""
    backend = Vanishing(meanwhile)
    await add(backend, "c", b"1")
    backend.blind = True
    assert named == [each.conversation_id for each in (await verify(backend)).damage]


class TooDamaged(MemoryBackend):
    """A backend whose structure is too damaged to be looked through."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return super().capabilities | {"self_check"}

    async def self_check(self) -> tuple[str, ...]:
        raise CorruptDataError("", [Damage("", "it is malformed")])


async def test_a_self_check_that_gives_up_is_damage() -> None:
    """The report is not lost over it: records are counted, and what stopped the check is named."""
    backend = TooDamaged()
    await add(backend, "c", b"1")
    report = await verify(backend)
    assert (1, (Damage("", "it is malformed"),)) == (report.entries, report.damage)


async def test_a_fingerprint_is_about_content() -> None:
    """It does not depend on revisions and positions, and changes with any entry, field, document or time."""
    one, two = await filled(), await filled()
    assert await fingerprint(one, "zulu") == await fingerprint(two, "zulu")
    assert await fingerprint(one, "absent") is None
    seen = {await fingerprint(one, "zulu")}
    await add(one, "zulu", b"more")
    seen.add(await fingerprint(one, "zulu"))
    await add(one, "zulu", fields={"title": b"x"})
    seen.add(await fingerprint(one, "zulu"))
    await add(one, "zulu", documents={"todos": b"x"})
    seen.add(await fingerprint(one, "zulu"))
    assert 4 == len(seen)


async def test_statistics_count() -> None:
    """Conversations, entries and bytes are counted, by context, kind, role and dialect."""
    backend = await filled()
    new = NewEntry(entry_id="n", kind="note", role=None, dialect="d/1", created_at_ms=1, body=b"123")
    await add(backend, "empty \u2028 \u05d0", b"12")
    await backend.commit(Change(conversation_id="alpha", revision="r", at_ms=1, append=(new,)))
    counted = await statistics(backend)
    assert (3, 11, 2, 0) == (counted.conversations, counted.entries, counted.documents, counted.damaged)
    assert {"ctx": 2, "": 1} == counted.contexts
    assert {"message": 10, "note": 1} == counted.kinds
    assert {"user": 10, "": 1} == counted.roles
    assert {"test/1": 10, "d/1": 1} == counted.dialects
    assert (3 + 1) + (2 + 2) == counted.other_bytes
