"""One commit that makes a list store's conversation be what was given, whoever else writes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from convostore.contracts.backend import Backend, Change, Window
from convostore.errors import ConversationExistsError, ConversationNotFoundError, RevisionConflictError
from convostore.ids import Clock, Mint
from convostore.model.exact_json import JsonObject
from convostore.stores.projection import View
from convostore.stores.saving import plan_save

__all__ = ["save_list"]

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
    Read, compare, commit on condition that nobody else did; repeated when somebody did. Nothing is committed when nothing
    differs.

    Raises:
        InvalidInput: a value is not what the store keeps.
        ConversationExistsError: the conversation is there and is someone else's.
        CorruptDataError: a stored record is damaged.
    """
    refused = False
    while True:
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
                    expected_revision=snapshot.head.revision if snapshot else None,
                    fields=changed,
                    remove=plan.remove,
                    replace=plan.replace,
                    append=plan.append,
                )
            )
        except RevisionConflictError:
            continue
        except ConversationNotFoundError:
            continue  # deleted meanwhile
        except ConversationExistsError:
            if refused:
                raise  # it is there, and not for this caller
            refused = True
            continue
        return True
