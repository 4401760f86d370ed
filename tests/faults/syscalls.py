"""Count, fail and cut short the system calls by which a process makes its files durable.

A seccomp filter (``SECCOMP_RET_USER_NOTIF``) stops each trapped call before the kernel executes it and asks a
supervisor, which lets it continue, answers an errno in its place, or kills the process. So the kernel says what a store
did, not a patched ``os`` module, and it says it of C code (sqlite3) as well. No privilege, compiler or mount is needed.

What is trapped, by the name used here: ``fsync``, ``fdatasync``, ``write`` (and writev), ``pwrite64`` (and pwritev,
pwritev2), ``ftruncate``, ``fallocate``, ``rename`` (and renameat, renameat2), ``unlink`` (and unlinkat, hence also some
rmdir). Not seen: stores into mapped memory, io_uring, copy_file_range, truncate by path.

The supervisor is a forked process, not a thread: a thread would need the GIL to answer, and the thread that waits for
the answer may hold it. Counters and faults lie in memory that both map; each field has one writer, so there is no lock.
"""

import contextlib
import ctypes
import errno
import functools
import gc
import mmap
import os
import platform
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, NoReturn

__all__ = ["LOG_ENTRIES_MAX", "NAMES", "Calls", "run_supervised", "supervise", "unavailable"]

NAMES = ("fsync", "fdatasync", "write", "pwrite64", "ftruncate", "fallocate", "rename", "unlink")
LOG_ENTRIES_MAX = 8192  # 2 MiB of address space; only the pages written to become memory


class Calls:
    """What the supervisor saw below ``under``, and what it shall do with the calls to come.

    A call is seen when it is made, whether it then succeeds, fails or is failed. Every ``name`` is one of `NAMES`;
    another raises `ValueError`.
    """

    def __init__(self, shared: "_Shared", supervisor_pid: int) -> None:
        self._shared = shared
        self.supervisor_pid = supervisor_pid

    def count(self, name: str, *names: str) -> int:
        """Return how many calls of these names were made since the block was entered."""
        return sum(self._rule(each).calls for each in (name, *names))

    def log(self) -> list[tuple[str, str]]:
        """Return (name, base name of the file) of every call so far, in order; of a rename, the new name.

        Raises:
            OverflowError: More than `LOG_ENTRIES_MAX` calls were made, the log would not be whole.
        """
        calls = sum(rule.calls for rule in self._shared.rules)
        if calls > LOG_ENTRIES_MAX:
            raise OverflowError(f"{calls} calls were made, a log holds {LOG_ENTRIES_MAX}; log a shorter stretch")
        return [(NAMES[entry.name], os.fsdecode(entry.file)) for entry in self._shared.entries[:calls]]

    def fail(self, name: str, error: int, *, after: int = 0) -> None:
        """Answer ``error`` (an errno) to every call of this name, not executing it, until `heal`.

        The next ``after`` calls still pass. Replaces an earlier fault of the same name.
        """
        if error not in errno.errorcode or after < 0:
            raise ValueError(f"fail needs an errno and after >= 0, got {error} and {after}")
        rule = self._rule(name)
        rule.error = 0  # the supervisor looks at this field first: never the new error with the old start
        rule.fail_from = rule.calls + after + 1
        rule.error = error

    def kill_at(self, name: str, nth: int) -> None:
        """Kill the supervised process by SIGKILL in place of the ``nth`` call of this name from now (1 is the next)."""
        if nth < 1:
            raise ValueError(f"kill_at counts from 1, got {nth}")
        rule = self._rule(name)
        rule.kill_at = rule.calls + nth

    def heal(self) -> None:
        """Let every call pass again, and forget the kills that were to come."""
        for rule in self._shared.rules:
            rule.error = 0
            rule.kill_at = 0

    def _rule(self, name: str) -> "_Rule":
        if name not in NAMES:
            raise ValueError(f"{name!r} is not trapped; choose from {', '.join(NAMES)}")
        return self._shared.rules[NAMES.index(name)]


