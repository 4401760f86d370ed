"""Clauses C4 and C7 as tests: text, parts, tool calls and free JSON are kept exactly, or refused before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from convostore.errors import (
    InvalidInput,
)
from convostore.model.message import (
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    TextPart,
    ThinkingPart,
    ToolCallRecord,
    ToolResultPart,
)
from convostore.opening import Store
from convostore.testing.appending_suite import begin, contents, user
from convostore.testing.awkward import refused_values
from convostore.testing.contract_view import second_store
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["ExactnessClauses"]


class ExactnessClauses(Suite):
    """C7, and what C4 says of values."""

    @clause("C4", "C11", "B11")
    async def test_text_is_kept_exactly(self, store: Store, samples: Samples, factory: Callable[[], Any]) -> None:
        """Every string is kept, lone surrogates, NUL and a megabyte on one line included, and the next append works."""
        conversation_id = await begin(store, samples)
        for text in samples.texts.values():
            await store.append_messages(
                conversation_id, [user(text, parts=(TextPart(text), ThinkingPart(text, signature=text)))]
            )
        async with second_store(store, factory) as other:
            loaded = await other.load_messages(conversation_id)
        assert list(samples.texts.values()) == contents(loaded)
        for text, message in zip(samples.texts.values(), loaded, strict=True):
            assert (TextPart(text), ThinkingPart(text, signature=text)) == message.parts

    @clause("C4")
    async def test_parts_are_kept_exactly(self, store: Store, samples: Samples) -> None:
        """Every kind of part comes back as it was, in its place, absent fields absent."""
        conversation_id = await begin(store, samples)
        parts = (
            ThinkingPart("hm"),
            ThinkingPart("", signature="abc==", redacted=True),
            TextPart("look"),
            ImagePart(media_type="image/png", data="aGk="),
            ImagePart(url="https://example.org/a.png"),
            FilePart(name="a.pdf", media_type="application/pdf", file_id="file-1"),
            FilePart(data=""),
            ToolResultPart({"rows": [1, 10**40]}, is_error=True, tool_call_id="c1"),
            ToolResultPart(None),
            OpaquePart("other/9", {"type": "custom", "x": -0.0}),
        )
        (stored,) = await store.append_messages(
            conversation_id, [Message(role="assistant", content="look", parts=parts)]
        )
        (loaded,) = await store.load_messages(conversation_id)
        assert stored == loaded
        assert parts == loaded.parts
        assert repr(parts) == repr(loaded.parts)

    @clause("C7", "C4", "B11")
    async def test_values_are_kept_exactly(self, store: Store, samples: Samples, factory: Callable[[], Any]) -> None:
        """Free JSON in calls, parts and metadata comes back exactly: types, order of keys, big integers, signs."""
        conversation_id = await begin(store, samples)
        for value in samples.payloads.values():
            await store.append_messages(
                conversation_id,
                [
                    Message(
                        role="assistant",
                        parts=(ToolResultPart(value), OpaquePart("other/1", value)),
                        tool_calls=(ToolCallRecord("t", "c", "success", value, value),),
                        metadata={"value": value},
                    )
                ],
            )
        async with second_store(store, factory) as other:
            loaded = await other.load_messages(conversation_id)
        for (name, value), message in zip(samples.payloads.items(), loaded, strict=True):
            (call,), (result, opaque) = message.tool_calls, message.parts
            assert isinstance(result, ToolResultPart)
            assert isinstance(opaque, OpaquePart)
            assert message.metadata is not None
            for kept in (call.input, call.output, result.output, opaque.value, message.metadata["value"]):
                assert repr(value) == repr(kept), name

    @clause("C4", "C7")
    async def test_values_that_cannot_be_kept_are_refused(self, store: Store, samples: Samples) -> None:
        """What JSON cannot carry exactly is InvalidInput wherever it hides, and nothing beside it is stored."""
        conversation_id = await begin(store, samples)
        before = await store.find_by_id(conversation_id)
        for value in refused_values.values():
            for bad in (
                Message(role="assistant", tool_calls=(ToolCallRecord("t", "c", "pending", value),)),
                Message(role="assistant", tool_calls=(ToolCallRecord("t", "c", "success", {}, value),)),
                Message(role="assistant", parts=(OpaquePart("other/1", value),)),
                Message(role="tool", tool_call_id="c", parts=(ToolResultPart(value),)),
                user("x", metadata={"value": value}),
            ):
                with pytest.raises(InvalidInput):
                    await store.append_messages(conversation_id, [user("good"), bad])
        assert [] == await store.load_messages(conversation_id)
        assert before == await store.find_by_id(conversation_id)

    @clause("C7")
    async def test_tool_calls_are_kept_exactly(self, store: Store, samples: Samples) -> None:
        """Names, ids, states, inputs and outputs come back as they were; output is null while pending."""
        conversation_id = await begin(store, samples)
        calls = (
            ToolCallRecord(
                "getBookings",
                "tc-001",
                "success",
                {"date": "2026-06-13"},
                {"success": True, "message": "Found 12 bookings", "data": []},
            ),
            ToolCallRecord("failing", "tc-002", "error", None, {"success": False, "message": "", "error": "no"}),
            ToolCallRecord("waiting", "tc-003", "pending", ["not", "an", "object"]),
            ToolCallRecord(" odd \u2028 name ", "tc 004 \ud83d", "success", "", ""),
            ToolCallRecord("getBookings", "tc-001", "success", {}, None),
        )
        await store.append_messages(conversation_id, [Message(role="assistant", content="", tool_calls=calls)])
        (loaded,) = await store.load_messages(conversation_id)
        assert calls == loaded.tool_calls
        assert loaded.tool_calls[2].output is None
        assert "" == loaded.content

    @clause("C7")
    async def test_a_pending_call_has_no_output(self, store: Store, samples: Samples) -> None:
        """A pending call with an output contradicts itself: InvalidInput."""
        conversation_id = await begin(store, samples)
        with pytest.raises(InvalidInput):
            await store.append_messages(
                conversation_id,
                [Message(role="assistant", tool_calls=(ToolCallRecord("t", "c", "pending", {}, {"a": 1}),))],
            )

    @clause("B16")
    async def test_what_is_given_and_returned_is_the_callers(self, store: Store, samples: Samples) -> None:
        """Changing what was passed in or returned changes nothing stored."""
        inputs: dict[str, Any] = {"a": [1]}
        metadata: dict[str, Any] = {"m": [1]}
        made = await store.create_conversation(samples.id("context"), samples.id("subject"), metadata=metadata)
        (stored,) = await store.append_messages(
            made.id,
            [Message(role="assistant", metadata=metadata, tool_calls=(ToolCallRecord("t", "c", "pending", inputs),))],
        )
        inputs["a"].append(2)
        metadata["m"].append(2)
        if stored.metadata is not metadata and stored.metadata is not None:
            stored.metadata["m"] = "changed"
        (loaded,) = await store.load_messages(made.id)
        loaded.tool_calls[0].input["a"].append(3)
        found = await store.find_by_id(made.id)
        assert found is not None
        assert found.metadata is not None
        found.metadata["m"].append(3)
        (again,) = await store.load_messages(made.id)
        assert {"a": [1]} == again.tool_calls[0].input
        assert {"m": [1]} == again.metadata
        found = await store.find_by_id(made.id)
        assert found is not None
        assert {"m": [1]} == found.metadata
