"""Clauses C5 and C9 as tests: windows of a conversation, and which tool calls are open in it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from convostore.errors import InvalidInput
from convostore.model.message import Message, ToolCallRecord
from convostore.opening import Store
from convostore.testing.appending_suite import begin, contents, user
from convostore.testing.contract_view import second_store
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["LoadingClauses"]

_START = datetime(2026, 11, 30, 12, tzinfo=UTC)


def _ten(samples: Samples) -> list[Message]:
    """Return ten messages, a minute apart by a clock that once stepped back, of every role."""
    roles = ("system", "user", "assistant", "tool", "assistant", "user", "system", "user", "assistant", "user")
    minutes = (0, 1, 2, 3, 1, 5, 6, 7, 8, 9)
    return [
        Message(
            role=role,  # type: ignore[arg-type]  # mypy takes the tuple's items for str
            content=str(n),
            id=samples.id(f"m{n}"),
            created_at=_START + timedelta(minutes=minute),
            tool_call_id="c" if role == "tool" else None,
        )
        for n, (role, minute) in enumerate(zip(roles, minutes, strict=True))
    ]


def _call(call_id: str) -> ToolCallRecord:
    return ToolCallRecord("look", call_id, "pending", {})


def _asks(name: str, *call_ids: str) -> Message:
    return Message(role="assistant", content=name, tool_calls=tuple(_call(each) for each in call_ids))


def _answers(name: str, call_id: str) -> Message:
    return Message(role="tool", content=name, tool_call_id=call_id)


class LoadingClauses(Suite):
    """C5 and C9."""

    @clause("C5")
    async def test_load_the_unknown_or_empty(self, store: Store, samples: Samples) -> None:
        """An unknown conversation loads as [], and so does an empty one."""
        assert [] == await store.load_messages(samples.id("missing"))
        assert [] == await store.load_messages(samples.id("missing"), limit=5, role="user", since=_START)
        assert [] == await store.load_messages(await begin(store, samples))
        assert [] == await store.open_tool_calls(samples.id("missing"))

    @clause("C5")
    async def test_every_combination_of_filters(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Every combination of filters gives what filtering the whole list by hand gives; the limit comes last."""
        conversation_id = await begin(store, samples)
        everything = await store.append_messages(conversation_id, _ten(samples))
        index = {each.id: n for n, each in enumerate(everything)}
        async with second_store(store, factory) as other:
            for role, since, before, after, limit, system in itertools.product(
                (None, "system", "user", "assistant", "tool"),
                (None, _START - timedelta(days=1), _START + timedelta(minutes=2), _START + timedelta(minutes=9)),
                (None, 1, 4, 9),
                (None, 1, 4, 9),
                (None, 0, 1, 3, 100),
                (False, True),
            ):
                expected = [
                    each
                    for n, each in enumerate(everything)
                    if (role is None or role == each.role)
                    and (each.role != "system" or system or role == "system")
                    and (since is None or (each.created_at is not None and since <= each.created_at))
                    and (before is None or n < before)
                    and (after is None or n > after)
                ]
                if limit is not None:
                    first = after is not None
                    expected = expected[:limit] if first else expected[max(0, len(expected) - limit) :]
                loaded = await other.load_messages(
                    conversation_id,
                    role=role,
                    since=since,
                    before=None if before is None else samples.id(f"m{before}"),
                    after=None if after is None else samples.id(f"m{after}"),
                    limit=limit,
                    system=system,
                )
                assert [index[each.id] for each in expected] == [index[each.id] for each in loaded], (
                    role, since, before, after, limit, system,
                )  # fmt: skip
                assert expected == loaded

    @clause("C5")
    async def test_since_is_inclusive_and_an_instant(self, store: Store, samples: Samples) -> None:
        """`since` includes its own millisecond, in any time zone, and never moves a message."""
        conversation_id = await begin(store, samples)
        await store.append_messages(conversation_id, _ten(samples))
        for zone in (UTC, timezone(timedelta(hours=9, minutes=30))):
            moment = (_START + timedelta(minutes=5)).astimezone(zone)
            assert ["5", "7", "8", "9"] == contents(await store.load_messages(conversation_id, since=moment))
            later = moment + timedelta(milliseconds=1)
            assert ["7", "8", "9"] == contents(await store.load_messages(conversation_id, since=later))

    @clause("C5")
    async def test_bad_filters_are_refused(self, store: Store, samples: Samples) -> None:
        """A negative limit, an unknown message, an unknown role, a naive time: InvalidInput, never a guess."""
        conversation_id = await begin(store, samples)
        await store.append_messages(conversation_id, _ten(samples))
        bad: list[dict[str, Any]] = [
            {"limit": -1},
            {"limit": -(10**40)},
            {"limit": 1.5},
            {"limit": "1"},
            {"before": samples.id("unknown")},
            {"after": samples.id("unknown")},
            {"after": samples.id("unknown"), "limit": 0},
            {"before": ""},
            {"before": 3},
            {"role": "robot"},
            {"role": "toolResult"},
            {"role": ""},
            {"since": datetime(2026, 11, 30)},
            {"since": "2026-11-30T12:00:00Z"},
        ]
        for filters in bad:
            with pytest.raises(InvalidInput):
                await store.load_messages(conversation_id, **filters)
        elsewhere = await begin(store, samples)
        (stranger,) = await store.append_messages(elsewhere, [user("another conversation's")])
        with pytest.raises(InvalidInput):
            await store.load_messages(conversation_id, after=stranger.id)

    @clause("C5", "B3")
    async def test_paging_by_message_ids_sees_each_once(self, store: Store, samples: Samples) -> None:
        """Walking forward with `after` and backward with `before` gives every message exactly once."""
        conversation_id = await begin(store, samples)
        everything = await store.append_messages(conversation_id, [user(str(n), created_at=_START) for n in range(25)])
        walked: list[Message] = []
        while page := await store.load_messages(
            conversation_id, after=walked[-1].id if walked else everything[0].id, limit=4
        ):
            walked += page
        assert everything[1:] == walked
        walked = []
        while page := await store.load_messages(conversation_id, before=walked[0].id if walked else None, limit=4):
            walked = page + walked
        assert everything == walked

    @clause("C9")
    async def test_open_tool_calls_are_those_without_a_result(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Open are the pending calls that no later tool message answers, oldest first."""
        conversation_id = await begin(store, samples)
        assert [] == await store.open_tool_calls(conversation_id)
        done = ToolCallRecord("look", "done", "success", {}, None)
        failed = ToolCallRecord("look", "failed", "error", {}, "no")
        await store.append_messages(
            conversation_id,
            [
                user("go"),
                Message(role="assistant", tool_calls=(_call("a"), done, _call("b"), failed)),
                _answers("result", "a"),
                _asks("more", "c"),
            ],
        )
        async with second_store(store, factory) as other:
            assert ["b", "c"] == [each.tool_call_id for each in await other.open_tool_calls(conversation_id)]
            assert [_call("b"), _call("c")] == await other.open_tool_calls(conversation_id)
            await other.append_messages(conversation_id, [_answers("late", "b")])
            assert ["c"] == [each.tool_call_id for each in await store.open_tool_calls(conversation_id)]

    @clause("C9", "X7")
    async def test_recurring_call_ids_are_told_apart(self, store: Store, samples: Samples) -> None:
        """A result answers the nearest earlier open call of its id: neither an earlier turn's nor a later one."""
        conversation_id = await begin(store, samples)
        await store.append_messages(conversation_id, [_answers("before any call", "c"), _asks("1", "c")])
        assert ["c"] == [each.tool_call_id for each in await store.open_tool_calls(conversation_id)]
        await store.append_messages(conversation_id, [_answers("1", "c"), _asks("2", "c")])
        assert ["c"] == [each.tool_call_id for each in await store.open_tool_calls(conversation_id)]
        await store.append_messages(conversation_id, [_answers("2", "c")])
        assert [] == await store.open_tool_calls(conversation_id)
        await store.append_messages(conversation_id, [_asks("3", "c"), _asks("4", "c"), _answers("4", "c")])
        assert 1 == len(await store.open_tool_calls(conversation_id))
        await store.append_messages(conversation_id, [_answers("3", "c")])
        assert [] == await store.open_tool_calls(conversation_id)

    @clause("C9")
    async def test_whole_turns_cuts_no_group(self, store: Store, samples: Samples) -> None:
        """A window never begins with a result whose call is outside nor keeps a call whose results are outside."""
        conversation_id = await begin(store, samples)
        stored = await store.append_messages(
            conversation_id,
            [
                user("u0"),
                _asks("a1", "c", "d"),
                _answers("t2", "c"),
                _answers("t3", "d"),
                Message(role="assistant", content="a4"),
                user("u5"),
                _asks("a6", "c"),
                _answers("t7", "c"),
                user("u8"),
            ],
        )

        async def window(**filters: Any) -> str:
            return " ".join(contents(await store.load_messages(conversation_id, whole_turns=True, **filters)))

        assert "u0 a1 t2 t3 a4 u5 a6 t7 u8" == await window()
        assert "a1 t2 t3 a4 u5 a6 t7 u8" == await window(limit=8)
        for limit in (5, 6, 7):  # begins at a4, t3, t2
            assert "a4 u5 a6 t7 u8" == await window(limit=limit)
        assert "a6 t7 u8" == await window(limit=3)
        assert "u8" == await window(limit=2)
        assert "" == await window(limit=0)
        for before in (1, 2, 3):  # ends with u0, a1, t2
            assert "u0" == await window(before=stored[before].id)
        assert "u0 a1 t2 t3" == await window(before=stored[4].id)
        for limit in (2, 3, 4):  # first ones behind u0: a1 t2, a1 t2 t3, a1 t2 t3 a4
            expected = {2: "", 3: "a1 t2 t3", 4: "a1 t2 t3 a4"}[limit]
            assert expected == await window(after=stored[0].id, limit=limit)
        assert "u5" == await window(after=stored[4].id, limit=2)

    @clause("C9")
    async def test_whole_turns_keeps_a_trailing_open_call(self, store: Store, samples: Samples) -> None:
        """Calls that wait at the end stay in the window, with the results that some of them have."""
        conversation_id = await begin(store, samples)
        await store.append_messages(conversation_id, [user("u0"), _asks("a1", "c", "d"), _answers("t2", "d")])
        loaded = await store.load_messages(conversation_id, whole_turns=True)
        assert ["u0", "a1", "t2"] == contents(loaded)
        assert ["a1", "t2"] == contents(await store.load_messages(conversation_id, whole_turns=True, limit=2))
        assert [] == await store.load_messages(conversation_id, whole_turns=True, limit=1)

    @clause("C9")
    async def test_whole_turns_leaves_no_abandoned_call(self, store: Store, samples: Samples) -> None:
        """A call that was never answered, with a later turn behind it, is not in a window of whole turns."""
        conversation_id = await begin(store, samples)
        await store.append_messages(
            conversation_id, [user("u0"), _asks("a1", "c"), user("u2"), Message(role="assistant", content="a3")]
        )
        assert ["u2", "a3"] == contents(await store.load_messages(conversation_id, whole_turns=True))

    @clause("C9")
    async def test_whole_turns_accepts_results_in_the_record(self, store: Store, samples: Samples) -> None:
        """A call whose result is in its record is whole by itself, also with a tool message for it behind."""
        conversation_id = await begin(store, samples)
        finished = ToolCallRecord("look", "c", "success", {}, {"success": True, "message": "m"})
        await store.append_messages(
            conversation_id,
            [
                user("u0"),
                Message(role="assistant", content="a1", tool_calls=(finished,)),
                user("u2"),
                Message(role="assistant", content="a3"),
            ],
        )
        for limit in range(5):
            whole = await store.load_messages(conversation_id, whole_turns=True, limit=limit)
            assert await store.load_messages(conversation_id, limit=limit) == whole

    @clause("C9")
    async def test_whole_turns_only_shrinks(self, store: Store, samples: Samples) -> None:
        """For every window, whole turns are a contiguous piece of it that orphans nothing."""
        conversation_id = await begin(store, samples)
        stored = await store.append_messages(
            conversation_id,
            [
                user("u0"),
                user("u1"),
                _asks("a2", "c", "d"),
                _answers("t3", "d"),
                user("u4"),
                _answers("t5", "c"),
                _asks("a6", "e"),
                _answers("t7", "e"),
                _asks("a8", "f"),
            ],
        )
        results = {"c": "t5", "d": "t3", "e": "t7"}
        ids = [None, *(each.id for each in stored)]
        for limit, before, after in itertools.product((None, *range(10)), ids, ids):
            window = contents(await store.load_messages(conversation_id, limit=limit, before=before, after=after))
            loaded = await store.load_messages(
                conversation_id, limit=limit, before=before, after=after, whole_turns=True
            )
            whole = contents(loaded)
            where = (limit, before, after, window, whole)
            assert whole in [window[a:b] for a in range(len(window) + 1) for b in range(a, len(window) + 1)], where
            asked = {call.tool_call_id for each in loaded for call in each.tool_calls}
            answered = {each.tool_call_id for each in loaded if each.role == "tool"}
            assert answered <= asked, where
            assert {each for each in asked if results.get(each)} <= answered, where
