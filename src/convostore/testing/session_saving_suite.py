"""Clauses S1, S4 and S5 as tests: session messages are saved, appended, loaded and filtered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest

from convostore.contracts.session_store import SessionStore
from convostore.errors import InvalidInput
from convostore.model.session_message import SessionMessage
from convostore.testing.awkward import refused_values
from convostore.testing.contract_view import second_store
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["FilteringSessions", "assistant", "session_messages", "tool_result", "user_message"]

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


def user_message(text: str, **fields: Any) -> SessionMessage:
    """Return what a person said."""
    return cast(SessionMessage, {"role": "user", "content": text, **fields})


class SavingSessions(Suite):
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
        a, b, c, d, x = (user_message(each) for each in "abcdx")
        lists: tuple[list[SessionMessage], ...] = (
            [a], [a, b, c], [a, b, c, d], [a, b], [b, a], [x, b, a], [x, d, b, a], [x, d, d, d, a], [a], [],
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
                user_message("x", extra=value),
                tool_result("c", "x", details=value),
                assistant({"type": "toolCall", "id": "c", "name": "look", "arguments": {"v": value}}),
            ]
        for each in bad:
            for call in (store.save_messages, store.append_messages):
                with pytest.raises(InvalidInput):
                    await call(samples.id("s"), [user_message("good"), each])
                with pytest.raises(InvalidInput):
                    await call(samples.id("new"), [user_message("good"), each])
        assert repr(old) == repr(await store.load_messages(samples.id("s")))
        assert await store.exists(samples.id("new")) is False

    @clause("S4", "B11")
    async def test_values_and_texts_are_kept_exactly(
        self, store: SessionStore, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Awkward text and any JSON come back exactly, wherever they stand; the next append works."""
        saved = [
            message
            for name, value in samples.payloads.items()
            for message in (
                user_message(value if isinstance(value, str) else "x", extra=value),
                assistant({"type": "toolCall", "id": name, "name": "look", "arguments": {"v": value}}),
                tool_result(name, value if isinstance(value, str) else "x", details=value),
            )
        ]
        await store.save_messages(samples.id("s"), saved)
        await store.append_messages(samples.id("s"), [user_message("next")])
        async with second_store(store, factory) as other:
            assert repr([*saved, user_message("next")]) == repr(await other.load_messages(samples.id("s")))

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
            for each in (
                [user_message("a"), user_message("b")],
                [],
                [user_message("b")],
                session_messages(),
                [user_message("b")],
            ):
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
                batch = [user_message(f"{writer} {turn} {part}") for part in range(2)]
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
        lists = [[user_message(f"{name}{n}") for n in range(20)] for name in "ab"]
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


class FilteringSessions(SavingSessions):
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
        await store.save_messages(samples.id("s"), [user_message(str(n), timestamp=_T0 + n) for n in range(4)])
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
