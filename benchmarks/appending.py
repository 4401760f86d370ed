"""Appending: one writer, each turn synced before the next; and whether a long conversation makes it dearer."""

from __future__ import annotations

import asyncio
import threading
import time
from itertools import count
from pathlib import Path
from queue import SimpleQueue

import convostore
from benchmarks.filling import append_many
from benchmarks.floor import Floor
from benchmarks.result import Line, Setting
from benchmarks.timing import Spread, spread_of, take_turns
from benchmarks.workload import Result, Turn, turns
from convostore.opening import Store

__all__ = ["measure_length", "measure_one_writer"]

_SAMPLES = 20


async def measure_one_writer(setting: Setting) -> list[Line]:
    """Append turns to one conversation, by the library and by hand, each to a database of its own."""
    structured = await _one_writer(setting, "structured")
    in_a_row = await _one_writer(setting, "structured", in_a_row=_SAMPLES)
    text = await _one_writer(setting, "text")
    thread = await _from_a_thread(setting)
    return [
        Line(
            what="append a turn, one writer, fsynced", measured=structured.median, spread=structured, must=1.6, aim=1.3
        ),
        Line(what=f"  the same, {_SAMPLES} of a side in a row", measured=in_a_row.median, spread=in_a_row),
        Line(what="  the same, tool result as plain text", measured=text.median, spread=text),
        Line(what="  the floor's own append, awaited from a thread", measured=thread.median, spread=thread),
    ]


async def _one_writer(setting: Setting, result: Result, *, in_a_row: int = 1) -> Spread:
    rounds = setting.rounds(30)
    material = turns(_SAMPLES * (rounds + rounds // 4 + 2), result)
    floor = Floor(setting.folder / f"append-floor-{result}-{in_a_row}.db")
    by_hand = floor.create("bench", "subject")
    async with convostore.open(setting.folder / f"append-{result}-{in_a_row}.db") as store:
        conversation = await store.create_conversation("bench", "subject")

        async def append(number: int) -> float:
            start = time.perf_counter()
            await store.append_messages(conversation.id, material[number])
            return time.perf_counter() - start

        async def append_by_hand(number: int) -> float:
            start = time.perf_counter()
            floor.append(by_hand, material[number])
            return time.perf_counter() - start

        medians = await take_turns(append, append_by_hand, rounds=rounds, samples=_SAMPLES, in_a_row=in_a_row)
    floor.close()
    return spread_of(*medians)


async def _from_a_thread(setting: Setting) -> Spread:
    """Compare the floor with itself in a thread, as an event loop would have it: what no library can do without."""
    rounds = setting.rounds(30)
    material = turns(_SAMPLES * (rounds + rounds // 4 + 2))
    floor = Floor(setting.folder / "thread-floor.db")
    by_hand = floor.create("bench", "subject")
    threaded = Floor(setting.folder / "thread.db")
    handed_over = threaded.create("bench", "subject")
    jobs: SimpleQueue[tuple[asyncio.Future[list[str]], Turn] | None] = SimpleQueue()
    loop = asyncio.get_running_loop()

    def work() -> None:
        while (job := jobs.get()) is not None:
            future, turn = job
            loop.call_soon_threadsafe(future.set_result, threaded.append(handed_over, turn))

    async def append_in_thread(number: int) -> float:
        start = time.perf_counter()
        future: asyncio.Future[list[str]] = loop.create_future()
        jobs.put((future, material[number]))
        await future
        return time.perf_counter() - start

    async def append_by_hand(number: int) -> float:
        start = time.perf_counter()
        floor.append(by_hand, material[number])
        return time.perf_counter() - start

    thread = threading.Thread(target=work)
    thread.start()
    try:
        medians = await take_turns(append_in_thread, append_by_hand, rounds=rounds, samples=_SAMPLES)
    finally:
        jobs.put(None)
        thread.join()
        threaded.close()
        floor.close()
    return spread_of(*medians)


async def measure_length(setting: Setting) -> list[Line]:
    """Append to a conversation of 100 000 messages and to ones of 100, in one database."""
    long = setting.size(100_000)
    rounds = setting.rounds(30)
    material = turns(1000)
    path: Path = setting.folder / "length.db"
    async with convostore.open(path) as store:
        long_one = await _conversation(store, material, long)
        short_ones = [await _conversation(store, material, 100) for _ in range(rounds + rounds // 4 + 2)]
        numbers = count()

        async def append(conversation_id: str) -> float:
            turn = material[next(numbers) % len(material)]
            start = time.perf_counter()
            await store.append_messages(conversation_id, turn)
            return time.perf_counter() - start

        async def append_to_long(number: int) -> float:
            return await append(long_one)

        async def append_to_short(number: int) -> float:
            return await append(short_ones[number // _SAMPLES])

        medians = await take_turns(append_to_long, append_to_short, rounds=rounds, samples=_SAMPLES)
    spread = spread_of(*medians)
    what = f"append to a conversation of {long:,} messages, beside one of 100"
    return [Line(what=what, measured=spread.median, spread=spread, must=1.2)]


async def _conversation(store: Store, material: list[Turn], messages: int) -> str:
    conversation = await store.create_conversation("bench", "subject")
    await append_many(store, conversation.id, material, messages)
    return conversation.id
