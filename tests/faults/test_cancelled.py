"""A call cancelled at each of its awaits: all of it is there or nothing, the store goes on, and repeating it never doubles.

The awaits are found by running the call: it is cancelled at its first one, then, on a fresh conversation, at its second, and so
on until it ends by itself. At each it is cancelled twice over: as soon as it waits, and when what it waited for has happened.
"""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest

import convostore
from convostore import Message, TodoItem, TodoSnapshot, ToolCallRecord
from convostore.model.chat_item import ChatConversation, ChatItem
from convostore.model.session_message import SessionMessage
from convostore.opening import InMemoryConversationStore, Store
from tests.crash.batches import batch, judge_messages, key_of

Moment: TypeAlias = Literal["waiting", "answered"]


class CancelledAt:
    """Awaits `call` and cancels it at its await number `step`; true in the end if it was."""

    def __init__(self, call: Awaitable[Any], step: int, moment: Moment) -> None:
        self._call = call
        self._step = step
        self._moment = moment

    def __await__(self) -> Generator[Any, Any, bool]:
        inner = self._call.__await__()
        for step in itertools.count():
            try:
                future = next(inner)
            except StopIteration:
                return False
            cancels = step == self._step
            if not cancels or self._moment == "answered":
                yield future
            if cancels:
                with pytest.raises(asyncio.CancelledError):
                    inner.throw(asyncio.CancelledError())
                return True
        raise AssertionError


def _said(*texts: str) -> list[SessionMessage]:
    return [{"role": "user", "content": text} for text in texts]


def _chat(name: str, *texts: str) -> ChatConversation:
    items: list[ChatItem] = [
        {"id": place, "type": "message", "role": "user", "content": text} for place, text in enumerate(texts)
    ]
    return {"id": name, "title": texts[-1], "items": items}


def _tool_item(status: Literal["pending", "completed"]) -> ChatItem:
    return {"id": "t", "type": "tool_call", "toolCall": {"id": "k", "name": "f", "arguments": {}, "status": status}}


_CALLED = Message(role="assistant", id="m", tool_calls=(ToolCallRecord("f", "k", "pending", {}),))
_TODOS = TodoSnapshot((TodoItem("1", "x"),))

# Each: what makes the conversation `n`, and the call. Repeated, each is one that has happened or one that changes nothing.
_Do: TypeAlias = Callable[[Store, str], Awaitable[Any]]
_CALLS: dict[str, tuple[_Do | None, _Do]] = {
    "create_conversation": (None, lambda s, n: s.create_conversation("x", "s", id=n, title="t", metadata={"a": 1})),
    "create with a key": (None, lambda s, n: s.create_conversation("x", n, idempotency_key="k")),
    "latest_or_create": (None, lambda s, n: s.latest_or_create("x", n)),
    "append_messages": (
        lambda s, n: s.create_conversation("x", "s", id=n),
        lambda s, n: s.append_messages(n, batch((0, 0), 4), idempotency_key="k"),
    ),
    "rate": (lambda s, n: s.create_conversation("x", "s", id=n), lambda s, n: s.rate(n, 4, "good")),
    "update_conversation": (
        lambda s, n: s.create_conversation("x", "s", id=n),
        lambda s, n: s.update_conversation(n, title="new", metadata={"b": 2}),
    ),
    "update_message": (
        lambda s, n: _with_call(s, n),
        lambda s, n: s.update_message(n, Message(role="assistant", id="m", content="edited")),
    ),
    "finish_tool_call": (
        lambda s, n: _with_call(s, n),
        lambda s, n: s.finish_tool_call(n, "k", "success", {"rows": [1]}),
    ),
    "delete_conversation": (lambda s, n: _with_call(s, n), lambda s, n: s.delete_conversation(n)),
    "fork_conversation": (lambda s, n: _with_call(s, n), lambda s, n: s.fork_conversation(n, id=f"{n} fork")),
    "sessions.save_messages": (
        lambda s, n: s.sessions.save_messages(n, _said("a", "b", "c")),
        lambda s, n: s.sessions.save_messages(n, _said("a", "x", "c", "d")),
    ),
    "sessions.save_todos": (None, lambda s, n: s.sessions.save_todos(n, _TODOS)),
    "sessions.delete": (lambda s, n: s.sessions.save_todos(n, _TODOS), lambda s, n: s.sessions.delete(n)),
    "chat.save_conversation": (
        lambda s, n: s.chat.save_conversation(_chat(n, "a", "b")),
        lambda s, n: s.chat.save_conversation(_chat(n, "a", "x", "y")),
    ),
    "chat.append_item of a call": (
        lambda s, n: s.chat.save_conversation(_chat(n, "a")),
        lambda s, n: s.chat.append_item(n, _tool_item("pending")),
    ),
    "chat.append_item of its end": (
        lambda s, n: _with_call(s, n),
        lambda s, n: s.chat.append_item(n, _tool_item("completed")),
    ),
    "chat.clear_conversation_history": (
        lambda s, n: s.chat.save_conversation(_chat(n, "a", "b")),
        lambda s, n: s.chat.clear_conversation_history(n),
    ),
    "chat.set_conversation_agent": (None, lambda s, n: s.chat.set_conversation_agent(n, "agent")),
}


async def _with_call(store: Store, name: str) -> None:
    await store.create_conversation("x", "s", id=name)
    await store.append_messages(name, [Message(role="user", content="go"), _CALLED])


