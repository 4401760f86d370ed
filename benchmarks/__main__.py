"""Measure convostore beside sqlite3 driven by hand, and say which bounds it keeps.

Every figure is a ratio of two things done in turns in this run; see docs/performance.md. Exit code 1: a bound is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from benchmarks import appending, counting, importing, loading, looking_up, many_tasks, size
from benchmarks.machine import file_system, kind_of_machine, on_disk
from benchmarks.report import as_json, as_text
from benchmarks.result import Line, Setting

__all__ = ["main"]

_HERE: Final = Path(__file__).parent
_LATEST: Final = _HERE / "results" / "latest.txt"

MEASUREMENTS: Final[dict[str, Callable[[Setting], Awaitable[list[Line]]]]] = {
    "append": appending.measure_one_writer,
    "length": appending.measure_length,
    "tasks": many_tasks.measure,
    "load": loading.measure,
    "lookup": looking_up.measure,
    "size": size.measure,
    "import": importing.measure,
    "counts": counting.measure,
}


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    options = _parser().parse_args(arguments)
    if options.save and (options.quick or options.only):
        print("--save keeps whole runs only: leave out --quick and --only", file=sys.stderr)
        return 2
    parent = options.folder or _HERE
    if not on_disk(parent):
        print(f"a sync costs nothing on {file_system(parent)}; name a folder on a disk: --folder", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=parent) as folder:
        machine = kind_of_machine(Path(folder))
        lines = asyncio.run(_measure(options.only or list(MEASUREMENTS), Path(folder), options.quick))
    report = as_text(machine, lines, quick=options.quick)
    print(as_json(machine, lines, quick=options.quick) if options.json else report, end="")
    if options.save:
        _LATEST.write_text(report, encoding="utf-8")
    return int(any(line.verdict == "MISS" for line in lines))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a short run with a tenth of the data")
    parser.add_argument("--only", action="append", choices=MEASUREMENTS, metavar="NAME", help=", ".join(MEASUREMENTS))
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--save", action="store_true", help="keep the table as benchmarks/results/latest.txt")
    parser.add_argument("--folder", type=Path, help="where to put the databases for the time of the run; a disk")
    return parser


async def _measure(names: list[str], folder: Path, quick: bool) -> list[Line]:
    lines = []
    for name in names:
        begun = time.monotonic()
        inside = folder / name
        inside.mkdir()
        setting = Setting(inside, quick, lambda what, name=name: _say(f"{name}: {what}"))  # type: ignore[misc]  # mypy does not infer this lambda
        lines += await MEASUREMENTS[name](setting)
        _say(f"{name}: {time.monotonic() - begun:.0f} s, load average {os.getloadavg()[0]:.1f}")
    return lines


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
