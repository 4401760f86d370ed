"""The native format: what is written comes back, and nothing that was not written does."""

from __future__ import annotations

import asyncio
import io
import zlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from convostore.backends.memory import MemoryBackend
from convostore.contracts.backend import Change, Damage, Entry, HeadPage, HeadQuery, NewEntry, Receipt, Snapshot, Window
from convostore.errors import CorruptDataError, InvalidInput, SchemaTooNewError
from convostore.ids import new_id
from convostore.interchange import carton, chunks
from convostore.interchange.native import DamagedStreamError, NotNativeError, StreamDamage, read_native, write_native
from convostore.operations.copy import load_native
from tests.interchange.conversations import add, content, entry, filled, stream_of


async def load(stream: bytes, **options: object) -> MemoryBackend:
    target = MemoryBackend()
    await load_native(target, io.BytesIO(stream), **options)  # type: ignore[arg-type]  # only options it takes
    return target


def damage_of(stream: bytes) -> tuple[list[str], list[StreamDamage]]:
    """Return the conversations read from a stream, and what was reported."""
    found: list[StreamDamage] = []
    ids = [each.head.id for each in read_native(io.BytesIO(stream), on_damage=found.append)]
    return ids, found


def entries_of(stream: bytes) -> list[list[Entry]]:
    return [list(each.entries()) for each in read_native(io.BytesIO(stream))]


async def test_everything_comes_back() -> None:
    """Heads, entries, documents, times and the order of creation survive a stream."""
    backend = await filled()
    assert await content(backend) == await content(await load(await stream_of(backend)))


async def test_the_same_store_gives_the_same_stream() -> None:
    """Writing twice at one time gives equal bytes."""
    backend = await filled()
    assert await stream_of(backend) == await stream_of(backend)


async def test_a_query_selects() -> None:
    """Only the conversations that the query selects are written."""
    sink = io.BytesIO()
    report = await write_native(await filled(), sink, HeadQuery(order="created", context="ctx", subject_id=None))
    assert (["alpha"], []) == damage_of(sink.getvalue())
    assert (1, 3, 0) == (report.conversations, report.entries, report.documents)


_ids = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=60)
_entries = st.lists(st.tuples(_ids, st.binary(max_size=60), st.none() | _ids.filter(lambda t: len(t.encode()) <= 100)))


@settings(max_examples=60, deadline=None)
@given(
    conversation_id=_ids,
    context=st.none() | _ids,
    entries=_entries,
    fields=st.dictionaries(st.sampled_from(["a", "b\u2028", "é"]), st.binary(max_size=40)),
    created_at_ms=st.integers(-(10**13), 10**14),
)
def test_any_conversation_comes_back(
    conversation_id: str,
    context: str | None,
    entries: list[tuple[str, bytes, str | None]],
    fields: dict[str, bytes],
    created_at_ms: int,
) -> None:
    """Whatever the contract allows in ids, roles, fields and bodies survives a stream."""
    unique = {entry_id: entry(entry_id, body, role=role) for entry_id, body, role in entries}

    async def run() -> None:
        backend = MemoryBackend()
        change = Change(
            conversation_id=conversation_id,
            revision=new_id(),
            at_ms=created_at_ms,
            existence="must_create",
            context=context,
            fields=dict(fields),
            documents={f"d{name}": value for name, value in fields.items()},
            append=tuple(unique.values()),
        )
        await backend.commit(change)
        assert await content(backend) == await content(await load(await stream_of(backend)))

    asyncio.run(run())


