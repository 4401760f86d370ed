"""Appending from 64 tasks at once, each to a conversation of its own: turns per second, and how long the unlucky wait.

The floor has one thread and one transaction a turn; it writes to the same number of conversations in turn. A round is the
same number of turns on both sides, and nobody waits longer than that for the other side.
"""

from __future__ import annotations

import asyncio
import statistics
import time

import convostore
from benchmarks.floor import Floor
from benchmarks.result import Line, Setting
from benchmarks.timing import quantile, spread_of, take_turns
from benchmarks.workload import turns

__all__ = ["measure"]

_TASKS = 64
_TURNS_EACH = 8


async def measure(setting: Setting) -> list[Line]:
    rounds = setting.rounds(15)
    material = turns(_TASKS * _TURNS_EACH)
    waits: list[list[float]] = []
    floor = Floor(setting.folder / "tasks-floor.db")
    by_hand = [floor.create("bench", "subject") for _ in range(_TASKS)]
    async with convostore.open(setting.folder / "tasks.db") as store:
        conversations = [(await store.create_conversation("bench", "subject")).id for _ in range(_TASKS)]

        async def task(index: int) -> list[float]:
            taken = []
            for number in range(_TURNS_EACH):
                start = time.perf_counter()
                await store.append_messages(conversations[index], material[index * _TURNS_EACH + number])
                taken.append(time.perf_counter() - start)
            return taken

        async def all_tasks(number: int) -> float:
            start = time.perf_counter()
            taken = await asyncio.gather(*map(task, range(_TASKS)))
            elapsed = time.perf_counter() - start
            waits.append([wait for each in taken for wait in each])
            return elapsed

        async def one_after_another(number: int) -> float:
            start = time.perf_counter()
            for index, turn in enumerate(material):
                floor.append(by_hand[index % _TASKS], turn)
            return time.perf_counter() - start

        ours, floors = await take_turns(all_tasks, one_after_another, rounds=rounds, samples=1)
    floor.close()
    speed = spread_of(floors, ours)  # the inverse of the times
    tails = [quantile(each, 0.99) / statistics.median(each) for each in waits[-rounds:]]
    tail = spread_of(tails, [1.0] * rounds)
    return [
        Line(
            what="append, 64 tasks: turns per second",
            measured=speed.median,
            spread=speed,
            better="more",
            must=2.5,
            aim=3.5,
        ),
        Line(what="append, 64 tasks: p99 over p50 of a turn", measured=tail.median, spread=tail, must=10.0),
    ]
