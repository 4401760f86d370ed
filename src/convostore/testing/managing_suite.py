"""Clause C8 as tests: listing, updating, deleting, forking, erasing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from convostore.errors import (
    ConflictError,
    ConversationExistsError,
    ConversationNotFoundError,
    InvalidInput,
    RevisionConflictError,
)
from convostore.model.conversation import ForkOrigin
from convostore.model.message import Message
from convostore.model.todo import TodoSnapshot
from convostore.opening import Store
from convostore.testing.appending_suite import begin, contents, user
from convostore.testing.awkward import refused_values
from convostore.testing.contract_view import second_store
from convostore.testing.finishing_suite import FinishingClauses, must_find, pending
from convostore.testing.suite import Samples, clause

__all__ = ["ManagingClauses"]


class ManagingClauses(FinishingClauses):
    """C8: conversations are listed, updated, deleted, forked and erased."""

    async def _walk(self, store: Store, **query: Any) -> list[str]:
        """Return the ids on all pages."""
        ids: list[str] = []
        cursor = None
        while True:
            page = await store.list_conversations(cursor=cursor, **query)
            assert len(page.items) <= query.get("limit", 50)
            ids += [each.id for each in page.items]
            if page.cursor is None:
                return ids
            cursor = page.cursor

    @clause("C8", "B10")
    async def test_list_in_every_order(self, store: Store, samples: Samples) -> None:
        """Listings filter exactly, page completely and keep their order, whatever the page size."""
        subject = samples.id("subject")
        names = [samples.id(f"{n * 7 % 10}") for n in range(10)]
        for n, name in enumerate(names):
            await store.create_conversation(samples.id(f"context{n % 2}"), subject, id=name)
        await store.create_conversation(samples.id("context0"), samples.id("subject2"), id=samples.id("99"))
        for limit in (1, 3, 10, 50):
            assert sorted(names) == await self._walk(store, subject_id=subject, order="id", limit=limit)
            assert names[::-1] == await self._walk(store, subject_id=subject, order="created", limit=limit)
            assert names == await self._walk(
                store, subject_id=subject, order="created", newest_first=False, limit=limit
            )
            assert names[1::2] == await self._walk(
                store,
                subject_id=subject,
                context=samples.id("context1"),
                order="created",
                newest_first=False,
                limit=limit,
            )
            assert [samples.id("7")] == await self._walk(store, prefix=samples.id("7"), order="id", limit=limit)
        assert [samples.id("99")] == await self._walk(store, subject_id=samples.id("subject2"))
        assert [] == await self._walk(store, subject_id=samples.id("subj"))
        page = await store.list_conversations(subject_id=subject, limit=1)
        assert page.items == (await store.find_by_id(page.items[0].id),)

    @clause("C8", "B10")
    async def test_list_the_most_recently_changed_first(
        self, store: Store, samples: Samples, clocked: Callable[..., Store]
    ) -> None:
        """Order "updated" is by the last commit, of whatever kind, the most recent first, whatever the page size."""
        subject = samples.id("subject")
        names = [samples.id(str(n)) for n in range(6)]
        now = 1_764_500_000_000
        ticking = clocked(lambda: now)
        for name in names:
            now += 1
            await ticking.create_conversation(samples.id("context"), subject, id=name)
        assert names[::-1] == await self._walk(ticking, subject_id=subject)
        for change in (
            lambda: ticking.append_messages(names[2], [user("x")]),
            lambda: ticking.rate(names[0], 5),
            lambda: ticking.update_conversation(names[4], title="t"),
            lambda: ticking.sessions.save_todos(names[1], TodoSnapshot(())),
            lambda: ticking.chat.set_conversation_agent(names[3], "agent"),
        ):
            now += 1
            await change()
        for limit in (1, 4, 50):
            expected = [names[n] for n in (3, 1, 4, 0, 2, 5)]
            assert expected == await self._walk(ticking, subject_id=subject, order="updated", limit=limit)
        await ticking.aclose()

    @clause("C8", "B8")
    async def test_list_by_prefix_is_literal(self, store: Store, samples: Samples) -> None:
        """A prefix is compared code point by code point: no wildcards, no folding, no separators."""
        ids = samples.look_alikes
        for each in ids:
            await store.create_conversation(samples.id("context"), samples.id("subject"), id=each)
        for prefix in (
            samples.id(),
            samples.id("foo"),
            samples.id("foo%"),
            samples.id("FOO"),
            samples.id("e\u0301"),
            *ids,
        ):
            expected = sorted(each for each in ids if each.startswith(prefix))
            assert expected == await self._walk(store, prefix=prefix, order="id", limit=7)

    @clause("C8", needs_fresh=True)
    async def test_list_those_without_owner_or_context(self, store: Store, samples: Samples) -> None:
        """None lists those without a subject or context; left out, any; and that is not the same."""
        await store.sessions.save_messages(samples.id("free"), [])
        await store.create_conversation(samples.id("context"), samples.id("subject"), id=samples.id("owned"))
        walk = await self._walk(store, prefix=samples.id(), order="id")
        assert [samples.id("free"), samples.id("owned")] == walk
        # Order "created", newest first: a store under test may hold other people's conversations.
        for filters in ({"subject_id": None}, {"context": None}, {"subject_id": None, "context": None}):
            page = await store.list_conversations(order="created", limit=1, **filters)  # type: ignore[arg-type]  # a dict's values
            assert [samples.id("free")] == [each.id for each in page.items]
        assert (None, None) == (page.items[0].subject_id, page.items[0].context)

    @clause("C8", "B10")
    async def test_bad_listings_are_refused(self, store: Store, samples: Samples) -> None:
        """Unknown orders, bad limits, foreign cursors and misplaced prefixes are InvalidInput."""
        for n in range(3):
            await store.create_conversation(samples.id("context"), samples.id("subject"), id=samples.id(str(n)))
        page = await store.list_conversations(subject_id=samples.id("subject"), order="created", limit=1)
        assert page.cursor is not None
        bad: list[dict[str, Any]] = [
            {"order": "rating"},
            {"order": ""},
            {"limit": 0},
            {"limit": -1},
            {"limit": 10**9},
            {"limit": "5"},
            {"limit": None},
            {"cursor": "nonsense"},
            {"cursor": ""},
            {"cursor": page.cursor[:-2]},
            {"cursor": page.cursor, "subject_id": samples.id("subject"), "order": "updated"},
            {"cursor": page.cursor, "subject_id": samples.id("other"), "order": "created"},
            {"cursor": page.cursor, "order": "created"},
            {"prefix": "x", "order": "created"},
            {"prefix": "x", "order": "updated"},
            {"subject_id": ""},
            {"context": 5},
        ]
        for query in bad:
            with pytest.raises(InvalidInput):
                await store.list_conversations(**query)
        with pytest.raises(TypeError):
            await store.list_conversations(subjectid=samples.id("subject"))  # type: ignore[call-arg]  # what is tested

    @clause("C8")
    async def test_update_changes_what_is_given(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """What is left out stays, None drops, and updated_at and revision move."""
        made = await store.create_conversation(
            samples.id("context"), samples.id("subject"), title="T", metadata={"n": 1}
        )
        await store.rate(made.id, 4, "c")
        await store.append_messages(made.id, [user("x")])
        last = await must_find(store, made.id)
        steps: list[tuple[dict[str, Any], Any]] = [
            ({"title": "U \ud83d \u2028"}, ("U \ud83d \u2028", {"n": 1})),
            ({"metadata": {"b": 2, "a": None}}, ("U \ud83d \u2028", {"b": 2, "a": None})),
            ({"title": None}, (None, {"b": 2, "a": None})),
            ({"metadata": {}}, (None, {})),
            ({"metadata": None, "title": ""}, ("", None)),
            ({"subject_id": samples.id("subject")}, ("", None)),
        ]
        async with second_store(store, factory) as other:
            for changes, expected in steps:
                changed = await store.update_conversation(made.id, **changes)
                assert repr(expected) == repr((changed.title, changed.metadata))
                assert changed == await must_find(other, made.id)
                assert (4, "c", 1) == (changed.rating, changed.rating_comment, changed.message_count)
                assert (last.context, last.subject_id, last.created_at) == (
                    changed.context, changed.subject_id, changed.created_at,
                )  # fmt: skip
                last = changed
        assert ["x"] == contents(await store.load_messages(made.id))

    @clause("C8", "B6")
    async def test_update_refuses(self, store: Store, samples: Samples) -> None:
        """Unknown, stale, or unkeepable: the error of that kind, and nothing is changed."""
        made = await store.create_conversation(samples.id("context"), samples.id("subject"), title="T")
        await store.append_messages(made.id, [user("x")])
        before = await must_find(store, made.id)
        with pytest.raises(ConversationNotFoundError):
            await store.update_conversation(samples.id("missing"), title="x")
        with pytest.raises(RevisionConflictError):
            await store.update_conversation(made.id, title="x", expected_revision=made.revision)
        with pytest.raises(InvalidInput):
            await store.update_conversation(made.id, title=5)  # type: ignore[arg-type]  # what is tested
        with pytest.raises(InvalidInput):
            await store.update_conversation(made.id, title="kept?", subject_id="")
        for value in refused_values.values():
            with pytest.raises(InvalidInput):
                await store.update_conversation(made.id, title="kept?", metadata={"v": value})
        with pytest.raises(ConflictError):
            await store.update_conversation(made.id, title="kept?", subject_id=samples.id("other"))
        assert before == await must_find(store, made.id)
        await store.update_conversation(made.id, title="x", expected_revision=before.revision)

    @clause("C8", "B5")
    async def test_the_ownerless_can_be_given_one_owner(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Of several claims at once one wins, the others are ConflictError; its owner then lists and erases it."""
        await store.sessions.append_messages(samples.id("s"), [{"role": "user", "content": "hi"}])
        async with second_store(store, factory) as other:
            outcomes = await asyncio.gather(
                *(
                    each.update_conversation(samples.id("s"), subject_id=samples.id(f"owner{n}"))
                    for n, each in enumerate((store, other, store, other))
                ),
                return_exceptions=True,
            )
        assert 3 == sum(isinstance(each, ConflictError) for each in outcomes), outcomes
        owner = (await must_find(store, samples.id("s"))).subject_id
        assert owner is not None
        assert [samples.id("s")] == await self._walk(store, subject_id=owner)
        assert ["hi"] == contents(await store.load_messages(samples.id("s")))
        assert 1 == await store.erase_subject(owner)

    @clause("C8", "B9")
    async def test_delete_leaves_nothing(self, store: Store, samples: Samples, factory: Callable[[], Any]) -> None:
        """A deleted conversation is gone from every verb of every store, and one of the same id begins empty."""
        names = [samples.id("foo"), samples.id("foobar"), samples.id("fo"), samples.id("Foo"), samples.id("foo%")]
        for each in names:
            await store.create_conversation(samples.id("context"), samples.id("subject"), id=each, title=each)
            await store.append_messages(each, [user("x", id=samples.id("m"))])
            await store.sessions.save_todos(each, TodoSnapshot(()))
            await store.chat.set_conversation_agent(each, "agent")
        async with second_store(store, factory) as other:
            assert await store.delete_conversation(names[0]) is True
            assert await other.delete_conversation(names[0]) is False
            for handle in (store, other):
                assert await handle.find_by_id(names[0]) is None
                assert [] == await handle.load_messages(names[0])
                assert await handle.sessions.exists(names[0]) is False
                assert await handle.sessions.load_todos(names[0]) is None
                assert await handle.chat.get_conversation(names[0]) is None
                assert await handle.chat.get_conversation_agent(names[0]) is None
                listed = await self._walk(handle, subject_id=samples.id("subject"), order="id")
                assert sorted(names[1:]) == listed
            calls: tuple[Callable[[], Awaitable[Any]], ...] = (
                lambda: other.append_messages(names[0], [user("late")]),
                lambda: other.rate(names[0], 5),
                lambda: other.update_conversation(names[0], title="late"),
                lambda: other.fork_conversation(names[0]),
                lambda: other.salvage(names[0]),
            )
            for late in calls:
                with pytest.raises(ConversationNotFoundError):
                    await late()
            again = await other.create_conversation(samples.id("context"), samples.id("subject"), id=names[0])
        assert (None, None, 0) == (again.title, again.agent_id, again.message_count)
        assert [] == await store.load_messages(names[0])
        assert await store.sessions.load_todos(names[0]) is None

    @clause("C8")
    async def test_fork_takes_the_history_along(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """A fork has context, subject, title, metadata and the history up to the message, and says where it is from."""
        made = await store.create_conversation(
            samples.id("context"), samples.id("subject"), title="T", metadata={"b": 1, "a": None}
        )
        stored = await store.append_messages(
            made.id, [Message(role="system", content="s"), user("0", metadata={"n": 1}), pending("c"), user("2")]
        )
        await store.rate(made.id, 5, "not copied")
        await store.sessions.save_todos(made.id, TodoSnapshot(()))
        before = await must_find(store, made.id)
        fork = await store.fork_conversation(made.id, after=stored[2].id)
        assert made.id != fork.id
        assert ForkOrigin(made.id, stored[2].id) == fork.forked_from
        assert (made.context, made.subject_id, "T", repr(made.metadata)) == (
            fork.context, fork.subject_id, fork.title, repr(fork.metadata),
        )  # fmt: skip
        assert (None, None) == (fork.rating, fork.rating_comment)
        assert await store.sessions.load_todos(fork.id) is None
        async with second_store(store, factory) as other:
            assert fork == await other.find_by_id(fork.id)
            copied = await other.load_messages(fork.id, system=True)
            latest = await other.find_latest(samples.id("context"), samples.id("subject"))
        assert latest is not None
        assert fork.id == latest.id
        for old, new in zip(stored[:3], copied, strict=True):
            assert fork.id == new.conversation_id
            for name in ("role", "content", "metadata", "tool_calls", "created_at"):
                assert getattr(old, name) == getattr(new, name)
        await store.append_messages(fork.id, [user("another way")])
        await store.finish_tool_call(fork.id, "c", "success", 1)
        assert stored == await store.load_messages(made.id, system=True)
        assert ["c"] == [each.tool_call_id for each in await store.open_tool_calls(made.id)]
        assert before == await must_find(store, made.id)
        await store.delete_conversation(made.id)
        assert ["0", "", "another way"] == contents(await store.load_messages(fork.id))

    @clause("C8")
    async def test_fork_all_or_refuse(self, store: Store, samples: Samples) -> None:
        """Without `after` all goes along; unknown messages, unknown conversations and taken ids are refused."""
        conversation_id = await begin(store, samples)
        stored = await store.append_messages(conversation_id, [user(str(n)) for n in range(300)])
        fork = await store.fork_conversation(conversation_id, id=samples.id("fork"))
        assert samples.id("fork") == fork.id
        assert fork.forked_from is not None
        assert conversation_id == fork.forked_from.conversation_id
        assert contents(stored) == contents(await store.load_messages(fork.id))
        other = await begin(store, samples)
        for taken in (conversation_id, other):
            with pytest.raises(ConversationExistsError):
                await store.fork_conversation(conversation_id, id=taken)
        with pytest.raises(InvalidInput):
            await store.fork_conversation(conversation_id, after=samples.id("unknown"), id=samples.id("not made"))
        with pytest.raises(ConversationNotFoundError):
            await store.fork_conversation(samples.id("missing"), id=samples.id("not made"))
        assert await store.find_by_id(samples.id("not made")) is None
        empty = await store.fork_conversation(await begin(store, samples))
        assert [] == await store.load_messages(empty.id)
        assert empty.forked_from is not None
        assert empty.forked_from.message_id is None

    @clause("C8", "B9")
    async def test_erase_subject_leaves_nothing(
        self, store: Store, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Everything of the subject is gone, more than a page of it, whichever store it came from; others' stays."""
        mine, theirs = samples.id("subject"), samples.id("subject2")
        made = await asyncio.gather(
            *(store.create_conversation(samples.id(f"context{n % 3}"), mine) for n in range(120)),
        )
        view = store.for_subject(mine)
        await view.sessions.save_messages(samples.id("session"), [{"role": "user", "content": "hi"}])
        await view.chat.save_conversation({"id": samples.id("chat"), "title": "", "items": []})
        kept = await store.create_conversation(samples.id("context"), theirs)
        await store.sessions.save_messages(samples.id("nobody's"), [{"role": "user", "content": "hi"}])
        ids = [*(each.id for each in made), samples.id("session"), samples.id("chat")]
        async with second_store(store, factory) as other:
            assert 122 == await other.erase_subject(mine)
            assert 0 == await other.erase_subject(mine)
            for each in ids:
                assert await other.find_by_id(each) is None
                assert [] == await other.load_messages(each)
            assert [] == await self._walk(other, subject_id=mine)
            assert await other.find_latest(samples.id("context0"), mine) is None
        assert kept == await store.find_by_id(kept.id)
        assert await store.sessions.exists(samples.id("nobody's"))
        assert 0 == await store.erase_subject(samples.id("unheard of"))

    @clause("C8", "B12")
    async def test_salvage_of_the_sound(self, store: Store, samples: Samples) -> None:
        """Salvage of a sound conversation gives every message, system ones too, and no damage."""
        conversation_id = await begin(store, samples)
        stored = await store.append_messages(conversation_id, [Message(role="system", content="s"), user("x")])
        assert (stored, ()) == await store.salvage(conversation_id)
        with pytest.raises(ConversationNotFoundError):
            await store.salvage(samples.id("missing"))
