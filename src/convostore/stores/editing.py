"""Changing one message where it stands."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from convostore.contracts.backend import Backend, Change, NewEntry, Window
from convostore.dialects import hub, reading
from convostore.errors import ConversationNotFoundError, InvalidInput, NotFoundError, RevisionConflictError
from convostore.ids import Clock, Mint
from convostore.model.message import Message, ToolCallRecord
from convostore.model.tool_output import finished
from convostore.stores.excerpt import Excerpt, read_excerpt
from convostore.stores.loading import messages_in
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
        shown = next((each for each in messages_in(excerpt) if each.id == message.id), None)
        if shown is None:
            raise _missing(conversation_id, message.id)
        wanted = structs.replace(
            message, conversation_id=conversation_id, created_at=message.created_at or shown.created_at
        )
        if expected_revision not in (None, excerpt.head.revision):
            raise RevisionConflictError(conversation_id, expected=expected_revision, actual=excerpt.head.revision)
        if wanted == shown:
            return shown
        change = Change(
            conversation_id=conversation_id,
            revision=mint(),
            at_ms=clock(),
            expected_revision=expected_revision,
            replace=_rewritten(excerpt, wanted),
        )
        try:
            await backend.commit(change)
        except RevisionConflictError as conflict:
            if expected_revision is not None and conflict.entry_id is None:
                raise
            continue  # the entry changed since it was read; `message` replaces that too
        return _shown_after(excerpt, change.replace, wanted)


def _shown_after(excerpt: Excerpt, replaced: Sequence[NewEntry], wanted: Message) -> Message:
    """Return the message as a load shows it now: a result elsewhere in the log may complete a call in it."""
    new = {each.entry_id: each for each in replaced}
    parts = [
        tuple(as_entry(new.get(each.entry_id, each), each.position) for each in part)
        for part in (excerpt.before, excerpt.entries, excerpt.behind)
    ]
    after = Excerpt(excerpt.head, *parts)
    return next((each for each in messages_in(after) if each.id == wanted.id), wanted)


def _missing(conversation_id: str, message_id: str) -> NotFoundError:
    return NotFoundError(
        f"conversation {conversation_id!r} has no message {message_id!r}; load it again",
        context={"id": conversation_id, "messageId": message_id},
    )


def _rewritten(excerpt: Excerpt, message: Message) -> tuple[NewEntry, ...]:
    """Return the entries that change: the message's own, and the chat items among its calls."""
    transcript = excerpt.transcript()
    index = len(excerpt.before)
    places = transcript.calls_shown_with(index)
    own: list[ToolCallRecord] = []
    items: list[tuple[Call, ToolCallRecord]] = []
    for call in message.tool_calls:
        where = next((each for each in places if transcript.call(each).tool_call_id == call.tool_call_id), None)
        if where is None:
            own.append(call)
            continue
        places.remove(where)
        if where.record == index:
            own.append(_as_recorded(transcript, where, call))
        elif transcript.settled(where) != call:
            items.append((where, call))
    if left := [each for each in places if each.record != index]:
        call_id = transcript.call(left[0]).tool_call_id
        raise InvalidInput(f"call {call_id!r} is a chat item of its own; remove it through the chat store")
    entries = [_said(transcript, index, structs.replace(message, tool_calls=tuple(own)))]
    for where, call in items:
        item = structs.replace(transcript.records[where.record].message, tool_calls=(call,))
        entries.append(_said(transcript, where.record, item))
    return tuple(entries)


def _as_recorded(transcript: Transcript, where: Call, call: ToolCallRecord) -> ToolCallRecord:
    """Return a call as its record is to have it: a result that another message carries is not written twice."""
    shown = transcript.settled(where)
    answered = transcript.call(where).state == "pending" and (shown.state, shown.output) == (call.state, call.output)
    return finished(call, "pending", None) if answered else call


def _said(transcript: Transcript, index: int, message: Message) -> NewEntry:
    record = transcript.records[index]
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


def _content(message: Message) -> Message:
    return structs.replace(message, id=None, conversation_id=None, created_at=None)
