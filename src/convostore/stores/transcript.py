"""A log read as a conversation: which message each entry is, which result belongs to which call, what folds into what.

Pure and independent of any one store; the three views (messages, session messages, chat items) are projections of it.

* A "tool" message answers the nearest earlier call of its id that is still open, else the nearest earlier one that no other
  tool message answers (X7); one that names no call, as some files have them, the first open one of the last message.
* A chat interface's tool_call item folds into the assistant message before it, or stands as an empty one (X2).
* Cards, and items of types unknown to us, are said to nobody: only the store that wrote them shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct, structs

from convostore.contracts.backend import Entry
from convostore.dialects import chat_item, hub, reading
from convostore.model.message import Message, ToolCallRecord
from convostore.model.tool_output import finished, result_in

__all__ = ["Call", "Record", "Transcript", "is_call_item", "place_of", "transcribe"]


class Call(NamedTuple):
    """A call's place: which record holds it, and which of that record's calls it is, from 0."""

    record: int
    nth: int


class Record(Struct):
    """One entry and its reading. `said` False: a card or the like, shown by no store but its own.

    `folds_into` is the record whose message this record's call is shown in, when that is another one.
    """

    entry: Entry
    message: Message
    said: bool = True
    folds_into: int | None = None


class Transcript(Struct):
    """The records in log order; `answers` says by call which "tool" record answers it, `answered` the reverse."""

    conversation_id: str
    records: list[Record]
    answers: dict[Call, int]
    answered: dict[int, Call]
    folded: dict[int, list[int]]

    def call(self, where: Call) -> ToolCallRecord:
        """Return a call as its own record has it."""
        return self.records[where.record].message.tool_calls[where.nth]

    def settled(self, where: Call) -> ToolCallRecord:
        """Return a call with its result, from its own record or else from the message that answers it."""
        call = self.call(where)
        if call.state == "pending" and (answer := self.answers.get(where)) is not None:
            return finished(call, *result_in(self.records[answer].message))
        return call

    def calls(self) -> list[Call]:
        """Return every call's place, in log order."""
        return [Call(r, k) for r, record in enumerate(self.records) for k in range(len(record.message.tool_calls))]

    def calls_shown_with(self, record: int) -> list[Call]:
        """Return the places of a record's own calls and of those folded into it."""
        own = [Call(record, k) for k in range(len(self.records[record].message.tool_calls))]
        return own + [Call(each, 0) for each in self.folded.get(record, ())]

    def open_calls(self) -> list[Call]:
        """Return the places of the calls that have no result."""
        return [each for each in self.calls() if self.settled(each).state == "pending"]


def transcribe(entries: Sequence[Entry], conversation_id: str) -> Transcript:
    """Read `entries`, which are in log order.

    Raises:
        CorruptDataError: an entry of a dialect we know is not one of it.
    """
    records = [_record(entry, conversation_id) for entry in entries]
    transcript = Transcript(conversation_id, records, {}, {}, {})
    _fold(transcript)
    _answer(transcript)
    return transcript


def _record(entry: Entry, conversation_id: str) -> Record:
    message = reading.read(entry, conversation_id)
    said = entry.dialect != chat_item.DIALECT or entry.kind == "message" or bool(message.tool_calls)
    return Record(entry, message, said)


def is_call_item(record: Record) -> bool:
    """Say whether a record is a chat interface's tool_call item."""
    return record.entry.dialect == chat_item.DIALECT and bool(record.message.tool_calls)


def _fold(transcript: Transcript) -> None:
    lead: int | None = None  # the assistant message that a tool_call item would fold into
    for index, record in enumerate(transcript.records):
        if not record.said or record.message.role == "tool":
            continue
        if is_call_item(record) and lead is not None:
            record.folds_into = lead
            transcript.folded.setdefault(lead, []).append(index)
        else:
            lead = index if record.message.role == "assistant" else None


def _answer(transcript: Transcript) -> None:
    unanswered: dict[str, list[Call]] = {}
    latest: list[Call] = []  # the calls of the last record that has any
    for index, record in enumerate(transcript.records):
        message = record.message
        if message.role == "tool":
            where = _question(transcript, record, unanswered, latest)
            if where is not None:
                unanswered[transcript.call(where).tool_call_id].remove(where)
                transcript.answers[where] = index
                transcript.answered[index] = where
        if message.tool_calls:
            latest = [Call(index, k) for k in range(len(message.tool_calls))]
            for each in latest:
                unanswered.setdefault(transcript.call(each).tool_call_id, []).append(each)


def _question(
    transcript: Transcript, record: Record, unanswered: dict[str, list[Call]], latest: list[Call]
) -> Call | None:
    """Return the call that a "tool" record answers, None where there is none."""
    call_id = record.message.tool_call_id
    if call_id is not None:
        waiting = unanswered.get(call_id, [])
        still_open = [each for each in waiting if transcript.call(each).state == "pending"]
        return next(reversed(still_open or waiting), None)
    if record.entry.dialect == hub.DIALECT:
        return None
    # Some files link results by place alone: the first call of the last message that is still unanswered.
    where = next((each for each in latest if each not in transcript.answers), None)
    if where is not None:
        record.message = structs.replace(record.message, tool_call_id=transcript.call(where).tool_call_id)
    return where


def place_of(message: Message, nth: int, call_id: str) -> int | None:
    """Return where a call that was the `nth` of a message stands now, after others of it may have been dropped."""
    places = [k for k, call in enumerate(message.tool_calls[: nth + 1]) if call.tool_call_id == call_id]
    return places[-1] if places else None
