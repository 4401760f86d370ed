"""Clauses C1 to C12 as tests: the suite of the conversation contract.

Someone with a backend of their own writes::

    class TestMyStore(ConversationSuite):
        @pytest.fixture
        def factory(self, tmp_path):
            return lambda: Store(MyBackend(tmp_path / "data"))

and, to have the clauses about clocks tested too, a fixture `clocked`: a callable that takes a clock and returns such a store
with it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, ClassVar

from convostore.dialects.hub import message_from_wire, message_to_wire
from convostore.model.conversation import conversation_to_wire
from convostore.model.message import Message, ToolCallRecord
from convostore.model.times import iso_from_ms, ms_from_datetime
from convostore.opening import Store
from convostore.testing.appending_suite import AppendingClauses, begin, user
from convostore.testing.exactness_suite import ExactnessClauses
from convostore.testing.loading_suite import LoadingClauses
from convostore.testing.managing_suite import ManagingClauses
from convostore.testing.rating_suite import RatingClauses
from convostore.testing.scoping_suite import ScopingClauses
from convostore.testing.suite import Samples, clause

__all__ = ["ConversationSuite"]


class _Listener(logging.Handler):
    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__()
        self.records = records

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def _heard(level: int) -> Iterator[list[logging.LogRecord]]:
    """Give what the logger `convostore` says inside the block when it is set to `level`."""
    records: list[logging.LogRecord] = []
    handler = _Listener(records)
    logger = logging.getLogger("convostore")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield records
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)


class ConversationSuite(
    AppendingClauses, ExactnessClauses, RatingClauses, LoadingClauses, ManagingClauses, ScopingClauses
):
    """Every clause of the conversation contract."""

    contracts: ClassVar[tuple[str, ...]] = ("convostore.contracts.conversation_store",)

    @clause("C11")
    async def test_a_message_on_the_wire(self, store: Store, samples: Samples) -> None:
        """A stored message is the original contract's JSON: these fields, these names, and no others."""
        made = await store.create_conversation(samples.id("context"), samples.id("subject"), id=samples.id("conv"))
        moment = datetime(2026, 6, 13, 9, 5, 0, 7_000, tzinfo=UTC)
        stored = await store.append_messages(
            made.id,
            [
                user("Show me bookings", id=samples.id("m1"), created_at=moment),
                Message(
                    role="assistant",
                    content="",
                    id=samples.id("m2"),
                    created_at=moment,
                    tool_calls=(
                        ToolCallRecord("getBookings", "tc-001", "pending", {"date": "2026-06-13"}),
                        ToolCallRecord(
                            "other", "tc-002", "success", None, {"success": True, "message": "", "data": []}
                        ),
                    ),
                ),
            ],
        )
        expected: list[dict[str, Any]] = [
            {
                "id": samples.id("m1"),
                "conversationId": made.id,
                "role": "user",
                "content": "Show me bookings",
                "createdAt": "2026-06-13T09:05:00.007Z",
            },
            {
                "id": samples.id("m2"),
                "conversationId": made.id,
                "role": "assistant",
                "content": "",
                "createdAt": "2026-06-13T09:05:00.007Z",
                "toolCalls": [
                    {
                        "toolName": "getBookings",
                        "toolCallId": "tc-001",
                        "state": "pending",
                        "input": {"date": "2026-06-13"},
                        "output": None,
                    },
                    {
                        "toolName": "other",
                        "toolCallId": "tc-002",
                        "state": "success",
                        "input": None,
                        "output": {"success": True, "message": "", "data": []},
                    },
                ],
            },
        ]
        assert expected == [message_to_wire(each) for each in stored]
        assert expected == [message_to_wire(each) for each in await store.load_messages(made.id)]
        assert stored == [message_from_wire(each) for each in expected]

    @clause("C11")
    async def test_the_wire_takes_what_the_original_appends(self, store: Store, samples: Samples) -> None:
        """A message as the original's callers append it, without id and createdAt, is read from the wire and stored."""
        conversation_id = await begin(store, samples)
        sent = {"conversationId": conversation_id, "role": "user", "content": "Show me bookings for tomorrow"}
        (stored,) = await store.append_messages(conversation_id, [message_from_wire(sent)])
        assert sent == {name: value for name, value in message_to_wire(stored).items() if name in sent}
        assert {*sent, "id", "createdAt"} == set(message_to_wire(stored))

    @clause("C11", "B11")
    async def test_the_wire_is_exact(self, store: Store, samples: Samples) -> None:
        """To the wire and back nothing changes: texts, values, order of keys, absence."""
        conversation_id = await begin(store, samples)
        given = [user(each, metadata={"text": each}) for each in samples.texts.values()]
        given += [
            Message(role="assistant", tool_calls=(ToolCallRecord("t", "c", "success", each, each),))
            for each in samples.payloads.values()
        ]
        stored = await store.append_messages(conversation_id, given)
        for each in stored:
            again = message_from_wire(message_to_wire(each))
            assert each == again
            assert repr([(call.input, call.output) for call in each.tool_calls]) == repr(
                [(call.input, call.output) for call in again.tool_calls]
            )

    @clause("C11")
    async def test_a_conversation_on_the_wire(self, store: Store, samples: Samples) -> None:
        """A conversation has the original's fields under the original's names; what is absent is absent, never null."""
        made = await store.create_conversation(samples.id("context"), samples.id("subject"))
        wire = conversation_to_wire(made)
        expected = {
            "id": made.id,
            "context": samples.id("context"),
            "subjectId": samples.id("subject"),
            "createdAt": iso_from_ms(ms_from_datetime(made.created_at)),
            "updatedAt": iso_from_ms(ms_from_datetime(made.updated_at)),
        }
        assert expected == {name: wire[name] for name in expected}
        assert set() == {"metadata", "rating", "ratingComment", "title"} & set(wire)
        assert None not in wire.values()
        await store.update_conversation(made.id, metadata={"orgName": None})
        await store.rate(made.id, 5, "Very helpful!")
        rated = await store.find_by_id(made.id)
        assert rated is not None
        wire = conversation_to_wire(rated)
        assert ({"orgName": None}, 5, "Very helpful!") == (wire["metadata"], wire["rating"], wire["ratingComment"])

    @clause("C12")
    async def test_creations_and_appends_are_logged(self, store: Store, samples: Samples) -> None:
        """At debug level the logger `convostore` says what was created and how much was appended, and no content."""
        with _heard(logging.DEBUG) as heard:
            made = await store.create_conversation(samples.id("context"), samples.id("subject"), title="secret title")
            await store.append_messages(made.id, [user("secret content")] * 3)
        (created,) = [each for each in heard if "createConversation" in each.getMessage()]
        (appended,) = [each for each in heard if "appendMessages" in each.getMessage()]
        assert (logging.DEBUG, logging.DEBUG) == (created.levelno, appended.levelno)
        for fact in (made.id, samples.id("context"), samples.id("subject")):
            assert fact in created.getMessage()
        for fact in (made.id, "3"):
            assert fact in appended.getMessage()
        assert not any("secret" in each.getMessage() for each in heard)

    @clause("C12")
    async def test_logging_is_silent_unless_asked_for(self, store: Store, samples: Samples) -> None:
        """Above debug level a store that works says nothing."""
        with _heard(logging.INFO) as heard:
            await store.append_messages(await begin(store, samples), [user("x")])
        assert [] == heard
