r"""The native format: one stream of JSON lines that carries everything a store keeps, byte for byte.

What backup, restore and copy use. Written and read with memory that does not grow with the store: each conversation is
packed in a `Carton` first, so a stream never holds half of one, and a reader gives none out before its end line has
proved that it is whole. Every line has a checksum of its own (a damaged line is named by number), every conversation a
digest over its lines (a lost, doubled or moved line shows), the stream a last line (a cut-off stream shows). Lines end at
``\n`` and nowhere else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Literal

from msgspec import Struct, structs

from convostore.contracts.backend import Backend, Damage, HeadQuery
from convostore.contracts.walking import pages
from convostore.errors import CorruptDataError, InvalidInput, SchemaTooNewError, StoreError
from convostore.ids import Clock, now_ms
from convostore.interchange.carton import Carton, pack
from convostore.interchange.native_line import (
    ConversationLine,
    EndLine,
    EofLine,
    OpeningLine,
    decode_line,
    decode_opening,
    encode_line,
    line_bytes_max,
    version,
)
from convostore.limits import page_heads_max

__all__ = ["DamagedStreamError", "NotNativeError", "StreamDamage", "WriteReport", "read_native", "write_native"]


class StreamDamage(Struct, frozen=True):
    """A line of a stream that is not what was written, or is missing; `conversation_id` None where nobody can tell."""

    line: int
    what: str
    conversation_id: str | None = None

    def __str__(self) -> str:
        where = "" if self.conversation_id is None else f" (conversation {self.conversation_id!r})"
        return f"line {self.line}{where}: {self.what}"


class DamagedStreamError(CorruptDataError):
    """A native stream is damaged; `damage` holds one `StreamDamage`."""

    def __init__(self, damage: StreamDamage) -> None:
        StoreError.__init__(
            self,
            f"{damage}. Take another copy of the stream, or load what is sound of this one in report mode",
            context={"id": damage.conversation_id, "line": damage.line, "damage": [str(damage)]},
        )
        self.conversation_id = damage.conversation_id or ""
        self.damage = (damage,)


class NotNativeError(InvalidInput):
    """This is no native stream: its first line is not one; `reason` says how that shows."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"this is no native stream: {reason}")
        self.reason = reason


class WriteReport(Struct):
    """What was written, and what could not be read."""

    conversations: int = 0
    entries: int = 0
    documents: int = 0
    damage: tuple[Damage, ...] = ()


async def write_native(
    backend: Backend,
    sink: BinaryIO,
    query: HeadQuery | None = None,
    *,
    damaged: Literal["raise", "report"] = "raise",
    progress: Callable[[WriteReport], object] | None = None,
    clock: Clock = now_ms,
) -> WriteReport:
    """Write the conversations that `query` selects (None: all, in creation order) to `sink`, and return what was written.

    Each conversation is one revision; they are not all of one moment. One deleted meanwhile is left out. With `damaged`
    "report", what is sound of a damaged conversation is written, and its end line and the report name the rest. `progress` is
    called after each conversation.

    Raises:
        CorruptDataError: a record is damaged and `damaged` is "raise"; the stream then lacks its last line.
    """
    report, digest = WriteReport(), hashlib.sha256()
    sink.write(encode_line(OpeningLine(version, clock())))
    query = structs.replace(query or HeadQuery(order="created"), limit=page_heads_max, cursor=None)
    async for page in pages(backend, query):
        if page.damage and damaged == "raise":
            raise CorruptDataError(page.damage[0].conversation_id, page.damage)
        report.damage += page.damage
        for head in page.items:
            carton = await pack(backend, head.conversation_id, damaged=damaged)
            if carton is not None:
                with carton:
                    _write_carton(sink, carton, digest, report)
                if progress:
                    progress(report)
    sink.write(encode_line(EofLine(conversations=report.conversations, sha256=digest.hexdigest())))
    return report


def _write_carton(sink: BinaryIO, carton: Carton, digest: Any, report: WriteReport) -> None:
    for data in carton.raw_lines():
        sink.write(data)
    end = encode_line(carton.end())
    digest.update(end)
    sink.write(end)
    report.conversations += 1
    report.entries += carton.entry_count
    report.documents += len(carton.document_names)
    report.damage += carton.damage


