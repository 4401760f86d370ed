"""One commit that makes a list store's conversation be what was given, whoever else writes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Final

from msgspec import structs

from convostore.contracts.backend import Backend, Change, Entry, NewEntry, Window
from convostore.errors import ConversationExistsError, DuplicateEntryError, NotFoundError, RevisionConflictError
from convostore.ids import Clock, Mint
from convostore.model.exact_json import JsonObject
from convostore.stores.projection import View
from convostore.stores.saving import plan_save

__all__ = ["save_list"]

_GUARDED_MAX: Final = 5
"""Attempts after which a save no longer insists on being the only one to write meanwhile."""

_HURRIED_MAX: Final = 1000
"""Beyond this many entries and values a plan is made in a thread, so that the event loop's other tasks go on."""


async def save_list(
    backend: Backend,
    view: View,
    conversation_id: str,
    values: Sequence[JsonObject],
    *,
    fields: Mapping[str, bytes | None] = {},
    may_create: bool = True,
    clock: Clock,
    mint: Mint,
) -> bool:
    """Make `view` show exactly `values`, and give the head `fields`, in one commit.

    Returns False when there is no such conversation and none may be created.
    Read, compare, commit on condition that nobody else did; repeated when somebody did. Beside someone who never stops
    writing the last attempt is committed without that condition: then what they appended meanwhile stays, before what is
    appended here. Nothing is committed when nothing differs.

    Raises:
        InvalidInput: a value is not what the store keeps.
        ConversationExistsError: the conversation is there and is someone else's.
        CorruptDataError: a stored record is damaged.
    """
    refused = False
    for attempt in count():
        snapshot = await backend.read(conversation_id, Window())
        if snapshot is None and not may_create:
            return False
        entries = snapshot.entries if snapshot else ()
        if len(entries) + len(values) > _HURRIED_MAX:
            plan = await asyncio.to_thread(plan_save, view, entries, conversation_id, values, clock(), mint)
        else:
            plan = plan_save(view, entries, conversation_id, values, clock(), mint)
        known = snapshot.head.fields if snapshot else {}
        changed = {name: value for name, value in fields.items() if known.get(name) != value}
        if snapshot is not None and not plan and not changed:
            return True
        try:
            await backend.commit(
                Change(
                    conversation_id=conversation_id,
                    revision=mint(),
                    at_ms=clock(),
                    existence="must_exist" if snapshot else "must_create",
                    expected_revision=snapshot.head.revision if snapshot and attempt < _GUARDED_MAX else None,
                    fields=changed,
                    remove=plan.remove,
                    replace=_unchanged_since(plan.replace, entries),
                    append=plan.append,
                )
            )
        except (RevisionConflictError, DuplicateEntryError):
            continue
        except NotFoundError:
            continue  # the conversation, or an entry to change, was deleted meanwhile
        except ConversationExistsError:
            if refused:
                raise  # it is there, and not for this caller
            refused = True
            continue
        return True
    raise AssertionError("count() never ends")


def _unchanged_since(replace: Sequence[NewEntry], entries: Sequence[Entry]) -> tuple[NewEntry, ...]:
    """Return what replaces entries on condition that they are as they were read."""
    stamps = {each.entry_id: each.stamp for each in entries} if replace else {}
    return tuple(structs.replace(each, expected_stamp=stamps[each.entry_id]) for each in replace)