async def test_a_changed_byte_is_named() -> None:
    """One flipped bit in any line is reported with the number of that line, and its conversation is left out."""
    stream = await stream_of(await filled())
    lines = stream.split(b"\n")[:-1]
    owners = _owners(lines)
    for index, line in enumerate(lines):
        for at in {0, len(line) // 3, len(line) // 2, len(line) - 1}:
            bad = bytearray(line)
            bad[at] ^= 0x01
            ids, found = damage_of(b"\n".join([*lines[:index], bytes(bad), *lines[index + 1 :]]) + b"\n")
            assert index + 1 == found[0].line
            assert [each for each in ("zulu", "alpha", "empty \u2028 \u05d0") if each != owners[index]] == ids
            assert owners[index] in {each.conversation_id for each in found}


def _owners(lines: list[bytes]) -> list[str | None]:
    owners: list[str | None] = []
    owner: str | None = None
    names = iter(["zulu", "alpha", "empty \u2028 \u05d0"])
    for line in lines:
        if b'"line":"conversation"' in line:
            owner = next(names)
        owners.append(None if b'"line":"eof"' in line or b'"convostore"' in line else owner)
    return owners


async def test_a_lost_line_is_found() -> None:
    """A stream without any one of its lines gives an error, and reading it in report mode gives no half conversation."""
    backend = await filled()
    stream = await stream_of(backend)
    whole = {repr(each) for each in await content(backend)}
    lines = [each + b"\n" for each in stream.split(b"\n")[:-1]]
    for index in range(len(lines)):
        cut = b"".join([*lines[:index], *lines[index + 1 :]])
        with pytest.raises((DamagedStreamError, InvalidInput)):
            list(read_native(io.BytesIO(cut)))
        if index:
            assert {repr(each) for each in await content(await load(cut, damaged="report"))} <= whole


async def test_doubled_and_exchanged_lines_are_found() -> None:
    """A line that comes twice, or two that changed places, is an error."""
    lines = [each + b"\n" for each in (await stream_of(await filled())).split(b"\n")[:-1]]
    for index in range(1, len(lines)):
        doubled = b"".join([*lines[: index + 1], *lines[index:]])
        with pytest.raises(DamagedStreamError):
            list(read_native(io.BytesIO(doubled)))
    for index, _ in enumerate(pairwise(lines[1:]), 1):
        swapped = b"".join([*lines[:index], lines[index + 1], lines[index], *lines[index + 2 :]])
        with pytest.raises(DamagedStreamError):
            list(read_native(io.BytesIO(swapped)))


async def test_a_lost_conversation_is_found() -> None:
    """A stream that lacks a whole conversation, sound line by line, is an error at its last line."""
    lines = [each + b"\n" for each in (await stream_of(await filled())).split(b"\n")[:-1]]
    end = next(index for index, line in enumerate(lines) if b'"line":"end"' in line)
    ids, found = damage_of(b"".join([lines[0], *lines[end + 1 :]]))
    assert ["alpha", "empty \u2028 \u05d0"] == ids
    assert [len(lines) - end] == [each.line for each in found]


async def test_a_cut_off_stream_is_found() -> None:
    """A stream cut off at any byte is an error; every conversation before the cut is still given."""
    stream = await stream_of(await filled())
    for at in range(200, len(stream) - 1, 97):
        ids, found = damage_of(stream[:at])
        assert found
        assert ["zulu", "alpha", "empty \u2028 \u05d0"][: len(ids)] == ids


async def test_damage_writes_nothing() -> None:
    """Loading a damaged stream raises before anything is written, and says which line of which conversation."""
    stream = (await stream_of(await filled())).replace(b'"body":"4"', b'"body":"5"')
    target = MemoryBackend()
    with pytest.raises(DamagedStreamError, match=r"line 15 \(conversation 'alpha'\)") as caught:
        await load_native(target, io.BytesIO(stream))
    assert ("alpha", 15) == (caught.value.conversation_id, caught.value.context["line"])
    assert [] == await content(target)


class Untouchable(MemoryBackend):
    """A backend that nobody may call."""

    async def commit(self, change: Change, /) -> Receipt:
        raise AssertionError("a commit")

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: object = (), /
    ) -> Snapshot | None:
        raise AssertionError("a read")

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        raise AssertionError("a scan")


async def test_damage_leaves_the_target_alone() -> None:
    """A stream that is damaged at its very end, or is none, is known before the target is asked anything."""
    stream = await stream_of(await filled())
    done: list[tuple[str, int]] = []
    with pytest.raises(DamagedStreamError):
        await load_native(Untouchable(), io.BytesIO(stream[:-2]), progress=lambda *told: done.append(told))
    assert [("checking", number) for number in (1, 2, 3)] == done
    for foreign in (b"", b"garbage"):
        with pytest.raises(NotNativeError):
            await load_native(Untouchable(), io.BytesIO(foreign), damaged="report")


async def test_report_mode_loads_the_rest() -> None:
    """In report mode the damaged conversation is left out and named; the others are there."""
    stream = (await stream_of(await filled())).replace(b'"body":"4"', b'"body":"5"')
    target = MemoryBackend()
    report = await load_native(target, io.BytesIO(stream), damaged="report")
    assert (2, ["alpha"]) == (report.copied, [each.conversation_id for each in report.stream_damage])
    assert ["zulu", "empty \u2028 \u05d0"] == [each[0] for each in await content(target)]


async def test_foreign_streams_are_refused() -> None:
    """What is no native stream, or one of a newer version, is refused before anything is read."""
    for foreign in (b"", b"{}\n", b'{"messages": []}\n', b"\xff" * 100):
        with pytest.raises(NotNativeError, match="native stream"):
            list(read_native(io.BytesIO(foreign)))
    newer = b'{"convostore":"native/2","written_at_ms":1'
    with pytest.raises(SchemaTooNewError, match="native/2"):
        list(read_native(io.BytesIO(b'%b,"crc":%d}\n' % (newer, zlib.crc32(newer)))))


