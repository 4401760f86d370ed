"""How much a store keeps, and of what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from convostore.contracts.backend import Backend, HeadQuery, Snapshot
from convostore.contracts.walking import pages
from convostore.interchange.chunks import Overtaken, read_chunks
from convostore.limits import page_heads_max

__all__ = ["Statistics", "others", "statistics"]

_NAMES_MAX: Final = 1000

others: Final = "(others)"
"""What names beyond the first thousand are counted under, so that memory stays bounded."""


class Statistics(Struct):
    """Counts. Contexts count conversations; kinds, dialects and roles count entries; "" is "none".

    `body_bytes` are those of the entries' bodies, `other_bytes` those of fields and documents. `damaged` records are not in
    the other counts.
    """

    conversations: int = 0
    entries: int = 0
    documents: int = 0
    body_bytes: int = 0
    other_bytes: int = 0
    damaged: int = 0
    contexts: dict[str, int] = {}
    kinds: dict[str, int] = {}
    roles: dict[str, int] = {}
    dialects: dict[str, int] = {}


async def statistics(backend: Backend, *, progress: Callable[[Statistics], object] | None = None) -> Statistics:
    """Count everything. Cost: everything is read. What is written meanwhile may be counted or not."""
    counted = Statistics()
    async for page in pages(backend, HeadQuery(order="created", limit=page_heads_max)):
        counted.damaged += len(page.damage)
        for head in page.items:
            first = True
            try:
                async for chunk in read_chunks(backend, head.conversation_id, damaged="report"):
                    _count(counted, chunk, first=first)
                    first = False
            except Overtaken:
                pass  # it is being rewritten; what was counted of it is as right as any other moment's count
            if progress:
                progress(counted)
    return counted


def _count(counted: Statistics, chunk: Snapshot, *, first: bool) -> None:
    if first:
        counted.conversations += 1
        _tally(counted.contexts, chunk.head.context)
        counted.documents += len(chunk.documents)
        counted.other_bytes += sum(map(len, chunk.documents.values())) + sum(map(len, chunk.head.fields.values()))
    counted.damaged += len(chunk.damage)
    counted.entries += len(chunk.entries)
    for entry in chunk.entries:
        counted.body_bytes += len(entry.body)
        _tally(counted.kinds, entry.kind)
        _tally(counted.roles, entry.role)
        _tally(counted.dialects, entry.dialect)


def _tally(names: dict[str, int], name: str | None) -> None:
    name = name or ""
    if name not in names and len(names) >= _NAMES_MAX:
        name = others
    names[name] = names.get(name, 0) + 1
