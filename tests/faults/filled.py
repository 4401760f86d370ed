"""A SQLite store with something in every table and column, and what every view of it shows."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import convostore
from convostore import AgentInfo, Message, TodoItem, TodoSnapshot, ToolCallRecord
from convostore.opening import Store

__all__ = ["CONVERSATIONS", "VIEWS", "fill", "rows", "seen", "tables"]

CONVERSATIONS = ("first", "second", "third")

_INFO = AgentInfo(
    session_id="s", model="m", provider="p", system_prompt="be kind", created_at=1, updated_at=2, message_count=3
)


async def fill(file: Path, *, messages: int = 4) -> None:
    """Fill a new store: three conversations alike, each with messages of every store, a replaced one, and documents."""
    async with convostore.open(file) as store:
        for name in CONVERSATIONS:
            await store.create_conversation(
                "context", f"{name} subject", id=name, title=f"{name} title", metadata={"a": 1}
            )
            for number in range(messages):
                await store.append_messages(
                    name, [Message(role="user", id=f"{name}-{number}", content=f"{name} {number} " * (1 + number % 40))]
                )
            call = ToolCallRecord("search", "k", "pending", {"q": name})
            await store.append_messages(name, [Message(role="assistant", tool_calls=(call,))])
            await store.finish_tool_call(name, "k", "success", {"rows": [name]})
            await store.sessions.append_messages(name, [{"role": "user", "content": f"{name} said", "timestamp": 5}])
            card: Any = {"id": 1, "type": "card", "card": {"id": "k", "type": "form", "content": {"of": name}}}
            await store.chat.append_item(name, card)
            await store.sessions.save_todos(name, TodoSnapshot((TodoItem("1", f"{name} todo"),)))
            await store.sessions.save_info(name, _INFO)
            await store.rate(name, 4, f"{name} was good")


VIEWS: dict[str, Callable[[Store, str], Awaitable[Any]]] = {
    "conversation": lambda store, name: store.find_by_id(name),
    "messages": lambda store, name: store.load_messages(name, system=True),
    "last messages": lambda store, name: store.load_messages(name, limit=2),
    "session": lambda store, name: store.sessions.load_messages(name),
    "items": lambda store, name: store.chat.get_conversation(name),
    "todos": lambda store, name: store.sessions.load_todos(name),
    "info": lambda store, name: store.sessions.load_info(name),
    "latest": lambda store, name: store.find_latest("context", f"{name} subject"),
}


async def seen(store: Store, name: str) -> dict[str, Any]:
    """Return what each view shows of a conversation: its repr, or the error."""
    found: dict[str, Any] = {}
    for view, look in VIEWS.items():
        try:
            found[view] = repr(await look(store, name))
        except Exception as error:  # noqa: BLE001 - any other than a StoreError is a finding
            found[view] = error
    return found


def tables(file: Path) -> dict[str, list[str]]:
    """Return the columns of every table of ours."""
    with closing(sqlite3.connect(file)) as database:
        names = [
            name
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if not name.startswith("sqlite_stat")
        ]
        return {name: [row[1] for row in database.execute(f"PRAGMA table_info({name})")] for name in names}


def rows(file: Path) -> str:
    """Return every row of every table, with the type of each value, as text; read by SQLite alone."""
    with closing(sqlite3.connect(file)) as database:
        columns_of = tables(file)
        database.text_factory = bytes  # a damaged text need not be one
        found = {
            table: database.execute(
                f"SELECT rowid, {', '.join(f'typeof({each}), quote({each})' for each in columns)} FROM {table} ORDER BY rowid"
            ).fetchall()
            for table, columns in columns_of.items()
        }
    return repr(found)
