"""A small file system in memory, in a mount namespace of this process: a disk that is really full.

Root, or anyone where user namespaces are allowed. For a process of its own, before it starts a thread.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from tests.faults.syscalls import run_supervised

__all__ = ["mount_small", "unavailable"]

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18


def mount_small(folder: Path, size: int) -> None:
    """Mount a file system of `size` bytes on `folder`, for this process and its children only.

    Raises:
        OSError: it is not allowed.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        _succeed(libc.unshare(_CLONE_NEWNS), "unshare")
    else:
        _succeed(libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _succeed(libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None), "mount --make-rprivate /")
    options = f"size={size}".encode()
    _succeed(libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", ctypes.c_ulong(0), options), f"mount {folder}")


def _succeed(result: int, what: str) -> None:
    if result:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def unavailable(folder: Path) -> str | None:
    """Say why `mount_small` cannot work here, or return None where it can; tried in a process that ends at once."""
    done = run_supervised(
        """
        import sys
        from pathlib import Path
        from tests.faults.mounting import mount_small
        mount_small(Path(sys.argv[1]), 65536)
        """,
        str(folder),
    )
    return None if done.returncode == 0 else f"no file system can be mounted: {done.stderr.splitlines()[-1]}"