@contextlib.contextmanager
def supervise(*, under: str | os.PathLike[str]) -> Iterator[Calls]:
    """Trap the calls of `NAMES` on files below the directory ``under``, or on that directory itself.

    Use it in a process of its own (see `run_supervised`), once, before a thread is started: a filter cannot be lifted,
    and only the calling thread, the threads it starts later and their child processes are filtered. Calls on other
    files pass unseen. After the block every call passes and the counts stand still. The supervisor ends with this
    process; a child process that lives longer then gets ENOSYS from every trapped call.

    A trapped call takes some 20 µs more (120 before Linux 6.6), so do not measure time here. Before Linux 5.19 a call
    that a signal interrupts is counted once more.

    Raises:
        RuntimeError: Other threads run already; they would not be filtered.
        OSError: The kernel refuses the filter (EBUSY: this process is supervised already).
    """
    if threading.active_count() > 1:
        raise RuntimeError("supervise() must come before the first thread is started: running ones would go unseen")
    traps = _ARCHITECTURES[platform.machine()].traps
    shared = _Shared.from_buffer(mmap.mmap(-1, ctypes.sizeof(_Shared)))
    directory = os.path.realpath(under)
    ours, theirs = socket.socketpair()
    supervised = os.pidfd_open(os.getpid())  # opened here, not by the supervisor: a pid may change hands, this cannot
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    supervisor_pid = os.fork()
    if supervisor_pid == 0:  # with its signals blocked for good: a Ctrl-C is for the others of the group
        _run_supervisor(theirs, supervised, directory, shared, traps)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    with ours:
        theirs.close()
        os.close(supervised)
        # Yama lets only an ancestor read another's memory, where the paths are. Refused where there is no Yama.
        _libc().prctl(_PR_SET_PTRACER, supervisor_pid, 0, 0, 0)
        try:
            listener = _install_filter(traps)
        except OSError:
            ours.close()  # what makes the supervisor end
            os.waitpid(supervisor_pid, 0)
            raise
        # From here to the send no trapped call may happen in this thread: nobody could answer it.
        socket.send_fds(ours, [b"\0"], [listener])
        os.close(listener)  # if the supervisor dies, the calls fail (ENOSYS) rather than wait
    calls = Calls(shared, supervisor_pid)
    shared.watching = 1
    try:
        yield calls
    finally:
        shared.watching = 0


def run_supervised(source: str, *args: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    """Run Python source in a fresh process, which can import `tests.faults.syscalls`; return how it ended.

    The source is dedented; ``args`` are its ``sys.argv[1:]``. What this process can import, it can import too.

    Raises:
        subprocess.TimeoutExpired: It did not end in time, and was killed.
    """
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source), *args],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@functools.cache
def unavailable() -> str | None:
    """Say why `supervise` cannot work on this machine, or return None where it can."""
    if sys.platform != "linux":
        return f"seccomp is Linux only, this is {sys.platform}"
    if platform.machine() not in _ARCHITECTURES or sys.maxsize < 2**32:
        return f"the system call numbers of {platform.machine()} ({platform.architecture()[0]}) are not known here"
    release = platform.release()
    version = re.match(r"(\d+)\.(\d+)", release)
    if version is None or (int(version[1]), int(version[2])) < (5, 5):
        return f"Linux {release} cannot continue a trapped call, 5.5 can"
    try:
        # A filter belongs to a thread and goes with it: this one traps nothing and leaves nothing behind.
        with ThreadPoolExecutor(1) as pool:
            os.close(pool.submit(_install_filter, ()).result())
    except OSError as refused:
        return str(refused)
    return None


class _Rule(ctypes.Structure):
    """One name: the supervisor writes ``calls``, the supervised process the rest."""

    calls: int
    error: int
    fail_from: int
    kill_at: int
    _fields_ = (
        ("calls", ctypes.c_uint64),
        ("error", ctypes.c_uint64),
        ("fail_from", ctypes.c_uint64),
        ("kill_at", ctypes.c_uint64),
    )


class _Entry(ctypes.Structure):
    """One call of the log: the index of its name in `NAMES`, and the file."""

    name: int
    file: bytes
    _fields_ = (("name", ctypes.c_uint8), ("file", ctypes.c_char * 255))


class _Shared(ctypes.Structure):
    """The memory that the supervisor and the supervised process have in common."""

    watching: int
    rules: "ctypes.Array[_Rule]"
    entries: "ctypes.Array[_Entry]"
    _fields_ = (
        ("watching", ctypes.c_uint64),
        ("rules", _Rule * len(NAMES)),
        ("entries", _Entry * LOG_ENTRIES_MAX),
    )


class _Trap(NamedTuple):
    """How to read a call: the argument that holds a path, and the one with the descriptor it starts from.

    Without a path, the descriptor is the file. Without a descriptor, the path starts from the working directory.
    """

    name: str
    descriptor: int | None = 0
    path: int | None = None


