"""No answer comes before the log was synced: the kernel's own record of calls says so, answers being calls as well."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from tests.faults.places import require_supervision
from tests.faults.syscalls import run_supervised

_PREAMBLE = """
import asyncio, json, os, sqlite3, sys
from pathlib import Path

import convostore
from convostore.backends.sqlite import connection
from tests.crash.batches import batch
from tests.faults.syscalls import supervise

under = Path(sys.argv[1])
asked = os.open(under / "asked", os.O_CREAT | os.O_WRONLY)
answered = os.open(under / "answered", os.O_CREAT | os.O_WRONLY)

async def append(store, name, size=1):
    os.write(asked, b"%d\\n" % name[0])
    await store.append_messages("c", batch(name, size))
    os.write(answered, b"%d\\n" % name[0])

def told(work):
    with supervise(under=under) as calls:
        asyncio.run(work)
        print(json.dumps(calls.log()))
"""
_SINGLE = """
async def work():
    async with convostore.open(under / "s.db") as store:
        await store.create_conversation("x", "s", id="c")
        os.write(answered, b"created\\n")
        for number in range(20):
            await append(store, (0, number))

told(work())
"""
_TOGETHER = """
async def work():
    async with convostore.open(under / "s.db") as store:
        await store.create_conversation("x", "s", id="c")
        os.write(answered, b"created\\n")
        for number in range(3):
            await asyncio.gather(*(append(store, (writer, number)) for writer in range(64)))

told(work())
"""


@pytest.fixture(autouse=True)
def _supervision() -> None:
    require_supervision()


def _log(under: Path, *parts: str) -> list[tuple[str, str]]:
    done = run_supervised("".join(map(textwrap.dedent, (_PREAMBLE, *parts))), str(under))
    assert (0, "") == (done.returncode, done.stderr)
    log: list[list[str]] = json.loads(done.stdout)
    return [(call, file) for call, file in log]


def _is_sync(call: tuple[str, str], *files: str) -> bool:
    return call[0] in ("fsync", "fdatasync") and call[1] in files


def _answers(log: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Return the calls made before each answer and after the one before it."""
    stretches: list[list[tuple[str, str]]] = [[]]
    for call in log:
        if call == ("write", "answered"):
            stretches.append([])
        elif call[1] not in ("asked", "s.db-shm"):
            stretches[-1].append(call)
    return stretches[:-1]


def test_each_append_alone_is_synced_before_its_answer(tmp_path: Path) -> None:
    """The last call before an answer is the one sync of the log, behind everything that was written to it."""
    created, *appends = _answers(_log(tmp_path, _SINGLE))
    assert 20 == len(appends)
    for calls in appends:
        assert [True] == [_is_sync(each, "s.db-wal") for each in calls if "sync" in each[0]]
        assert _is_sync(calls[-1], "s.db-wal")
        assert {"s.db-wal"} == {file for _, file in calls}, "an append that writes elsewhere as well"
        assert ("pwrite64", "s.db-wal") in calls
    assert _is_sync(created[-1], "s.db-wal")


def test_a_new_file_is_synced_into_its_folder_before_the_first_answer(tmp_path: Path) -> None:
    """A power cut after the first answer takes neither the database nor its log away: their names are on the disk."""
    created, *_ = _answers(_log(tmp_path, _SINGLE))
    folder = [at for at, call in enumerate(created) if _is_sync(call, tmp_path.name)]
    for file in ("s.db", "s.db-wal"):
        first = next(at for at, call in enumerate(created) if call[1] == file)
        assert any(at > first for at in folder), f"{file} was made and its folder not synced"


def test_appends_at_once_share_syncs_and_none_is_answered_before_one(tmp_path: Path) -> None:
    """Between any question and its answer lies a sync of the log; 192 appends of 64 tasks need few of them."""
    log = _log(tmp_path, _TOGETHER)
    begin = log.index(("write", "answered")) + 1
    questions = [at for at, call in enumerate(log) if call == ("write", "asked")]
    answers = [at for at, call in enumerate(log) if call == ("write", "answered")][1:]
    syncs = [at for at, call in enumerate(log) if begin <= at <= answers[-1] and _is_sync(call, "s.db-wal")]
    # Three rounds of 64, each gathered before the next: the last question of a round precedes its first answer.
    assert (192, 192) == (len(questions), len(answers))
    for round_ in range(3):
        first_question, last_question = questions[64 * round_], questions[64 * round_ + 63]
        first_answer, last_answer = answers[64 * round_], answers[64 * round_ + 63]
        assert any(first_question < at < first_answer for at in syncs)
        # What was still to be written when the last question came was synced before the last answer.
        written = [at for at in range(last_question, last_answer) if log[at] == ("pwrite64", "s.db-wal")]
        assert not written or any(written[-1] < at < last_answer for at in syncs)
    print(f"{len(syncs)} syncs for 192 appends of 64 tasks")
    assert 3 <= len(syncs) <= 48


def test_the_count_notices_a_store_that_does_not_sync(tmp_path: Path) -> None:
    """With synchronous=NORMAL put under it, the same store answers without a sync: what is counted is the real thing."""
    weaker = """
    connection._PRAGMAS = tuple(each.replace("= FULL", "= NORMAL") for each in connection._PRAGMAS)
    """
    _, *appends = _answers(_log(tmp_path, weaker, _SINGLE))
    assert [] == [call for calls in appends for call in calls if "sync" in call[0]]
