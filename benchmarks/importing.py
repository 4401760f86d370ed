"""Importing: `import convostore` beside what it needs at the least, each in fresh interpreters that take turns.

The clock runs inside the interpreter, around the statements alone. The package loads its parts when they are asked for, so the
second line says what a program pays that opens a store.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

from benchmarks.result import Line, Setting
from benchmarks.timing import Spread, spread_of, take_turns

__all__ = ["measure"]

_TIMED = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"


async def measure(setting: Setting) -> list[Line]:
    """Time the import alone, and with what the first call of a program brings in."""
    alone = await _beside_needed(setting, "import convostore")
    opened = await _beside_needed(setting, "import convostore; convostore.open('sqlite://'); convostore.Message")
    return [
        Line(
            what="import convostore, beside import asyncio, msgspec, uuid_utils",
            measured=alone.median,
            spread=alone,
            must=1.25,
        ),
        Line(what="  the same, and open an SQLite store", measured=opened.median, spread=opened),
    ]


async def _beside_needed(setting: Setting, ours: str) -> Spread:
    async def run_ours(number: int) -> float:
        return await asyncio.to_thread(_seconds, ours)

    async def run_needed(number: int) -> float:
        return await asyncio.to_thread(_seconds, "import asyncio, msgspec, uuid_utils")

    return spread_of(*await take_turns(run_ours, run_needed, rounds=setting.rounds(15), samples=3))


def _seconds(statements: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _TIMED.format(statements)], capture_output=True, text=True, check=True, timeout=60
    )
    return float(done.stdout)
