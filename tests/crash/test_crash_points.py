"""A process killed at every system call that it makes, one after the other: the exact list of moments, not a sample."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.points import SOURCE
from tests.crash.scenes import SCENES
from tests.faults.places import folder_in_memory, require_supervision
from tests.faults.syscalls import run_supervised


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder in memory: a process that dies loses nothing that the kernel has."""
    require_supervision()
    with folder_in_memory(tmp_path) as folder:
        yield folder


def _kill_everywhere(folder: Path, scene: str, step: int) -> None:
    done = run_supervised(SOURCE, scene, str(step), str(folder), timeout_s=600)
    assert (0, "") == (done.returncode, done.stderr)
    answer = json.loads(done.stdout)
    print(f"{scene}: {sum(answer['points'].values())} crash points {answer['points']}")
    assert [] == answer["wrong"]
    # An append alone makes a dozen calls; a scene that makes fewer was not supervised.
    assert answer["points"]["fdatasync"] >= 2
    assert answer["points"]["pwrite64"] * step >= 12


def test_a_kill_at_any_system_call_of_an_append_loses_nothing(folder: Path) -> None:
    """Whichever call it dies in, what was acknowledged is there, what was not is there whole or not at all, and it goes on."""
    _kill_everywhere(folder, "appends", 1)


@pytest.mark.parametrize("scene", [name for name in SCENES if name != "appends"])
def test_a_kill_at_system_calls_of_anything_else_loses_nothing(folder: Path, scene: str) -> None:
    """The same of every sync, truncation and removal, and of every fifth write."""
    _kill_everywhere(folder, scene, 5)


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
def test_a_kill_at_any_system_call_loses_nothing(folder: Path, scene: str) -> None:
    """The same of every call of every scene."""
    _kill_everywhere(folder, scene, 1)
