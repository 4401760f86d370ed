"""A conversation read in chunks that together are one revision, however long it is.

The first chunk fixes the revision: its head, fields and documents, and the last stamp that belongs to it. Later appends are
cut off there. A cut, a removal, a replacement or a new incarnation meanwhile shows in `Head.last_rewrite` and `Head.born`;
then the chunks do not belong together and `Overtaken` asks the caller to begin again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, Literal

from msgspec import structs

from convostore.contracts.backend import Backend, Snapshot, Window

__all__ = ["Overtaken", "chunk_entries_max", "read_chunks", "restarts_max"]

chunk_entries_max: Final = 512
"""Entries of one chunk at most; fewer while their bodies are large."""

_CHUNK_BYTES: Final = 4 * 1024 * 1024

restarts_max: Final = 4
"""How often a reader begins again before it takes the conversation in one piece."""


class Overtaken(Exception):
    """The conversation was rewritten or deleted between two chunks; begin again."""


async def read_chunks(
    backend: Backend,
    conversation_id: str,
    *,
    damaged: Literal["raise", "report"] = "raise",
    in_one_piece: bool = False,
) -> AsyncIterator[Snapshot]:
    """Yield the conversation as snapshots of one revision; the first has the documents. Nothing when it is absent.

    `in_one_piece` reads it whole: never overtaken, at the cost of the memory.

    Raises:
        Overtaken: see above; what was yielded so far is worth nothing.
        CorruptDataError: a record is damaged, unless `damaged` is "report".
    """
    limit = None if in_one_piece else 16
    first = await backend.read(conversation_id, Window(limit=limit, damaged=damaged), None)
    if first is None:
        return
    yield first
    chunk, reached = first, 0
    named = set(first.damage)
    while limit is not None and (last := _last_position(chunk)) > reached:
        if len(chunk.entries) < limit and not chunk.damage:
            return
        reached = last
        limit = _next_limit(chunk, limit)
        window = Window(after=reached, before=first.head.last_stamp + 1, limit=limit, damaged=damaged)
        following = await backend.read(conversation_id, window, ())
        if following is None or _incarnation(following) != _incarnation(first):
            raise Overtaken(conversation_id)
        # Damage that is not an entry's may come with every read; it is named once.
        chunk = structs.replace(following, damage=tuple(each for each in following.damage if each not in named))
        named.update(chunk.damage)
        if chunk.entries or chunk.damage:
            yield chunk


def _incarnation(snapshot: Snapshot) -> tuple[str, int]:
    return snapshot.head.born, snapshot.head.last_rewrite


def _last_position(chunk: Snapshot) -> int:
    places = [each.position for each in chunk.entries[-1:]]
    places += [each.position for each in chunk.damage if each.position is not None]
    return max(places, default=0)


def _next_limit(chunk: Snapshot, limit: int) -> int:
    """Return how many entries to ask for, so that a chunk stays near `_CHUNK_BYTES`."""
    average = sum(len(each.body) for each in chunk.entries) // max(1, len(chunk.entries))
    return max(1, min(limit * 4, chunk_entries_max, _CHUNK_BYTES // (average + 1)))
