"""E1: every error names what it is about, carries its facts and can be pickled; absence is None only where it is absence."""

from __future__ import annotations

import json
import pickle
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from convostore.contracts.backend import Backend, HeadQuery, Window
from convostore.errors import (
    ConflictError,
    ConversationExistsError,
    ConversationNotFoundError,
    DuplicateEntryError,
    InvalidInput,
    NotFoundError,
    RevisionConflictError,
    StoreError,
)
from convostore.testing.drafts import change, creation, entry, refused
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["ErrorClauses"]

Call: TypeAlias = Callable[[], Awaitable[Any]]


class ErrorClauses(Suite):
    """What a refusal says."""

    @clause("E1")
    async def test_every_error_carries_its_facts(self, backend: Backend, samples: Samples) -> None:
        """Each error has the class and code of its kind, names the conversation and the entry, and says what to do next."""
        mine, gone = samples.id("c"), samples.id("gone")
        made = await backend.commit(creation(mine, entry("a"), subject_id=samples.id("owner")))
        assert made.head is not None
        cases: list[tuple[type[StoreError], str, Call, dict[str, object]]] = [
            (InvalidInput, "INVALID_INPUT", lambda: backend.read("a\nb"), {}),
            (ConversationNotFoundError, "CONVERSATION_NOT_FOUND", lambda: backend.commit(change(gone)), {"id": gone}),
            (ConversationExistsError, "CONVERSATION_EXISTS", lambda: backend.commit(creation(mine)), {"id": mine}),
            (
                RevisionConflictError,
                "REVISION_CONFLICT",
                lambda: backend.commit(change(mine, expected_revision="r0")),
                {"id": mine, "expected": "r0", "actual": made.head.revision},
            ),
            (
                RevisionConflictError,
                "REVISION_CONFLICT",
                lambda: backend.commit(change(mine, replace=(entry("a", expected_stamp=77),))),
                {"id": mine, "entryId": "a", "expected": 77, "actual": made.appended[0].stamp},
            ),
            (
                DuplicateEntryError,
                "DUPLICATE_ENTRY",
                lambda: backend.commit(change(mine, entry("a", b"other"))),
                {"id": mine, "entryId": "a"},
            ),
            (
                NotFoundError,
                "NOT_FOUND",
                lambda: backend.commit(change(mine, replace=(entry("z"),))),
                {"id": mine, "entryId": "z"},
            ),
            (
                ConflictError,
                "CONFLICT",
                lambda: backend.commit(change(mine, set_subject=samples.id("x"))),
                {"id": mine},
            ),
        ]
        for kind, code, call, context in cases:
            error = await refused(kind, call(), code)
            assert code == error.code
            assert not error.retryable
            assert context == {name: error.context.get(name) for name in context}, code
            json.dumps(error.context)
            assert len(str(error)) > 20, "an error says what, which and what to do next"
            assert all(str(value) in str(error) for name, value in context.items() if name in ("id", "entryId"))
            assert not any(name in str(error) for name in (samples.id("owner"), samples.id("x"))), "tells who owns it"

    @clause("E1")
    async def test_errors_survive_pickling(self, backend: Backend, samples: Samples) -> None:
        """An error that crosses a process boundary arrives with its class, message, context and attributes."""
        mine = samples.id("c")
        await backend.commit(creation(mine, entry("a")))
        calls: list[Call] = [
            lambda: backend.commit(change(mine, entry("a", b"other"))),
            lambda: backend.commit(change(mine, expected_revision="r0")),
            lambda: backend.commit(change(samples.id("gone"))),
            lambda: backend.read(""),
            lambda: backend.scan_heads(HeadQuery(cursor="x")),
        ]
        for call in calls:
            error = await _error(call())
            arrived = pickle.loads(pickle.dumps(error))  # noqa: S301  made three lines above
            assert (type(error), str(error), error.context, vars(error)) == (
                type(arrived),
                str(arrived),
                arrived.context,
                vars(arrived),
            )

    @clause("E1", "E2")
    async def test_only_what_is_absent_is_none(self, backend: Backend, samples: Samples) -> None:
        """Reading what was never there is None, with every window and document; a bad argument is an error there too."""
        gone = samples.id("gone")
        reads: list[Call] = [
            lambda: backend.read(gone),
            lambda: backend.read(gone, Window(), None),
            lambda: backend.read(gone, Window(damaged="report"), ["todos"]),
            lambda: backend.read(gone, None, ("todos",)),
        ]
        for read in reads:
            assert await read() is None
        await refused(InvalidInput, backend.read(gone, Window(limit=-1)), "a bad window on an absent conversation")
        await backend.commit(creation(gone))
        for read in reads:
            snapshot = await read()
            assert ((), {}, ()) == (snapshot.entries, snapshot.documents, snapshot.damage)


async def _error(call: Awaitable[object]) -> StoreError:
    try:
        await call
    except StoreError as error:
        return error
    raise AssertionError("not refused")
