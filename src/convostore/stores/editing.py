"""Changing one message where it stands."""

from __future__ import annotations

from msgspec import structs

from convostore.contracts.backend import Backend, Change, NewEntry, Window
from convostore.dialects import hub, reading
from convostore.errors import ConversationNotFoundError, InvalidInput, NotFoundError, RevisionConflictError
from convostore.ids import Clock, Mint
from convostore.model.message import Message, ToolCallRecord
from convostore.stores.excerpt import Excerpt, read_excerpt
from convostore.stores.saving import as_entry, reworded
from convostore.stores.transcript import Call, Transcript

__all__ = ["update"]


async def update(
    backend: Backend,
    conversation_id: str,
    message: Message,
    *,
    expected_revision: str | None,
    clock: Clock,
    mint: Mint,
) -> Message:
    """Put `message` in the place of the one with its id; see `ConversationStore.update_message`."""
    hub.check_message(message)
    if message.id is None:
        raise InvalidInput("update_message needs a message with the id of the one to change")
    if message.conversation_id not in (None, conversation_id):
        raise InvalidInput(f"the message belongs to conversation {message.conversation_id!r}, not {conversation_id!r}")
    while True:
        # A bounded window, so that what folds into the message or answers its calls is read with it.
        excerpt = await read_excerpt(backend, conversation_id, Window(entry_ids=(message.id,), limit=1))
        if excerpt is None:
            raise ConversationNotFoundError(conversation_id)
        if not excerpt.entries:
            raise _missing(conversation_id, message.id)
        change = Change(
            conversation_id=conversation_id,
            revision=mint(),
            at_ms=clock(),
            expected_revision=expected_revision,
            replace=_rewritten(excerpt, message),
        )
        try:
            receipt = await backend.commit(change)
        except RevisionConflictError as conflict:
            if expected_revision is not None and conflict.entry_id is None:
                raise
            continue  # the entry changed since it was read; `message` replaces that too
        assert receipt.head is not None
        created_at = message.created_at or excerpt.transcript().records[len(excerpt.before)].message.created_at
        return structs.replace(message, conversation_id=conversation_id, created_at=created_at)


def _missing(conversation_id: str, message_id: str) -> NotFoundError:
    return NotFoundError(
        f"conversation {conversation_id!r} has no message {message_id!r}; load it again",
        context={"id": conversation_id, "messageId": message_id},
    )


def _rewritten(excerpt: Excerpt, message: Message) -> tuple[NewEntry, ...]:
    """Return the entries that change: the message's own, and the chat items among its calls."""
    transcript = excerpt.transcript()
    index = len(excerpt.before)
    record = transcript.records[index]
    if not record.said or record.folds_into is not None:
        raise _missing(excerpt.head.conversation_id, str(message.id))
    folded = {transcript.call(each).tool_call_id: each for each in transcript.calls_shown_with(index)}
    folded = {name: each for name, each in folded.items() if each.record != index}
    own = tuple(call for call in message.tool_calls if call.tool_call_id not in folded)
    entries = [_said(transcript, index, structs.replace(message, tool_calls=own))]
    for call in message.tool_calls:
        where = folded.pop(call.tool_call_id, None)
        if where is not None and transcript.settled(where) != call:
            item = structs.replace(transcript.records[where.record].message, tool_calls=(call,))
            entries.append(_said(transcript, where.record, item))
    if folded:
        raise InvalidInput(f"call {next(iter(folded))!r} is a chat item of its own; remove it through the chat store")
    return tuple(entries)


def _said(transcript: Transcript, index: int, message: Message) -> NewEntry:
    record = transcript.records[index]
    message = structs.replace(
        message, tool_calls=tuple(_unanswered(transcript, index, call) for call in message.tool_calls)
    )
    entry = reworded(record.entry, record.message, message)
    if entry is None:
        raise InvalidInput(
            f"a message of dialect {record.entry.dialect!r} cannot be changed; this version does not know it"
        )
    again = reading.read(as_entry(entry, record.entry.position), transcript.conversation_id)
    if _content(again) != _content(message):
        raise InvalidInput(
            f"message {record.entry.entry_id!r} was written as {record.entry.dialect}, which cannot say this change; change"
            " its text or its calls, or write a new message"
        )
    return structs.replace(entry, expected_stamp=record.entry.stamp)


def _unanswered(transcript: Transcript, index: int, call: ToolCallRecord) -> ToolCallRecord:
    """Return a call as its record is to have it: a result that another message carries is not written twice."""
    for k, before in enumerate(transcript.records[index].message.tool_calls):
        where = Call(index, k)
        if before.tool_call_id == call.tool_call_id and before.state == "pending" and where in transcript.answers:
            shown = transcript.settled(where)
            if (shown.state, shown.output) == (call.state, call.output):
                return ToolCallRecord(call.tool_name, call.tool_call_id, "pending", call.input)
    return call


def _content(message: Message) -> Message:
    return structs.replace(message, id=None, conversation_id=None, created_at=None)
