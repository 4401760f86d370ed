"""A packed conversation put into a store: the same each time, so repeating adds nothing and an interruption can be resumed.

The revision of every commit is derived from the source's incarnation and from the fingerprint of what the target holds
after it. So a target can be recognised as *an untouched copy of that source so far*: when it holds a beginning of the
conversation, whether a copy was interrupted or the source has grown since, the rest is added. Anything else that is
there under the same id is a conflict, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from convostore.contracts.backend import Backend, Change, Entry, Head
from convostore.errors import ConflictError
from convostore.ids import derived_id
from convostore.interchange.carton import Carton
from convostore.interchange.chunks import Overtaken, read_chunks
from convostore.interchange.fingerprint import Fingerprint, Identity

__all__ = ["Outcome", "Standing", "changes", "compare", "replay"]

Outcome: TypeAlias = Literal["copied", "completed", "already there"]

_CHANGE_BYTES: Final = 8 * 1024 * 1024
_CHANGE_ENTRIES: Final = 1000
_CHANGE_DOCUMENTS: Final = 32


class Standing(Struct, frozen=True):
    """How a target stands to a carton.

    "absent"; "equal"; "behind": an untouched copy of a beginning; "other": `reason` says why. `head` and `there` are what the
    target holds.
    """

    kind: Literal["absent", "equal", "behind", "other"]
    reason: str = ""
    head: Head | None = None
    there: Fingerprint | None = None


async def compare(carton: Carton, target: Backend) -> Standing:
    """Return how `target` stands to `carton`. Cost: what the target has of the conversation is read.

    Raises:
        InvalidInput: the target refuses the id.
        CorruptDataError: what the target has is damaged.
    """
    source = carton.entries()
    there: Fingerprint | None = None
    head: Head | None = None
    try:
        async for chunk in read_chunks(target, carton.head.id):
            if there is None:
                head, there = chunk.head, Fingerprint(Identity.of(chunk.head))
                there.set_fields(head.fields)
                for name, value in chunk.documents.items():
                    there.set_document(name, value)
            for entry in chunk.entries:
                there.add(entry)
                mine = next(source, None)
                if mine is None or mine.as_new() != entry.as_new():
                    return Standing("other", f"entry {there.entry_count} ({entry.entry_id!r}) differs")
    except Overtaken:
        return Standing("other", "somebody is rewriting it")
    if there is None or head is None:
        return Standing("absent")
    fingerprint = there.text()
    if fingerprint == carton.fingerprint:
        return Standing("equal", "", head, there)
    if there.identity != carton.identity:
        return Standing("other", "its context, subject or time of creation differs")
    if head.revision != _revision(carton, fingerprint):
        return Standing("other", "it was written to since, or is no copy of this one")
    return Standing("behind", "", head, there)


async def replay(carton: Carton, target: Backend, standing: Standing) -> Outcome:
    """Put `carton` into `target`, whose standing to it is `standing`; a Standing serves once.

    Ids, kinds, dialects, times, bodies and order are kept; positions are new. The time of the last commit is kept too, but for
    one millisecond more per commit where the source was written faster than that.

    Raises:
        ConflictError: the target is "other", or somebody wrote to it meanwhile.
        InvalidInput: the target refuses it.
    """
    if standing.kind == "equal":
        return "already there"
    if standing.kind == "other":
        raise ConflictError(
            f"conversation {carton.head.id!r} is in the target already: {standing.reason}; delete it there or leave it out",
            context={"id": carton.head.id},
        )
    for change in changes(carton, standing):
        await target.commit(change)
    return "copied" if standing.kind == "absent" else "completed"


def changes(carton: Carton, standing: Standing) -> Iterator[Change]:
    """Yield the commits that bring an "absent" or "behind" target to what `carton` holds; at least one."""
    line, there = carton.head, standing.there or Fingerprint(carton.identity)
    head = standing.head
    revision = head.revision if head else None
    at_ms = head.updated_at_ms if head else line.created_at_ms
    fields: dict[str, bytes | None] = dict.fromkeys(head.fields if head else ())
    fields.update(carton.fields)
    documents: dict[str, bytes | None] = dict.fromkeys(there.documents.keys() - carton.document_names)
    there.set_fields(carton.fields)
    new_entries = islice(carton.entries(), there.entry_count, None)
    new_documents = ((name, value) for name, value in carton.documents() if not there.has_document(name, value))
    for batch in _batches(new_entries, new_documents):
        documents |= batch.documents
        for entry in batch.entries:
            there.add(entry)
        for name, value in documents.items():
            there.set_document(name, value)
        next_revision = _revision(carton, there.text())
        yield Change(
            conversation_id=line.id,
            revision=next_revision,
            at_ms=line.updated_at_ms if batch.last else at_ms,
            existence="must_create" if revision is None else "must_exist",
            expected_revision=revision,
            context=line.context,
            subject_id=line.subject_id,
            created_at_ms=line.created_at_ms,
            fields=fields,
            documents=documents,
            append=tuple(entry.as_new() for entry in batch.entries),
        )
        revision, fields, documents = next_revision, {}, {}


def _revision(carton: Carton, fingerprint: str) -> str:
    return derived_id("copy", carton.head.born, fingerprint)


class _Batch(Struct):
    """What one commit writes."""

    entries: list[Entry] = []
    documents: dict[str, bytes] = {}
    size: int = 0
    last: bool = False

    def has_room_for(self, size: int) -> bool:
        return (
            (self.size == 0 or self.size + size <= _CHANGE_BYTES)
            and len(self.entries) < _CHANGE_ENTRIES
            and len(self.documents) < _CHANGE_DOCUMENTS
        )


def _batches(entries: Iterator[Entry], documents: Iterator[tuple[str, bytes]]) -> Iterator[_Batch]:
    batch = _Batch()
    for entry in entries:
        if not batch.has_room_for(len(entry.body)):
            yield batch
            batch = _Batch()
        batch.entries.append(entry)
        batch.size += len(entry.body)
    for name, value in documents:
        if not batch.has_room_for(len(value)):
            yield batch
            batch = _Batch()
        batch.documents[name] = value
        batch.size += len(value)
    batch.last = True
    yield batch
