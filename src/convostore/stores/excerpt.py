"""Part of a log, with as much around it as its reading needs.

What a record shows may depend on others: a tool_call item folds into the assistant message before it, a result completes a
call before it. An excerpt therefore carries the entries of its window and, read only where something in the window calls
for it, those before and behind that settle it. What it shows is then what the whole log would show there.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs

from convostore.contracts.backend import Backend, Entry, Head, Window
from convostore.dialects import hub
from convostore.stores.transcript import Transcript, is_call_item, transcribe

__all__ = ["Excerpt", "read_excerpt"]

_STEP = 32


class Excerpt(Struct, frozen=True):
    """The window's `entries`, and those around it, all in log order and of one history."""

    head: Head
    before: tuple[Entry, ...]
    entries: tuple[Entry, ...]
    behind: tuple[Entry, ...]

    @property
    def plain(self) -> bool:
        """Say whether every entry is a hub message, so that each one shows itself and nothing else."""
        return not self.before and not self.behind and {each.dialect for each in self.entries} <= {hub.DIALECT}

    def transcript(self) -> Transcript:
        """Return the reading of all entries.

        Raises:
            CorruptDataError: an entry of a dialect we know is not one of it.
        """
        return transcribe((*self.before, *self.entries, *self.behind), self.head.conversation_id)


async def read_excerpt(
    backend: Backend, conversation_id: str, window: Window, *, names_calls: bool = False
) -> Excerpt | None:
    """Return the excerpt of `window`, None when there is no such conversation.

    `names_calls`: what answers a call outside the window is shown with that call's name, so the call must be found.

    Cost: that of the window; where a record depends on others outside, that of reading up to them.
    """
    while True:
        snapshot = await backend.read(conversation_id, window)
        if snapshot is None:
            return None
        excerpt = Excerpt(snapshot.head, (), snapshot.entries, ())
        bounded = window.before is not None or (window.limit is not None and not window.newest)
        if not snapshot.entries or (excerpt.plain and not names_calls and not bounded):
            return excerpt
        reader = _Surroundings(backend, snapshot.head)
        from_start = window.after == 0 and window.limit is None
        before = () if from_start else await reader.before(snapshot.entries, names_calls)
        behind = await reader.behind(snapshot.entries) if bounded else ()
        if reader.of_one_history:
            return structs.replace(excerpt, before=before, behind=behind)


class _Surroundings:
    """Reads around a window, and notices when the log was rewritten between two reads."""

    def __init__(self, backend: Backend, head: Head) -> None:
        self._backend = backend
        self._head = head
        self.of_one_history = True

    async def _read(self, window: Window) -> tuple[Entry, ...]:
        snapshot = await self._backend.read(self._head.conversation_id, window)
        if snapshot is None or (snapshot.head.born, snapshot.head.last_rewrite) != (
            self._head.born,
            self._head.last_rewrite,
        ):
            self.of_one_history = False
            return ()
        return snapshot.entries

    async def before(self, entries: Sequence[Entry], names_calls: bool) -> tuple[Entry, ...]:
        found: tuple[Entry, ...] = ()
        size = _STEP
        while self.of_one_history and self._needs_before((*found, *entries), names_calls):
            more = await self._read(Window(before=(*found, *entries)[0].position, limit=size, newest=True))
            found = more + found
            if len(more) < size:
                break
            size *= 4
        return found

    def _needs_before(self, entries: Sequence[Entry], names_calls: bool) -> bool:
        transcript = transcribe(entries, self._head.conversation_id)
        for index, record in enumerate(transcript.records):
            if not record.said or record.message.role == "tool":
                continue
            if is_call_item(record) and record.folds_into is None and not _lead_seen(transcript, index):
                return True
            break
        return names_calls and any(
            record.message.role == "tool" and index not in transcript.answered
            for index, record in enumerate(transcript.records)
        )

    async def behind(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        found: tuple[Entry, ...] = ()
        size = _STEP
        while self.of_one_history and self._needs_behind(entries, found):
            more = await self._read(Window(after=(*entries, *found)[-1].position, limit=size))
            found += more
            if len(more) < size:
                break
            size *= 4
        return found

    def _needs_behind(self, entries: Sequence[Entry], found: Sequence[Entry]) -> bool:
        transcript = transcribe((*entries, *found), self._head.conversation_id)
        behind = transcript.records[len(entries) :]
        if not any(each.said and each.message.role != "tool" and not is_call_item(each) for each in behind):
            return True
        return any(each.record < len(entries) for each in transcript.open_calls())


def _lead_seen(transcript: Transcript, index: int) -> bool:
    return any(each.said and each.message.role != "tool" for each in transcript.records[:index])
