"""Clause C10 as tests: a store limited to one subject, on every verb of every contract. A verb without a probe fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from convostore.contracts.conversation_store import ConversationStore
from convostore.contracts.session_store import SessionStore
from convostore.contracts.storage_adapter import StorageAdapter
from convostore.errors import StoreError
from convostore.model.message import Message, ToolCallRecord
from convostore.model.todo import TodoSnapshot
from convostore.opening import Store
from convostore.testing.contract_view import second_store
from convostore.testing.scoping_probes import agent_info, chat_probes, conversation_probes, hello, session_probes
from convostore.testing.suite import Samples, Suite, clause
from convostore.testing.voices import dump

__all__ = ["ScopingClauses"]


def _verbs(contract: type) -> set[str]:
    return {name for name, value in vars(contract).items() if callable(value) and not name.startswith("_")}


class ScopingClauses(Suite):
    """C10."""

    @clause("C10")
    async def test_every_verb_has_a_probe(self, store: Store, samples: Samples) -> None:
        """Every verb of the contracts, and every public method of the three stores, is tested under C10."""
        for contract, implementation, probes in (
            (ConversationStore, store, conversation_probes),
            (SessionStore, store.sessions, session_probes),
            (StorageAdapter, store.chat, chat_probes),
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
        await store.sessions.save_info(conversation_id, agent_info(conversation_id))
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
            for kind, probes in (("C", conversation_probes), ("S", session_probes), ("A", chat_probes)):
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
        await view.sessions.save_messages(ids[0], [hello])
        await view.sessions.append_messages(ids[1], [hello])
        await view.sessions.save_todos(ids[2], TodoSnapshot(()))
        await view.sessions.save_info(ids[3], agent_info(ids[3]))
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
            await store.sessions.save_messages(samples.id(f"{n}c"), [hello])
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
