"""Reading what is left of a damaged conversation; nothing is changed."""

from __future__ import annotations

from convostore.contracts.backend import Backend, Damage, Entry, Window
from convostore.dialects import reading
from convostore.errors import ConversationNotFoundError, CorruptDataError
from convostore.model.message import Message
from convostore.stores.message_view import messages_of

__all__ = ["salvage"]


async def salvage(backend: Backend, conversation_id: str) -> tuple[list[Message], tuple[Damage, ...]]:
    """Return the messages of every sound record, and everything that is damaged.

    Raises:
        ConversationNotFoundError: there is no such conversation.
    """
    snapshot = await backend.read(conversation_id, Window(damaged="report"), None)
    if snapshot is None:
        raise ConversationNotFoundError(conversation_id)
    sound: list[Entry] = []
    damage = list(snapshot.damage)
    for entry in snapshot.entries:
        try:
            reading.read(entry, conversation_id)
        except CorruptDataError as error:
            damage += [each for each in error.damage if isinstance(each, Damage)]
        else:
            sound.append(entry)
    return messages_of(sound, conversation_id), tuple(damage)
