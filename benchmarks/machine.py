"""The kind of machine that figures come from: enough to judge them by, nothing that names it."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import version
from pathlib import Path

__all__ = ["file_system", "kind_of_machine", "on_disk"]

_IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})


def kind_of_machine(folder: Path) -> str:
    """Return one line: processors, architecture, versions, and the file system of `folder`."""
    return ", ".join(
        (
            f"{os.cpu_count()} cores",
            platform.machine(),
            platform.system(),
            f"{platform.python_implementation()} {platform.python_version()}",
            f"SQLite {sqlite3.sqlite_version}",
            f"msgspec {version('msgspec')}",
            f"{file_system(folder)} file system",
        )
    )


def file_system(folder: Path) -> str:
    """Return the type of the file system that `folder` is on, "unknown" where the system does not tell."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    found = ("", "unknown")
    for mount in mounts:
        before, _, behind = mount.partition(" - ")
        point = before.split()[4]
        inside = folder.resolve().is_relative_to(point.encode().decode("unicode_escape"))
        if inside and len(point) >= len(found[0]):
            found = (point, behind.split()[0])
    return found[1]


def on_disk(folder: Path) -> bool:
    """Say whether a sync in `folder` reaches a disk, as far as the system tells."""
    return file_system(folder) not in _IN_MEMORY
