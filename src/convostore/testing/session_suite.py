"""Clauses S1 to S5 and S7 as tests: the suite of the session contract.

`factory` returns an object with the methods of `convostore.contracts.session_store.SessionStore`; nothing else of it is used,
so a session store of any make can be tested; ours as ``lambda: SessionSuite.view(convostore.open(url))``.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from convostore.contracts.session_store import SessionStore
from convostore.errors import InvalidInput
from convostore.model.session_message import SessionMessage
from convostore.model.todo import AgentInfo, TodoItem, TodoSnapshot
from convostore.stores.sessions import create_todo_snapshot, serialize_agent_state
from convostore.testing.awkward import hostile_ids, kept_texts, kept_values, refused_ids, refused_values
from convostore.testing.contract_view import ContractView, second_store
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["SessionSuite", "assistant", "session_messages", "tool_result"]

_T0 = 1_764_500_000_000


def assistant(*content: Any, **fields: Any) -> SessionMessage:
    """Return an assistant message with all that the runtime requires; a string is a text part."""
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": each} if isinstance(each, str) else each for each in content],
        "api": "openai-completions",
        "provider": "openai",
        "model": "gpt-4",
        "usage": {
            "input": 12,
            "output": 3,
            "cacheRead": 0,
            "cacheWrite": 0,
            "totalTokens": 15,
            "cost": {"input": 0.1, "output": 0.2, "cacheRead": 0, "cacheWrite": 0, "total": 0.30000000000000004},
        },
        "stopReason": "stop",
    }
    return cast(SessionMessage, message | fields)


def tool_result(call_id: str, text: str, **fields: Any) -> SessionMessage:
    """Return what a tool gave."""
    message = {
        "role": "toolResult",
        "toolCallId": call_id,
        "toolName": "look",
        "content": [{"type": "text", "text": text}],
        "isError": False,
    }
    return cast(SessionMessage, message | fields)


def session_messages() -> list[SessionMessage]:
    """Return a session with every role, every part, unknown fields, and equal messages beside each other."""
    call = {"type": "toolCall", "id": "c1", "name": "look", "arguments": {"b": 1, "a": 10**40}, "thoughtSignature": "s"}
    return cast(
        list[SessionMessage],
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "look", "timestamp": _T0},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "at this", "textSignature": "x"},
                    {"type": "image", "data": "aGk=", "mimeType": "image/png", "detail": "low"},
                ],
                "timestamp": _T0 + 1,
                "attachments": [{"id": 1}],
            },
            assistant(
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
                {"type": "thinking", "thinking": "", "redacted": True},
                "Let me look.",
                call,
                {"type": "future", "payload": [1, {"z": 0, "a": -0.0}]},
                timestamp=_T0 + 2,
                stopReason="toolUse",
                responseId="resp-1",
            ),
            tool_result("c1", "12", timestamp=_T0 + 3, details={"rows": []}, extra=None),
            tool_result("c1", "12", timestamp=_T0 + 3, details={"rows": []}, extra=None),
            assistant("Twelve."),
            {"role": "user", "content": "yes", "timestamp": _T0 + 5},
            {"role": "user", "content": "yes", "timestamp": _T0 + 5},
            assistant(timestamp=_T0 + 6, stopReason="error", errorMessage="overloaded"),
        ],
    )


def _user(text: str, **fields: Any) -> SessionMessage:
    return cast(SessionMessage, {"role": "user", "content": text, **fields})


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


class _SavingClauses(Suite):
    """S1, S4, S5: messages are saved, appended and loaded."""

    @clause("S1", "S4")
    async def test_saved_messages_load_as_they_were(
        self, store: SessionStore, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Every field of every message, known or not, comes back exactly, through any handle."""
        await store.save_messages(samples.id("s"), session_messages())
        async with second_store(store, factory) as other:
            assert repr(session_messages()) == repr(await other.load_messages(samples.id("s")))
            assert await other.exists(samples.id("s"))

    @clause("S1")
    async def test_saving_makes_the_list_be_these(
        self, store: SessionStore, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """After each save the list is the saved one: grown, cut, edited, reordered, repeated, emptied."""
        a, b, c, d = (_user(each) for each in "abcd")
        lists: tuple[list[SessionMessage], ...] = (
            [a], [a, b, c], [a, b, c, d], [a, b], [b, a], [x := _user("x"), b, a], [x, d, b, a], [x, d, d, d, a], [a], [],
            [a, a, a], [a, a], [b, b], session_messages(), session_messages()[::-1], session_messages()[3:5], [], [c],
        )  # fmt: skip
        async with second_store(store, factory) as other:
            for each in lists:
                await store.save_messages(samples.id("s"), each)
                assert repr(each) == repr(await other.load_messages(samples.id("s")))
                assert await other.exists(samples.id("s"))

    @clause("S1")
    async def test_loaded_saved_and_loaded_again_is_the_same(self, store: SessionStore, samples: Samples) -> None:
        """Loading and saving back changes nothing."""
        await store.save_messages(samples.id("s"), session_messages())
        for _ in range(2):
            await store.save_messages(samples.id("s"), await store.load_messages(samples.id("s")))
        assert repr(session_messages()) == repr(await store.load_messages(samples.id("s")))

    @clause("S1")
    async def test_a_bad_message_leaves_the_old_list(self, store: SessionStore, samples: Samples) -> None:
        """Saving or appending a list with one bad message is InvalidInput, and the old list stays, whole."""
        old = session_messages()
        await store.save_messages(samples.id("s"), old)
        bad: list[Any] = [None, "text", 5, [], {}, {"content": "no role"}, {"role": 5, "content": "x"}, {"role": None}]
        for value in refused_values.values():
            bad += [
                _user("x", extra=value),
                tool_result("c", "x", details=value),
                assistant({"type": "toolCall", "id": "c", "name": "look", "arguments": {"v": value}}),
            ]
        for each in bad:
            for call in (store.save_messages, store.append_messages):
                with pytest.raises(InvalidInput):
                    await call(samples.id("s"), [_user("good"), each])
                with pytest.raises(InvalidInput):
                    await call(samples.id("new"), [_user("good"), each])
        assert repr(old) == repr(await store.load_messages(samples.id("s")))
        assert await store.exists(samples.id("new")) is False

    @clause("S4", "B11")
    async def test_values_and_texts_are_kept_exactly(
        self, store: SessionStore, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Awkward text and any JSON come back exactly, wherever they stand; the next append works."""
        saved = [
            message
            for name, value in kept_values.items()
            for message in (
                _user(value if isinstance(value, str) else "x", extra=value),
                assistant({"type": "toolCall", "id": name, "name": "look", "arguments": {"v": value}}),
                tool_result(name, value if isinstance(value, str) else "x", details=value),
            )
        ]
        await store.save_messages(samples.id("s"), saved)
        await store.append_messages(samples.id("s"), [_user("next")])
        async with second_store(store, factory) as other:
            assert repr([*saved, _user("next")]) == repr(await other.load_messages(samples.id("s")))

    @clause("S4")
    async def test_nothing_is_added_or_dropped(self, store: SessionStore, samples: Samples) -> None:
        """A sparse message stays sparse, null stays null, and the order of fields stays."""
        saved = cast(
            list[SessionMessage],
            [
                {"content": "role comes last", "role": "user"},
                {"timestamp": 5, "role": "user", "content": "", "zeta": None, "alpha": {}},
                {"role": "assistant", "content": []},
                {"role": "toolResult", "toolCallId": "c", "content": []},
                {"role": "user", "content": [{"type": "text", "text": ""}]},
            ],
        )
        await store.save_messages(samples.id("s"), saved)
        assert repr(saved) == repr(await store.load_messages(samples.id("s")))

    @clause("S5")
    async def test_append_adds_to_the_end(
        self, store: SessionStore, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Appending creates the session, adds in order, and takes equal messages for different ones."""
        assert await store.exists(samples.id("s")) is False
        await store.append_messages(samples.id("s"), [])
        assert await store.exists(samples.id("s")) is False
        expected: list[SessionMessage] = []
        async with second_store(store, factory) as other:
            for each in ([_user("a"), _user("b")], [], [_user("b")], session_messages(), [_user("b")]):
                await store.append_messages(samples.id("s"), each)
                expected += each
                assert repr(expected) == repr(await other.load_messages(samples.id("s")))

    @clause("S5", "B5")
    async def test_two_writers_lose_nothing(
        self, store: SessionStore, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Batches appended at once through two handles stay together, in each writer's order."""

        async def write(handle: SessionStore, writer: int) -> None:
            for turn in range(10):
                batch = [_user(f"{writer} {turn} {part}") for part in range(2)]
                await handle.append_messages(samples.id("s"), batch)

        async with second_store(store, factory) as other:
            await asyncio.gather(*(write(handle, n) for n, handle in enumerate((store, other, store, other))))
            loaded = [str(each["content"]) for each in await other.load_messages(samples.id("s"))]
        assert 80 == len(loaded)
        for start in range(0, 80, 2):
            assert loaded[start][:-1] == loaded[start + 1][:-1]
        for writer in range(4):
            assert [str(n) for n in range(10) for _ in range(2)] == [
                each.split()[1] for each in loaded if each.startswith(f"{writer} ")
            ]

    @clause("S1", "B4")
    async def test_a_save_is_seen_whole(
        self, store: SessionStore, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Whoever reads while others save sees one saved list, never parts of two; of two saves at once one is last."""
        lists = [[_user(f"{name}{n}") for n in range(20)] for name in "ab"]
        await store.save_messages(samples.id("s"), lists[0])
        async with second_store(store, factory) as other:

            async def save(handle: SessionStore, messages: list[SessionMessage]) -> None:
                for _ in range(5):
                    await handle.save_messages(samples.id("s"), messages)

            async def watch() -> None:
                for _ in range(20):
                    assert await other.load_messages(samples.id("s")) in lists

            await asyncio.gather(save(store, lists[1]), save(other, lists[0]), watch())
            assert await store.load_messages(samples.id("s")) in lists

    @clause("S1", "B16")
    async def test_lists_are_the_callers_own(self, store: SessionStore, samples: Samples) -> None:
        """Changing a list that was saved or loaded changes nothing stored."""
        given = session_messages()
        await store.save_messages(samples.id("s"), given)
        cast(Any, given[1])["content"] = "changed"
        given.clear()
        loaded = await store.load_messages(samples.id("s"))
        cast(Any, loaded[3])["content"].clear()
        loaded.pop()
        assert repr(session_messages()) == repr(await store.load_messages(samples.id("s")))


class _FilteringClauses(_SavingClauses):
    """S1: what load_messages lets through."""

    @clause("S1")
    async def test_a_missing_session_is_empty(self, store: SessionStore, samples: Samples) -> None:
        """Messages of a session that is not there are [], and loading does not create it."""
        assert [] == await store.load_messages(samples.id("missing"))
        assert [] == await store.load_messages(samples.id("missing"), role="user", limit=3, since=0)
        assert await store.exists(samples.id("missing")) is False

    @clause("S1")
    async def test_every_combination_of_filters(self, store: SessionStore, samples: Samples) -> None:
        """Role and since filter, then limit takes the last ones: as filtering the whole list by hand."""
        everything = session_messages()
        await store.save_messages(samples.id("s"), everything)
        for role in (None, "system", "user", "assistant", "toolResult"):
            for since in (None, -(10**9), 0, _T0, _T0 + 3, _T0 + 6, _T0 + 7):
                for limit in (None, 0, 1, 2, 5, 100):
                    expected = [
                        each
                        for each in everything
                        if (role is None or role == each["role"])
                        and (since is None or ("timestamp" in each and since <= each["timestamp"]))
                    ]
                    if limit is not None:
                        expected = expected[max(0, len(expected) - limit) :]
                    loaded = await store.load_messages(samples.id("s"), role=role, since=since, limit=limit)
                    assert repr(expected) == repr(loaded), (role, since, limit)

    @clause("S1")
    async def test_since_takes_an_aware_datetime(self, store: SessionStore, samples: Samples) -> None:
        """A datetime is the same instant as its milliseconds, in any zone; inclusive to the millisecond."""
        await store.save_messages(samples.id("s"), [_user(str(n), timestamp=_T0 + n) for n in range(4)])
        for zone in (UTC, timezone(timedelta(hours=9, minutes=30))):
            moment = datetime.fromtimestamp(_T0 // 1000, zone) + timedelta(milliseconds=_T0 % 1000 + 2)
            assert ["2", "3"] == [each["content"] for each in await store.load_messages(samples.id("s"), since=moment)]

    @clause("S1")
    async def test_bad_filters_are_refused(self, store: SessionStore, samples: Samples) -> None:
        """A negative limit, an unknown role, a naive time: InvalidInput, never "all"."""
        await store.save_messages(samples.id("s"), session_messages())
        bad: list[dict[str, Any]] = [
            {"limit": -1},
            {"limit": -5, "role": "user"},
            {"limit": 1.5},
            {"limit": "3"},
            {"role": "tool"},
            {"role": ""},
            {"role": "User"},
            {"since": datetime(2026, 1, 1)},
            {"since": "2026-01-01T00:00:00Z"},
            {"since": float("nan")},
        ]
        for filters in bad:
            with pytest.raises(InvalidInput):
                await store.load_messages(samples.id("s"), **filters)


class SessionSuite(_FilteringClauses):
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
                *(TodoSnapshot((TodoItem(t, t),), t) for t in kept_texts.values()),
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
                    for each in kept_texts.values()
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
            await other.append_messages(names[0], [_user("new life")])
            assert [_user("new life")] == await store.load_messages(names[0])
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
        ids = list(hostile_ids(samples.id()))
        for each in ids:
            await store.save_messages(each, [_user(each)])
        for each in ids:
            assert [_user(each)] == await store.load_messages(each)
        assert set(ids) <= set(await store.list())
        for prefix in (samples.id(), samples.id("foo"), samples.id("f"), samples.id("%"), samples.id("cafe"), *ids):
            assert sorted(each for each in ids if each.startswith(prefix)) == await store.list(prefix)
        assert [] == await store.list(samples.id("nothing begins like this"))

    @clause("S3", "B10")
    async def test_list_is_complete(self, store: SessionStore, samples: Samples) -> None:
        """All sessions are listed, more of them than any page holds."""
        ids = [samples.id(f"{n:04}") for n in range(1_005)]
        await asyncio.gather(*(store.append_messages(each, [_user("x")]) for each in ids))
        assert ids == await store.list(samples.id())

    @clause("S3", "B8")
    async def test_bad_ids_are_refused(self, store: SessionStore, samples: Samples) -> None:
        """What cannot be an id is InvalidInput on every verb alike."""
        for bad in refused_ids.values():
            for call in (
                lambda bad=bad: store.save_messages(bad, []),
                lambda bad=bad: store.append_messages(bad, [_user("x")]),
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
        cast(Any, state["messages"]).append(_user("later"))
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
