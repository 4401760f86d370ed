"""Filling a store with what a measurement needs, quickly: whole conversations in one commit, heads in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

from benchmarks.workload import Turn
from convostore.backends.sqlite import rows, schema
from convostore.contracts.backend import Change, Head
from convostore.dialects import hub
from convostore.ids import new_id, now_ms
from convostore.opening import Store
from convostore.stores.heads import encoded

__all__ = ["append_many", "insert_heads"]

_PER_COMMIT = 10_000


async def append_many(store: Store, conversation_id: str, material: Sequence[Turn], count: int) -> None:
    """Append `count` messages, the material over and over, in large commits."""
    messages = islice(cycle(message for turn in material for message in turn), count)
    while some := list(islice(messages, _PER_COMMIT)):
        entries = [hub.write(each, entry_id=new_id(), created_at_ms=now_ms()) for each in some]
        change = Change(conversation_id=conversation_id, revision=new_id(), at_ms=now_ms(), append=tuple(entries))
        await store.backend.commit(change)


def insert_heads(path: Path, contexts: int, subjects: int, each: int) -> None:
    """Insert `each` empty conversations of every context and subject, oldest first, with a title and metadata."""
    connection = sqlite3.connect(path, isolation_level=None)
    schema.prepare(connection)
    connection.execute("BEGIN IMMEDIATE")
    number = connection.execute("SELECT ifnull(max(number), 0) FROM conversations").fetchone()[0]
    at_ms = now_ms() - contexts * subjects * each
    batch = []
    for turn in range(each):
        for subject in range(subjects):
            for context in range(contexts):
                number += 1
                at_ms += 1
                fields = encoded(title=f"Bookings of week {turn}", metadata={"channel": "web", "visit": number})
                head = Head(
                    new_id(), new_id(), new_id(), at_ms, at_ms, f"context-{context}", f"subject-{subject:05d}", 0, 0, 0,
                    {name: value for name, value in fields.items() if value is not None},
                )  # fmt: skip
                batch.append(rows.encode_head(number, head, None, {}))
    places = ", ".join("?" * len(batch[0]))
    connection.executemany(f"INSERT INTO conversations ({rows.HEAD_COLUMNS}) VALUES ({places})", batch)
    connection.execute("COMMIT")
    connection.close()
