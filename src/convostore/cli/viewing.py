"""Conversations and messages as a person reads them."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import datetime

from convostore.cli.printing import print_table, print_text, printable, short_json
from convostore.contracts.backend import Entry
from convostore.model.conversation import Conversation, conversation_to_wire
from convostore.model.exact_json import JsonObject
from convostore.model.message import FilePart, ImagePart, Message, OpaquePart, Part, ThinkingPart, ToolResultPart

__all__ = [
    "conversation_wire",
    "entry_wire",
    "print_conversation",
    "print_conversations",
    "print_entries",
    "print_messages",
]


def conversation_wire(conversation: Conversation) -> JsonObject:
    """Return a conversation's JSON, with how many entries it has and which revision it is at."""
    more = {"messageCount": conversation.message_count, "revision": conversation.revision}
    return conversation_to_wire(conversation) | more


def entry_wire(entry: Entry) -> JsonObject:
    """Return an entry's JSON; the body is text, or base64 where it is not UTF-8."""
    wire = {
        "position": entry.position,
        "stamp": entry.stamp,
        "id": entry.entry_id,
        "kind": entry.kind,
        "role": entry.role,
        "dialect": entry.dialect,
        "createdAtMs": entry.created_at_ms,
    }
    try:
        return wire | {"body": entry.body.decode()}
    except UnicodeDecodeError:
        return wire | {"body64": base64.b64encode(entry.body).decode()}


def print_conversations(conversations: Iterable[Conversation]) -> None:
    """Print one line a conversation."""
    rows = [
        (each.id, _time(each.updated_at), each.context, each.subject_id, each.message_count, each.rating, each.title)
        for each in conversations
    ]
    print_table(
        ("id", "updated", "context", "subject", "entries", "rating", "title"), rows, numbers=("entries", "rating")
    )


def print_conversation(conversation: Conversation) -> None:
    """Print what is known about one conversation."""
    facts = {
        "id": conversation.id,
        "title": conversation.title,
        "context": conversation.context,
        "subject": conversation.subject_id,
        "created": _time(conversation.created_at),
        "updated": _time(conversation.updated_at),
        "entries": conversation.message_count,
        "rating": conversation.rating,
        "comment": conversation.rating_comment,
        "agent": conversation.agent_id,
        "forked from": conversation.forked_from and conversation.forked_from.conversation_id,
        "metadata": None if conversation.metadata is None else short_json(conversation.metadata, 200),
    }
    for name, value in facts.items():
        if value is not None:
            print_text(f"{name:<12}{printable(str(value))}")


def print_messages(messages: Iterable[Message]) -> None:
    """Print messages with their tool calls and results."""
    for message in messages:
        print_text()
        when = "" if message.created_at is None else f"  {_time(message.created_at)}"
        call = "" if message.tool_call_id is None else f"  answers {printable(message.tool_call_id)}"
        print_text(f"[{message.role}]{when}  {printable(message.id or '')}{call}")
        if message.content:
            print_text(printable(message.content, lines=True))
        for part in message.parts:
            if text := _part(part):
                print_text(f"  {text}")
        for each in message.tool_calls:
            print_text(
                f"  -> {printable(each.tool_name)}({short_json(each.input)})  {printable(each.tool_call_id)}  {each.state}"
            )
            if each.state != "pending":
                print_text(f"  <- {short_json(each.output)}")


def _part(part: Part) -> str | None:
    match part:
        case ThinkingPart():
            return f"thinking: {printable(part.text)}"
        case ImagePart():
            return f"image {printable(part.media_type or '')} {printable((part.url or '')[:100])}".rstrip()
        case FilePart():
            return f"file {printable(part.name or part.file_id or '')}"
        case ToolResultPart():
            return f"result: {short_json(part.output)}"
        case OpaquePart():
            return f"{printable(part.dialect)}: {short_json(part.value)}"
        case _:
            return None  # its text is in the content


def print_entries(entries: Iterable[Entry]) -> None:
    """Print entries as they are stored."""
    for entry in entries:
        print_text()
        label = (
            f"{entry.position}  {entry.entry_id}  {entry.kind}  {entry.role}  {entry.dialect}  {entry.created_at_ms}"
        )
        changed = "" if entry.stamp == entry.position else f"  changed at {entry.stamp}"
        print_text(printable(label + changed))
        print_text(printable(entry.body.decode("utf-8", "backslashreplace"), lines=True))


def _time(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%SZ")
