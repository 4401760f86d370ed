"""Clauses S1 to S5 and S7 as tests: the suite of the session contract.

`factory` returns an object with the methods of `convostore.contracts.session_store.SessionStore`; nothing else of it is used,
so a session store of any make can be tested; ours as ``lambda: SessionSuite.view(convostore.open(url))``.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from convostore.contracts.session_store import SessionStore
from convostore.errors import InvalidInput
from convostore.model.todo import AgentInfo, TodoItem, TodoSnapshot
from convostore.stores.sessions import create_todo_snapshot, serialize_agent_state
from convostore.testing.awkward import refused_ids
from convostore.testing.contract_view import ContractView, second_store
from convostore.testing.session_saving_suite import FilteringSessions, session_messages, user_message
from convostore.testing.suite import Samples, clause

__all__ = ["SessionSuite"]

_T0 = 1_764_500_000_000


def _info(session_id: str, **fields: Any) -> AgentInfo:
    values: dict[str, Any] = {
        "session_id": session_id,
        "model": "gpt-4",
        "provider": "openai",
        "system_prompt": "You are helpful.",
        "created_at": _T0,
        "updated_at": _T0 + 1,
        "message_count": 7,
    }
    return AgentInfo(**values | fields)


class SessionSuite(FilteringSessions):
    """Every clause of the session contract, but S6, which is the file backend's."""

    contracts: ClassVar[tuple[str, ...]] = ("convostore.contracts.session_store",)

    @staticmethod
    def view(store: Any) -> Any:
        """Return the session contract of one of our stores by itself."""
        return ContractView(store, store.sessions)

    @clause("S2")
    async def test_todos_load_as_saved(self, store: SessionStore, samples: Samples, factory: Callable[[], Any]) -> None:
        """Todos are saved whole, the last ones count, and saving creates the session."""
        assert await store.load_todos(samples.id("s")) is None
        first = TodoSnapshot(
            (TodoItem("1", "look"), TodoItem("2", "", "in_progress"), TodoItem("1", "l", "completed")), "r"
        )
        async with second_store(store, factory) as other:
            snapshots = [
                first,
                TodoSnapshot(()),
                *(TodoSnapshot((TodoItem(t, t),), t) for t in samples.texts.values()),
                first,
            ]
            for snapshot in snapshots:
                await store.save_todos(samples.id("s"), snapshot)
                assert snapshot == await other.load_todos(samples.id("s"))
            assert await other.exists(samples.id("s"))
            assert [samples.id("s")] == await other.list(samples.id())
            assert [] == await other.load_messages(samples.id("s"))
            assert await other.load_info(samples.id("s")) is None

    @clause("S2")
    async def test_info_loads_as_saved(self, store: SessionStore, samples: Samples, factory: Callable[[], Any]) -> None:
        """What is known about the agent is kept as the caller says it, counts and times included."""
        assert await store.load_info(samples.id("s")) is None
        async with second_store(store, factory) as other:
            for info in (
                _info(samples.id("s")),
                _info(samples.id("s"), message_count=0, created_at=0, updated_at=-5),
                *(
                    _info(samples.id("s"), model=each, provider=each, system_prompt=each)
                    for each in samples.texts.values()
                ),
            ):
                await store.save_info(samples.id("s"), info)
                assert info == await other.load_info(samples.id("s"))
            assert await other.exists(samples.id("s"))
            assert await other.load_todos(samples.id("s")) is None
            await store.save_messages(samples.id("s"), session_messages())
            assert info == await other.load_info(samples.id("s"))

    @clause("S2")
    async def test_messages_todos_and_info_do_not_touch_each_other(self, store: SessionStore, samples: Samples) -> None:
        """Saving one of the three leaves the other two."""
        snapshot, info = TodoSnapshot((TodoItem("1", "a"),)), _info(samples.id("s"))
        await store.save_messages(samples.id("s"), session_messages())
        await store.save_todos(samples.id("s"), snapshot)
        await store.save_info(samples.id("s"), info)
        await store.save_messages(samples.id("s"), [])
        await store.append_messages(samples.id("s"), session_messages())
        assert snapshot == await store.load_todos(samples.id("s"))
        assert info == await store.load_info(samples.id("s"))
        assert repr(session_messages()) == repr(await store.load_messages(samples.id("s")))

    @clause("S3", "B9")
    async def test_delete_leaves_nothing(
        self, store: SessionStore, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """A deleted session is gone with all that belongs to it; deleting it again is no error; others stay."""
        names = [samples.id(each) for each in ("foo", "foobar", "Foo", "fo")]
        for each in names:
            await store.save_messages(each, session_messages())
            await store.save_todos(each, TodoSnapshot(()))
            await store.save_info(each, _info(each))
        async with second_store(store, factory) as other:
            for handle in (store, other, store):
                await handle.delete(names[0])
                assert await other.exists(names[0]) is False
                assert [] == await other.load_messages(names[0])
                assert await other.load_todos(names[0]) is None
                assert await other.load_info(names[0]) is None
            assert sorted(names[1:]) == await other.list(samples.id())
            await other.append_messages(names[0], [user_message("new life")])
            assert [user_message("new life")] == await store.load_messages(names[0])
            assert await store.load_todos(names[0]) is None
            assert await store.load_info(names[0]) is None
        await store.delete(samples.id("never there"))

    @clause("S3")
    async def test_every_save_creates_the_session(self, store: SessionStore, samples: Samples) -> None:
        """Saving messages (even none), todos or info makes the session exist; nothing else does."""
        await store.save_messages(samples.id("messages"), [])
        await store.save_todos(samples.id("todos"), TodoSnapshot(()))
        await store.save_info(samples.id("info"), _info("another name"))
        await store.delete(samples.id("deleted"))
        names = ("messages", "todos", "info", "deleted")
        assert [True, True, True, False] == [await store.exists(samples.id(each)) for each in names]
        assert [samples.id(each) for each in ("info", "messages", "todos")] == await store.list(samples.id())

    @clause("S3", "B8")
    async def test_list_is_by_code_point_and_literal(self, store: SessionStore, samples: Samples) -> None:
        """Ids that look alike are different sessions; lists are sorted by code point and prefixes have no wildcards."""
        ids = samples.look_alikes
        for each in ids:
            await store.save_messages(each, [user_message(each)])
        for each in ids:
            assert [user_message(each)] == await store.load_messages(each)
        assert set(ids) <= set(await store.list())
        for prefix in (samples.id(), samples.id("foo"), samples.id("f"), samples.id("%"), samples.id("cafe"), *ids):
            assert sorted(each for each in ids if each.startswith(prefix)) == await store.list(prefix)
        assert [] == await store.list(samples.id("nothing begins like this"))

    @clause("S3", "B10")
    async def test_list_is_complete(self, store: SessionStore, samples: Samples) -> None:
        """All sessions are listed, more of them than any page holds."""
        ids = [samples.id(f"{n:04}") for n in range(1_005)]
        await asyncio.gather(*(store.append_messages(each, [user_message("x")]) for each in ids))
        assert ids == await store.list(samples.id())

    @clause("S3", "B8")
    async def test_bad_ids_are_refused(self, store: SessionStore, samples: Samples) -> None:
        """What cannot be an id is InvalidInput on every verb alike."""
        for bad in refused_ids.values():
            for call in (
                lambda bad=bad: store.save_messages(bad, []),
                lambda bad=bad: store.append_messages(bad, [user_message("x")]),
                lambda bad=bad: store.load_messages(bad),
                lambda bad=bad: store.save_todos(bad, TodoSnapshot(())),
                lambda bad=bad: store.load_todos(bad),
                lambda bad=bad: store.save_info(bad, _info("s")),
                lambda bad=bad: store.load_info(bad),
                lambda bad=bad: store.exists(bad),
                lambda bad=bad: store.delete(bad),
            ):
                with pytest.raises(InvalidInput):
                    await call()

    @clause("S7")
    async def test_agent_state_is_serialized(self, store: SessionStore, samples: Samples) -> None:
        """From an object or a mapping in either spelling come the messages and the info fields, and nothing transient."""
        messages = session_messages()
        model = {"id": "gpt-4", "provider": "openai"}
        transient = {
            "streaming_message": object(), "streamingMessage": object(), "pending_tool_calls": {1}, "pendingToolCalls": {1},
            "is_streaming": True, "isStreaming": True, "error_message": "e", "errorMessage": "e", "tools": [print],
        }  # fmt: skip
        for state in (
            {"messages": messages, "model": model, "system_prompt": "Be brief.", **transient},
            {"messages": messages, "model": model, "systemPrompt": "Be brief.", **transient},
            SimpleNamespace(messages=messages, model=SimpleNamespace(**model), system_prompt="Be brief.", **transient),
            SimpleNamespace(messages=messages, model=SimpleNamespace(**model), systemPrompt="Be brief.", **transient),
            {
                "messages": messages,
                "model": SimpleNamespace(id="gpt-4", provider="openai"),
                "system_prompt": "Be brief.",
            },
        ):
            saved, info = serialize_agent_state(state)
            assert repr(messages) == repr(saved)
            assert ("gpt-4", "openai", "Be brief.") == _three(info)
            text = repr(info)
            for name in ("streaming", "Streaming", "pending", "tools", "error"):
                assert name not in text
            await store.save_messages(samples.id("s"), saved)
            assert repr(messages) == repr(await store.load_messages(samples.id("s")))

    @clause("S7")
    async def test_serialized_messages_are_a_copy_and_provider_a_string(
        self, store: SessionStore, samples: Samples
    ) -> None:
        """The list does not grow with the running agent's, and a provider that is no string becomes one."""
        state = {"messages": session_messages(), "model": {"id": "m", "provider": 7}, "system_prompt": ""}
        saved, info = serialize_agent_state(state)
        cast(Any, state["messages"]).append(user_message("later"))
        assert len(session_messages()) == len(saved)
        assert ("m", "7", "") == _three(info)
        await store.save_messages(samples.id("s"), saved)

    @clause("S7")
    async def test_todo_snapshot_is_a_copy(self, store: SessionStore, samples: Samples) -> None:
        """A snapshot keeps the list as it was, and saves and loads."""
        items = [TodoItem("1", "look", "in_progress")]
        snapshot = create_todo_snapshot(items, "[ ] look")
        expected = copy.deepcopy(snapshot)
        items.append(TodoItem("2", "later"))
        assert TodoSnapshot((TodoItem("1", "look", "in_progress"),), "[ ] look") == snapshot == expected
        await store.save_todos(samples.id("s"), snapshot)
        assert expected == await store.load_todos(samples.id("s"))


def _three(info: Any) -> tuple[str, str, str]:
    """Return the info fields, whether they come as a mapping or as attributes."""
    names = ("model", "provider", "system_prompt")
    first, second, third = [info[n] for n in names] if isinstance(info, dict) else [getattr(info, n) for n in names]
    return first, second, third
