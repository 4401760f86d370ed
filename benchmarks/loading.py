"""Loading: a whole conversation of 10 000 messages into objects.

Both sides read the same file, which the library wrote. The floor decodes every payload; the library leaves a tool's payload
as text until someone touches it, which the second line makes it do, and which cannot help where the result is plain text.
The library checks every record's checksum in all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import convostore
from benchmarks.filling import append_many
from benchmarks.floor import Floor
from benchmarks.result import Line, Setting
from benchmarks.timing import Spread, spread_of, take_turns
from benchmarks.workload import Result, turns
from convostore.model.message import Message, ToolResultPart

__all__ = ["measure"]


async def measure(setting: Setting) -> list[Line]:
    count = setting.size(10_000)
    lazy = await _load(setting, "structured", lambda messages: None)
    touched = await _load(setting, "structured", _touch)
    text = await _load(setting, "text", lambda messages: None)
    return [
        Line(what=f"load {count:,} messages into objects", measured=lazy.median, spread=lazy, must=1.0, aim=0.5),
        Line(what="  the same, and touch every tool payload", measured=touched.median, spread=touched),
        Line(what="  the same, tool results as plain text", measured=text.median, spread=text),
    ]


async def _load(setting: Setting, result: Result, then: Callable[[list[Message]], None]) -> Spread:
    path = setting.folder / f"load-{result}-{then.__name__}.db"
    async with convostore.open(path) as store:
        conversation = await store.create_conversation("bench", "subject")
        await append_many(store, conversation.id, turns(500, result), setting.size(10_000))
        floor = Floor(path)

        async def load(number: int) -> float:
            start = time.perf_counter()
            messages = await store.load_messages(conversation.id)
            then(messages)
            return time.perf_counter() - start

        async def load_by_hand(number: int) -> float:
            start = time.perf_counter()
            messages = floor.load(conversation.id)
            then(messages)
            return time.perf_counter() - start

        medians = await take_turns(load, load_by_hand, rounds=setting.rounds(15), samples=3)
        floor.close()
    return spread_of(*medians)


def _touch(messages: list[Message]) -> None:
    for message in messages:
        for call in message.tool_calls:
            _ = call.input, call.output
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                _ = part.output
