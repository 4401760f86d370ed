"""Where tests break things, and what they need for that."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.syscalls import unavailable

__all__ = ["folder_in_memory", "require", "require_supervision"]


def require(reason: str | None) -> None:
    """Skip the test if there is a reason why it cannot run here; fail where CI is set."""
    if reason is not None:
        (pytest.fail if sys.platform == "linux" and "CI" in os.environ else pytest.skip)(reason)


def require_supervision() -> None:
    """Skip the test, or fail it in CI, where system calls cannot be supervised."""
    require(unavailable())


@contextmanager
def folder_in_memory(otherwise: Path) -> Iterator[Path]:
    """Yield a folder on a file system in memory if there is one, for what needs no disk: syncing costs nothing there."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield otherwise
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="convostore-") as name:
        yield Path(name)
