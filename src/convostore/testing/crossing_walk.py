"""A random walk over X: logs of every voice, loaded, edited and saved through every store.

After every step: no reading raises, the store that saved reads back what it saved, and what it cannot see is untouched.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, cast, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convostore.contracts.backend import Change, NewEntry, Snapshot
from convostore.dialects import openai_chat
from convostore.ids import new_id
from convostore.model.message import Message, ThinkingPart, ToolCallRecord, ToolCallState
from convostore.opening import Store
from convostore.testing.session_saving_suite import assistant, tool_result
from convostore.testing.suite import Samples, Suite
from convostore.testing.voices import dump, invisible_in_chat, invisible_in_session

__all__ = ["CrossingWalk"]

_Spoken: TypeAlias = tuple[str, Any]

_texts = st.sampled_from(["", "yes", "no \ud83d", "a longer text"])
_call_ids = st.sampled_from(["c1", "c2", "c:3"])
_values = st.sampled_from(
    [None, 0, 10**20, "text", [1], {}, {"success": True, "message": "m", "data": -0.0}, {"success": 1}]
)
_objects = st.sampled_from([{}, {"q": 1}, {"b": 1, "a": None}])
_states: st.SearchStrategy[ToolCallState] = st.sampled_from(get_args(ToolCallState))


@st.composite
def _record(draw: st.DrawFn) -> ToolCallRecord:
    state = draw(_states)
    output = None if state == "pending" else draw(_values)
    return ToolCallRecord("look", draw(_call_ids), state, draw(_values), output)


_messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(
        lambda role, text: Message(role=role, content=text), st.sampled_from(["system", "user", "assistant"]), _texts
    ),
    st.builds(
        lambda text, calls, thinking: Message(
            role="assistant", content=text, tool_calls=tuple(calls), parts=(ThinkingPart("hm"),) if thinking else ()
        ),
        _texts,
        st.lists(_record(), max_size=3),
        st.booleans(),
    ),
    st.builds(lambda text, call: Message(role="tool", content=text, tool_call_id=call), _texts, _call_ids),
)

_parts = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, _texts),
    st.builds(lambda text: {"type": "thinking", "thinking": text}, _texts),
    st.builds(
        lambda call, args: {"type": "toolCall", "id": call, "name": "look", "arguments": args}, _call_ids, _objects
    ),
    st.just({"type": "future", "x": 1}),
)

_session: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(["system", "user"]), _texts),
    st.builds(lambda text: {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 5}, _texts),
    st.builds(lambda parts: assistant(*parts, odd={"z": 1}), st.lists(_parts, max_size=4)),
    st.builds(lambda call, text, error: tool_result(call, text, isError=error), _call_ids, _texts, st.booleans()),
    st.builds(lambda call, text, details: tool_result(call, text, details=details), _call_ids, _texts, _values),
)

_item_ids = st.sampled_from([1, "1", 1.5, "a", "b"])
_items: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        lambda item_id, text, role: {"id": item_id, "type": "message", "content": text, "role": role},
        _item_ids, _texts, st.sampled_from(["user", "assistant"]),
    ),
    st.builds(
        lambda item_id, call, args, more: {
            "id": item_id, "type": "tool_call", "toolCall": {"id": call, "name": "look", "arguments": args, **more},
        },
        _item_ids, _call_ids, _objects,
        st.sampled_from(
            [{"status": "pending"}, {"status": "executing"}, {"status": "completed", "result": [1]}, {"status": "completed"},
             {"status": "error", "error": "no"}]
        ),
    ),
    st.builds(lambda item_id: {"id": item_id, "type": "card", "card": {"id": "k", "type": "t", "content": {}}}, _item_ids),
    st.builds(lambda item_id: {"id": item_id, "type": "poll", "x": [1]}, _item_ids),
)  # fmt: skip

_openai: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        lambda role, text: {"role": role, "content": text},
        st.sampled_from(["system", "developer", "user", "assistant"]),
        _texts,
    ),
    st.builds(
        lambda text, calls: {
            "role": "assistant",
            "content": text,
            "tool_calls": [
                {"id": each, "type": "function", "function": {"name": "look", "arguments": args}}
                for each, args in calls
            ],
        },
        st.one_of(st.none(), _texts),
        st.lists(
            st.tuples(_call_ids, st.sampled_from(["{}", '{"b":1}', "[1]", "not JSON", ""])), min_size=1, max_size=2
        ),
    ),
    st.builds(lambda call, text: {"role": "tool", "tool_call_id": call, "content": text}, _call_ids, _texts),
)

_unknown = st.tuples(
    st.sampled_from([b"", b"{}", b"\xff", b'{"text":"x"}']), st.sampled_from([None, "user", "system", "oracle"])
)

_spoken: st.SearchStrategy[_Spoken] = st.one_of(
    st.tuples(st.just("C"), _messages),
    st.tuples(st.just("S"), _session),
    st.tuples(st.just("A"), _items),
    st.tuples(st.just("openai"), _openai),
    st.tuples(st.just("unknown"), _unknown),
)

_index = st.integers(0, 12)
_edits = st.one_of(
    st.tuples(st.just("remove"), _index, st.none()),
    st.tuples(st.just("move"), _index, _index),
    st.tuples(st.just("repeat"), _index, st.none()),
    st.tuples(st.just("text"), _index, _texts),
    st.tuples(st.just("cut"), _index, st.none()),
    st.tuples(st.just("insert"), _index, st.booleans()),
    st.tuples(st.just("status"), _index, st.sampled_from(["pending", "completed", "error"])),
)
_steps = st.lists(st.tuples(st.sampled_from("SA"), st.lists(_edits, min_size=1, max_size=3)), max_size=3)


async def _speak(store: Store, conversation_id: str, number: int, spoken: _Spoken) -> None:
    voice, value = spoken
    if voice == "C":
        await store.append_messages(conversation_id, [value])
    elif voice == "S":
        await store.sessions.append_messages(conversation_id, [value])
    elif voice == "A":
        await store.chat.append_item(conversation_id, value)
    else:
        if voice == "openai":
            entry = openai_chat.write(value, entry_id=f"o{number}", created_at_ms=number)
        else:
            body, role = value
            entry = NewEntry(
                entry_id=f"f{number}", kind="message", role=role, dialect="future/9", created_at_ms=number, body=body
            )
        await store.backend.commit(
            Change(conversation_id=conversation_id, revision=new_id(), at_ms=number, append=(entry,))
        )


def _edit(values: list[Any], edit: tuple[str, int, Any], fresh: list[Any]) -> None:
    """Change a list of messages or items in place, as its own store might."""
    what, index, detail = edit
    if what == "insert":
        values.insert(index, fresh[detail])
    elif index < len(values):
        if what == "remove":
            del values[index]
        elif what == "move":
            values.insert(detail, values.pop(index))
        elif what == "repeat":
            values.insert(index, copy.deepcopy(values[index]))
        elif what == "cut":
            del values[index:]
        elif what == "text":
            content = values[index].get("content")
            if isinstance(content, str):
                values[index]["content"] = detail
            elif isinstance(content, list):
                for part in content:
                    if "text" in part:
                        part["text"] = detail
        elif "toolCall" in values[index]:
            values[index]["toolCall"]["status"] = detail
        elif "isError" in values[index]:
            values[index]["isError"] = detail == "error"


def _plain_words(snapshot: Snapshot) -> set[tuple[str, str, bytes]]:
    """Return what is said by entries that are neither a call nor a result, and so belong to nothing else."""
    return {
        (each.entry_id, each.dialect, each.body)
        for each in snapshot.entries
        if each.role in ("user", "system") or b'"card"' in each.body
    }


@contextmanager
def _running(factory: Callable[[], Any]) -> Iterator[tuple[Store, Callable[[Coroutine[Any, Any, None]], None]]]:
    """Open a store in an event loop of its own; give both it and what runs a coroutine there."""

    async def begin() -> Store:
        made = factory()
        return cast(Store, await made if inspect.isawaitable(made) else made)

    with asyncio.Runner() as runner:
        store = runner.run(begin())
        try:
            yield store, runner.run
        finally:
            runner.run(store.aclose())


class CrossingWalk(Suite):
    """X1, X2, X6 and X7 over random logs and random edits."""

    @pytest.fixture
    def walk_settings(self) -> settings:
        """How long to walk; override for a longer one."""
        return settings(
            max_examples=100,
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )

    def test_random_logs_and_edits(self, factory: Callable[[], Any], samples: Samples, walk_settings: settings) -> None:
        """Whatever was said in whatever voice and edited through S and A, readings hold and nothing unseen is lost."""
        with _running(factory) as (store, run):

            @walk_settings
            @given(st.lists(_spoken, max_size=9), _steps, st.tuples(_session, _session), st.tuples(_items, _items))
            def walk(log: list[_Spoken], steps: Any, messages: Any, items: Any) -> None:
                run(self._walk(store, samples.id(new_id()), log, steps, list(messages), list(items)))

            walk()

    def test_random_logs_and_calls(self, factory: Callable[[], Any], samples: Samples, walk_settings: settings) -> None:
        """In whatever voice calls were made, C and A agree on which are open, and each can be finished, one by one."""
        with _running(factory) as (store, run):

            @walk_settings
            @given(st.lists(_spoken, max_size=9), st.sampled_from(["success", "error"]), _values)
            def finish(log: list[_Spoken], state: ToolCallState, output: Any) -> None:
                run(self._finish(store, samples.id(new_id()), log, state, output))

            finish()

    async def _finish(
        self, store: Store, conversation_id: str, log: list[_Spoken], state: ToolCallState, output: Any
    ) -> None:
        await self._say(store, conversation_id, log)
        await self._update_with_themselves(store, conversation_id)
        calls = await store.open_tool_calls(conversation_id)
        assert len(calls) == await self._shown_open(store, conversation_id)
        while calls:
            record = await store.finish_tool_call(conversation_id, calls[-1].tool_call_id, state, output)
            assert (calls[-1].tool_call_id, state) == (record.tool_call_id, record.state)
            still_open = await store.open_tool_calls(conversation_id)
            assert len(calls) - 1 == len(still_open) == await self._shown_open(store, conversation_id)
            calls = still_open
        await self._check(store, conversation_id)

    async def _update_with_themselves(self, store: Store, conversation_id: str) -> None:
        async def readings() -> str:
            return repr(
                (
                    await store.load_messages(conversation_id, system=True),
                    await store.sessions.load_messages(conversation_id),
                    await store.chat.get_conversation(conversation_id),
                )
            )

        before = await readings()
        for each in await store.load_messages(conversation_id, system=True):
            await store.update_message(conversation_id, each)
            assert before == await readings(), each

    async def _shown_open(self, store: Store, conversation_id: str) -> int:
        items: Any = await store.chat.get_conversation_items(conversation_id)
        return sum(each.get("toolCall", {}).get("status") in ("pending", "executing") for each in items)

    async def _say(self, store: Store, conversation_id: str, log: list[_Spoken]) -> None:
        await store.create_conversation(conversation_id, conversation_id, id=conversation_id)
        for number, spoken in enumerate(log):
            await _speak(store, conversation_id, number, spoken)

    async def _walk(
        self, store: Store, conversation_id: str, log: list[_Spoken], steps: Any, messages: list[Any], items: list[Any]
    ) -> None:
        await self._say(store, conversation_id, log)
        await self._check(store, conversation_id)
        for kind, edits in steps:
            before = await dump(store, conversation_id)
            values: list[Any]
            if kind == "S":
                values = await store.sessions.load_messages(conversation_id)
                for each in edits:
                    _edit(values, each, copy.deepcopy(messages))
                await store.sessions.save_messages(conversation_id, values)
                loaded: Any = await store.sessions.load_messages(conversation_id)
                invisible = invisible_in_session
            else:
                chat: Any = await store.chat.get_conversation(conversation_id)
                values = chat["items"]
                for each in edits:
                    _edit(values, each, copy.deepcopy(items))
                await store.chat.save_conversation(chat)
                loaded = await store.chat.get_conversation_items(conversation_id)
                invisible = invisible_in_chat
            after = await dump(store, conversation_id)
            assert repr(values) == repr(loaded)
            assert invisible(before) == invisible(after)
            if not any(what == "cut" for what, _, _ in edits):
                # Plain words go only by an edit of their own: whatever else the edits did, they are said as they were.
                own = sum(what in ("remove", "text") for what, _, _ in edits)
                assert len(_plain_words(before) - _plain_words(after)) <= own
            await self._check(store, conversation_id)

    async def _check(self, store: Store, conversation_id: str) -> None:
        """Read in every way, save back what was read, and see that nothing was written."""
        before = await dump(store, conversation_id)
        everything = await store.load_messages(conversation_id, system=True)
        assert len(everything) == len({each.id for each in everything})
        if everything:
            middle = len(everything) // 2
            after = await store.load_messages(conversation_id, system=True, after=everything[middle].id, limit=2)
            assert everything[middle + 1 : middle + 3] == after
            earlier = await store.load_messages(conversation_id, system=True, before=everything[middle].id, limit=2)
            assert everything[max(0, middle - 2) : middle] == earlier
        assert everything[-2:] == await store.load_messages(conversation_id, system=True, limit=2)
        whole = await store.load_messages(conversation_id, system=True, whole_turns=True)
        assert whole in [everything[a:b] for a in range(len(everything) + 1) for b in range(a, len(everything) + 1)]
        await store.open_tool_calls(conversation_id)
        messages = await store.sessions.load_messages(conversation_id)
        assert repr(messages[-2:]) == repr(await store.sessions.load_messages(conversation_id, limit=2))
        await store.sessions.save_messages(conversation_id, messages)
        chat = await store.chat.get_conversation(conversation_id)
        assert chat is not None
        await store.chat.save_conversation(chat)
        assert before == await dump(store, conversation_id)


for _test, _clauses in (
    (CrossingWalk.test_random_logs_and_edits, ("X1", "X2", "X6", "X7")),
    (CrossingWalk.test_random_logs_and_calls, ("X3", "X7", "C8", "C9")),
):
    # What `clause` does for a test that is a coroutine; hypothesis runs these.
    _test.clauses = _clauses  # type: ignore[attr-defined]
    _test.needs_fresh = False  # type: ignore[attr-defined]
