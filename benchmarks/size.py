"""Size: bytes of the file per message, all tables and indexes included, beside a bare table of the same bodies.

The bare table is ``(key INTEGER PRIMARY KEY, body BLOB)`` with the library's keys, filled in the same order, one
transaction a turn. Both files are checkpointed and closed before they are measured; nothing is vacuumed.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import convostore
from benchmarks.result import Line, Setting
from benchmarks.workload import Turn, turns
from convostore.contracts.backend import Change, NewEntry
from convostore.dialects import hub
from convostore.ids import new_id, now_ms
from convostore.opening import Store

__all__ = ["measure"]


async def measure(setting: Setting) -> list[Line]:
    material = turns(500)
    count = setting.size(10_000)
    shapes = {
        "bytes a message, 100 turns a conversation": [each for each in range(count // 100) for _ in range(100)],
        "  the same, 5 turns a conversation": [each for each in range(count // 5) for _ in range(5)],
        "  the same, 100 turns, 16 conversations growing at once": _interleaved(count // 100, 100, 16),
    }
    lines = []
    for number, (what, order) in enumerate(shapes.items()):
        setting.say(what.strip())
        ratio = await _ratio(setting.folder, f"size-{number}", material, order)
        bounds = (1.15, 1.05) if number == 0 else (None, None)
        lines.append(Line(what=what, measured=ratio, must=bounds[0], aim=bounds[1]))
    return lines


def _interleaved(conversations: int, turns_each: int, at_once: int) -> list[int]:
    """Return which conversation gets each next turn when a group of them is written to by chance."""
    chance = random.Random(1)
    order: list[int] = []
    for first in range(0, conversations, at_once):
        group = [each for each in range(first, min(first + at_once, conversations)) for _ in range(turns_each)]
        chance.shuffle(group)
        order += group
    return order


async def _ratio(folder: Path, name: str, material: Sequence[Turn], order: Sequence[int]) -> float:
    ours, bare = folder / f"{name}.db", folder / f"{name}-bare.db"
    table = sqlite3.connect(bare, isolation_level=None)
    table.execute("PRAGMA journal_mode = WAL")
    table.execute("PRAGMA synchronous = OFF")
    table.execute("CREATE TABLE bare (key INTEGER PRIMARY KEY, body BLOB)")
    async with convostore.open(ours) as store:
        ids: dict[int, str] = {}
        next_key: dict[int, int] = {}
        for number, which in enumerate(order):
            if which not in ids:
                ids[which] = (await store.create_conversation("bench", f"subject-{which}")).id
                next_key[which] = (len(ids) << 32) + 1
            turn = [
                hub.write(message, entry_id=new_id(), created_at_ms=now_ms())
                for message in material[number % len(material)]
            ]
            await _append(store, ids[which], turn)
            table.execute("BEGIN")
            table.executemany(
                "INSERT INTO bare VALUES (?, ?)", list(enumerate((each.body for each in turn), next_key[which]))
            )
            table.execute("COMMIT")
            next_key[which] += len(turn)
    table.close()
    return ours.stat().st_size / bare.stat().st_size


async def _append(store: Store, conversation_id: str, turn: list[NewEntry]) -> None:
    change = Change(conversation_id=conversation_id, revision=new_id(), at_ms=now_ms(), append=tuple(turn))
    await store.backend.commit(change)
