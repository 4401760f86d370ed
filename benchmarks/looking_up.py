"""Looking up: the last 20 of 10 000 messages, the latest conversation of a subject, the first page of 50.

All in one store with 100 000 conversations of 25 contexts and 400 subjects, ten for each pair. Both sides read the same file.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import convostore
from benchmarks.filling import append_many, insert_heads
from benchmarks.floor import Floor
from benchmarks.result import Line, Setting
from benchmarks.timing import spread_of, take_turns
from benchmarks.workload import turns

__all__ = ["measure"]

_CONTEXTS, _SUBJECTS = 25, 400
_SAMPLES = 50


async def measure(setting: Setting) -> list[Line]:
    path = setting.folder / "looking-up.db"
    setting.say("filling")
    each = setting.size(10)
    insert_heads(path, _CONTEXTS, _SUBJECTS, each)
    async with convostore.open(path) as store:
        messages = setting.size(10_000)
        long = await store.create_conversation("bench", "subject")
        await append_many(store, long.id, turns(500), messages)
        await store.load_messages(long.id, limit=1)  # opens the connection for small reads
        floor = Floor(path)

        def someone(number: int) -> tuple[str, str]:
            return f"context-{number % _CONTEXTS}", f"subject-{number * 7919 % _SUBJECTS:05d}"

        async def compare(
            what: str, ours: Callable[[int], Awaitable[object]], by_hand: Callable[[int], object]
        ) -> Line:
            setting.say(what)

            async def ask(number: int) -> float:
                start = time.perf_counter()
                await ours(number)
                return time.perf_counter() - start

            async def ask_by_hand(number: int) -> float:
                start = time.perf_counter()
                by_hand(number)
                return time.perf_counter() - start

            medians = await take_turns(ask, ask_by_hand, rounds=setting.rounds(30), samples=_SAMPLES)
            spread = spread_of(*medians)
            return Line(what=what, measured=spread.median, spread=spread, must=3.0, aim=2.0)

        among = f"among {_CONTEXTS * _SUBJECTS * each:,} conversations"
        lines = [
            await compare(
                f"last 20 of {messages:,} messages, {among}",
                lambda number: store.load_messages(long.id, limit=20),
                lambda number: floor.load(long.id, 20),
            ),
            await compare(
                f"latest of a subject, {among}",
                lambda number: store.find_latest(*someone(number)),
                lambda number: floor.find_latest(*someone(number)),
            ),
            await compare(
                f"first page of 50, {among}",
                lambda number: store.list_conversations(limit=50),
                lambda number: floor.first_page(50),
            ),
        ]
        floor.close()
    return lines
