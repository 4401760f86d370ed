"""Clause C6 as tests: conversations are rated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from convostore.errors import (
    ConversationNotFoundError,
    InvalidInput,
)
from convostore.opening import Store
from convostore.testing.appending_suite import begin, user
from convostore.testing.contract_view import second_store
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["RatingClauses"]


class RatingClauses(Suite):
    """C6."""

    @clause("C6")
    async def test_rate_from_one_to_five(self, store: Store, samples: Samples, factory: Callable[[], Any]) -> None:
        """Ratings 1 to 5 are kept, the last one counts, and updated_at moves each time."""
        conversation_id = await begin(store, samples)
        last = await store.find_by_id(conversation_id)
        assert last is not None
        async with second_store(store, factory) as other:
            for rating in (1, 2, 3, 4, 5, 5, 1):
                await store.rate(conversation_id, rating, f"comment {rating}")
                found = await other.find_by_id(conversation_id)
                assert found is not None
                assert (rating, f"comment {rating}") == (found.rating, found.rating_comment)
                assert last.updated_at < found.updated_at
                last = found

    @clause("C6")
    async def test_an_earlier_comment_stays(self, store: Store, samples: Samples) -> None:
        """Rating without a comment keeps the earlier comment; rating never touches title, metadata or messages."""
        made = await store.create_conversation(
            samples.id("context"), samples.id("subject"), title="T", metadata={"n": 1}
        )
        await store.append_messages(made.id, [user("x")])
        await store.rate(made.id, 4)
        found = await store.find_by_id(made.id)
        assert found is not None
        assert (4, None) == (found.rating, found.rating_comment)
        await store.rate(made.id, 5, "Very helpful! \ud83d \u2028")
        await store.rate(made.id, 2)
        found = await store.find_by_id(made.id)
        assert found is not None
        assert (2, "Very helpful! \ud83d \u2028") == (found.rating, found.rating_comment)
        assert ("T", {"n": 1}, 1) == (found.title, found.metadata, found.message_count)

    @clause("C6")
    async def test_bad_ratings_are_refused(self, store: Store, samples: Samples) -> None:
        """A rating that is no whole number from 1 to 5 is InvalidInput and changes nothing."""
        conversation_id = await begin(store, samples)
        await store.rate(conversation_id, 3, "fine")
        before = await store.find_by_id(conversation_id)
        bad: tuple[Any, ...] = (0, 6, -1, 10**40, 3.5, float("nan"), float("inf"), "5", None, True, [5], b"5")
        for rating in bad:
            with pytest.raises(InvalidInput):
                await store.rate(conversation_id, rating, "not kept")
        with pytest.raises(InvalidInput):
            await store.rate(conversation_id, 4, b"bytes")  # type: ignore[arg-type]  # what is tested
        assert before == await store.find_by_id(conversation_id)

    @clause("C6")
    async def test_rate_the_unknown(self, store: Store, samples: Samples) -> None:
        """Rating an unknown conversation is ConversationNotFoundError with its id."""
        with pytest.raises(ConversationNotFoundError) as caught:
            await store.rate(samples.id("missing"), 5)
        assert samples.id("missing") == caught.value.context["id"]
        with pytest.raises(InvalidInput):
            await store.rate(samples.id("missing"), 9)
        assert await store.find_by_id(samples.id("missing")) is None