async def _seen(store: Store, name: str) -> Any:
    """Return all that is known of a conversation, as a caller sees it, but for its name, times and revisions."""
    found: list[Any] = []
    for each in (name, f"{name} fork"):
        there = await store.find_by_id(each)
        found.append(
            there
            and (there.title, there.metadata, there.rating, there.rating_comment, there.agent_id, there.message_count)
        )
        found.append([(m.role, m.content, m.tool_calls) for m in await store.load_messages(each, system=True)])
        found.append(await store.sessions.load_todos(each))
    found.append(len((await store.list_conversations(context="x", subject_id=name)).items))
    return found


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Yield an empty store."""
    opened = InMemoryConversationStore() if request.param == "memory" else convostore.open(tmp_path / "s.db")
    async with opened as store:
        yield store


@pytest.mark.parametrize("moment", ["waiting", "answered"])
@pytest.mark.parametrize("call", _CALLS)
async def test_a_call_cancelled_at_any_await_happened_or_did_not(store: Store, call: str, moment: Moment) -> None:
    """Afterwards what is seen is what was there before or what the call makes of it, and in the end the call succeeds."""
    prepare, do = _CALLS[call]

    async def prepared(name: str) -> str:
        if prepare is not None:
            await prepare(store, name)
        return name

    before = await _seen(store, await prepared("before"))
    done = await prepared("done")
    await do(store, done)
    after = await _seen(store, done)
    for step in range(50):
        name = await prepared(f"at {step}")
        cancelled = await CancelledAt(do(store, name), step, moment)
        # Whatever was accepted is carried out before this commit is: the writer takes changes in their order.
        await store.create_conversation("x", "s")
        found = await _seen(store, name)
        assert found in ((before, after) if cancelled else (after,)), f"at await {step}"
        try:
            await do(store, name)
        except convostore.ConversationExistsError:
            assert after == found, f"at await {step}"  # a caller's own id tells that it happened
        assert after == await _seen(store, name), f"repeated after await {step}"
        if not cancelled:
            break
    else:
        raise AssertionError("the call never ended")
    assert step or isinstance(store, InMemoryConversationStore), "a call to SQLite that never waited"


async def test_an_append_cancelled_after_any_number_of_turns_never_doubles(tmp_path: Path) -> None:
    """A task cancelled after 0, 1, 2, ... turns of the loop has appended all or nothing; repeated, it is there once."""
    async with convostore.open(tmp_path / "s.db") as store:
        await store.create_conversation("x", "s", id="c")
        cancelled = 0
        for turns in range(60):
            name = (0, turns)
            task = asyncio.create_task(store.append_messages("c", batch(name), idempotency_key=key_of(name)))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            (outcome,) = await asyncio.gather(task, return_exceptions=True)
            cancelled += isinstance(outcome, asyncio.CancelledError)
            acknowledged = [(0, number) for number in range(turns)]
            assert [] == judge_messages(await store.load_messages("c"), acknowledged)
            await store.append_messages("c", batch(name), idempotency_key=key_of(name))
        messages = await store.load_messages("c")
        assert [] == judge_messages(messages, [(0, number) for number in range(60)])
        assert 180 == len(messages)
        assert cancelled >= 2


@pytest.mark.parametrize("key", ["idempotency key", "ids"])
async def test_an_append_cancelled_while_the_writer_holds_it_never_doubles(tmp_path: Path, key: str) -> None:
    """With the database locked by somebody else: the change may still happen, once, and what came behind it does happen."""
    async with convostore.open(tmp_path / "s.db") as store:
        await store.create_conversation("x", "s", id="c")
        messages = batch((0, 0))
        if key == "ids":
            messages = [Message(role=m.role, content=m.content, id=f"m{place}") for place, m in enumerate(messages)]

        async def append() -> None:
            await store.append_messages("c", messages, idempotency_key="k" if key == "idempotency key" else None)

        with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            task = asyncio.create_task(append())
            behind = asyncio.create_task(store.append_messages("c", batch((1, 0)), idempotency_key="b"))
            for _ in range(3):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not behind.done()
            other.execute("ROLLBACK")
        await behind
        assert [] == judge_messages(await store.load_messages("c"), [(1, 0)])
        await append()
        await append()
        found = await store.load_messages("c")
        assert [] == judge_messages(found, [(0, 0), (1, 0)])
        assert 6 == len(found)


async def test_a_read_cancelled_at_any_await_leaves_the_store_working(tmp_path: Path) -> None:
    """Small and large reads and listings, cancelled at each await, hinder neither the next read nor a commit."""
    async with convostore.open(tmp_path / "s.db", readers=1) as store:
        await store.sessions.save_messages("c", _said(*map(str, range(400))))
        calls: list[Callable[[], Awaitable[Any]]] = [
            lambda: store.load_messages("c", limit=3),
            lambda: store.load_messages("c"),
            lambda: store.list_conversations(),
            lambda: store.sessions.load_todos("c"),
            lambda: store.chat.get_all_conversations(),
        ]
        points = 0
        moments: tuple[Moment, ...] = ("waiting", "answered")
        for call, moment in itertools.product(calls, moments):
            for step in range(50):
                if not await CancelledAt(call(), step, moment):
                    break
                points += 1
                await store.sessions.save_todos("c", _TODOS)
                assert 400 == len(await store.load_messages("c"))
        assert points >= 2
