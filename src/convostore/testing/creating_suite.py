"""Clauses C1 to C3 as tests: conversations are created and found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from convostore.errors import ConversationExistsError, InvalidInput
from convostore.ids import Clock
from convostore.model.message import Message
from convostore.model.times import datetime_from_ms
from convostore.opening import Store
from convostore.testing.awkward import refused_ids, refused_values
from convostore.testing.contract_view import second_store
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["CreatingClauses", "standing_at"]

Clocked = Callable[[Clock], Store]


def standing_at(now_ms: int) -> Clock:
    """Return a clock that stands still."""
    return lambda: now_ms


class CreatingClauses(Suite):
    """C1, C2 and C3."""

    @pytest.fixture
    def clocked(self) -> Clocked:
        """Return a callable that opens a handle on this test's storage with the clock it is given."""
        pytest.skip("define the fixture 'clocked' (clock -> a new store on the same storage) to test clocks")

    @clause("C1")
    async def test_create_returns_what_is_stored(self, store: Store, samples: Samples) -> None:
        """What create_conversation returns is what find_by_id finds."""
        made = await store.create_conversation(
            samples.id("context"), samples.id("subject"), title="Bookings", metadata={"userId": "u-1"}
        )
        assert samples.id("context") == made.context
        assert samples.id("subject") == made.subject_id
        assert "Bookings" == made.title
        assert {"userId": "u-1"} == made.metadata
        assert made.id
        assert made.created_at.utcoffset() == timedelta(0)
        assert made.created_at <= made.updated_at
        assert 0 == made.message_count
        assert (None, None, None, None) == (made.rating, made.rating_comment, made.forked_from, made.agent_id)
        assert made == await store.find_by_id(made.id)

    @clause("C1")
    async def test_create_makes_ids_that_sort_by_time(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Ids made by the store are unique and sort in the order of creation, whichever handle makes them."""
        async with second_store(store, factory) as other:
            ids = [
                (await each.create_conversation(samples.id("context"), samples.id("subject"))).id
                for each in (store, other) * 10
            ]
        assert 20 == len(set(ids))
        assert sorted(ids) == ids

    @clause("C1")
    async def test_absent_metadata_stays_absent(self, store: Store, samples: Samples) -> None:
        """No metadata, empty metadata and metadata that holds null are three things."""
        for metadata in (None, {}, {"note": None}):
            made = await store.create_conversation(samples.id("context"), samples.id("subject"), metadata=metadata)
            found = await store.find_by_id(made.id)
            assert found is not None
            assert repr(metadata) == repr(made.metadata) == repr(found.metadata)
            assert found.title is None

    @clause("C1", "B11")
    async def test_metadata_is_kept_exactly(self, store: Store, samples: Samples, factory: Callable[[], Any]) -> None:
        """Metadata comes back exactly, also through another handle; in order of keys, down to the sign of zero."""
        async with second_store(store, factory) as other:
            for name, value in samples.payloads.items():
                if len(repr(value)) > 50_000:
                    continue  # heads hold less than that; see test_metadata_has_a_limit
                metadata = {"value": value, name: [value]}
                made = await store.create_conversation(samples.id("context"), samples.id("subject"), metadata=metadata)
                found = await other.find_by_id(made.id)
                assert found is not None
                assert repr(metadata) == repr(found.metadata), name

    @clause("C1")
    async def test_metadata_that_cannot_be_kept_is_refused(self, store: Store, samples: Samples) -> None:
        """Metadata that JSON cannot carry exactly is InvalidInput, and nothing was created."""
        for name, value in refused_values.items():
            with pytest.raises(InvalidInput):
                await store.create_conversation(
                    samples.id("context"), samples.id("subject"), id=samples.id(name), metadata={"value": value}
                )
            assert await store.find_by_id(samples.id(name)) is None
        for value in ("text", ["list"], 7):
            with pytest.raises(InvalidInput):
                await store.create_conversation(samples.id("context"), samples.id("subject"), metadata=value)  # type: ignore[arg-type]  # what is tested
        assert await store.find_latest(samples.id("context"), samples.id("subject")) is None

    @clause("C1", "B17")
    async def test_metadata_has_a_limit(self, store: Store, samples: Samples) -> None:
        """Metadata and titles come with every listing, so too much of them is InvalidInput."""
        with pytest.raises(InvalidInput):
            await store.create_conversation(
                samples.id("context"), samples.id("subject"), metadata={"text": "x" * 1_000_000}
            )
        with pytest.raises(InvalidInput):
            await store.create_conversation(samples.id("context"), samples.id("subject"), title="x" * 1_000_000)
        assert await store.find_latest(samples.id("context"), samples.id("subject")) is None

    @clause("C1", "B8")
    async def test_bad_ids_are_refused(self, store: Store, samples: Samples) -> None:
        """An id, context or subject that is none is InvalidInput on create and on every way to find."""
        context, subject = samples.id("context"), samples.id("subject")
        for bad in refused_ids.values():
            for call in (
                lambda bad=bad: store.create_conversation(bad, subject),
                lambda bad=bad: store.create_conversation(context, bad),
                lambda bad=bad: store.create_conversation(context, subject, id=bad),
                lambda bad=bad: store.find_by_id(bad),
                lambda bad=bad: store.find_latest(bad, subject),
                lambda bad=bad: store.find_latest(context, bad),
                lambda bad=bad: store.latest_or_create(context, bad),
                lambda bad=bad: store.load_messages(bad),
                lambda bad=bad: store.append_messages(bad, [Message(role="user", content="x")]),
                lambda bad=bad: store.rate(bad, 5),
                lambda bad=bad: store.delete_conversation(bad),
                lambda bad=bad: store.erase_subject(bad),
            ):
                with pytest.raises(InvalidInput):
                    await call()
        assert await store.find_latest(context, subject) is None

    @clause("C1")
    async def test_own_id_is_taken_once(self, store: Store, samples: Samples, factory: Callable[[], Any]) -> None:
        """An id of the caller's own is kept; a second creation with it raises, also at the same time elsewhere."""
        made = await store.create_conversation(samples.id("context"), samples.id("subject"), id=samples.id("one"))
        assert samples.id("one") == made.id
        with pytest.raises(ConversationExistsError) as caught:
            await store.create_conversation(samples.id("context"), samples.id("subject"), id=samples.id("one"))
        assert samples.id("one") == caught.value.context["id"]
        async with second_store(store, factory) as other:
            outcomes = await asyncio.gather(
                *(
                    each.create_conversation(samples.id("context"), samples.id("subject"), id=samples.id("two"))
                    for each in (store, other, store, other)
                ),
                return_exceptions=True,
            )
        assert 3 == sum(isinstance(each, ConversationExistsError) for each in outcomes), outcomes

    @clause("C1", "B7")
    async def test_create_with_an_idempotency_key_happens_once(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Repeating a creation with its key returns the conversation it created, with what happened to it since."""
        context, subject, key = samples.id("context"), samples.id("subject"), samples.id("key")
        first = await store.create_conversation(context, subject, title="one", idempotency_key=key)
        await store.append_messages(first.id, [Message(role="user", content="kept")])
        async with second_store(store, factory) as other:
            made = await asyncio.gather(
                *(
                    each.create_conversation(context, subject, title="one", idempotency_key=key)
                    for each in (store, other)
                )
            )
        assert {first.id} == {each.id for each in made}
        assert ["kept"] == [each.content for each in await store.load_messages(first.id)]
        assert 1 == len((await store.list_conversations(subject_id=subject)).items)
        second = await store.create_conversation(context, subject, idempotency_key=samples.id("other key"))
        assert first.id != second.id
        with pytest.raises(InvalidInput):
            await store.create_conversation(context, subject, id=samples.id("x"), idempotency_key=key)

    @clause("C1", "B7")
    async def test_two_creations_with_one_key_at_once_are_one(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """The same key at the same time through two handles makes one conversation."""
        async with second_store(store, factory) as other:
            made = await asyncio.gather(
                *(
                    each.create_conversation(samples.id("context"), samples.id("subject"), idempotency_key="k")
                    for each in (store, other, store, other)
                )
            )
        assert 1 == len({each.id for each in made})
        assert 1 == len((await store.list_conversations(subject_id=samples.id("subject"))).items)

    @clause("C2")
    async def test_find_latest_is_the_one_created_last(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """The latest is the last created, not the last used, and None when there is none."""
        context, subject = samples.id("context"), samples.id("subject")
        assert await store.find_latest(context, subject) is None
        async with second_store(store, factory) as other:
            first = await store.create_conversation(context, subject)
            second = await other.create_conversation(context, subject)
            await store.append_messages(first.id, [Message(role="user", content="later words")])
            await store.rate(first.id, 5)
            for each in (store, other):
                found = await each.find_latest(context, subject)
                assert found is not None
                assert second.id == found.id
        await store.delete_conversation(second.id)
        found = await store.find_latest(context, subject)
        assert found is not None
        assert first.id == found.id

    @clause("C2", "B8")
    async def test_find_latest_matches_both_exactly(self, store: Store, samples: Samples) -> None:
        """Context and subject match as they are: no trimming, no folding, no patterns, no mixing of the two."""
        names = ("a", "A", "a ", " a", "a%", "a_", "a*", "ab", "e\u0301", "\u00e9")
        made = {
            (context, subject): (await store.create_conversation(samples.id(context), samples.id(subject))).id
            for context in names
            for subject in names
        }
        for (context, subject), expected in made.items():
            found = await store.find_latest(samples.id(context), samples.id(subject))
            assert found is not None
            assert expected == found.id
        assert await store.find_latest(samples.id("a"), samples.id("abc")) is None
        assert await store.find_latest(samples.id("%"), samples.id("a")) is None

    @clause("C2", "B3")
    async def test_find_latest_does_not_trust_clocks(self, store: Store, samples: Samples, clocked: Clocked) -> None:
        """With a clock that stands still, steps back or jumps ahead, the one created last is still the latest."""
        context, subject = samples.id("context"), samples.id("subject")
        start = now = 1_764_500_000_000
        ticking = clocked(lambda: now)
        for now in (start, start, start, start - 86_400_000, start + 10 * 365 * 86_400_000, start, 0, -1, start - 1):
            made = await ticking.create_conversation(context, subject)
            found = await ticking.find_latest(context, subject)
            assert found is not None
            assert made.id == found.id, now
            assert datetime_from_ms(now) == made.created_at
        await ticking.aclose()

    @clause("C3")
    async def test_find_by_id_finds_or_gives_none(self, store: Store, samples: Samples) -> None:
        """find_by_id is exact, and None when there is no such conversation."""
        made = await store.create_conversation(samples.id("context"), samples.id("subject"), id=samples.id("one"))
        assert made == await store.find_by_id(samples.id("one"))
        for name in ("On", "one ", "ONE", "one%", "on_", "missing"):
            assert await store.find_by_id(samples.id(name)) is None

    @clause("C3")
    async def test_latest_or_create_resumes_or_begins(self, store: Store, samples: Samples) -> None:
        """latest_or_create creates the first one, then finds it, and goes on with whatever was created last."""
        context, subject = samples.id("context"), samples.id("subject")
        first = await store.latest_or_create(context, subject, title="first", metadata={"n": 1})
        assert ("first", {"n": 1}) == (first.title, first.metadata)
        again = await store.latest_or_create(context, subject, title="not used", metadata={"n": 2})
        assert first == again
        second = await store.create_conversation(context, subject)
        assert second.id == (await store.latest_or_create(context, subject)).id
        await store.delete_conversation(second.id)
        assert first.id == (await store.latest_or_create(context, subject)).id

    @clause("C3", "B9")
    async def test_latest_or_create_after_deletion_begins_anew(self, store: Store, samples: Samples) -> None:
        """After the only conversation was deleted, latest_or_create makes one that shows nothing of the old."""
        context, subject = samples.id("context"), samples.id("subject")
        for _ in range(3):
            made = await store.latest_or_create(context, subject)
            assert [] == await store.load_messages(made.id)
            assert (None, 0) == (made.rating, made.message_count)
            await store.append_messages(made.id, [Message(role="user", content="old")])
            await store.rate(made.id, 1)
            assert await store.delete_conversation(made.id)

    @clause("C3", "B5")
    async def test_latest_or_create_at_once_gives_one(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Many callers at once on two handles get the same conversation, and there is only that one."""
        context, subject = samples.id("context"), samples.id("subject")
        async with second_store(store, factory) as other:
            for _ in range(2):  # and once more after deletion
                made = await asyncio.gather(*(each.latest_or_create(context, subject) for each in (store, other) * 4))
                assert 1 == len({each.id for each in made})
                assert 1 == len((await store.list_conversations(context=context, subject_id=subject)).items)
                assert await other.delete_conversation(made[0].id)
