"""Processes that cost milliseconds: forks of one that has imported everything and has no other thread.

For use in a process of its own (`syscalls.run_supervised`), never in that of pytest, which has threads.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

__all__ = ["Ended", "in_fork", "in_forks"]


class Ended(NamedTuple):
    """How a fork ended (as `Popen.returncode` says it) and every value that it told."""

    code: int
    told: list[Any]


def in_fork(job: Callable[[Callable[[Any], None]], object]) -> Ended:
    """Run `job` in a fork and wait for its end; it is given a function that tells a JSON value to this process.

    What was told before it was killed is told. A job that raises ends with code 1, its traceback on standard error.
    """
    return in_forks([job])[0]


def in_forks(jobs: Sequence[Callable[[Callable[[Any], None]], object]]) -> list[Ended]:
    """Run each job in a fork of its own, all released at the same moment; return how they ended, in their order."""
    gate, opener = os.pipe()
    started = []
    for job in jobs:
        ours, theirs = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            os.close(ours)
            os.close(opener)
            _run(job, gate, theirs)
        os.close(theirs)
        started.append((pid, ours))
    os.close(gate)
    os.close(opener)
    return [_ended(pid, channel) for pid, channel in started]


def _ended(pid: int, channel: int) -> Ended:
    with open(channel, "rb") as told:
        lines = told.read().splitlines(keepends=True)
    _, status = os.waitpid(pid, 0)
    return Ended(os.waitstatus_to_exitcode(status), [json.loads(line) for line in lines if line.endswith(b"\n")])


def _run(job: Callable[[Callable[[Any], None]], object], gate: int, channel: int) -> NoReturn:
    code = 1
    try:
        os.read(gate, 1)  # until the other end is closed
        job(lambda value: _tell(channel, value))
        code = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        raise  # no further than the line below
    finally:
        os._exit(code)


def _tell(channel: int, value: object) -> None:
    line = json.dumps(value).encode() + b"\n"
    assert len(line) == os.write(channel, line)
