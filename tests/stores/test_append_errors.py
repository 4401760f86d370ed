"""An append that fails for a reason outside the call says so twice: as a failed append and as what it was."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from convostore import errors
from convostore.backends.memory import MemoryBackend
from convostore.contracts.backend import Change, Receipt, Snapshot, Window
from convostore.model.message import Message
from convostore.opening import Store


class FailingBackend(MemoryBackend):
    """A backend whose next commits and reads fail as told."""

    failure: Exception | None = None

    async def commit(self, change: Change, /) -> Receipt:
        if self.failure is not None:
            raise self.failure
        return await super().commit(change)

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: Sequence[str] | None = (), /
    ) -> Snapshot | None:
        if self.failure is not None:
            raise self.failure
        return await super().read(conversation_id, window, documents)


_HI = [Message(role="user", content="hi")]


@pytest.mark.parametrize(
    ("cause", "kind", "member"),
    [
        (errors.UnavailableError("locked"), errors.UnavailableError, errors.AppendUnavailable),
        (errors.CorruptDataError("c", ["bad"]), errors.CorruptDataError, errors.AppendCorruptData),
        (errors.ClosedError("closed"), errors.ClosedError, errors.AppendClosed),
        (RuntimeError("a bug in a driver"), errors.MessageAppendError, errors.MessageAppendError),
        (errors.SchemaTooNewError("newer"), errors.MessageAppendError, errors.MessageAppendError),
    ],
)
async def test_other_failures_are_append_errors(
    cause: Exception, kind: type[Exception], member: type[errors.MessageAppendError]
) -> None:
    """Each is a MessageAppendError with its cause, and of the cause's kind where there is such a member."""
    backend = FailingBackend()
    store = Store(backend)
    made = await store.create_conversation("context", "subject")
    backend.failure = cause
    with pytest.raises(errors.MessageAppendError) as caught:
        await store.append_messages(made.id, _HI)
    assert member is type(caught.value)
    assert isinstance(caught.value, kind)
    assert cause is caught.value.__cause__
    assert ("MESSAGE_APPEND_FAILED", {"conversationId": made.id}) == (caught.value.code, caught.value.context)
    assert isinstance(cause, errors.UnavailableError) == caught.value.retryable
    backend.failure = None
    await store.append_messages(made.id, _HI)
    assert 1 == len(await store.load_messages(made.id))


@pytest.mark.parametrize(
    "cause",
    [
        errors.InvalidInput("bad"),
        errors.ConversationNotFoundError("c"),
        errors.RevisionConflictError("c", expected="a", actual="b"),
        errors.DuplicateEntryError("c", "e"),
        errors.ConversationExistsError("c"),
        errors.ConflictError("c"),
    ],
)
async def test_the_callers_errors_keep_their_class(cause: errors.StoreError) -> None:
    """What the caller can mend comes through as it is."""
    backend = FailingBackend()
    store = Store(backend)
    made = await store.create_conversation("context", "subject")
    backend.failure = cause
    with pytest.raises(type(cause)) as caught:
        await store.append_messages(made.id, _HI)
    assert cause is caught.value


async def test_a_cancelled_append_is_no_append_error() -> None:
    """A cancellation passes through as what it is."""

    class Waiting(MemoryBackend):
        async def commit(self, change: Change, /) -> Receipt:
            await asyncio.Event().wait()
            raise AssertionError("never set")

    store = Store(Waiting())
    task = asyncio.create_task(store.append_messages("c", _HI))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