class _Architecture(NamedTuple):
    audit: int
    seccomp: int
    traps: dict[int, _Trap]


# Numbers from the kernel's arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
_ARCHITECTURES = {
    "x86_64": _Architecture(
        audit=0xC000003E,
        seccomp=317,
        traps={
            74: _Trap("fsync"),
            75: _Trap("fdatasync"),
            1: _Trap("write"),
            20: _Trap("write"),  # writev
            18: _Trap("pwrite64"),
            296: _Trap("pwrite64"),  # pwritev
            328: _Trap("pwrite64"),  # pwritev2
            77: _Trap("ftruncate"),
            285: _Trap("fallocate"),
            82: _Trap("rename", descriptor=None, path=1),
            264: _Trap("rename", descriptor=2, path=3),  # renameat
            316: _Trap("rename", descriptor=2, path=3),  # renameat2
            87: _Trap("unlink", descriptor=None, path=0),
            263: _Trap("unlink", descriptor=0, path=1),  # unlinkat
        },
    ),
    "aarch64": _Architecture(
        audit=0xC00000B7,
        seccomp=277,
        traps={
            82: _Trap("fsync"),
            83: _Trap("fdatasync"),
            64: _Trap("write"),
            66: _Trap("write"),  # writev
            68: _Trap("pwrite64"),
            70: _Trap("pwrite64"),  # pwritev
            287: _Trap("pwrite64"),  # pwritev2
            46: _Trap("ftruncate"),
            47: _Trap("fallocate"),
            38: _Trap("rename", descriptor=2, path=3),  # renameat
            276: _Trap("rename", descriptor=2, path=3),  # renameat2
            35: _Trap("unlink", descriptor=0, path=1),  # unlinkat
        },
    ),
}

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_PTRACER = 0x59616D61
_AT_FDCWD = -100
_PATH_BYTES_MAX = 4096


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
    libc.syscall.argtypes = [ctypes.c_long, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_char_p]
    libc.syscall.restype = ctypes.c_long
    return libc


def _install_filter(numbers: Iterable[int]) -> int:
    """Make the kernel ask about these calls of the calling thread; return the descriptor on which it asks."""
    load, jump_if_equal, give = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
    allow, user_notif = 0x7FFF0000, 0x7FC00000
    architecture = _ARCHITECTURES[platform.machine()]
    wanted = list(numbers)
    instructions = [
        (load, 0, 0, 4),  # seccomp_data.arch
        (jump_if_equal, 0, len(wanted) + 1, architecture.audit),  # the numbers of another ABI mean other calls
        (load, 0, 0, 0),  # seccomp_data.nr
        *((jump_if_equal, len(wanted) - index, 0, number) for index, number in enumerate(wanted)),
        (give, 0, 0, allow),
        (give, 0, 0, user_notif),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in instructions))
    program = struct.pack("HP", len(instructions), ctypes.addressof(code))

    libc = _libc()
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS) was refused")
    set_mode_filter, new_listener, wait_killable_recv = 1, 1 << 3, 1 << 5
    # A signal would interrupt a waiting call, which is then made, and counted, again: so wait_killable_recv. A kernel
    # before 5.19 does not know it (EINVAL).
    for flags in (new_listener | wait_killable_recv, new_listener):
        listener: int = libc.syscall(architecture.seccomp, set_mode_filter, flags, program)
        if listener >= 0:
            return listener
        if ctypes.get_errno() != errno.EINVAL:
            break
    code_of_refusal = ctypes.get_errno()
    raise OSError(code_of_refusal, f"seccomp refused the filter: {os.strerror(code_of_refusal)}")


