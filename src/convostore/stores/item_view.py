"""What a chat store shows of a log: items (X2 to X6).

A record in the chat item dialect is shown as written. Any other user or assistant message is one message item, if it has
text, and one tool_call item for each call with its final state; the first of them has the record's id, the others
``id:call_id``. System messages and tool results are not items of their own.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from typing import cast

from msgspec import structs

from convostore.contracts.backend import NewEntry
from convostore.dialects import chat_item
from convostore.errors import InvalidInput
from convostore.model import exact_json
from convostore.model.chat_item import ChatItem
from convostore.model.exact_json import JsonObject
from convostore.model.message import Message, TextPart, ToolCallRecord, ToolResultPart
from convostore.model.times import datetime_from_ms, ms_from_iso
from convostore.model.tool_output import finished, text_of
from convostore.stores.projection import Projected, Rewriting
from convostore.stores.transcript import Call, Transcript, place_of

__all__ = ["ItemView", "edit_call"]


class ItemView:
    """The storage adapter contract's projection of a log."""

    def project(self, transcript: Transcript, /) -> list[Projected]:
        """Return every item, oldest first."""
        shown: list[Projected] = []
        for index, record in enumerate(transcript.records):
            if record.entry.dialect == chat_item.DIALECT:
                shown.append(_own(transcript, index))
            elif record.said and record.message.role in ("user", "assistant"):
                shown += _derived(transcript, index)
        return shown

    def write(self, value: JsonObject, /, *, entry_id: str, now_ms: int) -> NewEntry:
        """Return a new entry that keeps an item."""
        return chat_item.write(cast(ChatItem, value), entry_id=entry_id, now_ms=now_ms)

    def identity(self, value: JsonObject, /) -> Hashable:
        """Return the item's id as JSON, in which 1 and "1" differ."""
        return exact_json.encode_checked(value.get("id"))

    def edit(self, transcript: Transcript, shown: Projected, value: JsonObject, /) -> Rewriting | None:
        """Return what to rewrite so that `shown` becomes `value`."""
        record = transcript.records[shown.record]
        if record.entry.dialect == chat_item.DIALECT:
            return {shown.record: value}
        if value.get("type") != shown.value["type"]:
            return None
        if shown.call is None:
            return {shown.record: _with_text(record.message, value)}
        return edit_call(transcript, shown.call, value)

    def overwrite(
        self, transcript: Transcript, shown: Projected, value: JsonObject, /, *, alone: bool
    ) -> Rewriting | None:
        """Return what to rewrite so that `shown` becomes exactly `value`."""
        own = transcript.records[shown.record].entry.dialect == chat_item.DIALECT
        return {shown.record: value} if own or alone else None

    def remove(self, transcript: Transcript, shown: Projected, /) -> Rewriting:
        """Return what to rewrite so that `shown` is no longer shown."""
        record = transcript.records[shown.record]
        if record.entry.dialect == chat_item.DIALECT:
            return {shown.record: None}
        if shown.call is None:
            return {shown.record: _with_text(record.message, {"content": ""}) if record.message.tool_calls else None}
        rewriting: dict[int, Message | JsonObject | None] = {}
        nth = place_of(record.message, shown.call.nth, shown.value["toolCall"]["id"])
        calls = tuple(each for k, each in enumerate(record.message.tool_calls) if k != nth)
        left = bool(calls or record.message.content)
        rewriting[shown.record] = structs.replace(record.message, tool_calls=calls) if left else None
        if (answer := transcript.answers.get(shown.call)) is not None:
            rewriting[answer] = None
        return rewriting


def _own(transcript: Transcript, index: int) -> Projected:
    record = transcript.records[index]
    if not record.message.tool_calls:
        return Projected(chat_item.native(record.entry), index, index)
    where = Call(index, 0)
    settled = transcript.settled(where)
    if settled is transcript.call(where):
        return Projected(chat_item.native(record.entry), index, index)
    after = structs.replace(record.message, tool_calls=(settled,))
    return Projected(chat_item.revise(record.entry, record.message, after), index, index)


def _derived(transcript: Transcript, index: int) -> list[Projected]:
    record = transcript.records[index]
    entry_id = record.entry.entry_id
    shown = []
    if record.message.content:
        shown.append(Projected(chat_item.message_item(record.message, entry_id), index, index))
    for k, call in enumerate(record.message.tool_calls):
        where = Call(index, k)
        item_id = f"{entry_id}:{call.tool_call_id}" if shown else entry_id
        shown.append(Projected(chat_item.call_item(transcript.settled(where), item_id), index, index, where))
    return shown


def _with_text(message: Message, item: JsonObject) -> Message:
    content = item.get("content", "")
    parts = message.parts
    if content != message.content and any(isinstance(part, TextPart) for part in parts):
        rest = [part for part in parts if not isinstance(part, TextPart)]
        where = next(k for k, part in enumerate(parts) if isinstance(part, TextPart))
        fresh = (TextPart(content),) if content and rest else ()
        parts = (*rest[:where], *fresh, *rest[where:])
    created_at = message.created_at
    with suppress(InvalidInput, KeyError):  # any string may be a timestamp; one that is no time is not the message's
        created_at = datetime_from_ms(ms_from_iso(item["timestamp"]))
    return structs.replace(
        message, content=content, parts=parts, role=item.get("role", message.role), created_at=created_at
    )


def edit_call(transcript: Transcript, where: Call, item: JsonObject) -> dict[int, Message] | None:
    """Return what to rewrite so that a call recorded in other words becomes what `item` says; None if it cannot."""
    before = transcript.call(where)
    call = item.get("toolCall")
    if not isinstance(call, dict) or call.get("id") != before.tool_call_id:
        return None
    after = chat_item.call_from_item(call, before)
    rewriting: dict[int, Message] = {}
    answer = transcript.answers.get(where)
    if answer is not None and before.state == "pending":
        if after.state == "pending":
            return None
        if after != transcript.settled(where):
            rewriting[answer] = _with_result(transcript.records[answer].message, after)
        after = finished(after, "pending", None)
    message = transcript.records[where.record].message
    calls = (*message.tool_calls[: where.nth], after, *message.tool_calls[where.nth + 1 :])
    rewriting[where.record] = structs.replace(message, tool_calls=calls)
    return rewriting


def _with_result(message: Message, call: ToolCallRecord) -> Message:
    part = ToolResultPart(output=call.output, is_error=call.state == "error")
    others = tuple(each for each in message.parts if not isinstance(each, ToolResultPart))
    text = message.content
    if isinstance(call.output, dict) and isinstance(call.output.get("data"), str):
        text = call.output["data"]
    return structs.replace(message, content=text or text_of(call.output), parts=(*others, part))
