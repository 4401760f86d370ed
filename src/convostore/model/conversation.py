"""A conversation as callers see it: the head's facts, decoded."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from convostore.model.exact_json import JsonObject

__all__ = ["Conversation", "ForkOrigin"]


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