class _Notification(ctypes.Structure):
    """The kernel's seccomp_notif; ``pid`` is that of the thread."""

    id: int
    pid: int
    nr: int
    args: "ctypes.Array[ctypes.c_uint64]"
    _fields_ = (
        ("id", ctypes.c_uint64),
        ("pid", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("nr", ctypes.c_int32),
        ("arch", ctypes.c_uint32),
        ("instruction_pointer", ctypes.c_uint64),
        ("args", ctypes.c_uint64 * 6),
    )


class _Response(ctypes.Structure):
    """The kernel's seccomp_notif_resp."""

    id: int
    error: int
    flags: int
    _fields_ = (
        ("id", ctypes.c_uint64),
        ("val", ctypes.c_int64),
        ("error", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
    )


_NOTIF_RECV = 0xC0502100  # _IOWR('!', 0, struct seccomp_notif)
_NOTIF_SEND = 0xC0182101  # _IOWR('!', 1, struct seccomp_notif_resp)
_NOTIF_SET_FLAGS = 0x40082104  # _IOW('!', 4, __u64)
_FLAG_CONTINUE = 1
_FLAG_SYNC_WAKE_UP = 1


def _run_supervisor(
    channel: socket.socket, supervised: int, under: str, shared: _Shared, traps: dict[int, _Trap]
) -> NoReturn:
    """Serve until the supervised process has ended; never return into the code that was forked."""
    status = 1
    try:
        gc.freeze()  # a collection would run finalizers of the parent's garbage here: a second close of its database
        os.chdir("/")
        # Standard error stays for a traceback. Anything else would keep the parent's pipes and locks from ending.
        for descriptor in map(int, os.listdir("/proc/self/fd")):
            if descriptor not in (2, channel.fileno(), supervised):
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        threading.Thread(target=_exit_with, args=(supervised,), daemon=True).start()
        _, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
        if descriptors:  # none: the filter was refused
            _answer_calls(descriptors[0], supervised, under, shared, traps)
        status = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        raise  # no further than the line below
    finally:
        os._exit(status)


def _exit_with(supervised: int) -> NoReturn:
    """End the supervisor when the supervised process ends.

    A thread, since the main loop may wait forever: the receiving ioctl knows no timeout, and blocks when a caller was
    killed between the poll that announced its call and the ioctl.
    """
    watch = select.poll()
    watch.register(supervised, select.POLLIN)
    watch.poll()
    os._exit(0)


def _answer_calls(listener: int, supervised: int, under: str, shared: _Shared, traps: dict[int, _Trap]) -> NoReturn:
    inside = under.rstrip("/") + "/"
    logged = 0
    libc = _libc()
    # Caller and supervisor take turns: on one processor a call costs 20 µs, on two 120. Refused before Linux 6.6.
    libc.ioctl(listener, _NOTIF_SET_FLAGS, _FLAG_SYNC_WAKE_UP)
    while True:
        call = _Notification()  # a new one each time: the kernel insists on zeros
        if libc.ioctl(listener, _NOTIF_RECV, ctypes.byref(call)):
            if ctypes.get_errno() in (errno.EINTR, errno.ENOENT):  # ENOENT: the caller was killed meanwhile
                continue
            raise OSError(ctypes.get_errno(), "SECCOMP_IOCTL_NOTIF_RECV failed")
        answer = _Response(id=call.id, flags=_FLAG_CONTINUE)
        trap = traps[call.nr]
        path = _path(call, trap) if shared.watching else None
        if path is not None and (path + "/").startswith(inside):
            index = NAMES.index(trap.name)
            if logged < LOG_ENTRIES_MAX:
                entry = shared.entries[logged]
                entry.name = index
                entry.file = os.fsencode(os.path.basename(path))[:255]
                logged += 1
            rule = shared.rules[index]
            rule.calls += 1
            if rule.calls == rule.kill_at:
                signal.pidfd_send_signal(supervised, signal.SIGKILL)
                continue  # unanswered, the call waits until the signal ends it
            if rule.error and rule.calls >= rule.fail_from:
                answer.error, answer.flags = -rule.error, 0
        libc.ioctl(listener, _NOTIF_SEND, ctypes.byref(answer))  # ENOENT: the caller was killed, nobody waits


def _path(call: _Notification, trap: _Trap) -> str | None:
    """Return the absolute path that a call is about, None if it has none (a bad descriptor, an unreadable path)."""
    process = f"/proc/{call.pid}"
    descriptor = _AT_FDCWD if trap.descriptor is None else ctypes.c_int(call.args[trap.descriptor]).value
    start = f"{process}/cwd" if descriptor == _AT_FDCWD else f"{process}/fd/{descriptor}"
    try:
        if trap.path is None:
            return os.readlink(start).removesuffix(" (deleted)")
        with open(f"{process}/mem", "rb", buffering=0) as memory:
            memory.seek(call.args[trap.path])
            given = os.fsdecode(memory.read(_PATH_BYTES_MAX).split(b"\0", 1)[0]).rstrip("/")
        directory, base = os.path.split(given)
        if not directory.startswith("/"):
            directory = os.path.join(os.readlink(start), directory)
        return os.path.join(os.path.realpath(directory), base)
    except (OSError, ValueError, OverflowError):
        return None
