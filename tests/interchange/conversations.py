"""Conversations to send about: written through the backend contract alone."""

from __future__ import annotations

import io

from convostore.backends.memory import MemoryBackend
from convostore.contracts.backend import Backend, Change, HeadQuery, NewEntry, Snapshot, Window
from convostore.ids import new_id
from convostore.interchange.native import write_native

BODIES = (
    b"",
    b'{"text":"plain"}',
    b"\x00\xff\xfe",
    b"line\nline\r\n\x0b\x0c",
    '\u2028\u2029\u0085 \U0001f600 ,"crc":1}'.encode(),
    bytes(range(256)),
)


def entry(entry_id: str, body: bytes, *, kind: str = "message", role: str | None = "user", at_ms: int = 5) -> NewEntry:
    return NewEntry(entry_id=entry_id, kind=kind, role=role, dialect="test/1", created_at_ms=at_ms, body=body)


async def add(backend: Backend, conversation_id: str, *bodies: bytes, at_ms: int = 1_000, **more: object) -> None:
    """Append a commit of these bodies, creating the conversation if need be."""
    there = await backend.read(conversation_id)
    first = there.head.last_stamp if there else 0
    change = Change(
        conversation_id=conversation_id,
        revision=new_id(),
        at_ms=at_ms,
        existence="may_create",
        append=tuple(entry(f"e{first + index}", body) for index, body in enumerate(bodies, 1)),
        **more,  # type: ignore[arg-type]  # whatever a Change takes
    )
    await backend.commit(change)


async def filled() -> MemoryBackend:
    """Return a backend with three conversations, not in the order of their ids, one of them rewritten, one empty."""
    backend = MemoryBackend()
    fields = {"title": b'"T"', "odd": b"\xff"}
    documents = {"todos": b"[]", "blob": b"\xfe\x00"}
    await add(backend, "zulu", *BODIES, context="ctx", subject_id="s/1", fields=fields, documents=documents)
    await add(backend, "alpha", b"1", b"2", b"3", at_ms=2_000, created_at_ms=1_500, context="ctx")
    cut = Change(conversation_id="alpha", revision=new_id(), at_ms=9_000, remove=("e2",), append=(entry("late", b"4"),))
    await backend.commit(cut)
    await add(backend, "empty \u2028 \u05d0")
    return backend


async def stream_of(backend: Backend) -> bytes:
    sink = io.BytesIO()
    await write_native(backend, sink, clock=lambda: 77)
    return sink.getvalue()


async def content(backend: Backend) -> list[tuple[object, ...]]:
    """Return everything a copy must keep, in creation order."""
    page = await backend.scan_heads(HeadQuery(order="created", limit=1000))
    assert page.cursor is None
    return [_kept(await backend.read(head.conversation_id, Window(), None)) for head in page.items]


def _kept(snapshot: Snapshot | None) -> tuple[object, ...]:
    assert snapshot is not None
    head = snapshot.head
    return (
        head.conversation_id,
        head.context,
        head.subject_id,
        head.created_at_ms,
        head.updated_at_ms,
        head.entry_count,
        sorted(head.fields.items()),
        sorted(snapshot.documents.items()),
        [(e.entry_id, e.kind, e.role, e.dialect, e.created_at_ms, e.body) for e in snapshot.entries],
    )
