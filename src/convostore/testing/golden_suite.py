"""Clause X8 as tests: one small conversation, told in each voice, as each store reads it, value by value.

``golden/NAME.json`` holds what was written and the three readings. The files were written once and checked by hand against
clauses X2 to X7; they change only when a clause does. In them, an id that a store minted is told by the place of its
entry, and the conversation is called "golden".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from convostore.contracts.backend import Change
from convostore.dialects import openai_chat
from convostore.dialects.hub import message_from_wire, message_to_wire
from convostore.ids import new_id
from convostore.model.times import ms_from_datetime
from convostore.opening import Store
from convostore.testing.creating_suite import CreatingClauses, standing_at
from convostore.testing.suite import Samples, Suite, clause
from convostore.testing.voices import dump

__all__ = ["GoldenReadings", "readings"]

_START_MS = ms_from_datetime(datetime(2026, 6, 13, 9, 0, tzinfo=UTC))


async def _write(store: Store, conversation_id: str, name: str, written: list[Any]) -> None:
    """Write what a golden file holds, in its own voice."""
    if name == "sessions":
        await store.sessions.save_messages(conversation_id, written)
    elif name == "chat":
        await store.chat.save_conversation({"id": conversation_id, "title": "Bookings", "items": written})
    else:
        await store.create_conversation(conversation_id, conversation_id, id=conversation_id)
        if name == "conversations":
            messages = [message_from_wire({**each, "conversationId": conversation_id}) for each in written]
            await store.append_messages(conversation_id, messages)
            return
        entries = [
            openai_chat.write(each, entry_id=f"openai-{number}", created_at_ms=_START_MS + number * 1000)
            for number, each in enumerate(written)
        ]
        await store.backend.commit(
            Change(conversation_id=conversation_id, revision=new_id(), at_ms=_START_MS, append=tuple(entries))
        )


async def readings(store: Store, conversation_id: str, name: str, written: list[Any]) -> dict[str, Any]:
    """Write a golden file's conversation and return what the file holds: what was written, and what each store reads."""
    await _write(store, conversation_id, name, written)
    places = {
        each.entry_id: f"entry-{place}" for place, each in enumerate((await dump(store, conversation_id)).entries, 1)
    }
    if name in ("conversations", "openai_chat"):
        places = {}  # these ids are the writer's own
    messages = [message_to_wire(each) for each in await store.load_messages(conversation_id, system=True)]
    return {
        "written": written,
        "conversations": [_named(each, places) | {"conversationId": "golden"} for each in messages],
        "sessions": await store.sessions.load_messages(conversation_id),
        "chat": [_named(dict(each), places) for each in await store.chat.get_conversation_items(conversation_id)],
    }


def _named(shown: dict[str, Any], places: dict[str, str]) -> dict[str, Any]:
    entry_id, colon, call_id = str(shown["id"]).partition(":")
    return {**shown, "id": places[entry_id] + colon + call_id} if entry_id in places else shown


class GoldenReadings(Suite):
    """X8."""

    clocked = CreatingClauses.clocked

    async def _check_golden(self, clocked: Callable[..., Store], samples: Samples, name: str) -> None:
        text = files("convostore.testing").joinpath("golden", f"{name}.json").read_text(encoding="utf-8")
        golden = json.loads(text)
        store = clocked(standing_at(_START_MS))
        found = await readings(store, samples.id("golden"), name, golden["written"])
        await store.aclose()
        for reading, expected in golden.items():
            # As text: it tells 1 from 1.0 and shows the order of fields.
            assert json.dumps(expected, indent=1) == json.dumps(found[reading], indent=1), reading
        if name in golden:
            assert golden["written"] == golden[name], "a store reads its own words as they were written"

    @clause("X8")
    async def test_golden_conversation(self, store: Store, samples: Samples, clocked: Callable[..., Store]) -> None:
        """What an agent service appended reads in C, S and A as the golden file says."""
        await self._check_golden(clocked, samples, "conversations")

    @clause("X8")
    async def test_golden_session(self, store: Store, samples: Samples, clocked: Callable[..., Store]) -> None:
        """What an agent runtime saved reads in C, S and A as the golden file says."""
        await self._check_golden(clocked, samples, "sessions")

    @clause("X8")
    async def test_golden_chat(self, store: Store, samples: Samples, clocked: Callable[..., Store]) -> None:
        """What a chat interface saved reads in C, S and A as the golden file says."""
        await self._check_golden(clocked, samples, "chat")

    @clause("X8")
    async def test_golden_openai_messages(self, store: Store, samples: Samples, clocked: Callable[..., Store]) -> None:
        """What an importer kept of chat completions reads in C, S and A as the golden file says."""
        await self._check_golden(clocked, samples, "openai_chat")
