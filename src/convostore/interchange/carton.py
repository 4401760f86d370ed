"""A conversation packed in native lines, on its way from one place to another.

Small ones stay in memory, large ones lie in an unnamed temporary file, so memory is bounded. A carton is packed whole and
checked before anybody opens it: nothing downstream ever sees half a conversation.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Final, Literal

from convostore.contracts.backend import Backend, Damage, Entry
from convostore.interchange.chunks import Overtaken, read_chunks, restarts_max
from convostore.interchange.fingerprint import Fingerprint, Identity
from convostore.interchange.native_line import (
    ConversationLine,
    DocumentLine,
    EndLine,
    EntryLine,
    Line,
    decode_own,
    document_value,
    encode_line,
    entry_of,
    fields_of,
    line_of_document,
    line_of_entry,
    line_of_head,
)

__all__ = ["Carton", "pack"]

_MEMORY_BYTES: Final = 8 * 1024 * 1024


class Carton:
    """One conversation's native lines, checked as they are put in; close it, or use it in a `with`."""

    def __init__(self, head: ConversationLine, data: bytes | None = None) -> None:
        self.head = head
        self.fields: Mapping[str, bytes] = fields_of(head)
        self.damage: tuple[Damage, ...] = ()
        self._file = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115  closed by close()
        self._digest = hashlib.sha256()
        self.identity = Identity(head.id, head.context, head.subject_id, head.created_at_ms)
        self._fingerprint = Fingerprint(self.identity)
        self._fingerprint.set_fields(self.fields)
        self._last_position = 0
        self._write(data or encode_line(head))

    @property
    def entry_count(self) -> int:
        """How many entries are in it."""
        return self._fingerprint.entry_count

    @property
    def document_names(self) -> frozenset[str]:
        """Which documents are in it."""
        return frozenset(self._fingerprint.documents)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of what is in it."""
        return self._fingerprint.text()

    def put(self, line: EntryLine | DocumentLine, data: bytes | None = None) -> None:
        """Add an entry or a document; `data` is the line's own bytes, where there are some.

        Raises:
            ValueError: it is damaged, or out of order.
        """
        if isinstance(line, EntryLine):
            entry = entry_of(line, own=data is None)
            if line.position <= self._last_position:
                raise ValueError(f"entry {line.id!r} at {line.position} comes after one at {self._last_position}")
            if self._fingerprint.documents:
                raise ValueError(f"entry {line.id!r} comes after a document")
            self._last_position = line.position
            self._fingerprint.add(entry)
        else:
            if line.name in self._fingerprint.documents:
                raise ValueError(f"document {line.name!r} comes twice")
            self._fingerprint.set_document(line.name, document_value(line))
        self._write(data or encode_line(line))

    def end(self) -> EndLine:
        """Return the line that ends the conversation."""
        return EndLine(
            id=self.head.id,
            entries=self.entry_count,
            documents=len(self.document_names),
            sha256=self._digest.hexdigest(),
            damage=tuple(str(each) for each in self.damage),
        )

    def raw_lines(self) -> Iterator[bytes]:
        """Yield the lines, without the one that ends it."""
        self._file.seek(0)
        yield from self._file

    def entries(self) -> Iterator[Entry]:
        """Yield the entries in order."""
        for line in self._lines():
            if isinstance(line, EntryLine):
                yield entry_of(line, own=True)

    def documents(self) -> Iterator[tuple[str, bytes]]:
        """Yield the documents. Cost: all lines before them are passed over."""
        for line in self._lines():
            if isinstance(line, DocumentLine):
                yield line.name, document_value(line)

    def close(self) -> None:
        """Free what it holds."""
        self._file.close()

    def __enter__(self) -> Carton:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lines(self) -> Iterator[Line]:
        # Every iterator keeps its own place: entries are compared and then sent on from where the comparison stopped.
        at = 0
        while True:
            self._file.seek(at)
            data = self._file.readline()
            if not data:
                return
            at += len(data)
            yield decode_own(data)

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        self._file.write(data)


async def pack(
    backend: Backend, conversation_id: str, *, damaged: Literal["raise", "report"] = "raise"
) -> Carton | None:
    """Return one revision of a conversation, packed; None when it is absent. The caller closes it.

    With `damaged` "report" the sound records are packed and `Carton.damage` names the others.

    Raises:
        CorruptDataError: a record is damaged and `damaged` is "raise".
    """
    for attempt in range(restarts_max + 1):
        try:
            return await _pack_once(backend, conversation_id, damaged, in_one_piece=attempt == restarts_max)
        except Overtaken:
            continue
    raise AssertionError("a conversation read in one piece is never overtaken")


async def _pack_once(
    backend: Backend, conversation_id: str, damaged: Literal["raise", "report"], *, in_one_piece: bool
) -> Carton | None:
    carton: Carton | None = None
    documents: Mapping[str, bytes] = {}
    try:
        async for chunk in read_chunks(backend, conversation_id, damaged=damaged, in_one_piece=in_one_piece):
            if carton is None:
                carton, documents = Carton(line_of_head(chunk.head)), chunk.documents
            carton.damage += chunk.damage
            for entry in chunk.entries:
                carton.put(line_of_entry(entry))
        for name in sorted(documents):
            assert carton is not None
            carton.put(line_of_document(name, documents[name]))
    except BaseException:
        if carton is not None:
            carton.close()
        raise
    return carton
