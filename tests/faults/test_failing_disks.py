"""A disk that is full or fails at any call: an error that says so, nothing lost, and the same store goes on afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.failing import SOURCE
from tests.faults.places import folder_in_memory, require_supervision
from tests.faults.syscalls import run_supervised


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder in memory; what fails is made to fail."""
    require_supervision()
    with folder_in_memory(tmp_path) as folder:
        yield folder


def _fail(folder: Path, call: str, error: str, first: int = 0, step: int = 1) -> int:
    done = run_supervised(SOURCE, call, error, str(first), str(step), str(folder), timeout_s=300)
    assert (0, "") == (done.returncode, done.stderr)
    answer = json.loads(done.stdout)
    print(f"{call} {error}: {answer['points']} points, {answer['failures']} failed steps")
    assert [] == answer["wrong"]
    points: int = answer["points"]
    return points


@pytest.mark.parametrize(
    ("call", "error", "points_min"),
    [
        ("fdatasync", "EIO", 15),
        ("fdatasync", "ENOSPC", 15),
        ("ftruncate", "ENOSPC", 2),
        ("ftruncate", "EIO", 2),
        ("unlink", "EIO", 1),
    ],
)
def test_a_call_that_fails_from_the_nth_on_loses_nothing(folder: Path, call: str, error: str, points_min: int) -> None:
    """For every n the step that meets it raises UnavailableError; healed and repeated, it and all later ones succeed."""
    assert _fail(folder, call, error) >= points_min


@pytest.mark.parametrize(("error", "first"), [("ENOSPC", 0), ("EIO", 6)])
def test_writes_that_fail_from_the_nth_on_lose_nothing(folder: Path, error: str, first: int) -> None:
    """The same of writes, at every twelfth."""
    assert _fail(folder, "pwrite64", error, first, 12) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_each_write_that_fails_from_then_on_loses_nothing(folder: Path, error: str) -> None:
    """The same of writes, at every one."""
    assert _fail(folder, "pwrite64", error) >= 160
