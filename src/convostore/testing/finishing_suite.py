"""Clause C8 as tests: tool calls are finished, messages updated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from convostore.errors import (
    ConflictError,
    ConversationNotFoundError,
    InvalidInput,
    NotFoundError,
    RevisionConflictError,
)
from convostore.model.conversation import Conversation
from convostore.model.message import Message, ToolCallRecord
from convostore.opening import Store
from convostore.testing.appending_suite import begin, contents, user
from convostore.testing.awkward import refused_values
from convostore.testing.contract_view import second_store
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["FinishingClauses", "must_find", "pending"]


def pending(*call_ids: str, **fields: Any) -> Message:
    """Return an assistant message with calls that wait."""
    return Message(
        role="assistant",
        tool_calls=tuple(ToolCallRecord("look", each, "pending", {"q": 1}) for each in call_ids),
        **fields,
    )


async def must_find(store: Store, conversation_id: str) -> Conversation:
    """Return a conversation that is there."""
    found = await store.find_by_id(conversation_id)
    assert found is not None
    return found


class FinishingClauses(Suite):
    """C8: messages are updated, tool calls finished."""

    @clause("C8")
    async def test_finish_tool_call_records_the_result(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """A finished call has its state and output, everything else of its message stays, and it is open no more."""
        conversation_id = await begin(store, samples)
        stored = await store.append_messages(
            conversation_id, [user("go"), pending("a", "b", content="looking", metadata={"n": 1}), user("wait")]
        )
        output = {"success": True, "message": "12", "data": [10**40, -0.0]}
        record = await store.finish_tool_call(conversation_id, "a", "success", output)
        assert ToolCallRecord("look", "a", "success", {"q": 1}, output) == record
        failed = await store.finish_tool_call(conversation_id, "b", "error", None)
        assert ("error", None) == (failed.state, failed.output)
        async with second_store(store, factory) as other:
            loaded = await other.load_messages(conversation_id)
            assert [] == await other.open_tool_calls(conversation_id)
        assert (record, failed) == loaded[1].tool_calls
        assert repr(output) == repr(loaded[1].tool_calls[0].output)
        assert [each.id for each in stored] == [each.id for each in loaded]
        assert ("looking", {"n": 1}, stored[1].created_at) == (
            loaded[1].content, loaded[1].metadata, loaded[1].created_at,
        )  # fmt: skip
        assert (stored[0], stored[2]) == (loaded[0], loaded[2])

    @clause("C8", "B7")
    async def test_finishing_twice(self, store: Store, samples: Samples) -> None:
        """The same result again changes nothing; another result is a ConflictError and changes nothing either."""
        conversation_id = await begin(store, samples)
        await store.append_messages(conversation_id, [pending("a")])
        first = await store.finish_tool_call(conversation_id, "a", "success", {"x": 1})
        before = await must_find(store, conversation_id)
        assert first == await store.finish_tool_call(conversation_id, "a", "success", {"x": 1})
        for state, output in (("success", {"x": 2}), ("error", {"x": 1}), ("success", None)):
            with pytest.raises(ConflictError):
                await store.finish_tool_call(conversation_id, "a", state, output)  # type: ignore[arg-type]  # a tuple's str
        assert before == await must_find(store, conversation_id)

    @clause("C8")
    async def test_finish_refuses(self, store: Store, samples: Samples) -> None:
        """Unknown conversations and calls are NotFoundError; "pending" and what cannot be kept are InvalidInput."""
        conversation_id = await begin(store, samples)
        await store.append_messages(conversation_id, [pending("a")])
        before = await must_find(store, conversation_id)
        with pytest.raises(ConversationNotFoundError):
            await store.finish_tool_call(samples.id("missing"), "a", "success", {})
        with pytest.raises(NotFoundError):
            await store.finish_tool_call(conversation_id, "A", "success", {})
        for state in ("pending", "done", "", None, "completed"):
            with pytest.raises(InvalidInput):
                await store.finish_tool_call(conversation_id, "a", state, {})  # type: ignore[arg-type]  # what is tested
        for value in refused_values.values():
            with pytest.raises(InvalidInput):
                await store.finish_tool_call(conversation_id, "a", "success", value)
        assert before == await must_find(store, conversation_id)

    @clause("C8", "C7")
    async def test_any_json_is_an_output(self, store: Store, samples: Samples) -> None:
        """An output of any JSON is kept exactly."""
        conversation_id = await begin(store, samples)
        await store.append_messages(conversation_id, [pending(*(f"c{n}" for n in range(len(samples.payloads))))])
        for n, value in enumerate(samples.payloads.values()):
            await store.finish_tool_call(conversation_id, f"c{n}", "success", value)
        (loaded,) = await store.load_messages(conversation_id)
        for (name, value), call in zip(samples.payloads.items(), loaded.tool_calls, strict=True):
            assert repr(value) == repr(call.output), name

    @clause("C8", "B5")
    async def test_calls_of_one_message_finish_at_once(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Eight calls of one message, finished at once through two handles while others append, all keep their results."""
        conversation_id = await begin(store, samples)
        await store.append_messages(conversation_id, [pending(*(f"c{n}" for n in range(8)))])
        async with second_store(store, factory) as other:
            await asyncio.gather(
                *(
                    (store, other)[n % 2].finish_tool_call(conversation_id, f"c{n}", "success", {"n": n})
                    for n in range(8)
                ),
                *((store, other)[n % 2].append_messages(conversation_id, [user(str(n))]) for n in range(4)),
            )
        loaded = await store.load_messages(conversation_id)
        assert [("success", {"n": n}) for n in range(8)] == [(each.state, each.output) for each in loaded[0].tool_calls]
        assert {"0", "1", "2", "3"} == set(contents(loaded[1:]))

    @clause("C8", "B5")
    async def test_of_two_results_at_once_one_stays(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Two different results for one call at once: one is kept, the other caller gets a ConflictError."""
        conversation_id = await begin(store, samples)
        await store.append_messages(conversation_id, [pending("a")])
        async with second_store(store, factory) as other:
            outcomes = await asyncio.gather(
                *(
                    each.finish_tool_call(conversation_id, "a", "success", {"n": n})
                    for n, each in enumerate((store, other, store, other))
                ),
                return_exceptions=True,
            )
        assert 3 == sum(isinstance(each, ConflictError) for each in outcomes), outcomes
        (kept,) = [each for each in outcomes if isinstance(each, ToolCallRecord)]
        (loaded,) = await store.load_messages(conversation_id)
        assert (kept,) == loaded.tool_calls

    @clause("C8", "X7")
    async def test_finish_takes_the_latest_open_call(self, store: Store, samples: Samples) -> None:
        """Where a call id recurs, the latest call that is still open is finished."""
        conversation_id = await begin(store, samples)
        await store.append_messages(conversation_id, [pending("c"), user("again"), pending("c")])
        await store.finish_tool_call(conversation_id, "c", "success", 2)
        loaded = await store.load_messages(conversation_id)
        assert [("pending", None), ("success", 2)] == [
            (loaded[n].tool_calls[0].state, loaded[n].tool_calls[0].output) for n in (0, 2)
        ]
        await store.finish_tool_call(conversation_id, "c", "error", 1)
        loaded = await store.load_messages(conversation_id)
        assert [("error", 1), ("success", 2)] == [
            (loaded[n].tool_calls[0].state, loaded[n].tool_calls[0].output) for n in (0, 2)
        ]

    @clause("C8", "B3")
    async def test_update_message_keeps_the_place(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """An updated message keeps id and place; the others stay as they were; updated_at and revision move."""
        conversation_id = await begin(store, samples)
        stored = await store.append_messages(conversation_id, [user("0"), user("1"), user("2")])
        before = await must_find(store, conversation_id)
        assert stored[1].id is not None
        changed = await store.update_message(
            conversation_id, Message(role="assistant", content="ONE", metadata={"e": 1}, id=stored[1].id)
        )
        assert ("assistant", "ONE", {"e": 1}, stored[1].id) == (
            changed.role, changed.content, changed.metadata, changed.id,
        )  # fmt: skip
        async with second_store(store, factory) as other:
            assert [stored[0], changed, stored[2]] == await other.load_messages(conversation_id)
            after = await must_find(other, conversation_id)
        assert before.updated_at < after.updated_at
        assert before.revision != after.revision
        moment = datetime(2020, 1, 1, tzinfo=UTC)
        changed = await store.update_message(conversation_id, user("1", id=stored[1].id, created_at=moment))
        assert moment == changed.created_at

    @clause("C8", "B6")
    async def test_update_message_refuses(self, store: Store, samples: Samples) -> None:
        """Without an id, with what cannot be kept, for the unknown, or after others committed, nothing is changed."""
        conversation_id = await begin(store, samples)
        (one,) = await store.append_messages(conversation_id, [user("one")])
        stale = (await must_find(store, conversation_id)).revision
        await store.append_messages(conversation_id, [user("two")])
        before = await must_find(store, conversation_id)
        with pytest.raises(InvalidInput):
            await store.update_message(conversation_id, user("no id"))
        with pytest.raises(InvalidInput):
            await store.update_message(conversation_id, user("x", id=one.id, metadata={"n": float("nan")}))
        with pytest.raises(InvalidInput):
            await store.update_message(conversation_id, user("x", id=one.id, conversation_id=samples.id("elsewhere")))
        with pytest.raises(NotFoundError):
            await store.update_message(conversation_id, user("x", id=samples.id("unknown")))
        with pytest.raises(ConversationNotFoundError):
            await store.update_message(samples.id("missing"), user("x", id=one.id))
        with pytest.raises(RevisionConflictError):
            await store.update_message(conversation_id, user("x", id=one.id), expected_revision=stale)
        assert before == await must_find(store, conversation_id)
        await store.update_message(conversation_id, user("x", id=one.id), expected_revision=before.revision)
        assert ["x", "two"] == contents(await store.load_messages(conversation_id))
