"""Disks that are really full, limits of the system, and files that may not be written."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.faults.mounting import unavailable as mounting_unavailable
from tests.faults.places import require
from tests.faults.syscalls import run_supervised

_PREAMBLE = """
import asyncio, json, os, resource, sqlite3, stat, sys
from pathlib import Path

import convostore
from convostore.errors import AppendUnavailable, UnavailableError
from tests.crash.batches import batch, judge_file, judge_messages, key_of

folder = Path(sys.argv[1])
file = folder / "s.db"

async def append_until_refused(store, writer):
    done = []
    for number in range(10_000):
        name = (writer, number)
        try:
            await store.append_messages("c", batch(name), idempotency_key=key_of(name))
        except AppendUnavailable as refused:
            return done, name, str(refused)
        done.append(name)

async def judge(store, names):
    return judge_messages(await store.load_messages("c"), names) + await judge_file(store, file)

def tell(**what):
    print(json.dumps(what))
"""


def _told(folder: Path, *parts: str) -> dict[str, Any]:
    done = run_supervised("".join(map(textwrap.dedent, (_PREAMBLE, *parts))), str(folder))
    assert (0, "") == (done.returncode, done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_full_file_system_refuses_and_loses_nothing(tmp_path: Path) -> None:
    """On a disk of a megabyte appends end in AppendUnavailable; all before are there, and with room the same store goes on."""
    folder = tmp_path / "disk"
    folder.mkdir()
    require(mounting_unavailable(folder))
    answer = _told(
        folder,
        """
        from tests.faults.mounting import mount_small
        mount_small(folder, 1_000_000)
        ballast = folder / "ballast"
        ballast.write_bytes(bytes(200_000))

        async def work():
            async with convostore.open(file) as store:
                await store.create_conversation("x", "s", id="c")
                done, refused, said = await append_until_refused(store, 0)
                again, _, _ = await append_until_refused(store, 1)
                read = judge_messages(await store.load_messages("c"), done + again)
                ballast.unlink()
                await store.append_messages("c", batch(refused), idempotency_key=key_of(refused))
                tell(done=len(done), said=said, read=read, wrong=await judge(store, [*done, *again, refused]))

        asyncio.run(work())
        """,
    )
    assert ([], []) == (answer["read"], answer["wrong"])
    assert answer["done"] > 10
    assert "s.db" in answer["said"]
    assert "full" in answer["said"]


def test_a_file_system_full_from_the_beginning_is_unavailable_until_there_is_room(tmp_path: Path) -> None:
    """A store cannot be made on a full disk; that is UnavailableError on every verb, and passes without a new object."""
    folder = tmp_path / "disk"
    folder.mkdir()
    require(mounting_unavailable(folder))
    answer = _told(
        folder,
        """
        from tests.faults.mounting import mount_small
        mount_small(folder, 500_000)
        ballast = folder / "ballast"
        with open(ballast, "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                pass

        async def work():
            async with convostore.open(file) as store:
                said = []
                for do in (
                    lambda: store.create_conversation("x", "s", id="c"),
                    lambda: store.find_by_id("c"),
                    lambda: store.load_messages("c"),
                    lambda: store.list_conversations(),
                    lambda: store.sessions.load_todos("c"),
                    lambda: store.append_messages("c", batch((0, 0))),
                ):
                    try:
                        said.append(repr(await do()))
                    except UnavailableError as refused:
                        said.append("unavailable")
                ballast.unlink()
                await store.create_conversation("x", "s", id="c")
                await store.append_messages("c", batch((0, 0)))
                tell(said=said, wrong=await judge(store, [(0, 0)]))

        asyncio.run(work())
        """,
    )
    assert (["unavailable"] * 6, []) == (answer["said"], answer["wrong"])


def test_a_limit_on_file_sizes_refuses_and_loses_nothing(tmp_path: Path) -> None:
    """With RLIMIT_FSIZE the log cannot grow: AppendUnavailable, and the same store goes on when the limit is lifted."""
    answer = _told(
        tmp_path,
        """
        async def work():
            async with convostore.open(file) as store:
                await store.create_conversation("x", "s", id="c")
                _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
                resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, hard))
                done, refused, said = await append_until_refused(store, 0)
                read = judge_messages(await store.load_messages("c"), done)
                resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
                await store.append_messages("c", batch(refused), idempotency_key=key_of(refused))
                tell(done=len(done), said=said, read=read, wrong=await judge(store, [*done, refused]))

        asyncio.run(work())
        """,
    )
    assert ([], []) == (answer["read"], answer["wrong"])
    assert answer["done"] > 5
    assert "s.db" in answer["said"]


_WITHOUT_PRIVILEGE = """
import ctypes

class Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]

class Set(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]

# Root writes what may not be written, unless it gives up its capabilities.
if os.geteuid() == 0:
    assert not ctypes.CDLL(None).capset(ctypes.byref(Header(0x20080522, 0)), (Set * 2)())

async def filled():
    async with convostore.open(file) as store:
        await store.create_conversation("x", "s", id="c")
        await store.append_messages("c", batch((0, 0)))

async def attempts():
    answers = {}
    async with convostore.open(file) as store:
        for name, do in {
            "load": lambda: store.load_messages("c"),
            "find": lambda: store.find_by_id("c"),
            "append": lambda: store.append_messages("c", batch((0, 1))),
            "create": lambda: store.create_conversation("x", "s"),
        }.items():
            try:
                found = await do()
                answers[name] = "nothing" if not found else "sound"
            except convostore.StoreError as refused:
                kind = "unavailable" if isinstance(refused, UnavailableError) else type(refused).__name__
                answers[name] = f"{kind}: {refused}"
    return answers
"""


@pytest.fixture
def _linux() -> None:
    require(None if sys.platform == "linux" else "capabilities are Linux only")


@pytest.mark.usefixtures("_linux")
def test_a_file_that_may_not_be_written_is_read_and_refuses_appends(tmp_path: Path) -> None:
    """Reads work; an append and a creation are UnavailableError, which says what may not be written."""
    answer = _told(
        tmp_path,
        _WITHOUT_PRIVILEGE,
        """
        asyncio.run(filled())
        file.chmod(0o444)
        tell(**asyncio.run(attempts()))
        """,
    )
    assert ("sound", "sound") == (answer["load"], answer["find"])
    for verb in ("append", "create"):
        assert answer[verb].startswith("unavailable: ")
        assert "s.db" in answer[verb]
        assert "may not be written" in answer[verb]


@pytest.mark.usefixtures("_linux")
def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    """In a read-only folder nothing is taken for absent: a write is UnavailableError, and a read too if it cannot answer."""
    answer = _told(
        tmp_path,
        _WITHOUT_PRIVILEGE,
        """
        asyncio.run(filled())
        file.chmod(0o444)
        folder.chmod(0o555)
        there = asyncio.run(attempts())
        file = folder / "new.db"
        absent = asyncio.run(attempts())
        folder.chmod(0o755)
        tell(there=there, absent=absent)
        """,
    )
    for verb, said in answer["there"].items():
        assert said.startswith("unavailable: ") or (said == "sound" and verb in ("load", "find")), (verb, said)
        assert said == "sound" or "s.db" in said
    for verb, said in answer["absent"].items():
        assert said.startswith("unavailable: "), (verb, said)
        assert "new.db" in said
