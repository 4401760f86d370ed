"""The owner is checked inside the commit: a conversation that changes hands between a view's read and its commit is safe."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from convostore.backends.memory import MemoryBackend
from convostore.contracts.backend import Change, Receipt
from convostore.errors import StoreError
from convostore.model.message import Message, ToolCallRecord
from convostore.opening import Store
from convostore.testing.scoping_probes import chat_probes, conversation_probes, session_probes
from convostore.testing.voices import dump

_SAID = [
    Message(role="user", content="hi", id="m1"),
    Message(role="assistant", tool_calls=(ToolCallRecord("t", "c", "pending", {}),), id="m2"),
]


class ChangingHands(MemoryBackend):
    """Lets something happen right before the next commit."""

    before_commit: Callable[[], Awaitable[None]] | None = None

    @property
    def happened(self) -> bool:
        """Whether it has."""
        return self.before_commit is None

    async def commit(self, change: Change, /) -> Receipt:
        happening, self.before_commit = self.before_commit, None
        if happening is not None:
            await happening()
        return await super().commit(change)


_READING = {  # verbs that commit nothing to the conversation
    "C.find_by_id", "C.find_latest", "C.load_messages", "C.open_tool_calls", "C.list_conversations", "C.salvage",
    "C.latest_or_create", "S.load_messages", "S.load_todos", "S.load_info", "S.exists", "S.list", "A.initialize",
    "A.get_conversation", "A.get_all_conversations", "A.iterate_conversations", "A.get_conversation_items",
    "A.get_conversation_history", "A.get_conversation_agent",
}  # fmt: skip
_WRITING = {
    f"{kind}.{verb}": probe
    for kind, probes in (("C", conversation_probes), ("S", session_probes), ("A", chat_probes))
    for verb, probe in probes.items()
    if f"{kind}.{verb}" not in _READING
}


@pytest.mark.parametrize("verb", _WRITING)
async def test_a_conversation_that_changes_hands_is_not_touched(verb: str) -> None:
    """Deleted and created anew by another subject in the last moment, it is not found, whatever the verb."""
    backend = ChangingHands()
    store = Store(backend)
    view = store.for_subject("org-7")
    await store.create_conversation("context", "org-7", id="c")
    await store.append_messages("c", _SAID)

    async def change_hands() -> None:
        await store.delete_conversation("c")
        await store.create_conversation("context", "org-70", id="c")
        await store.append_messages("c", _SAID)

    backend.before_commit = change_hands
    names = [("context", "org-7"), ("context", "org-70")]
    with suppress(StoreError, AssertionError):  # any way of refusing will do
        await _WRITING[verb](view, "c", names)
    assert backend.happened, "this verb should have come to a commit"
    snapshot = await dump(store, "c")
    assert "org-70" == snapshot.head.subject_id
    assert ["m1", "m2"] == [each.entry_id for each in snapshot.entries]
    assert [1, 2] == [each.stamp for each in snapshot.entries]
    assert {} == snapshot.head.fields
    assert {} == snapshot.documents
