"""Finding calls in a log and giving them their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from msgspec import structs

from convostore.contracts.backend import Backend, Change, Head, Window
from convostore.dialects import chat_item, hub
from convostore.errors import (
    ConflictError,
    ConversationNotFoundError,
    DuplicateEntryError,
    InvalidInput,
    NotFoundError,
    RevisionConflictError,
)
from convostore.ids import Clock, Mint, check_id, derived_id
from convostore.model import exact_json
from convostore.model.exact_json import JsonValue
from convostore.model.message import Message, ToolCallRecord, ToolCallState, ToolResultPart
from convostore.model.tool_output import finished, text_of
from convostore.stores.excerpt import read_excerpt
from convostore.stores.saving import reworded
from convostore.stores.transcript import Call, Transcript, transcribe

__all__ = ["find_call", "finish", "open_calls"]

_STEP = 64


async def open_calls(backend: Backend, conversation_id: str) -> list[ToolCallRecord]:
    """Return the calls without a result, oldest first; [] when there is no such conversation."""
    snapshot = await backend.read(conversation_id, Window())
    if snapshot is None:
        return []
    transcript = transcribe(snapshot.entries, conversation_id)
    return [transcript.settled(each) for each in transcript.open_calls()]


async def find_call(
    backend: Backend, conversation_id: str, wanted: Callable[[Transcript, Call], bool]
) -> tuple[Head, Transcript, Call | None]:
    """Return the last call that is `wanted`, None if none is, with the reading it was found in.

    Cost: that of the log from its end back to the call.

    Raises:
        ConversationNotFoundError: there is no such conversation.
    """
    size = _STEP
    while True:
        excerpt = await read_excerpt(backend, conversation_id, Window(limit=size, newest=True), names_calls=True)
        if excerpt is None:
            raise ConversationNotFoundError(conversation_id)
        transcript = excerpt.transcript()
        found = next((each for each in reversed(transcript.calls()) if wanted(transcript, each)), None)
        if found is not None or len(excerpt.entries) < size:
            return excerpt.head, transcript, found
        size *= 4


async def finish(
    backend: Backend,
    conversation_id: str,
    tool_call_id: str,
    state: ToolCallState,
    output: JsonValue,
    *,
    clock: Clock,
    mint: Mint,
) -> ToolCallRecord:
    """Give the last open call of this id its result; see `ConversationStore.finish_tool_call`."""
    check_id(conversation_id, "conversation id")
    if state not in get_args(ToolCallState) or state == "pending":
        raise InvalidInput(f"a finished call is 'success' or 'error', not {state!r}")
    if type(tool_call_id) is not str:
        raise InvalidInput(f"tool_call_id must be a string, not {type(tool_call_id).__name__}")
    wanted = exact_json.encode(output, "output")
    collided = False
    while True:
        head, transcript, where = await find_call(
            backend,
            conversation_id,
            lambda t, c: t.call(c).tool_call_id == tool_call_id and t.settled(c).state == "pending",
        )
        if where is None:
            return await _finished_already(backend, conversation_id, tool_call_id, state, wanted)
        call = _recordable(transcript, where, finished(transcript.call(where), state, exact_json.decode(wanted)))
        change = _change(head, transcript, where, call, clock(), mint(), answer_id=mint() if collided else None)
        try:
            await backend.commit(change)
        except (RevisionConflictError, NotFoundError) as gone:
            if isinstance(gone, ConversationNotFoundError):
                raise
            continue  # somebody else changed the record: look again
        except DuplicateEntryError:
            # Somebody else finished this very call; or, if it is still open then, the answer was changed into something else.
            collided = True
            continue
        return call


async def _finished_already(
    backend: Backend, conversation_id: str, tool_call_id: str, state: ToolCallState, output: bytes
) -> ToolCallRecord:
    _, transcript, where = await find_call(
        backend, conversation_id, lambda t, c: t.call(c).tool_call_id == tool_call_id
    )
    if where is None:
        raise NotFoundError(
            f"conversation {conversation_id!r} has no tool call {tool_call_id!r}; open_tool_calls lists those that wait",
            context={"id": conversation_id, "toolCallId": tool_call_id},
        )
    call = transcript.settled(where)
    if call != _recordable(transcript, where, finished(call, state, exact_json.decode(output))):
        raise ConflictError(
            f"tool call {tool_call_id!r} of conversation {conversation_id!r} is finished already, as {call.state}, with"
            " another result; to change it use update_message",
            context={"id": conversation_id, "toolCallId": tool_call_id, "state": call.state},
        )
    return call


def _recordable(transcript: Transcript, where: Call, call: ToolCallRecord) -> ToolCallRecord:
    """Return `call` as its record can keep it: a chat item has no room for the message of a success."""
    record = transcript.records[where.record]
    if record.entry.dialect != chat_item.DIALECT:
        return call
    after = structs.replace(record.message, tool_calls=(call,))
    return chat_item.tool_call_of(chat_item.revise(record.entry, record.message, after)) or call


def _change(
    head: Head,
    transcript: Transcript,
    where: Call,
    call: ToolCallRecord,
    at_ms: int,
    revision: str,
    *,
    answer_id: str | None,
) -> Change:
    """Return the commit that gives a call its result: in its record if that has room for one, else as an answer to it."""
    record = transcript.records[where.record]
    change = Change(conversation_id=head.conversation_id, revision=revision, at_ms=at_ms)
    if record.entry.dialect in (hub.DIALECT, chat_item.DIALECT):
        calls = list(record.message.tool_calls)
        calls[where.nth] = call
        entry = reworded(record.entry, record.message, structs.replace(record.message, tool_calls=tuple(calls)))
        assert entry is not None
        return structs.replace(change, replace=(structs.replace(entry, expected_stamp=record.entry.stamp),))
    answer = Message(
        role="tool",
        content=text_of(call.output),
        parts=(ToolResultPart(output=call.output, is_error=call.state == "error"),),
        tool_call_id=call.tool_call_id,
    )
    # Derived from the call's place, so that two who finish it at once cannot both succeed.
    derived = derived_id("result", head.conversation_id, head.born, record.entry.entry_id, where.nth)
    return structs.replace(change, append=(hub.write(answer, entry_id=answer_id or derived, created_at_ms=at_ms),))