def read_native(source: BinaryIO, *, on_damage: Callable[[StreamDamage], object] | None = None) -> Iterator[Carton]:
    """Yield every conversation of a stream, each whole and checked; a carton is closed when the next one is asked for.

    `on_damage` is told of each damaged or missing line, and reading goes on: the conversation it belongs to is left out.

    Raises:
        NotNativeError: this is no native stream, or what is left of one without its beginning.
        SchemaTooNewError: a newer convostore wrote it.
        DamagedStreamError: something is damaged and there is no `on_damage`.
    """
    reader = _Reader(on_damage)
    try:
        while True:
            data = source.readline(line_bytes_max + 1)
            if not data:
                break
            reader.number += 1
            if (whole := reader.take(data)) is not None:
                with whole:
                    yield whole
        reader.finish()
    finally:
        reader.drop()


class _Reader:
    """What is known about a stream up to the line just read."""

    def __init__(self, on_damage: Callable[[StreamDamage], object] | None) -> None:
        self.number = 0
        self._on_damage = on_damage
        self._carton: Carton | None = None  # of the conversation that is open, unless it is lost
        self._open: str | None = None  # its id; "" when its first line was damaged
        self._conversations = 0
        self._ends = hashlib.sha256()
        self._complete = False
        self._damaged = False

    def take(self, data: bytes) -> Carton | None:
        """Take the next line; return the conversation that it completes."""
        if self.number == 1:
            self._begin(data)
            return None
        try:
            if self._complete:
                raise ValueError("it comes after the last line")
            line = decode_line(data)
            if isinstance(line, ConversationLine):
                self._open_conversation(line, data)
            elif isinstance(line, EndLine):
                return self._end_conversation(line, data)
            elif isinstance(line, EofLine):
                self._end_stream(line)
            elif self._carton is not None:
                self._carton.put(line, data)
            elif self._open is None:
                self._open = ""
                raise ValueError("it belongs to a conversation whose first line is missing")
        except ValueError as error:
            if self._open is None:
                self._open = ""  # perhaps this was the first line of a conversation
            self._lose(str(error))
        return None

    def finish(self) -> None:
        """Take the end of the input."""
        if self.number == 0:
            raise NotNativeError("it is empty")
        if not self._complete:
            self._lose("the stream was cut off behind this line; its last line is missing")

    def drop(self) -> None:
        """Forget the conversation that is open."""
        if self._carton is not None:
            self._carton.close()
            self._carton = None

    def _begin(self, data: bytes) -> None:
        try:
            opening = decode_opening(data)
        except ValueError as error:
            if b'"convostore"' not in data[:200]:
                raise NotNativeError(f"its first line is not one ({error})") from None
            self._lose(str(error))
            return
        if opening.convostore != version:
            raise SchemaTooNewError(
                f"this stream is {opening.convostore!r}; this convostore reads {version!r}: load it with a newer one"
            )

    def _open_conversation(self, line: ConversationLine, data: bytes) -> None:
        if self._carton is not None:
            self._lose("another conversation begins; the end of this one is missing")
        self._open = line.id
        self._carton = Carton(line, data)

    def _end_conversation(self, line: EndLine, data: bytes) -> Carton | None:
        self._conversations += 1
        self._ends.update(data)
        carton, was_open = self._carton, self._open
        self._carton = self._open = None
        if carton is None:
            if was_open is None:
                self._report(line.id, "its end without its beginning")
            elif was_open == "":
                self._report(line.id, "left out: its first line was damaged or missing")
            return None
        expected = carton.end()
        if (line.id, line.entries, line.documents, line.sha256) != (
            expected.id,
            expected.entries,
            expected.documents,
            expected.sha256,
        ):
            carton.close()
            self._report(
                carton.head.id,
                f"its lines are not those that were written: {expected.entries} entries of {line.entries},"
                f" {expected.documents} documents of {line.documents}, or in another order",
            )
            return None
        return carton

    def _end_stream(self, line: EofLine) -> None:
        if self._carton is not None:
            self._lose("the stream ends; the end of this conversation is missing")
        self._complete, self._open = True, None
        if (line.conversations, line.sha256) != (self._conversations, self._ends.hexdigest()) and not self._damaged:
            self._report(
                None,
                f"{self._conversations} conversations were read of {line.conversations} that were written, or in"
                " another order",
            )

    def _lose(self, what: str) -> None:
        """Report the line just read and give up the conversation that is open."""
        self.drop()
        self._report(self._open or None, what)

    def _report(self, conversation_id: str | None, what: str) -> None:
        self._damaged = True
        damage = StreamDamage(self.number, what, conversation_id)
        if self._on_damage is None:
            raise DamagedStreamError(damage)
        self._on_damage(damage)
