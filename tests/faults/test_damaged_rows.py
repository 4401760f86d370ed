"""Every column of every row changed behind the store's back: named, the rest reads, and nothing is rewritten."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import convostore
from convostore import Message
from convostore.contracts.backend import HeadQuery, Window
from convostore.errors import CorruptDataError
from convostore.operations.verify import verify
from tests.faults.filled import CONVERSATIONS, VIEWS, fill, rows, seen, tables
from tests.faults.places import folder_in_memory

# What another writer, a bad disk or a bad editor leaves there; {c} is the column.
_CHANGES = {
    "NULL": "NULL",
    "a blob": "x'00ff00'",
    "a text": "'\u05d0 text'",
    "no UTF-8": "CAST(x'80ff' AS TEXT)",
    "zero": "0",
    "the largest integer": "9223372036854775807",
    "a float": "0.5",
    "one more": "{c} + 1",
    "a flipped bit": "CASE typeof({c}) WHEN 'integer' THEN ({c} | 64) - ({c} & 64)"
    " WHEN 'text' THEN char(unicode({c}) + 1) || substr({c}, 2)"
    " WHEN 'blob' THEN CAST(CAST(substr({c}, 1, length({c}) - 1) AS TEXT) || char(7) AS BLOB) ELSE 77 END",
    "cut short": "CASE typeof({c}) WHEN 'text' THEN substr({c}, 1, length({c}) - 1)"
    " WHEN 'blob' THEN substr({c}, 1, length({c}) - 1) ELSE 78 END",
    "empty": "CASE typeof({c}) WHEN 'blob' THEN x'' ELSE '' END",
}
_COLUMNS = {"conversations": 14, "entries": 7, "documents": 3, "sqlite_sequence": 2}
_CHANGES_MIN = {"conversations": 130, "entries": 200, "documents": 40, "sqlite_sequence": 10}


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """Yield where a store may be, in memory."""
    with folder_in_memory(tmp_path) as folder:
        yield folder / "s.db"


def _change(file: Path, table: str, column: str, row: int, change: str) -> bool:
    """Change one value; say whether it is another one now."""
    before = rows(file)
    with closing(sqlite3.connect(file)) as database:
        statement = f"UPDATE {table} SET {column} = {change.format(c=column)} WHERE rowid = ?"
        try:
            database.execute(statement, (row,))
            database.commit()
        except sqlite3.Error:
            return False  # SQLite itself does not allow it: not unique, or no integer in the place of a key
    return before != rows(file)


async def test_every_table_and_column_is_in_the_matrix(file: Path) -> None:
    """A table or column added later has to be damaged here too."""
    await fill(file)
    assert _COLUMNS == {name: len(columns) for name, columns in tables(file).items()}


@pytest.mark.parametrize("table", _COLUMNS)
async def test_a_changed_value_is_named_and_hides_nothing_else(file: Path, table: str) -> None:
    """Each column of each row of the second conversation, changed in each way: what reads is true, the rest is named."""
    await fill(file, messages=1)
    async with convostore.open(file) as store:
        truth = {name: await seen(store, name) for name in CONVERSATIONS}
    clean = file.read_bytes()
    changes = 0
    wrong: list[str] = []
    for column in tables(file)[table]:
        for row, (what, change) in itertools.product(_rows_of_second(file, table), _CHANGES.items()):
            for each in file.parent.iterdir():
                each.unlink()
            file.write_bytes(clean)
            if _change(file, table, column, row, change):
                changes += 1
                judged = await _Judgement(file, truth, table, column).wrong()
                wrong += [f"{table}.{column} of row {row}, {what}: {each}" for each in judged]
        file.write_bytes(clean)
    print(f"{table}: {changes} changes")
    assert [] == wrong
    assert changes >= _CHANGES_MIN[table]


def _rows_of_second(file: Path, table: str) -> list[int]:
    where = {
        "conversations": "number = 2",
        "entries": "key >> 32 = 2",
        "documents": "number = 2",
    }.get(table, "true")
    with closing(sqlite3.connect(file)) as database:
        return [row for (row,) in database.execute(f"SELECT rowid FROM {table} WHERE {where} ORDER BY rowid")]


class _Judgement:
    """What is wrong with a store of which one value was changed, in the second conversation or in the table that all share."""

    def __init__(self, file: Path, truth: dict[str, dict[str, Any]], table: str, column: str) -> None:
        self._file = file
        self._truth = truth
        self._shared = table == "sqlite_sequence"
        # What is looked up by a value that is not there any more is not found. The listing says that it is damaged.
        self._lost = {"conversation_id": set(VIEWS), "context": {"latest"}, "subject_id": {"latest"}}.get(column, set())
        self._may_pass = table == "sqlite_sequence"  # the numbers in use are looked at too
        self._noticed = False

    async def wrong(self) -> list[str]:
        """Read everything, then append to another conversation."""
        before = rows(self._file)
        wrong = []
        async with convostore.open(self._file) as store:
            for name in CONVERSATIONS:
                found = await seen(store, name)
                wrong += [each for view in VIEWS if (each := self._view(name, view, found[view]))]
            wrong += await self._listing(store)
        wrong += [] if before == rows(self._file) else ["reading changed something"]
        async with convostore.open(self._file) as store:
            await store.append_messages("first", [Message(role="user", id="later")])
            snapshot = await store.backend.read("first", Window(limit=1, newest=True))
            assert snapshot is not None
            wrong += [] if ["later"] == [each.entry_id for each in snapshot.entries] else ["the append is not there"]
        return wrong

    def _view(self, name: str, view: str, shown: Any) -> str | None:
        truth = self._truth[name][view]
        if isinstance(shown, CorruptDataError):
            self._noticed = True
            return None if name == "second" or self._shared else f"{view} of {name} is an error: {shown}"
        if shown == truth or (view in self._lost and name == "second"):
            return None
        return f"{view} of {name} shows {shown!r}, not {truth}"

    async def _listing(self, store: convostore.Store) -> list[str]:
        page = await store.backend.scan_heads(HeadQuery(order="created"))
        listed = {head.conversation_id for head in page.items}
        wrong = [] if {"first", "third"} <= listed else [f"only {listed} are listed"]
        if listed != set(CONVERSATIONS) and not page.damage:
            wrong.append("a conversation has left the listing unnoticed")
        self._noticed |= bool(page.damage)
        found = (await verify(store.backend)).damage
        named = {each.conversation_id for each in found}
        if not self._noticed:
            return wrong if self._may_pass and not found else [*wrong, f"nobody noticed but verify: {found}"]
        if not found:
            wrong.append("verify finds nothing")
        if not self._shared and named & {"first", "third"}:
            wrong.append(f"verify blames {named}")
        if "second" in listed and not self._shared and not (await store.salvage("second"))[1]:
            wrong.append("salvage tells of no damage")
        return wrong


async def test_a_listing_names_what_it_leaves_out(file: Path) -> None:
    """With a damaged head the others are listed in every order, and the latest of its subject is an error, not another one."""
    await fill(file)
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE conversations SET fields = x'00' WHERE number = 2")
        database.commit()
    async with convostore.open(file) as store:
        for order in ("id", "created", "updated"):
            page = await store.list_conversations(order=order)
            assert {"first", "third"} == {each.id for each in page.items}
        assert ["first", "second", "third"] == await store.sessions.list()
        with pytest.raises(CorruptDataError):
            await store.find_latest("context", "second subject")
        with pytest.raises(CorruptDataError):
            await store.chat.get_all_conversations()
        assert await store.delete_conversation("second")
        assert ["first", "third"] == await store.sessions.list()
