"""The guards around every test (tests/conftest.py) notice what they are there for."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = """
import asyncio, os, threading, time
import pytest

kept = []

def test_descriptor():
    kept.append(open(__file__))

def test_loop_left_open():
    kept.append(asyncio.new_event_loop())

def test_thread():
    end = threading.Event()
    kept.append(threading.Thread(target=end.wait, args=(6,)))
    kept[-1].start()

def test_thread_of_ours():
    kept.append(threading.Thread(target=time.sleep, args=(6,), name="convostore-writer", daemon=True))
    kept[-1].start()

def test_blocked_loop():
    async def block():
        time.sleep(1)
    asyncio.run(block())

@pytest.mark.may_block
def test_blocked_on_purpose():
    async def block():
        time.sleep(1)
    asyncio.run(block())

def test_busy_loop():
    async def compute():
        end = time.thread_time() + 0.2
        while time.thread_time() < end:
            pass
    asyncio.run(compute())

def test_skip_for_an_engine():
    pytest.skip("missing engine: postgres")

def test_skip_for_another_reason():
    pytest.skip("not declared: wings")

def test_clean():
    with open(__file__):
        asyncio.run(asyncio.sleep(0))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Run the probe under a copy of the guards that is less patient."""
    folder = tmp_path_factory.mktemp("guarded")
    guards = Path(__file__).parents[1].joinpath("conftest.py").read_text("utf-8")
    guards, replaced = re.subn(r"^(_blocked_s_max|_end_s_max) = .*$", r"\1 = 0.1", guards, flags=re.MULTILINE)
    assert 2 == replaced
    (folder / "conftest.py").write_text(guards, "utf-8")
    (folder / "test_probe.py").write_text(PROBE, "utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-rA",
        "--rootdir",
        str(folder),
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env={"CI": "1", "PATH": ""}, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("test", "outcome", "reason"),
    [
        ("test_descriptor", "ERROR", "descriptors left open"),
        ("test_loop_left_open", "ERROR", "descriptors left open"),
        ("test_thread", "ERROR", "threads left behind"),
        ("test_thread_of_ours", "ERROR", "convostore-writer"),
        ("test_blocked_loop", "ERROR", "an event loop was blocked"),
        ("test_skip_for_an_engine", "FAILED", ""),
    ],
)
def test_a_guard_fails_the_test(told: str, test: str, outcome: str, reason: str) -> None:
    """A leak, a blocked loop and a missing engine where CI is set are failures that say why."""
    lines = [line for line in told.splitlines() if f"::{test} - " in line or line.endswith(f"::{test}")]
    (line,) = [line for line in lines if line.startswith(outcome)]
    assert reason in line


@pytest.mark.parametrize("test", ["test_blocked_on_purpose", "test_busy_loop", "test_clean"])
def test_a_guard_leaves_alone_what_is_well(told: str, test: str) -> None:
    """What is closed, what computes and what blocks on purpose passes."""
    assert f"PASSED test_probe.py::{test}" in told
    assert f"ERROR test_probe.py::{test}" not in told


def test_a_skip_for_another_reason_stays_a_skip(told: str) -> None:
    """Only a missing engine fails where CI is set; the engines are named at the top."""
    assert "not declared: wings" in told
    assert "1 skipped" in told
