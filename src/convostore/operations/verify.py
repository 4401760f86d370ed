"""Reading everything a store keeps, to see whether it is what was written.

Checked are what the backend itself can see (checksums), what only the whole can show (counts, order, unique ids, stamps
within bounds, bodies that are what their dialect says, listed conversations that are found by their id), and what a backend
with the capability `self_check` finds wrong with its structure. Nothing is changed. Memory grows with the number of entries of
the longest conversation (their ids), not with their bodies.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping

from msgspec import Struct

from convostore.contracts.backend import Backend, Damage, Entry, Head, HeadQuery, SelfChecking, Snapshot
from convostore.contracts.walking import pages
from convostore.dialects import reading
from convostore.errors import CorruptDataError
from convostore.interchange.chunks import Overtaken, read_chunks, restarts_max
from convostore.interchange.fingerprint import Fingerprint, Identity
from convostore.limits import page_heads_max
from convostore.model import exact_json
from convostore.stores.heads import conversation_of

__all__ = ["VerifyReport", "fingerprint", "verify"]


class VerifyReport(Struct):
    """What was read, and every damage found; an empty `damage` is a sound store."""

    conversations: int = 0
    entries: int = 0
    documents: int = 0
    body_bytes: int = 0
    damage: tuple[Damage, ...] = ()


async def verify(backend: Backend, *, progress: Callable[[VerifyReport], object] | None = None) -> VerifyReport:
    """Read every conversation and return what is wrong; `progress` is called after each."""
    report = VerifyReport()
    not_found: dict[str, Head] = {}
    async for page in pages(backend, HeadQuery(order="created", limit=page_heads_max)):
        report.damage += page.damage
        for head in page.items:
            found = await _verify_one(backend, head.conversation_id)
            if found is None:
                not_found[head.conversation_id] = head
            else:
                report.conversations += 1
                report.entries += found.entries
                report.documents += found.documents
                report.body_bytes += found.body_bytes
                report.damage += found.damage
            if progress:
                progress(report)
    report.damage += tuple([each async for each in _not_found(backend, not_found)])
    report.damage += await _structure(backend)
    return report


async def fingerprint(backend: Backend, conversation_id: str) -> str | None:
    """Return the fingerprint of a conversation, the same wherever it is stored; None when it is absent.

    Raises:
        CorruptDataError: a record of it is damaged.
    """
    for attempt in range(restarts_max + 1):
        try:
            made: Fingerprint | None = None
            async for chunk in read_chunks(backend, conversation_id, in_one_piece=attempt == restarts_max):
                if made is None:
                    made = Fingerprint(Identity.of(chunk.head))
                    made.set_fields(chunk.head.fields)
                    for name, value in chunk.documents.items():
                        made.set_document(name, value)
                for entry in chunk.entries:
                    made.add(entry)
            return made.text() if made else None
        except Overtaken:
            continue
    raise AssertionError("a conversation read in one piece is never overtaken")


async def _not_found(backend: Backend, heads: Mapping[str, Head]) -> AsyncIterator[Damage]:
    """Yield what is listed once more after it was not found by its id, so that it was not deleted meanwhile."""
    if not heads:
        return
    async for page in pages(backend, HeadQuery(order="created", limit=page_heads_max)):
        for head in page.items:
            before = heads.get(head.conversation_id)
            if before is not None and before.born == head.born:
                yield Damage(head.conversation_id, "it is listed, but not found by its id")


async def _structure(backend: Backend) -> tuple[Damage, ...]:
    if "self_check" not in backend.capabilities or not isinstance(backend, SelfChecking):
        return ()
    try:
        return tuple([Damage("", finding) for finding in await backend.self_check()])
    except CorruptDataError as error:
        return tuple([each for each in error.damage if isinstance(each, Damage)]) or (Damage("", str(error)),)


async def _verify_one(backend: Backend, conversation_id: str) -> VerifyReport | None:
    for attempt in range(restarts_max + 1):
        inspection = _Inspection()
        try:
            async for chunk in read_chunks(
                backend, conversation_id, damaged="report", in_one_piece=attempt == restarts_max
            ):
                inspection.take(chunk)
            return inspection.report()
        except CorruptDataError as error:  # a head or document that the backend cannot report beside sound entries
            damage = (each if isinstance(each, Damage) else Damage(conversation_id, str(each)) for each in error.damage)
            return VerifyReport(conversations=1, damage=tuple(damage))
        except Overtaken:
            continue
    raise AssertionError("a conversation read in one piece is never overtaken")


class _Inspection:
    """What is known about one conversation after the chunks read so far."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._report = VerifyReport()
        self._ids: set[str] = set()
        self._position = 0
        self._damaged_entries = 0

    def take(self, chunk: Snapshot) -> None:
        """Take the next chunk."""
        if self._head is None:
            self._head = chunk.head
            self._report.documents = len(chunk.documents)
            self._report.damage += tuple(_of_head(chunk.head))
        self._report.damage += chunk.damage
        self._damaged_entries += sum(each.position is not None for each in chunk.damage)
        for entry in chunk.entries:
            self._report.entries += 1
            self._report.body_bytes += len(entry.body)
            self._report.damage += tuple(self._of_entry(entry, self._head))

    def report(self) -> VerifyReport | None:
        """Return what was found; None when the conversation is absent."""
        if (head := self._head) is None:
            return None
        self._report.conversations = 1
        there = self._report.entries + self._damaged_entries
        if there != head.entry_count:
            what = f"the head says {head.entry_count} entries, there are {there}"
            self._report.damage += (Damage(head.conversation_id, what),)
        return self._report

    def _of_entry(self, entry: Entry, head: Head) -> Iterator[Damage]:
        def damage(what: str) -> Damage:
            return Damage(head.conversation_id, what, entry.position, entry.entry_id)

        if entry.position <= self._position:
            yield damage(f"its position is not behind {self._position}, that of the entry before it")
        self._position = max(self._position, entry.position)
        if not entry.position <= entry.stamp <= head.last_stamp:
            yield damage(f"its stamp {entry.stamp} is not between its position and {head.last_stamp}, the head's last")
        if entry.entry_id in self._ids:
            yield damage("its id is not the only one of its kind")
        self._ids.add(entry.entry_id)
        if reading.known(entry.dialect):
            try:
                exact_json.decode(entry.body)
                reading.read(entry, head.conversation_id)
            except (ValueError, RecursionError, CorruptDataError) as error:
                yield damage(f"its body is not {entry.dialect}: {error}")


def _of_head(head: Head) -> Iterator[Damage]:
    try:
        conversation_of(head)
    except CorruptDataError as error:
        yield from (each for each in error.damage if isinstance(each, Damage))
    if not 0 <= head.last_rewrite <= head.last_stamp:
        yield Damage(head.conversation_id, f"the head's last rewrite {head.last_rewrite} is behind {head.last_stamp}")
    if head.updated_at_ms < head.created_at_ms:
        yield Damage(head.conversation_id, "the head says it was updated before it was created")
