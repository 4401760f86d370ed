"""Clause C10 as tests: a store limited to one subject, on every verb of every contract.

The table below has one probe a verb. Each says whether the view could see or change the conversation it is given: True for
one of the view's own, False for any other, whatever form "not found" takes on that verb. A verb without a probe fails.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

import pytest

from convostore.contracts.backend import Snapshot, Window
from convostore.contracts.conversation_store import ConversationStore
from convostore.contracts.session_store import SessionStore
from convostore.contracts.storage_adapter import StorageAdapter
from convostore.errors import ConversationExistsError, ConversationNotFoundError, NotFoundError, StoreError
from convostore.model.chat_item import ChatConversation, ChatItem, ChatMessage
from convostore.model.message import Message, ToolCallRecord
from convostore.model.session_message import SessionMessage
from convostore.model.todo import AgentInfo, TodoSnapshot
from convostore.opening import Store
from convostore.testing.contract_view import second_store
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["ScopingClauses", "dump"]

Names: TypeAlias = list[tuple[str, str]]
"""Every context and subject that the test uses."""
Probe: TypeAlias = Callable[[Store, str, Names], Awaitable[bool]]

_HELLO: SessionMessage = {"role": "user", "content": "hi"}
_ITEM: ChatItem = {"id": 1, "type": "message", "role": "user", "content": "hi"}
_CHAT_MESSAGE: ChatMessage = {"id": 2, "role": "user", "content": "hi"}


async def dump(store: Store, conversation_id: str) -> Snapshot | None:
    """Return all that the backend holds of a conversation."""
    snapshot: Snapshot | None = await store.backend.read(conversation_id, Window(), None)
    return snapshot


async def _not_found(call: Awaitable[Any], error: type[StoreError] = ConversationNotFoundError) -> bool:
    """Return True when the call went through, False when it raised `error`."""
    try:
        await call
    except error:
        return False
    return True


async def _listed(view: Store, conversation_id: str, names: Names) -> bool:
    ids: list[str] = []
    cursor = None
    while True:
        page = await view.list_conversations(cursor=cursor, limit=2)
        ids += [each.id for each in page.items]
        if (cursor := page.cursor) is None:
            return conversation_id in ids


async def _append(view: Store, conversation_id: str, names: Names) -> bool:
    return await _not_found(view.append_messages(conversation_id, [Message(role="user", content="x")]))


async def _update_message(view: Store, conversation_id: str, names: Names) -> bool:
    return await _not_found(
        view.update_message(conversation_id, Message(role="user", content="changed", id="m1")), NotFoundError
    )


async def _latest(view: Store, conversation_id: str, names: Names) -> bool:
    found = [await view.find_latest(context, subject) for context, subject in names]
    return conversation_id in [each.id for each in found if each is not None]


async def _latest_or_create(view: Store, conversation_id: str, names: Names) -> bool:
    found = False
    for context, subject in names:
        try:
            made = await view.latest_or_create(context, subject)
        except StoreError:
            continue  # a view may refuse to speak of another subject
        found = found or made.id == conversation_id
    return found


async def _iterated(view: Store, conversation_id: str, names: Names) -> bool:
    return conversation_id in [each["id"] async for each in view.chat.iterate_conversations()]


async def _save_chat(view: Store, conversation_id: str, names: Names) -> bool:
    conversation: ChatConversation = {"id": conversation_id, "title": "mine now", "items": [_ITEM]}
    return await _not_found(view.chat.save_conversation(conversation), ConversationExistsError)


async def _deleted_session(view: Store, conversation_id: str, names: Names) -> bool:
    before = await view.sessions.exists(conversation_id)
    await view.sessions.delete(conversation_id)
    return before and not await view.sessions.exists(conversation_id)


async def _cleared(view: Store, conversation_id: str, names: Names) -> bool:
    before = await view.chat.get_conversation_items(conversation_id)
    await view.chat.clear_conversation_history(conversation_id)
    return before != [] and [] == await view.chat.get_conversation_items(conversation_id)


async def _erased(view: Store, conversation_id: str, names: Names) -> bool:
    before = await view.find_by_id(conversation_id)
    for _, subject in names:
        try:
            await view.erase_subject(subject)
        except StoreError:
            continue  # a view may refuse to speak of another subject
    return before is not None and await view.find_by_id(conversation_id) is None


def _info(conversation_id: str) -> AgentInfo:
    return AgentInfo(
        session_id=conversation_id,
        model="m",
        provider="p",
        system_prompt="",
        created_at=1,
        updated_at=2,
        message_count=0,
    )


async def _create(view: Store, conversation_id: str, names: Names) -> bool:
    """Creating over what is there is refused for everyone, so what is probed is that nothing shows through."""
    assert not await _not_found(
        view.create_conversation(*names[0], id=conversation_id, title="mine now"), ConversationExistsError
    )
    return await view.find_by_id(conversation_id) is not None


async def _open_calls(view: Store, conversation_id: str, names: Names) -> bool:
    return [] != await view.open_tool_calls(conversation_id)


_conversation_probes: dict[str, Probe] = {
    "create_conversation": _create,
    "find_latest": _latest,
    "latest_or_create": _latest_or_create,
    "append_messages": _append,
    "update_message": _update_message,
    "list_conversations": _listed,
    "open_tool_calls": _open_calls,
    "erase_subject": _erased,
}


def _probe(table: dict[str, Probe]) -> Callable[[Probe], None]:
    def add(function: Probe) -> None:
        table[getattr(function, "__name__", "").strip("_")] = function

    return add


@_probe(_conversation_probes)
async def _find_by_id(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.find_by_id(conversation_id) is not None


@_probe(_conversation_probes)
async def _load_messages(view: Store, conversation_id: str, names: Names) -> bool:
    return [] != await view.load_messages(conversation_id)


@_probe(_conversation_probes)
async def _rate(view: Store, conversation_id: str, names: Names) -> bool:
    return await _not_found(view.rate(conversation_id, 1, "spied"))


@_probe(_conversation_probes)
async def _update_conversation(view: Store, conversation_id: str, names: Names) -> bool:
    for _, subject in names:
        with suppress(StoreError):
            await view.update_conversation(conversation_id, subject_id=subject)
    return await _not_found(view.update_conversation(conversation_id, title="mine now"))


@_probe(_conversation_probes)
async def _finish_tool_call(view: Store, conversation_id: str, names: Names) -> bool:
    return await _not_found(view.finish_tool_call(conversation_id, "c", "success", {}))


@_probe(_conversation_probes)
async def _delete_conversation(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.delete_conversation(conversation_id)


@_probe(_conversation_probes)
async def _fork_conversation(view: Store, conversation_id: str, names: Names) -> bool:
    return await _not_found(view.fork_conversation(conversation_id))


@_probe(_conversation_probes)
async def _salvage(view: Store, conversation_id: str, names: Names) -> bool:
    return await _not_found(view.salvage(conversation_id))


_session_probes: dict[str, Probe] = {
    "save_messages": lambda view, each, names: _not_found(
        view.sessions.save_messages(each, [_HELLO]), ConversationExistsError
    ),
    "append_messages": lambda view, each, names: _not_found(
        view.sessions.append_messages(each, [_HELLO]), ConversationExistsError
    ),
    "save_todos": lambda view, each, names: _not_found(
        view.sessions.save_todos(each, TodoSnapshot((), "mine now")), ConversationExistsError
    ),
    "save_info": lambda view, each, names: _not_found(
        view.sessions.save_info(each, _info(each)), ConversationExistsError
    ),
    "exists": lambda view, each, names: view.sessions.exists(each),
    "delete": _deleted_session,
}


@_probe(_session_probes)
async def _load_todos(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.sessions.load_todos(conversation_id) is not None


@_probe(_session_probes)
async def _load_info(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.sessions.load_info(conversation_id) is not None


@_probe(_session_probes)
async def _list(view: Store, conversation_id: str, names: Names) -> bool:
    return conversation_id in await view.sessions.list() or conversation_id in await view.sessions.list(conversation_id)


async def _load_session(view: Store, conversation_id: str, names: Names) -> bool:
    return [] != await view.sessions.load_messages(conversation_id)


_session_probes["load_messages"] = _load_session

_chat_probes: dict[str, Probe] = {
    "save_conversation": _save_chat,
    "iterate_conversations": _iterated,
    "delete_conversation": lambda view, each, names: view.chat.delete_conversation(each),
    "append_item": lambda view, each, names: view.chat.append_item(each, _ITEM),
    "clear_conversation_history": _cleared,
    "set_conversation_agent": lambda view, each, names: _not_found(
        view.chat.set_conversation_agent(each, "spy"), ConversationExistsError
    ),
}


@_probe(_chat_probes)
async def _initialize(view: Store, conversation_id: str, names: Names) -> bool:
    await view.chat.initialize({"subject_id": None})
    return await view.chat.get_conversation(conversation_id) is not None


@_probe(_chat_probes)
async def _get_conversation(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.chat.get_conversation(conversation_id) is not None


@_probe(_chat_probes)
async def _get_all_conversations(view: Store, conversation_id: str, names: Names) -> bool:
    return conversation_id in [each["id"] for each in await view.chat.get_all_conversations()]


@_probe(_chat_probes)
async def _add_item(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.chat.add_item(conversation_id, _ITEM) is not None


@_probe(_chat_probes)
async def _add_message(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.chat.add_message(conversation_id, _CHAT_MESSAGE) is not None


@_probe(_chat_probes)
async def _get_conversation_items(view: Store, conversation_id: str, names: Names) -> bool:
    return [] != await view.chat.get_conversation_items(conversation_id)


@_probe(_chat_probes)
async def _get_conversation_history(view: Store, conversation_id: str, names: Names) -> bool:
    return [] != await view.chat.get_conversation_history(conversation_id)


@_probe(_chat_probes)
async def _get_conversation_agent(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.chat.get_conversation_agent(conversation_id) is not None


def _verbs(contract: type) -> set[str]:
    return {name for name, value in vars(contract).items() if callable(value) and not name.startswith("_")}


class ScopingClauses(Suite):
    """C10."""

    @clause("C10")
    async def test_every_verb_has_a_probe(self, store: Store, samples: Samples) -> None:
        """Every verb of the contracts, and every public method of the three stores, is tested under C10."""
        for contract, implementation, probes in (
            (ConversationStore, store, _conversation_probes),
            (SessionStore, store.sessions, _session_probes),
            (StorageAdapter, store.chat, _chat_probes),
        ):
            assert _verbs(contract) == set(probes)
            offered = {
                name
                for name in dir(type(implementation))
                if not name.startswith("_") and callable(getattr(type(implementation), name))
            }
            assert set() == offered - set(probes) - {"aclose", "for_subject"}

    async def _fill(self, store: Store, samples: Samples, subject: str | None, name: str) -> str:
        """Make a conversation that every probe could see or change."""
        conversation_id = samples.id(name)
        if subject is not None:
            await store.create_conversation(samples.id("context"), subject, id=conversation_id)
        await store.chat.set_conversation_agent(conversation_id, "agent")
        await store.append_messages(
            conversation_id,
            [
                Message(role="user", content="secret", id="m1"),
                Message(role="assistant", tool_calls=(ToolCallRecord("t", "c", "pending", {}),)),
            ],
        )
        await store.sessions.save_todos(conversation_id, TodoSnapshot((), "secret"))
        await store.sessions.save_info(conversation_id, _info(conversation_id))
        return conversation_id

    @clause("C10")
    async def test_a_view_sees_its_own_and_nothing_else(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Each verb works on the view's own conversations; another's and nobody's are not found and stay untouched."""
        mine, theirs = samples.id("org-7"), samples.id("org-70")
        async with second_store(store, factory) as other:
            view = other.for_subject(mine)
            names = [(samples.id(context), subject) for context in ("context", "c") for subject in (mine, theirs)]
            for kind, probes in (("C", _conversation_probes), ("S", _session_probes), ("A", _chat_probes)):
                for verb, probe in probes.items():
                    where = f"{kind}.{verb}"
                    foreign = await self._fill(store, samples, theirs, f"{where} theirs")
                    nobodys = await self._fill(store, samples, None, f"{where} nobody's")
                    before = [await dump(store, each) for each in (foreign, nobodys)]
                    assert await probe(view, foreign, names) is False, where
                    assert await probe(view, nobodys, names) is False, where
                    assert before == [await dump(store, each) for each in (foreign, nobodys)], where
                    own = await self._fill(store, samples, mine, f"{where} mine")
                    assert await probe(view, own, names) is True, where

    @clause("C10")
    async def test_what_a_view_creates_is_its_subjects(self, store: Store, samples: Samples) -> None:
        """Whatever verb of whatever store creates it, it has the view's subject, or nothing is created."""
        mine, theirs = samples.id("org-7"), samples.id("org-70")
        view = store.for_subject(mine)
        ids = [samples.id(f"new{n}") for n in range(7)]
        await view.sessions.save_messages(ids[0], [_HELLO])
        await view.sessions.append_messages(ids[1], [_HELLO])
        await view.sessions.save_todos(ids[2], TodoSnapshot(()))
        await view.sessions.save_info(ids[3], _info(ids[3]))
        await view.chat.save_conversation({"id": ids[4], "title": "", "items": []})
        await view.chat.set_conversation_agent(ids[5], "agent")
        await view.create_conversation(samples.id("context"), mine, id=ids[6])
        fork = await view.fork_conversation(ids[6])
        made = await view.latest_or_create(samples.id("another context"), mine)
        for each in (*ids, fork.id, made.id):
            found = await store.find_by_id(each)
            assert found is not None
            assert mine == found.subject_id
            assert await view.find_by_id(each) == found
        creations: tuple[Callable[[], Awaitable[Any]], ...] = (
            lambda: view.create_conversation(samples.id("context"), theirs),
            lambda: view.latest_or_create(samples.id("context"), theirs),
        )
        for create in creations:
            with pytest.raises(StoreError):
                await create()
        assert () == (await store.list_conversations(subject_id=theirs)).items

    @clause("C10")
    async def test_a_view_of_a_view_does_not_widen(self, store: Store, samples: Samples) -> None:
        """A view of another subject, taken from a view, sees nothing of that subject."""
        theirs = await store.create_conversation(samples.id("context"), samples.id("org-70"))
        view = store.for_subject(samples.id("org-7"))
        try:
            wider = view.for_subject(samples.id("org-70"))
        except StoreError:
            return
        assert await wider.find_by_id(theirs.id) is None
        assert [] == await wider.sessions.list()

    @clause("C10", "B8")
    async def test_subjects_are_compared_exactly(self, store: Store, samples: Samples) -> None:
        """A view of a subject that only looks alike sees nothing; a bad subject is no way to see everything."""
        made = await store.create_conversation(samples.id("context"), samples.id("org-7"))
        for name in ("org-70", "org-", "ORG-7", "org-7 ", "org-%", "org-_", "*"):
            view = store.for_subject(samples.id(name))
            assert await view.find_by_id(made.id) is None
            assert () == (await view.list_conversations()).items
        bad_subjects: tuple[Any, ...] = ("", None, 7, "a\x00", b"org-7")
        for bad in bad_subjects:
            with pytest.raises(StoreError):
                await store.for_subject(bad).list_conversations()

    @clause("C10")
    async def test_a_view_pages_over_its_own_only(self, store: Store, samples: Samples) -> None:
        """Foreign conversations between a view's own neither show up nor leave holes in pages."""
        mine, theirs = samples.id("org-7"), samples.id("org-70")
        for n in range(10):
            await store.create_conversation(samples.id("context"), theirs, id=samples.id(f"{n}a"))
            await store.create_conversation(samples.id("context"), mine, id=samples.id(f"{n}b"))
            await store.sessions.save_messages(samples.id(f"{n}c"), [_HELLO])
        view = store.for_subject(mine)
        own = [samples.id(f"{n}b") for n in range(10)]
        assert own == await view.sessions.list()
        assert own == [each["id"] for each in await view.chat.get_all_conversations()]
        page = await view.list_conversations(order="id", limit=4)
        assert own[:4] == [each.id for each in page.items]
        assert own[:5] == [
            each.id for each in (await view.list_conversations(order="created", newest_first=False, limit=5)).items
        ]
        assert () == (await view.list_conversations(subject_id=theirs)).items
        assert () == (await view.list_conversations(subject_id=None)).items
