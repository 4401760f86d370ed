"""A conversation as callers see it: the head's facts, decoded."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from convostore.model.exact_json import JsonObject
from convostore.model.times import iso_from_ms, ms_from_datetime

__all__ = ["Conversation", "ForkOrigin", "conversation_to_wire"]


class ForkOrigin(Struct, frozen=True):
    """Where a fork came from: the conversation, and the last message it took along (None: an empty history)."""

    conversation_id: str
    message_id: str | None


class Conversation(Struct, frozen=True, kw_only=True):
    """One conversation, without its messages.

    `context` and `subject_id` are None for one that a session or chat store created without an owner. `metadata` None means
    there is none, which is not the same as ``{}``. `revision` names this state: pass it as `expected_revision` to change
    the conversation only if nobody else has. `message_count` counts log entries, whichever store wrote them.
    """

    id: str
    context: str | None
    subject_id: str | None
    created_at: datetime
    updated_at: datetime
    title: str | None = None
    metadata: JsonObject | None = None
    rating: int | None = None
    rating_comment: str | None = None
    forked_from: ForkOrigin | None = None
    agent_id: str | None = None
    message_count: int = 0
    revision: str = ""


def conversation_to_wire(conversation: Conversation) -> JsonObject:
    """Return the conversation contract's JSON: times with three decimals and Z, what is absent absent."""
    wire: JsonObject = {
        "id": conversation.id,
        "context": conversation.context,
        "subjectId": conversation.subject_id,
        "createdAt": iso_from_ms(ms_from_datetime(conversation.created_at)),
        "updatedAt": iso_from_ms(ms_from_datetime(conversation.updated_at)),
    }
    optional = {
        "metadata": conversation.metadata,
        "rating": conversation.rating,
        "ratingComment": conversation.rating_comment,
        "title": conversation.title,
        "agentId": conversation.agent_id,
    }
    wire |= {name: value for name, value in optional.items() if value is not None}
    if (origin := conversation.forked_from) is not None:
        wire["forkedFrom"] = {"conversationId": origin.conversation_id, "messageId": origin.message_id}
    return wire
