"""Loading messages: filters first, then the limit, then whole turns; never more of the log than that needs (C5)."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import get_args

from msgspec import Struct

from convostore.contracts.backend import Backend, Window
from convostore.dialects import hub
from convostore.errors import InvalidInput
from convostore.ids import check_id
from convostore.model.message import Message, Role
from convostore.model.times import ms_from_datetime
from convostore.stores.excerpt import Excerpt, read_excerpt
from convostore.stores.message_view import project
from convostore.stores.turns import whole_turns

__all__ = ["Selection", "check_limit", "load", "messages_in"]

_MARGIN = 8
_CHUNK = 1000  # messages decoded in one go; a few milliseconds


class Selection(Struct, frozen=True, kw_only=True):
    """What to load; see `ConversationStore.load_messages`."""

    role: Role | None = None
    since: datetime | None = None
    before: str | None = None
    after: str | None = None
    limit: int | None = None
    system: bool = False
    whole_turns: bool = False


def check_limit(limit: int | None) -> None:
    """Raise InvalidInput unless `limit` is None or a whole number from 0."""
    if limit is not None and (type(limit) is not int or limit < 0):
        raise InvalidInput(f"limit must be a whole number from 0, or None for all, not {limit!r}")


async def load(backend: Backend, conversation_id: str, selection: Selection) -> list[Message]:
    """Return the selected messages, oldest first; [] when there is no such conversation.

    Raises:
        InvalidInput: the selection is none, or names a message that is not there.
        CorruptDataError: a record in the window is damaged.
    """
    check_id(conversation_id, "conversation id")
    check_limit(selection.limit)
    if selection.role is not None and selection.role not in get_args(Role):
        raise InvalidInput(f"role must be one of {get_args(Role)}, not {selection.role!r}")
    since_ms = None if selection.since is None else ms_from_datetime(selection.since, "since")
    bounds = await _bounds(backend, conversation_id, selection.after, selection.before)
    if bounds is None or selection.limit == 0:
        return []
    after, before = bounds
    limit, newest = selection.limit, selection.after is None
    size = None if limit is None else limit + _MARGIN
    while True:
        window = Window(after=after, before=before, limit=size, newest=newest)
        excerpt = await read_excerpt(backend, conversation_id, window)
        if excerpt is None:
            return []
        complete = size is None or len(excerpt.entries) < size
        shown = await _unhurried(excerpt) if len(excerpt.entries) > _CHUNK else messages_in(excerpt)
        chosen = _chosen(shown, selection, since_ms)
        if complete or limit is None or len(chosen) >= limit:
            break
        assert size is not None
        size *= 4
    cut = limit is not None and len(chosen) > limit
    if cut:
        chosen = chosen[-limit:] if newest else chosen[:limit]  # type: ignore[operator]  # cut says it is not None
    if selection.whole_turns:
        short = cut or not complete
        return whole_turns(
            chosen,
            begins_late=after > 0 or since_ms is not None or (newest and short),
            ends_early=before is not None or (not newest and short),
        )
    return chosen


async def _bounds(
    backend: Backend, conversation_id: str, after: str | None, before: str | None
) -> tuple[int, int | None] | None:
    """Return the positions of two messages, 0 and None where none is named; None when there is no such conversation."""
    named = tuple(check_id(each, "message id") for each in (after, before) if each is not None)
    if not named:
        return 0, None
    snapshot = await backend.read(conversation_id, Window(entry_ids=named, damaged="report"))
    if snapshot is None:
        return None
    places = {each.entry_id: each.position for each in snapshot.entries}
    places |= {
        each.entry_id: each.position
        for each in snapshot.damage
        if each.entry_id is not None and each.position is not None
    }
    for each in named:
        if each not in places:
            raise InvalidInput(f"conversation {conversation_id!r} has no message {each!r} to begin or end at")
    return (places[after] if after is not None else 0), (places[before] if before is not None else None)


async def _unhurried(excerpt: Excerpt) -> list[Message]:
    """Return what `messages_in` returns, letting the event loop's other tasks in between."""
    if not excerpt.plain:
        return messages_in(excerpt)
    messages: list[Message] = []
    for begin in range(0, len(excerpt.entries), _CHUNK):
        messages += hub.read_all(excerpt.entries[begin : begin + _CHUNK], excerpt.head.conversation_id)
        await asyncio.sleep(0)
    return messages


def messages_in(excerpt: Excerpt) -> list[Message]:
    """Return the messages that an excerpt's window shows, system messages included."""
    conversation_id = excerpt.head.conversation_id
    if excerpt.plain:
        # The common case, and the fast one: every entry is a hub message and shows itself.
        return hub.read_all(excerpt.entries, conversation_id)
    inside = {each.entry_id for each in excerpt.entries}
    return [each for each in project(excerpt.transcript()) if each.id in inside]


def _chosen(messages: list[Message], selection: Selection, since_ms: int | None) -> list[Message]:
    if selection.role is not None:
        messages = [each for each in messages if each.role == selection.role]
    elif not selection.system:
        messages = [each for each in messages if each.role != "system"]
    if since_ms is not None:
        messages = [each for each in messages if each.created_at and ms_from_datetime(each.created_at) >= since_ms]
    return messages
