"""What every test is held to: it leaves no descriptor and no thread behind and blocks no event loop; and, where ``CI`` is set,
no engine that a test needs may be missing.

A test that means to block a loop says so with ``@pytest.mark.may_block``.
"""

import asyncio
import gc
import os
import platform
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

# A shell starts background jobs with SIGINT ignored, and what we start would inherit that: Ctrl-C tests would hang.
signal.signal(signal.SIGINT, signal.default_int_handler)

_DESCRIPTORS = Path("/proc/self/fd")
_blocked_s_max = 5.0
"""Seconds that one step of an event loop may wait for something other than the processor. Long: a sync of a busy disk may
take one or two."""
_end_s_max = 2.0
"""Seconds that a thread which was told to end is given to do so."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "may_block: blocks an event loop on purpose")


def pytest_report_header() -> str:
    return (
        f"engines: Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, msgspec {msgspec.__version__}"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    # The convention: a test that cannot run here because an engine is not installed skips with "missing engine: which".
    if report.skipped and os.environ.get("CI") and "missing engine" in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: where CI is set every engine has to be there\n{report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def leaves_nothing_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test that leaves descriptors or threads, or whose event loop stood still."""
    descriptors, threads = _open_descriptors(), set(threading.enumerate())
    _longest_block.clear()
    _queued_s_before[0] = _queued_s()
    yield
    blocked = max(_longest_block, default=(0.0, ""))
    if blocked[0] > _blocked_s_max and not request.node.get_closest_marker("may_block"):
        pytest.fail(f"an event loop was blocked for {blocked[0]:.1f} s by {blocked[1]}", pytrace=False)
    if left := [each for each in threading.enumerate() if each not in threads and _is_a_leak(each)]:
        pytest.fail(f"threads left behind: {', '.join(each.name for each in left)}", pytrace=False)
    if _open_descriptors() - descriptors:
        gc.collect()  # what is only waiting to be collected is no leak
        left_open = [_name(each) for each in _open_descriptors() - descriptors if not _is_the_interpreters(each)]
        if left_open:
            pytest.fail(f"descriptors left open: {left_open}", pytrace=False)


def _open_descriptors() -> set[str]:
    # The descriptor that lists the folder is among those listed, and has no name any more.
    return {each for each in os.listdir(_DESCRIPTORS) if _name(each)} if _DESCRIPTORS.exists() else set()


def _name(number: str) -> str:
    try:
        return os.readlink(_DESCRIPTORS / number)
    except OSError:
        return ""


def _is_the_interpreters(number: str) -> bool:
    """Tell what Python or a library opens once for the life of the process from what a test has left."""
    name = _name(number)
    if not name or name.startswith(("/dev/", "/proc/")):
        return True
    tracker: Any = sys.modules.get("multiprocessing.resource_tracker")
    return tracker is not None and int(number) == tracker.getfd()


def _is_a_leak(thread: threading.Thread) -> bool:
    """Give a thread time to end; one of ours may not outlive its test, nor may any that would hold up the interpreter."""
    if thread.daemon and not thread.name.startswith("convostore"):
        return False
    thread.join(_end_s_max)
    return thread.is_alive()


_longest_block: list[tuple[float, str]] = []


_queued_s_before = [0.0]


def _queued_s() -> float:
    """Return how long this thread has been ready to run and was not let, where the system tells."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text("ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _watch_loops() -> None:
    """Time every step of every event loop: what it waited for is time on the wall less time computing and in the queue."""
    handle_type: Any = asyncio.events.Handle
    run: Callable[[Any], None] = handle_type._run

    def timed(handle: Any) -> None:
        wall, computed = time.perf_counter(), time.thread_time()
        run(handle)
        if (wall := time.perf_counter() - wall) > _blocked_s_max:
            computed = time.thread_time() - computed
            # The queue is counted from the beginning of the test, or of the thread: too much of an excuse, never too little.
            is_main = threading.current_thread() is threading.main_thread()
            queued = _queued_s() - (_queued_s_before[0] if is_main else 0.0)
            if (waited := wall - computed - queued) > _blocked_s_max:
                _longest_block.append((waited, repr(handle)[:200]))

    handle_type._run = timed


_watch_loops()
