"""kill -9 at random moments: what was acknowledged is there, whole and in order, and the next process goes on."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

import convostore
from tests.crash.batches import Name, judge_conversation, judge_file
from tests.crash.writing import TASKS, conversations_of, own_conversation

_root = Path(__file__).parents[2]
_after = 999_999
"""The number of the batch that the judge appends."""


class Round(NamedTuple):
    """What a killed process had acknowledged."""

    created: list[str]
    batches: list[Name]


def _start(file: Path, round_: int) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(_root), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "-m", "tests.crash.writing", str(file), str(round_)],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd=file.parent,
    )


def _kill(process: subprocess.Popen[bytes], first: bytes) -> Round:
    """Kill it, and return all that it had said, `first` included."""
    assert process.stdout is not None
    process.kill()
    lines = (first + process.stdout.read()).split(b"\n")
    process.stdout.close()
    assert -signal.SIGKILL == process.wait(30), "it ended by itself"
    said = [line.split() for line in lines[:-1]]  # a line that was cut was not acknowledged
    return Round(
        [words[1].decode() for words in said if words[0] == b"created"],
        [(int(words[0]), int(words[1])) for words in said if words[0] != b"created"],
    )


def _killed(file: Path, round_: int, chance: random.Random) -> Round:
    with _start(file, round_) as process:
        assert process.stdout is not None
        if round_ % 5 == 4:  # some die while they open the store
            time.sleep(chance.uniform(0.05, 0.4))
            return _kill(process, b"")
        first = process.stdout.readline()
        time.sleep(chance.expovariate(10))
        return _kill(process, first)


async def _judge(store: convostore.Store, round_: int, told: Round) -> list[str]:
    wrong = []
    for conversation_id in conversations_of(round_):
        acknowledged = [
            name for name in told.batches if own_conversation(round_, name[0] - round_ * TASKS) == conversation_id
        ]
        if conversation_id in told.created or await store.find_by_id(conversation_id) is not None:
            then = (round_ * TASKS, _after)
            wrong += await judge_conversation(store, conversation_id, acknowledged, then_append=then)
        elif acknowledged:
            wrong.append(f"{conversation_id} is not there")
    return wrong


def _storm(tmp_path: Path, kills: int) -> int:
    file, chance = tmp_path / "storm.db", random.Random(kills)
    told: list[Round] = []
    for round_ in range(kills):
        told.append(_killed(file, round_, chance))

        async def judge(round_: int = round_) -> list[str]:
            async with convostore.open(file) as store:
                return await _judge(store, round_, told[round_])

        assert [] == asyncio.run(judge()), f"after kill {round_}"

    async def judge_all() -> list[str]:
        async with convostore.open(file) as store:
            wrong = [each for round_, one in enumerate(told) for each in await _judge(store, round_, one)]
            return wrong + await judge_file(store, file)

    assert [] == asyncio.run(judge_all())
    acknowledged = sum(len(each.batches) for each in told)
    print(f"{kills} kills, {acknowledged} acknowledged batches, 0 lost")
    return acknowledged


def test_ten_kills_lose_nothing(tmp_path: Path) -> None:
    """After each of ten kills every acknowledged batch is there, whole, in order, and the next append works."""
    assert _storm(tmp_path, 10) > 10


@pytest.mark.slow
def test_a_storm_of_kills_loses_nothing(tmp_path: Path) -> None:
    """The same after each of two hundred kills."""
    assert _storm(tmp_path, 200) > 1000


def test_a_killed_process_does_not_disturb_another(tmp_path: Path) -> None:
    """While five processes die one after the other, a sixth appends to the same file and loses nothing either."""
    file, chance = tmp_path / "storm.db", random.Random(5)
    with _start(file, 100) as survivor:
        assert survivor.stdout is not None
        first = survivor.stdout.readline()
        told = {round_: _killed(file, round_, chance) for round_ in range(5)}
        assert survivor.poll() is None
        told[100] = _kill(survivor, first)

    async def judge() -> list[str]:
        async with convostore.open(file) as store:
            wrong = [each for round_, one in told.items() for each in await _judge(store, round_, one)]
            return wrong + await judge_file(store, file)

    assert [] == asyncio.run(judge())
    assert len(told[100].batches) > 5
