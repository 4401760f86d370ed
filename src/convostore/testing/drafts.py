"""Short ways to say what the suites say all the time: an entry, a change, and all that is stored below a prefix."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import Any, TypeVar

from convostore.contracts.backend import Backend, Change, Entry, Head, HeadQuery, NewEntry, Snapshot, Window
from convostore.errors import ConversationNotFoundError, StoreError
from convostore.ids import new_id

__all__ = ["AT", "census", "change", "creation", "entries_of", "entry", "entry_ids", "refused", "sweep", "walk"]

AT = 1_767_225_600_000
"""2026-01-01T00:00:00.000Z: when everything happens unless a test says otherwise."""

_pages_max = 10_000
E = TypeVar("E", bound=StoreError)


def entry(entry_id: str, body: bytes = b'{"text":"hello"}', **other: Any) -> NewEntry:
    """Return an entry: a user's message unless `other` says otherwise."""
    given = {"kind": "message", "role": "user", "dialect": "sample/1", "created_at_ms": AT, **other}
    return NewEntry(entry_id=entry_id, body=body, **given)


def change(conversation_id: str, *append: NewEntry, **other: Any) -> Change:
    """Return a change that appends, with a fresh revision unless `other` names one."""
    return Change(conversation_id=conversation_id, append=append, **{"revision": new_id(), "at_ms": AT, **other})


def creation(conversation_id: str, *append: NewEntry, **other: Any) -> Change:
    """Return a change that must create."""
    return change(conversation_id, *append, existence="must_create", **other)


async def entries_of(backend: Backend, conversation_id: str, window: Window | None = None) -> tuple[Entry, ...]:
    """Return the entries of a conversation that is there, all of them unless `window` says otherwise."""
    snapshot = await backend.read(conversation_id, window or Window())
    assert snapshot is not None, f"{conversation_id!r} is not there"
    return snapshot.entries


async def entry_ids(backend: Backend, conversation_id: str, window: Window | None = None) -> list[str]:
    """Return the ids of those entries."""
    return [each.entry_id for each in await entries_of(backend, conversation_id, window)]


async def refused(error: type[E], call: Awaitable[object], what: object = "") -> E:
    """Return the error of exactly this type that the call raises; `what` is said of one that raises none."""
    try:
        await call
    except error as raised:
        failure = raised
    else:
        raise AssertionError(f"not refused: {what}")
    assert error is type(failure), f"{what}: {failure!r}"
    return failure


async def walk(backend: Backend, **query: Any) -> AsyncIterator[tuple[Head, ...]]:
    """Yield page after page until there is no cursor."""
    cursor: str | None = None
    for _ in range(_pages_max):
        page = await backend.scan_heads(HeadQuery(cursor=cursor, **query))
        yield page.items
        if (cursor := page.cursor) is None:
            return
    raise AssertionError(f"the walk {query} does not end")


async def census(backend: Backend, prefix: str = "") -> dict[str, Snapshot]:
    """Return everything that is stored under ids with this prefix."""
    found: dict[str, Snapshot] = {}
    async for heads in walk(backend, prefix=prefix, limit=1000):
        for head in heads:
            snapshot = await backend.read(head.conversation_id, Window(), None)
            if snapshot is not None:
                found[head.conversation_id] = snapshot
    return found


async def sweep(backend: Backend, prefix: str) -> int:
    """Delete every conversation whose id begins with `prefix`; return how many there were.

    Page after page from the beginning: what was deleted is not in the way of the next page.
    """
    swept = 0
    while heads := (await backend.scan_heads(HeadQuery(prefix=prefix, limit=1000))).items:
        deleted = 0
        for head in heads:
            assert head.conversation_id.startswith(prefix), f"{head.conversation_id!r} does not begin with {prefix!r}"
            try:
                await backend.commit(change(head.conversation_id, delete=True))
                deleted += 1
            except ConversationNotFoundError:
                continue  # somebody else was quicker
        if not deleted:
            break
        swept += deleted
    return swept
