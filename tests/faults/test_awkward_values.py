"""Whatever a caller may give, everywhere: it comes back exactly, or it is refused and nothing is written."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import convostore
from convostore import Message, TodoSnapshot
from convostore.errors import InvalidInput
from convostore.opening import InMemoryConversationStore, Store
from convostore.testing.awkward import hostile_ids, kept_texts, kept_values, refused_ids, refused_values
from convostore.testing.drafts import census
from tests.faults.carriers import CARRIERS, Carrier
from tests.faults.places import folder_in_memory


def _itself(container: Any) -> Any:
    if isinstance(container, list):
        container.append(container)
    else:
        container["self"] = container
    return container


_never_json = refused_values | {"a list in itself": _itself([]), "an object in itself": _itself({})}
_never_text = {name: value for name, value in _never_json.items() if type(value) is not str} | {
    "a number": 1,
    "a list": ["a"],
    "an object": {},
    "true": True,
}
_never_object = {"a list": [], "text": "{}", "a number": 1, "pairs": [("a", 1)]}


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Yield an empty store."""
    with folder_in_memory(tmp_path) as folder:
        opened = InMemoryConversationStore() if request.param == "memory" else convostore.open(folder / "s.db")
        async with opened as store:
            yield store


_HUGE = "a megabyte on one line"


def _kept(carrier: Carrier) -> dict[str, Any]:
    values = kept_texts if carrier.takes == "text" else kept_values
    if carrier.is_field:
        values = {name: value for name, value in values.items() if name != _HUGE}
    if carrier.takes == "object":
        return {name: {"in": value} for name, value in values.items()} | {
            "odd keys": kept_values["odd keys"],
            "empty": {},
        }
    return values


def _refused(carrier: Carrier) -> dict[str, Any]:
    values = _never_text if carrier.takes == "text" else _never_json
    if carrier.is_field:
        values = {**values, _HUGE: kept_texts[_HUGE]}
    if carrier.takes == "object":
        return {name: {"in": value} for name, value in values.items()} | _never_object
    return values


@pytest.mark.parametrize("where", CARRIERS)
async def test_what_json_can_carry_comes_back_exactly(store: Store, where: str) -> None:
    """Every awkward text or value, put there, is read back as it was: type, sign, digits, key order and surrogates too."""
    carrier = CARRIERS[where]
    for what, value in _kept(carrier).items():
        name = f"of {what}"
        await store.create_conversation("x", "s", id=name)
        await carrier.put(store, name, value)
        assert repr(value) == repr(await carrier.get(store, name)), what
    for what, value in _kept(carrier).items():  # and after all the others were written
        assert repr(value) == repr(await carrier.get(store, f"of {what}")), what


@pytest.mark.parametrize("where", CARRIERS)
async def test_what_json_cannot_carry_is_refused_and_nothing_is_written(store: Store, where: str) -> None:
    """InvalidInput, whatever else the call brings, and not one byte, revision or conversation more than before."""
    carrier = CARRIERS[where]
    await store.create_conversation("x", "s", id="c")
    await carrier.put(store, "c", {"in": "good"} if carrier.takes == "object" else "good")
    if where == "finished output":  # another call to finish
        call = convostore.ToolCallRecord("f", "k", "pending", {})
        await store.append_messages("c", [Message(role="assistant", tool_calls=(call,))])
    before = await census(store.backend)
    for what, value in _refused(carrier).items():
        with pytest.raises(InvalidInput) as refused:
            await carrier.put(store, "c", value)
        assert str(refused.value), what
        assert before == await census(store.backend), what


async def test_arguments_that_are_no_object_are_refused_or_kept(store: Store) -> None:
    """A session's call whose arguments are first one such value, then another: InvalidInput, or what was saved last."""
    values = [value for value in kept_values.values() if not isinstance(value, dict)]
    for name, (first, then) in enumerate(itertools.pairwise(values)):
        shown: Any = None
        for value in (first, then):
            call = {"type": "toolCall", "id": "k", "name": "f", "arguments": value}
            message: Any = {"role": "assistant", "content": [call]}
            with contextlib.suppress(InvalidInput):
                await store.sessions.save_messages(f"{name}", [message])
                shown = message
        found: Any = await store.sessions.load_messages(f"{name}")
        assert repr([] if shown is None else [shown]) == repr(found)


