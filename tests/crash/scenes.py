"""Scenes: a store, what a process does to it, and how to tell afterwards whether that was all or nothing.

Each runs once for every system call that it makes, is killed in place of it, and judged by a process that opens the store anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import convostore
from convostore import TodoItem, TodoSnapshot
from convostore.backends.sqlite.backend import SqliteBackend
from convostore.backends.sqlite.schema import MIGRATIONS
from convostore.contracts.backend import Window
from convostore.model.session_message import SessionMessage
from convostore.testing.drafts import change, creation, entry
from tests.crash.batches import batch, judge_conversation, judge_file, judge_messages, key_of

__all__ = ["SCENES", "Scene", "Tell"]

Tell: TypeAlias = Callable[[Any], None]
"""Says to the judge what was acknowledged."""

_MINE = "c"


class Scene(NamedTuple):
    """What there is before; what is done; what is wrong afterwards, given what was told."""

    prepare: Callable[[Path], Awaitable[None]]
    act: Callable[[Path, Tell], Awaitable[None]]
    judge: Callable[[Path, list[Any]], Awaitable[list[str]]]


def _open(folder: Path) -> convostore.Store:
    return convostore.open(folder / "s.db")


async def _append(store: convostore.Store, number: int, tell: Tell | None = None, size: int = 3) -> None:
    await store.append_messages(_MINE, batch((0, number), size), idempotency_key=key_of((0, number)))
    if tell is not None:
        tell(number)


async def _nothing(folder: Path) -> None:
    """There is an empty folder."""


async def _five_batches(folder: Path) -> None:
    async with _open(folder) as store:
        await store.create_conversation("x", "s", id=_MINE)
        for number in range(5):
            await _append(store, number)


async def _judge_batches(folder: Path, told: list[Any], before: int = 5) -> list[str]:
    async with _open(folder) as store:
        if not before and await store.find_by_id(_MINE) is None:
            if told:
                return ["the conversation is not there"]
            await store.create_conversation("x", "s", id=_MINE)
        acknowledged = [(0, number) for number in (*range(before), *told) if number >= 0]
        wrong = await judge_conversation(store, _MINE, acknowledged, then_append=(0, 999))
        return wrong + await judge_file(store, folder / "s.db")


# A new file, the first commits in it, and its closing, which moves everything from the log into the database.


async def _begin(folder: Path, tell: Tell) -> None:
    async with _open(folder) as store:
        await store.create_conversation("x", "s", id=_MINE)
        tell(-1)
        await _append(store, 0, tell)
        await _append(store, 1, tell)


async def _judge_begun(folder: Path, told: list[Any]) -> list[str]:
    return await _judge_batches(folder, told, before=0)


async def _append_two(folder: Path, tell: Tell) -> None:
    async with _open(folder) as store:
        await _append(store, 5, tell)
        await _append(store, 6, tell, size=1)


async def _append_around_a_checkpoint(folder: Path, tell: Tell) -> None:
    """The log is emptied under an open store, and begun anew by the next append."""
    async with _open(folder) as store:
        await _append(store, 5, tell, size=1)
        with closing(sqlite3.connect(folder / "s.db", isolation_level=None)) as other:
            assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
        await _append(store, 6, tell, size=1)


# A list saved over another, with all its todos: one of the two.


def _list(tag: str) -> list[SessionMessage]:
    kept: list[SessionMessage] = [{"role": "user", "content": f"both {number}"} for number in range(4)]
    return [*kept[:2], {"role": "user", "content": f"{tag} " * 500}, *kept[2:], {"role": "user", "content": tag}]


async def _old_list(folder: Path) -> None:
    async with _open(folder) as store:
        await store.sessions.save_messages(_MINE, _list("old"))


async def _save_new_list(folder: Path, tell: Tell) -> None:
    async with _open(folder) as store:
        await store.sessions.save_messages(_MINE, _list("new"))
        tell("messages")
        await store.sessions.save_todos(_MINE, TodoSnapshot((TodoItem("1", "new " * 2000),)))
        tell("todos")


async def _judge_lists(folder: Path, told: list[Any]) -> list[str]:
    async with _open(folder) as store:
        wrong = []
        found = await store.sessions.load_messages(_MINE)
        if found != _list("new") and (told or found != _list("old")):
            wrong.append(f"the messages are {found}")
        todos = await store.sessions.load_todos(_MINE)
        if todos != TodoSnapshot((TodoItem("1", "new " * 2000),)) and ("todos" in told or todos is not None):
            wrong.append(f"the todos are {todos}")
        await store.sessions.save_messages(_MINE, _list("newer"))
        if await store.sessions.load_messages(_MINE) != _list("newer"):
            wrong.append("saving again did not work")
        return wrong + await judge_file(store, folder / "s.db")


# A conversation with messages and documents deleted beside another one: all of it or nothing.


async def _two_conversations(folder: Path) -> None:
    await _five_batches(folder)
    async with _open(folder) as store:
        await store.create_conversation("x", "s", id="other")
        await store.append_messages("other", batch((1, 0), 8))
        for each in ("other", _MINE):
            await store.sessions.save_todos(each, TodoSnapshot((TodoItem("1", "x" * 3000),)))


async def _delete(folder: Path, tell: Tell) -> None:
    async with _open(folder) as store:
        await store.delete_conversation("other")
        tell("deleted")


async def _judge_deleted(folder: Path, told: list[Any]) -> list[str]:
    async with _open(folder) as store:
        wrong = []
        there = await store.find_by_id("other")
        messages = await store.load_messages("other")
        todos = await store.sessions.load_todos("other")
        if there is None:
            wrong += ["something of it is left"] if messages or todos else []
        else:
            wrong += ["the answer was lost"] if told else []
            wrong += judge_messages(messages, {(1, 0)})
            wrong += [] if todos else ["its todos are gone"]
    return wrong + await _judge_batches(folder, [])


# A store of an older version opened by a newer program.

_NEWER = (*MIGRATIONS, ("CREATE TABLE later (note TEXT)", "INSERT INTO later VALUES ('upgraded')"))


async def _upgrade(folder: Path, tell: Tell) -> None:
    newer = SqliteBackend(folder / "s.db", migrations=_NEWER)
    await newer.commit(creation("by the newer", entry("a")))
    tell("upgraded")
    await newer.aclose()


async def _judge_upgraded(folder: Path, told: list[Any]) -> list[str]:
    with closing(sqlite3.connect(folder / "s.db")) as database:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        tables = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'later'").fetchone()
    wrong = [] if (version, tables) in ((1, (0,)), (2, (1,))) else [f"version {version}, and of its table {tables}"]
    newer = SqliteBackend(folder / "s.db", migrations=_NEWER)
    store = convostore.Store(newer)
    async with store:
        if await newer.read("by the newer", Window()) is None:
            wrong += ["the answer was lost"] if told else []
            await newer.commit(creation("by the newer", entry("a")))
        await newer.commit(change("by the newer", entry("b")))
        wrong += await judge_conversation(store, _MINE, [(0, number) for number in range(5)], then_append=(0, 999))
        return wrong + await judge_file(store, folder / "s.db")


SCENES = {
    "a new file": Scene(_nothing, _begin, _judge_begun),
    "appends": Scene(_five_batches, _append_two, _judge_batches),
    "a checkpoint": Scene(_five_batches, _append_around_a_checkpoint, _judge_batches),
    "a rewrite": Scene(_old_list, _save_new_list, _judge_lists),
    "a deletion": Scene(_two_conversations, _delete, _judge_deleted),
    "an upgrade": Scene(_five_batches, _upgrade, _judge_upgraded),
}
