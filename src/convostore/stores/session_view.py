"""What a session store shows of a log: session messages (X2 to X5).

A record in the session dialect is shown as written. An assistant message of any other kind is followed by one toolResult
for each call whose result is in its own record; where a message of its own answers the call, that one is shown instead.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

from msgspec import structs

from convostore.contracts.backend import Entry, NewEntry
from convostore.dialects import session
from convostore.model.exact_json import JsonObject, JsonValue
from convostore.model.message import (
    ImagePart,
    Message,
    OpaquePart,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallRecord,
    ToolCallState,
    ToolResultPart,
)
from convostore.model.session_message import SessionMessage
from convostore.model.tool_output import finished, from_object, result_in
from convostore.stores.projection import Projected, Rewriting
from convostore.stores.transcript import Call, Transcript, place_of

__all__ = ["SessionView"]


class SessionView:
    """The session contract's projection of a log."""

    def project(self, transcript: Transcript, /) -> list[Projected]:
        """Return every session message, oldest first."""
        shown = []
        for index, record in enumerate(transcript.records):
            if record.said and record.folds_into is None:
                shown.append(Projected(_main(transcript, index), index, index))
                shown += [
                    Projected(cast(JsonObject, session.result_of(call, record.message)), each.record, index, each)
                    for each in transcript.calls_shown_with(index)
                    if each not in transcript.answers and (call := transcript.call(each)).state != "pending"
                ]
        return shown

    def write(self, value: JsonObject, /, *, entry_id: str, now_ms: int) -> NewEntry:
        """Return a new entry that keeps a session message."""
        return session.write(cast(SessionMessage, value), entry_id=entry_id, now_ms=now_ms)

    def identity(self, value: JsonObject, /) -> Hashable:
        """Return the call that a toolResult answers; other session messages have no id."""
        call_id = value.get("toolCallId") if value.get("role") == "toolResult" else None
        return call_id if isinstance(call_id, str) else None

    def edit(self, transcript: Transcript, shown: Projected, value: JsonObject, /) -> Rewriting | None:
        """Return what to rewrite so that `shown` becomes `value`."""
        if value.get("role") != shown.value["role"]:
            return None
        record = transcript.records[shown.record]
        reading = _reading(value, record.entry)
        if shown.call is not None:
            return _with_result(record.message, shown, *result_in(reading))
        rewriting: dict[int, Message | JsonObject | None] = {}
        own, folded = _split_calls(transcript, shown.record, reading)
        rewriting.update(folded)
        if record.entry.dialect == session.DIALECT:
            kept = {call.tool_call_id for call in own}
            rewriting[shown.record] = _without_calls(value, keep=kept) if transcript.folded.get(shown.record) else value
            return rewriting
        rewriting[shown.record] = structs.replace(
            record.message,
            content=reading.content,
            parts=reading.parts + tuple(part for part in record.message.parts if not _visible(part)),
            tool_calls=own,
            tool_call_id=reading.tool_call_id,
            created_at=reading.created_at,
        )
        return rewriting

    def overwrite(
        self, transcript: Transcript, shown: Projected, value: JsonObject, /, *, alone: bool
    ) -> Rewriting | None:
        """Return what to rewrite so that `shown` becomes exactly `value`."""
        return {shown.record: value} if shown.call is None and not transcript.folded.get(shown.record) else None

    def remove(self, transcript: Transcript, shown: Projected, /) -> Rewriting:
        """Return what to rewrite so that `shown` is no longer shown."""
        if shown.call is not None:
            return _with_result(transcript.records[shown.record].message, shown, "pending", None) or {}
        rewriting: dict[int, Message | JsonObject | None] = dict.fromkeys(
            [shown.record, *transcript.folded.get(shown.record, ())]
        )
        question = transcript.answered.get(shown.record)
        if question is not None:
            asking = transcript.records[question.record].message
            nth = place_of(asking, question.nth, str(transcript.records[shown.record].message.tool_call_id))
            if nth is not None and (call := asking.tool_calls[nth]).state != "pending":
                # The call has this result in its own record too, and it would be shown in this one's place.
                rewriting[question.record] = _with_call(asking, call, finished(call, "pending", None))
        return rewriting


def _main(transcript: Transcript, index: int) -> JsonObject:
    record = transcript.records[index]
    calls = tuple(transcript.call(each) for each in transcript.calls_shown_with(index))
    if record.entry.dialect == session.DIALECT:
        plain = session.native(record.entry)
        added = [session.call_block(each) for each in calls[len(record.message.tool_calls) :]]
        return plain | {"content": [*_blocks(plain), *added]} if added else plain
    question = transcript.answered.get(index)
    name = transcript.call(question).tool_name if question is not None else "unknown"
    message = structs.replace(record.message, tool_calls=calls)
    return cast(JsonObject, session.from_hub(message, tool_name=name))


def _blocks(plain: JsonObject) -> list[Any]:
    content = plain.get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _without_calls(value: JsonObject, *, keep: set[str]) -> JsonObject:
    blocks = [each for each in _blocks(value) if each.get("type") != "toolCall" or each.get("id") in keep]
    return value | {"content": blocks}


def _reading(value: JsonObject, entry: Entry) -> Message:
    new = session.write(cast(SessionMessage, value), entry_id=entry.entry_id, now_ms=entry.created_at_ms)
    return session.read(Entry(0, 0, new.entry_id, new.kind, new.role, new.dialect, new.created_at_ms, new.body))


def _visible(part: Part) -> bool:
    if isinstance(part, OpaquePart):
        return part.dialect == session.DIALECT
    if isinstance(part, ImagePart):
        return part.data is not None
    return isinstance(part, TextPart | ThinkingPart | ToolResultPart)


def _with_result(message: Message, shown: Projected, state: ToolCallState, output: JsonValue) -> Rewriting | None:
    """Give the call whose result `shown` shows another one; None if the message no longer holds that call."""
    calls = [each for each in message.tool_calls if each.tool_call_id == shown.value["toolCallId"]]
    if not calls:
        return None
    return {shown.record: _with_call(message, calls[0], finished(calls[0], state, output))}


def _with_call(message: Message, before: ToolCallRecord, after: ToolCallRecord) -> Message:
    return structs.replace(message, tool_calls=tuple(after if each is before else each for each in message.tool_calls))


def _split_calls(
    transcript: Transcript, index: int, reading: Message
) -> tuple[tuple[ToolCallRecord, ...], dict[int, Message | None]]:
    """Return the record's own calls among those of `reading`, and the rewriting of those folded into it."""
    wanted = {call.tool_call_id: call for call in reading.tool_calls}
    folded: dict[int, Message | None] = {}
    for each in transcript.folded.get(index, ()):
        before = transcript.call(Call(each, 0))
        after = wanted.pop(before.tool_call_id, None)
        if after is None:
            folded[each] = None
        elif (call := _edited(before, after)) != before:
            folded[each] = _with_call(transcript.records[each].message, before, call)
    mine = {call.tool_call_id: call for call in transcript.records[index].message.tool_calls}
    own = tuple(
        _edited(mine[call.tool_call_id], call) if call.tool_call_id in mine else call
        for call in reading.tool_calls
        if call.tool_call_id in wanted
    )
    return own, folded


def _edited(before: ToolCallRecord, after: ToolCallRecord) -> ToolCallRecord:
    return ToolCallRecord(
        after.tool_name, before.tool_call_id, before.state, from_object(after.input, before.input), before.output
    )
