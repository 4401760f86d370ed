"""A head's fields as the stores use them: each value is JSON text, absent means none."""

from __future__ import annotations

from collections.abc import Mapping

from convostore.contracts.backend import Backend, Change, Damage, Head
from convostore.errors import ConversationNotFoundError, CorruptDataError, InvalidInput
from convostore.ids import Clock, Mint
from convostore.model import exact_json
from convostore.model.conversation import Conversation, ForkOrigin
from convostore.model.exact_json import JsonValue
from convostore.model.times import datetime_from_ms

__all__ = [
    "AGENT_ID",
    "CHAT_EXTRA",
    "FORKED_FROM",
    "METADATA",
    "RATING",
    "RATING_COMMENT",
    "TITLE",
    "conversation_of",
    "delete",
    "encoded",
    "field",
]

TITLE = "title"
METADATA = "metadata"
RATING = "rating"
RATING_COMMENT = "rating_comment"
FORKED_FROM = "forked_from"
AGENT_ID = "agent_id"
CHAT_EXTRA = "chat_extra"


def field(head: Head, name: str) -> JsonValue:
    """Return a field's value, None where there is none.

    Raises:
        CorruptDataError: it is there and is not JSON.
    """
    data = head.fields.get(name)
    if data is None:
        return None
    try:
        return exact_json.decode(data)
    except ValueError as error:
        damage = Damage(head.conversation_id, f"field {name!r} is not JSON: {error}")
        raise CorruptDataError(head.conversation_id, [damage]) from error


def encoded(**values: JsonValue) -> Mapping[str, bytes | None]:
    """Return a change of fields: None drops one.

    Raises:
        InvalidInput: a title is not a string, metadata not a dict, or JSON cannot carry a value exactly.
    """
    for name, kind in ((TITLE, str), (METADATA, dict)):
        if values.get(name) is not None and type(values[name]) is not kind:
            raise InvalidInput(f"{name} must be a {kind.__name__}, not {type(values[name]).__name__}")
    return {name: None if value is None else exact_json.encode(value, name) for name, value in values.items()}


def conversation_of(head: Head) -> Conversation:
    """Return what callers see of a head.

    Raises:
        CorruptDataError: a field is there and is not JSON.
    """
    origin = field(head, FORKED_FROM)
    return Conversation(
        id=head.conversation_id,
        context=head.context,
        subject_id=head.subject_id,
        created_at=datetime_from_ms(head.created_at_ms),
        updated_at=datetime_from_ms(head.updated_at_ms),
        title=field(head, TITLE),
        metadata=field(head, METADATA),
        rating=field(head, RATING),
        rating_comment=field(head, RATING_COMMENT),
        forked_from=None if origin is None else ForkOrigin(origin["conversation_id"], origin["message_id"]),
        agent_id=field(head, AGENT_ID),
        message_count=head.entry_count,
        revision=head.revision,
    )


async def delete(backend: Backend, conversation_id: str, *, clock: Clock, mint: Mint) -> bool:
    """Delete a conversation and all that belongs to it; False when there was none."""
    change = Change(conversation_id=conversation_id, revision=mint(), at_ms=clock(), delete=True)
    try:
        await backend.commit(change)
    except ConversationNotFoundError:
        return False
    return True
