"""What a conversation store shows of a log: hub messages.

A record in the hub's own dialect is shown exactly as written (C7), unless its call was answered in other words; what others
wrote is shown complete: with the results of its calls, and with the calls that a chat interface added to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from convostore.contracts.backend import Entry
from convostore.dialects import hub
from convostore.model.message import Message, ToolCallRecord
from convostore.stores.transcript import Call, Transcript, transcribe

__all__ = ["messages_of", "project"]


def messages_of(entries: Sequence[Entry], conversation_id: str) -> list[Message]:
    """Return the messages of a log, oldest first, system messages included.

    Raises:
        CorruptDataError: an entry of a dialect we know is not one of it.
    """
    return project(transcribe(entries, conversation_id))


def project(transcript: Transcript) -> list[Message]:
    """Return the messages of a transcript, oldest first, system messages included."""
    return [
        _shown(transcript, index, record.message)
        for index, record in enumerate(transcript.records)
        if record.said and record.folds_into is None
    ]


def _shown(transcript: Transcript, index: int, message: Message) -> Message:
    places = transcript.calls_shown_with(index)
    if not places:
        return message
    return structs.replace(message, tool_calls=tuple(_call(transcript, each) for each in places))


def _call(transcript: Transcript, where: Call) -> ToolCallRecord:
    answer = transcript.answers.get(where)
    speakers = {transcript.records[each].entry.dialect for each in (where.record, answer) if each is not None}
    return transcript.call(where) if speakers == {hub.DIALECT} else transcript.settled(where)
