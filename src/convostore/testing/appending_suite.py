"""Clause C4 as tests: messages are appended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from convostore.errors import (
    ClosedError,
    ConflictError,
    ConversationNotFoundError,
    DuplicateEntryError,
    InvalidInput,
    MessageAppendError,
    RevisionConflictError,
)
from convostore.model.message import (
    Message,
    ToolCallRecord,
)
from convostore.model.times import datetime_from_ms
from convostore.opening import Store
from convostore.testing.awkward import refused_ids
from convostore.testing.contract_view import second_store
from convostore.testing.creating_suite import CreatingClauses
from convostore.testing.suite import Samples, clause

__all__ = ["AppendingClauses", "contents", "user"]


def user(content: str, **fields: Any) -> Message:
    """Return a user's message."""
    return Message(role="user", content=content, **fields)


def contents(messages: list[Message]) -> list[str]:
    """Return what the messages say."""
    return [each.content for each in messages]


async def begin(store: Store, samples: Samples) -> str:
    """Create a conversation and return its id."""
    return (await store.create_conversation(samples.id("context"), samples.id("subject"))).id


class AppendingClauses(CreatingClauses):
    """C4."""

    @clause("C4")
    async def test_append_returns_what_is_stored(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Appended messages come back with id, conversation and time, in order, and load the same through any handle."""
        conversation_id = await begin(store, samples)
        given = [
            Message(role="system", content="Be brief."),
            user("Show me bookings", metadata={"ip": None}),
            Message(
                role="assistant",
                content="Let me look.",
                tool_calls=(ToolCallRecord("getBookings", "tc-1", "pending", {}),),
            ),
            Message(role="tool", content="12", tool_call_id="tc-1"),
        ]
        stored = await store.append_messages(conversation_id, given)
        assert 4 == len({each.id for each in stored})
        for sent, kept in zip(given, stored, strict=True):
            assert kept.id
            assert conversation_id == kept.conversation_id
            assert kept.created_at is not None
            assert timedelta(0) == kept.created_at.utcoffset()
            assert 0 == kept.created_at.microsecond % 1000
            for name in ("role", "content", "parts", "tool_calls", "tool_call_id", "metadata"):
                assert getattr(sent, name) == getattr(kept, name)
        assert stored == await store.load_messages(conversation_id, system=True)
        async with second_store(store, factory) as other:
            assert stored == await other.load_messages(conversation_id, system=True)
            found = await other.find_by_id(conversation_id)
        assert found is not None
        assert 4 == found.message_count

    @clause("C4")
    async def test_append_keeps_own_ids_and_times(self, store: Store, samples: Samples) -> None:
        """An id and a time of the caller's own are kept, however odd, and no time changes the order."""
        conversation_id = await begin(store, samples)
        times = [
            datetime(2026, 1, 1, 12, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 1_000, tzinfo=UTC),
            datetime(2026, 1, 1, 12, tzinfo=UTC),
            datetime(2026, 6, 1, 1, 2, 3, 4_000, tzinfo=timezone(timedelta(hours=-9, minutes=-30))),
        ]
        for index, moment in enumerate(times):
            stored = await store.append_messages(
                conversation_id, [user(f"{index}", id=samples.id(f"m{index} \u00e9"), created_at=moment)]
            )
            assert (samples.id(f"m{index} \u00e9"), moment) == (stored[0].id, stored[0].created_at)
        loaded = await store.load_messages(conversation_id)
        assert ["0", "1", "2", "3", "4", "5"] == contents(loaded)
        assert times == [each.created_at for each in loaded]

    @clause("C4")
    async def test_append_to_the_unknown(self, store: Store, samples: Samples) -> None:
        """An unknown or deleted conversation is ConversationNotFoundError with its id, and is not created by it."""
        with pytest.raises(ConversationNotFoundError) as caught:
            await store.append_messages(samples.id("missing"), [user("x")])
        assert samples.id("missing") == caught.value.context["id"]
        assert "CONVERSATION_NOT_FOUND" == caught.value.code
        assert not isinstance(caught.value, MessageAppendError)
        assert await store.find_by_id(samples.id("missing")) is None
        conversation_id = await begin(store, samples)
        await store.delete_conversation(conversation_id)
        with pytest.raises(ConversationNotFoundError):
            await store.append_messages(conversation_id, [user("late")], idempotency_key="k")
        assert [] == await store.load_messages(conversation_id)

    @clause("C4")
    async def test_append_refuses_what_is_no_message(self, store: Store, samples: Samples) -> None:
        """A message for elsewhere, a bad id, role, content or time is InvalidInput, and none beside it is stored."""
        conversation_id = await begin(store, samples)
        before = await store.find_by_id(conversation_id)
        bad: list[Any] = [
            user("x", conversation_id=samples.id("elsewhere")),
            user("x", created_at=datetime(2026, 1, 1)),
            user("x", created_at="2026-01-01T00:00:00.000Z"),
            user("x", created_at=5),
            Message(role="robot", content="x"),  # type: ignore[arg-type]  # what is tested
            Message(role=None, content="x"),  # type: ignore[arg-type]  # what is tested
            user(None),  # type: ignore[arg-type]  # what is tested
            user(b"x"),  # type: ignore[arg-type]  # what is tested
            user("x", metadata="text"),
            Message(role="tool", content="x", tool_call_id=5),  # type: ignore[arg-type]  # what is tested
            Message(role="assistant", tool_calls=(ToolCallRecord("t", "c", "done", {}),)),  # type: ignore[arg-type]  # what is tested
            Message(role="assistant", tool_calls=(ToolCallRecord("t", 5, "pending", {}),)),  # type: ignore[arg-type]  # what is tested
            Message(role="assistant", tool_calls=(ToolCallRecord(None, "c", "pending", {}),)),  # type: ignore[arg-type]  # what is tested
            {"role": "user", "content": "x"},
            "text",
            None,
        ]
        bad += [user("x", id=each) for each in refused_ids.values()]
        for each in bad:
            with pytest.raises(InvalidInput):
                await store.append_messages(conversation_id, [user("good"), each])
        with pytest.raises(InvalidInput):
            await store.append_messages(conversation_id, [user("x")], idempotency_key="")
        assert [] == await store.load_messages(conversation_id)
        assert before == await store.find_by_id(conversation_id)

    @clause("C4", "B7")
    async def test_an_empty_append_changes_nothing(self, store: Store, samples: Samples) -> None:
        """Appending no messages returns none and leaves the conversation as it was."""
        conversation_id = await begin(store, samples)
        before = await store.find_by_id(conversation_id)
        assert [] == await store.append_messages(conversation_id, [])
        assert before == await store.find_by_id(conversation_id)

    @clause("C4", "B7")
    async def test_append_with_an_idempotency_key_happens_once(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Repeating an append with its key adds nothing and returns what is there, also at the same time elsewhere."""
        conversation_id, second_id = await begin(store, samples), await begin(store, samples)
        batch = [user("yes"), user("yes"), Message(role="assistant", content="ok")]
        first = await store.append_messages(conversation_id, batch, idempotency_key="turn 1")
        await store.append_messages(conversation_id, [user("between")])
        async with second_store(store, factory) as other:
            again = await asyncio.gather(
                *(
                    each.append_messages(conversation_id, batch, idempotency_key="turn 1")
                    for each in (other, store, other)
                )
            )
            assert [first] * 3 == again
            fresh = await asyncio.gather(
                *(
                    each.append_messages(conversation_id, [user("new")], idempotency_key="turn 2")
                    for each in (other, store, other)
                )
            )
        assert 1 == len({each[0].id for each in fresh})
        assert ["yes", "yes", "ok", "between", "new"] == contents(await store.load_messages(conversation_id))
        await store.append_messages(second_id, batch, idempotency_key="turn 1")
        assert ["yes", "yes", "ok"] == contents(await store.load_messages(second_id))

    @clause("C4", "B7")
    async def test_a_key_with_other_messages_is_a_conflict(self, store: Store, samples: Samples) -> None:
        """The same key with another message is a ConflictError and stores nothing."""
        conversation_id = await begin(store, samples)
        await store.append_messages(conversation_id, [user("one"), user("two")], idempotency_key="k")
        with pytest.raises(ConflictError):
            await store.append_messages(conversation_id, [user("one"), user("other")], idempotency_key="k")
        assert ["one", "two"] == contents(await store.load_messages(conversation_id))

    @clause("C4", "B7")
    async def test_own_ids_repeat_harmlessly_or_conflict(self, store: Store, samples: Samples) -> None:
        """An id that is there with the same content adds nothing; with other content it is a DuplicateEntryError."""
        conversation_id = await begin(store, samples)
        one, two = user("one", id=samples.id("1")), user("two", id=samples.id("2"))
        stored = await store.append_messages(conversation_id, [one, two])
        assert stored == await store.append_messages(conversation_id, [one, two])
        with pytest.raises(DuplicateEntryError) as caught:
            await store.append_messages(conversation_id, [user("new"), user("ONE", id=samples.id("1"))])
        assert not isinstance(caught.value, MessageAppendError)
        with pytest.raises((InvalidInput, ConflictError)):
            await store.append_messages(conversation_id, [user("a", id=samples.id("3")), user("b", id=samples.id("3"))])
        assert ["one", "two"] == contents(await store.load_messages(conversation_id))
        elsewhere = await begin(store, samples)
        await store.append_messages(elsewhere, [user("another conversation's", id=samples.id("1"))])
        assert ["another conversation's"] == contents(await store.load_messages(elsewhere))

    @clause("C4", "B7")
    async def test_equal_content_is_not_repetition(self, store: Store, samples: Samples) -> None:
        """Without ids and keys nothing is taken for a repetition: a second "yes" is a second message."""
        conversation_id = await begin(store, samples)
        for _ in range(3):
            await store.append_messages(conversation_id, [user("yes"), user("yes")])
        assert ["yes"] * 6 == contents(await store.load_messages(conversation_id))

    @clause("C4", "B6")
    async def test_expected_revision_guards_an_append(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Of two writers who read the same revision one appends, the other learns both revisions and stores nothing."""
        conversation_id = await begin(store, samples)
        seen = await store.find_by_id(conversation_id)
        assert seen is not None
        async with second_store(store, factory) as other:
            outcomes = await asyncio.gather(
                *(
                    each.append_messages(conversation_id, [user(str(n))], expected_revision=seen.revision)
                    for n, each in enumerate((store, other, store, other))
                ),
                return_exceptions=True,
            )
        refused = [each for each in outcomes if isinstance(each, RevisionConflictError)]
        assert 3 == len(refused), outcomes
        now = await store.find_by_id(conversation_id)
        assert now is not None
        assert seen.revision != now.revision
        assert {(seen.revision, now.revision)} == {(each.expected, each.actual) for each in refused}
        assert 1 == now.message_count
        await store.append_messages(conversation_id, [user("next")], expected_revision=now.revision)
        assert 2 == len(await store.load_messages(conversation_id))

    @clause("C4", "B5")
    async def test_two_writers_lose_nothing(self, store: Store, samples: Samples, factory: Callable[[], Any]) -> None:
        """Batches of several writers on two handles stay together, each writer's in its own order, none lost or doubled."""
        conversation_id = await begin(store, samples)

        async def write(handle: Store, writer: int) -> None:
            for turn in range(10):
                await handle.append_messages(conversation_id, [user(f"{writer} {turn} {part}") for part in range(3)])

        async with second_store(store, factory) as other:
            await asyncio.gather(*(write(handle, n) for n, handle in enumerate((store, other, store, other))))
            loaded = contents(await other.load_messages(conversation_id))
        assert 120 == len(loaded)
        for start in range(0, 120, 3):
            writer, turn, _ = loaded[start].split()
            assert [f"{writer} {turn} {part}" for part in range(3)] == loaded[start : start + 3]
        for number in range(4):
            assert [str(n) for n in range(10) for _ in range(3)] == [
                each.split()[1] for each in loaded if each.startswith(f"{number} ")
            ]

    @clause("C4", "B3")
    async def test_updated_at_moves_whatever_the_clock_does(
        self, store: Store, samples: Samples, clocked: Callable[..., Store]
    ) -> None:
        """Every append and every rating moves updated_at, with a clock that stands still, steps back or jumps."""
        now = 1_764_500_000_000
        ticking = clocked(lambda: now)
        conversation_id = await begin(ticking, samples)
        last = await ticking.find_by_id(conversation_id)
        assert last is not None
        for now in (4_000_000_000_000, 4_000_000_000_000, 1_000, -5):
            for change in ("append", "rate"):
                if change == "append":
                    (stored,) = await ticking.append_messages(conversation_id, [user(str(now))])
                    assert datetime_from_ms(now) == stored.created_at
                else:
                    await ticking.rate(conversation_id, 3)
                found = await ticking.find_by_id(conversation_id)
                assert found is not None
                assert last.updated_at < found.updated_at
                assert last.created_at == found.created_at
                last = found
        assert ["4000000000000"] * 2 + ["1000", "-5"] == contents(await ticking.load_messages(conversation_id))
        await ticking.aclose()

    @clause("C4", "E1")
    async def test_a_failed_append_is_caught_as_either(self, store: Store, samples: Samples) -> None:
        """Appending to a closed store is a MessageAppendError that is a ClosedError too, with its cause."""
        conversation_id = await begin(store, samples)
        await store.aclose()
        with pytest.raises(MessageAppendError) as caught:
            await store.append_messages(conversation_id, [user("late")])
        assert isinstance(caught.value, ClosedError)
        assert isinstance(caught.value.__cause__, ClosedError)
        assert "MESSAGE_APPEND_FAILED" == caught.value.code
        assert conversation_id == caught.value.context["conversationId"]
