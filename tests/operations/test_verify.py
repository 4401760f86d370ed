"""Verifying: damage of every kind is named, and a sound store is called sound."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from convostore.backends.memory import MemoryBackend
from convostore.contracts.backend import Change, Damage, Entry, Head, HeadPage, HeadQuery, NewEntry, Snapshot, Window
from convostore.errors import CorruptDataError
from convostore.operations.statistics import statistics
from convostore.operations.verify import fingerprint, verify
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