_Do = Callable[[Store, Any], Awaitable[Any]]
_VERBS: dict[str, _Do] = {
    "create_conversation id": lambda s, v: s.create_conversation("x", "s", id=v),
    "create_conversation context": lambda s, v: s.create_conversation(v, "s"),
    "create_conversation subject": lambda s, v: s.create_conversation("x", v),
    "create_conversation key": lambda s, v: s.create_conversation("x", "s", idempotency_key=v),
    "find_latest context": lambda s, v: s.find_latest(v, "s"),
    "find_latest subject": lambda s, v: s.find_latest("x", v),
    "latest_or_create": lambda s, v: s.latest_or_create("x", v),
    "find_by_id": lambda s, v: s.find_by_id(v),
    "append_messages": lambda s, v: s.append_messages(v, [Message(role="user")]),
    "append of nothing": lambda s, v: s.append_messages(v, []),
    "append key": lambda s, v: s.append_messages("c", [Message(role="user")], idempotency_key=v),
    "message id": lambda s, v: s.append_messages("c", [Message(role="user"), Message(role="user", id=v)]),
    "load_messages": lambda s, v: s.load_messages(v),
    "load before": lambda s, v: s.load_messages("c", before=v),
    "load after": lambda s, v: s.load_messages("c", after=v),
    "rate": lambda s, v: s.rate(v, 3),
    "update_conversation": lambda s, v: s.update_conversation(v, title="t"),
    "update subject": lambda s, v: s.update_conversation("c", subject_id=v),
    "update_message": lambda s, v: s.update_message(v, Message(role="user", id="m")),
    "update message id": lambda s, v: s.update_message("c", Message(role="user", id=v)),
    "finish_tool_call": lambda s, v: s.finish_tool_call(v, "k", "success"),
    "open_tool_calls": lambda s, v: s.open_tool_calls(v),
    "list context": lambda s, v: s.list_conversations(context=v),
    "list subject": lambda s, v: s.list_conversations(subject_id=v),
    "delete_conversation": lambda s, v: s.delete_conversation(v),
    "fork_conversation": lambda s, v: s.fork_conversation(v),
    "fork id": lambda s, v: s.fork_conversation("c", id=v),
    "fork after": lambda s, v: s.fork_conversation("c", after=v),
    "erase_subject": lambda s, v: s.erase_subject(v),
    "salvage": lambda s, v: s.salvage(v),
    "for_subject": lambda s, v: s.for_subject(v).find_by_id("c"),
    "sessions.save_messages": lambda s, v: s.sessions.save_messages(v, []),
    "sessions.append_messages": lambda s, v: s.sessions.append_messages(v, [{"role": "user", "content": ""}]),
    "sessions.load_messages": lambda s, v: s.sessions.load_messages(v),
    "sessions.save_todos": lambda s, v: s.sessions.save_todos(v, TodoSnapshot(())),
    "sessions.load_todos": lambda s, v: s.sessions.load_todos(v),
    "sessions.load_info": lambda s, v: s.sessions.load_info(v),
    "sessions.exists": lambda s, v: s.sessions.exists(v),
    "sessions.delete": lambda s, v: s.sessions.delete(v),
    "chat.save_conversation": lambda s, v: s.chat.save_conversation({"id": v, "title": "", "items": []}),
    "chat.get_conversation": lambda s, v: s.chat.get_conversation(v),
    "chat.delete_conversation": lambda s, v: s.chat.delete_conversation(v),
    "chat.append_item": lambda s, v: s.chat.append_item(v, {"id": 1, "type": "message", "role": "user", "content": ""}),
    "chat.get_conversation_items": lambda s, v: s.chat.get_conversation_items(v),
    "chat.clear_conversation_history": lambda s, v: s.chat.clear_conversation_history(v),
    "chat.set_conversation_agent": lambda s, v: s.chat.set_conversation_agent(v, "agent"),
    "chat agent": lambda s, v: s.chat.set_conversation_agent("c", v),
    "chat.get_conversation_agent": lambda s, v: s.chat.get_conversation_agent(v),
}


@pytest.mark.parametrize("verb", _VERBS)
async def test_what_cannot_be_an_id_is_refused_on_every_verb(store: Store, verb: str) -> None:
    """Empty, too long, control characters, lone surrogates, other types: InvalidInput everywhere, nothing written."""
    await store.create_conversation("x", "s", id="c")
    before = await census(store.backend)
    for what, value in refused_ids.items():
        try:
            async with asyncio.timeout(10):
                with pytest.raises(InvalidInput):
                    await _VERBS[verb](store, value)
        except BaseException as failure:
            failure.add_note(f"with the id that is {what}")
            raise
    assert before == await census(store.backend)


async def test_ids_that_look_alike_stay_apart_on_every_verb(store: Store) -> None:
    """Conversations, subjects, contexts and messages under hostile ids are found, changed and deleted each by itself."""
    more = ("a" * 255, "\u05d0" * 127, "a\u2028b", "\u202eabc", "'; DROP TABLE entries; --")
    names = [*hostile_ids("a"), *more]
    for name in names:
        await store.create_conversation(name, name, id=name, title=name)
        await store.append_messages(name, [Message(role="user", content=name, id=each) for each in (name, "m")])
        await store.sessions.save_todos(name, TodoSnapshot((), name))
    everything = {each.id for each in (await store.list_conversations(limit=1000)).items}
    assert set(names) == everything
    for name in names:
        latest = await store.find_latest(name, name)
        assert latest is not None
        assert (name, name) == (latest.id, latest.title)
        assert [name, name] == [each.content for each in await store.load_messages(name)]
        assert ["m"] == [each.id for each in await store.load_messages(name, after=name)]
        assert [name] == [each.id for each in (await store.list_conversations(subject_id=name)).items]
        assert TodoSnapshot((), name) == await store.sessions.load_todos(name)
        mine = store.for_subject(name)
        assert [name] == [each.id for each in (await mine.list_conversations()).items]
    for gone, name in enumerate(names, start=1):
        assert 1 == await store.erase_subject(name)
        assert set(names[gone:]) == {each.id for each in (await store.list_conversations(limit=1000)).items}