class Restless(MemoryBackend):
    """A backend where something happens to the conversation before each of the first reads of a chunk."""

    def __init__(self, changes: list[Change]) -> None:
        super().__init__()
        self.changes = changes

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: object = (), /
    ) -> Snapshot | None:
        if window is not None and window.after and self.changes:
            await self.commit(self.changes.pop(0))
        return await super().read(conversation_id, window, documents)  # type: ignore[arg-type]  # handed on


def _append(number: int) -> Change:
    return Change(conversation_id="c", revision=new_id(), at_ms=5, append=(entry(f"later{number}", b"x"),))


def _replace(number: int) -> Change:
    new = NewEntry(entry_id="e1", kind="m", role=None, dialect="d", created_at_ms=1, body=b"%d" % number)
    return Change(conversation_id="c", revision=new_id(), at_ms=5, replace=(new,))


async def test_appends_during_a_read_are_cut_off() -> None:
    """A conversation that grows while it is written is written as it was at the first chunk."""
    backend = Restless([_append(number) for number in range(50)])
    await add(backend, "c", *[b"%d" % number for number in range(300)])
    (entries,) = entries_of(await stream_of(backend))
    assert [f"e{number}" for number in range(1, 301)] == [each.entry_id for each in entries]
    assert len(backend.changes) < 50


@pytest.mark.parametrize("rewrites", [1, chunks.restarts_max + 5])
async def test_a_rewrite_during_a_read_begins_it_again(rewrites: int) -> None:
    """A conversation rewritten between two chunks is never written as a mixture, however often it happens."""
    backend = Restless([_replace(number) for number in range(rewrites)])
    await add(backend, "c", *[b"old"] * 300)
    (entries,) = entries_of(await stream_of(backend))
    done = rewrites - len(backend.changes)
    assert done == min(rewrites, chunks.restarts_max)
    assert [b"%d" % (done - 1)] + [b"old"] * 299 == [each.body for each in entries]


async def test_a_conversation_deleted_during_a_read_is_left_out() -> None:
    """A conversation that is gone before it was read whole is not in the stream."""
    backend = Restless([Change(conversation_id="c", revision=new_id(), at_ms=5, delete=True)])
    await add(backend, "c", *[b"old"] * 300)
    assert ([], []) == damage_of(await stream_of(backend))


class Damaged(MemoryBackend):
    """A backend where the entry e2 of every conversation is damaged."""

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: object = (), /
    ) -> Snapshot | None:
        there = await super().read(conversation_id, window, documents)  # type: ignore[arg-type]  # handed on
        bad = [each for each in (there.entries if there else ()) if each.entry_id == "e2"]
        if there is None or window is None or not bad:
            return there
        damage = (Damage(conversation_id, "checksum", bad[0].position, "e2"),)
        if window.damaged == "raise":
            raise CorruptDataError(conversation_id, damage)
        sound = tuple(each for each in there.entries if each.entry_id != "e2")
        return structs.replace(there, entries=sound, damage=damage)


async def test_a_damaged_source_is_named() -> None:
    """Writing raises for a damaged record; asked to report, it writes what is sound and names the rest, in the stream too."""
    backend = Damaged()
    await add(backend, "c", *[b"x"] * 40)
    with pytest.raises(CorruptDataError, match="'e2'"):
        await stream_of(backend)
    sink = io.BytesIO()
    report = await write_native(backend, sink, damaged="report")
    assert ["e2"] == [each.entry_id for each in report.damage]
    assert b'"damage":["entry \'e2\' at 2: checksum"]' in sink.getvalue()
    assert [39] == [len(each) for each in entries_of(sink.getvalue())]


class Counting(MemoryBackend):
    """A backend that writes down how many entries are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.limits: list[int | None] = []

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: object = (), /
    ) -> Snapshot | None:
        if window is not None:
            self.limits.append(window.limit)
        return await super().read(conversation_id, window, documents)  # type: ignore[arg-type]  # handed on


async def test_large_bodies_are_read_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The larger the bodies, the fewer are asked for at once; what does not fit into memory comes back all the same."""
    monkeypatch.setattr(chunks, "_CHUNK_BYTES", 10_000)
    monkeypatch.setattr(carton, "_MEMORY_BYTES", 20_000)
    backend = Counting()
    await add(backend, "c", *[bytes([number]) * 5_000 for number in range(40)])
    stream = await stream_of(backend)
    assert {16, 1} == set(backend.limits)
    assert await content(backend) == await content(await load(stream))
