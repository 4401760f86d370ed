"""Importing: `import convostore` beside what it needs at the least, each in fresh interpreters that take turns.

The clock runs inside the interpreter, around the import alone.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

from benchmarks.result import Line, Setting
from benchmarks.timing import spread_of, take_turns

__all__ = ["measure"]

_TIMED = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


async def measure(setting: Setting) -> list[Line]:
    async def ours(number: int) -> float:
        return await asyncio.to_thread(_seconds, "convostore")

    async def needed(number: int) -> float:
        return await asyncio.to_thread(_seconds, "asyncio, msgspec, uuid_utils")

    spread = spread_of(*await take_turns(ours, needed, rounds=setting.rounds(20), samples=3))
    what = "import convostore, beside import asyncio, msgspec, uuid_utils"
    return [Line(what=what, measured=spread.median, spread=spread, must=1.25)]


def _seconds(modules: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _TIMED.format(modules)], capture_output=True, text=True, check=True, timeout=60
    )
    return float(done.stdout)
