"""Everything of one store into another, or out of a native stream: looked at first, then written, then compared.

Nothing is written before the whole source has been read once and the target has been asked about every id. What a target
refuses, and what it has under the same id with other content, is named, and then nothing at all is written unless the
caller says to leave those out. Every conversation is read back and its fingerprint compared. Repeating adds nothing; after an
interruption, repeating finishes; after the source has grown, repeating adds what is new.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import BinaryIO, Literal, TypeAlias

from msgspec import Struct

from convostore.contracts.backend import Backend, HeadQuery, Window
from convostore.contracts.law import check_change
from convostore.contracts.walking import pages
from convostore.errors import ConflictError, CorruptDataError, InvalidInput, NotFoundError
from convostore.interchange.carton import Carton, pack
from convostore.interchange.native import StreamDamage, read_native
from convostore.interchange.replay import changes, compare, replay
from convostore.limits import page_heads_max
from convostore.operations.verify import fingerprint

__all__ = ["CopyReport", "Progress", "Refusal", "copy", "load_native"]

Progress: TypeAlias = Callable[[Literal["checking", "reading", "writing"], int], object]
"""Told, after each conversation, what is being done and how many are done; only a native stream is checked."""


class Refusal(Struct, frozen=True):
    """A conversation that was not copied, or not as it should be, and why."""

    conversation_id: str
    reason: str


class CopyReport(Struct):
    """What a copy did. `refused` without `skip_refused` means that nothing was written.

    `completed` were there in part. `differing` were written and read back as something else, which only damage or somebody
    else's writing explains. `stream_damage` names the damaged lines of a native stream.
    """

    copied: int = 0
    completed: int = 0
    already_there: int = 0
    entries: int = 0
    refused: list[Refusal] = []
    differing: list[Refusal] = []
    stream_damage: list[StreamDamage] = []


_Source: TypeAlias = Callable[[], AsyncGenerator[Carton | Refusal, None]]


async def copy(
    source: Backend, target: Backend, *, skip_refused: bool = False, progress: Progress | None = None
) -> CopyReport:
    """Copy every conversation of `source` to `target`, in creation order.

    Each is copied at one revision; what is appended while it is copied comes with the next copy. A damaged conversation counts
    as refused. The memory needed does not grow with either store.
    """
    return await _transfer(lambda: _packed(source), target, skip_refused, progress)


async def load_native(
    target: Backend,
    stream: BinaryIO,
    *,
    damaged: Literal["raise", "report"] = "raise",
    skip_refused: bool = False,
    progress: Progress | None = None,
) -> CopyReport:
    """Put every conversation of a native stream into `target`; `stream` must be seekable.

    It is read three times, the first time to check it whole before the target is asked anything: so a damaged stream makes no
    store where there was none. With `damaged` "report" it is read twice, and conversations whose lines are damaged are left
    out and named.

    Raises:
        NotNativeError: it is no native stream.
        InvalidInput: it cannot be read more than once.
        SchemaTooNewError: a newer convostore wrote it.
        DamagedStreamError: a line is damaged and `damaged` is "raise"; nothing was written.
    """
    if not stream.seekable():
        raise InvalidInput("a native stream is read more than once, first to check it; save it to a file and load that")
    start = stream.tell()
    if damaged == "raise":
        await _check(stream, progress)
    found: list[StreamDamage] = []

    async def cartons() -> AsyncGenerator[Carton | Refusal, None]:
        stream.seek(start)
        found.clear()
        for carton in read_native(stream, on_damage=None if damaged == "raise" else found.append):
            yield carton

    report = await _transfer(cartons, target, skip_refused, progress)
    report.stream_damage = found
    return report


async def _check(stream: BinaryIO, progress: Progress | None) -> None:
    for done, _ in enumerate(read_native(stream), 1):
        await asyncio.sleep(0)  # nothing here waits for anything, and others on the event loop do
        if progress:
            progress("checking", done)


async def _packed(source: Backend) -> AsyncGenerator[Carton | Refusal, None]:
    async for page in pages(source, HeadQuery(order="created", limit=page_heads_max)):
        for damage in page.damage:
            yield Refusal(damage.conversation_id, f"damaged in the source: {damage}")
        for head in page.items:
            try:
                carton = await pack(source, head.conversation_id)
            except CorruptDataError as error:
                named = "; ".join(str(each) for each in error.damage)
                yield Refusal(head.conversation_id, f"damaged in the source: {named}")
                continue
            if carton is not None:
                with carton:
                    yield carton


async def _transfer(source: _Source, target: Backend, skip_refused: bool, progress: Progress | None) -> CopyReport:
    report = CopyReport()
    names: set[tuple[str | None, str | None]] = set()
    done = 0
    async with aclosing(source()) as cartons:
        async for carton in cartons:
            refusal = carton if isinstance(carton, Refusal) else await _refusal(carton, target, names)
            if refusal:
                report.refused.append(refusal)
            done += 1
            if progress:
                progress("reading", done)
    if report.refused and not skip_refused:
        return report
    refused = {each.conversation_id for each in report.refused}
    done = 0
    async with aclosing(source()) as cartons:
        async for carton in cartons:
            if isinstance(carton, Carton) and carton.head.id not in refused:
                await _deliver(carton, target, report)
            done += 1
            if progress:
                progress("writing", done)
    return report


async def _refusal(carton: Carton, target: Backend, names: set[tuple[str | None, str | None]]) -> Refusal | None:
    """Ask the target about everything it could refuse, by reading."""
    line = carton.head
    try:
        if (line.context, line.subject_id) not in names:
            await target.scan_heads(HeadQuery(context=line.context, subject_id=line.subject_id, limit=1))
            names.add((line.context, line.subject_id))
        standing = await compare(carton, target)
        if standing.kind == "other":
            return Refusal(line.id, f"in the target already: {standing.reason}")
        if standing.kind != "equal":
            for change in changes(carton, standing):
                check_change(change)
                for start in range(0, len(change.append), 500):
                    ids = tuple(each.entry_id for each in change.append[start : start + 500])
                    await target.read(line.id, Window(entry_ids=ids))
    except InvalidInput as error:
        return Refusal(line.id, str(error))
    except CorruptDataError as error:
        return Refusal(line.id, f"damaged in the target: {'; '.join(str(each) for each in error.damage)}")
    return None


async def _deliver(carton: Carton, target: Backend, report: CopyReport) -> None:
    standing = await compare(carton, target)
    before = standing.there.entry_count if standing.there else 0
    try:
        outcome = await replay(carton, target, standing)
    except (ConflictError, NotFoundError, InvalidInput) as error:
        report.refused.append(Refusal(carton.head.id, str(error)))
        return
    if outcome == "already there":
        report.already_there += 1
        return
    if await fingerprint(target, carton.head.id) != carton.fingerprint:
        report.differing.append(Refusal(carton.head.id, "what was read back is not what was written"))
    elif outcome == "copied":
        report.copied += 1
    else:
        report.completed += 1
    report.entries += carton.entry_count - before
