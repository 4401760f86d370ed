"""Any entry as a hub message: by its dialect where we know it, as an opaque part where we do not."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

from convostore.contracts.backend import Damage, Entry
from convostore.dialects import chat_item, hub, openai_chat, session
from convostore.errors import CorruptDataError
from convostore.model import exact_json
from convostore.model.exact_json import JsonValue
from convostore.model.message import Message, OpaquePart
from convostore.model.times import datetime_from_ms

__all__ = ["known", "read"]

_READERS: Final[dict[str, Callable[[Entry, str | None], Message]]] = {
    hub.DIALECT: hub.read,
    session.DIALECT: session.read,
    chat_item.DIALECT: chat_item.read,
    openai_chat.DIALECT: openai_chat.read,
}


def known(dialect: str) -> bool:
    """Say whether entries of `dialect` are read as more than an opaque part."""
    return dialect in _READERS


def read(entry: Entry, conversation_id: str) -> Message:
    """Return the hub's reading of `entry`.

    Raises:
        CorruptDataError: the dialect is known and the body is not one of it.
    """
    reader = _READERS.get(entry.dialect)
    if reader is None:
        return _opaque(entry, conversation_id)
    try:
        return reader(entry, conversation_id)
    except (ValueError, RecursionError) as error:
        damage = Damage(conversation_id, f"not a {entry.dialect} body: {error}", entry.position, entry.entry_id)
        raise CorruptDataError(conversation_id, [damage]) from error


def _opaque(entry: Entry, conversation_id: str) -> Message:
    value: JsonValue
    try:
        value = exact_json.decode(entry.body)
    except (ValueError, RecursionError):
        value = {"base64": base64.b64encode(entry.body).decode()}
    return Message(
        role=entry.role if entry.role in ("system", "user", "tool") else "assistant",  # type: ignore[arg-type]
        parts=(OpaquePart(entry.dialect, value),),
        id=entry.entry_id,
        conversation_id=conversation_id,
        created_at=datetime_from_ms(entry.created_at_ms),
    )
