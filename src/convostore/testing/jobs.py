"""What the other processes of a test do. Nothing here imports pytest: such a process has to be up quickly."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, Final

from convostore.contracts.backend import Backend
from convostore.errors import UnavailableError, UnsupportedError
from convostore.testing.drafts import change, creation, entry, entry_ids
from convostore.testing.workers import opened

__all__ = [
    "append_batches",
    "append_elsewhere",
    "append_for_ever",
    "batch_entries",
    "batches",
    "commit_and_die",
    "create",
    "fork",
    "refused_or_found",
    "use_and_leave",
]

Opener = Callable[[], Any]
Acknowledge = Callable[[object], None]

batches: Final = 6
"""Batches that one writer appends."""
batch_entries: Final = 3
"""Entries in each."""


async def append_batches(backend: Backend, conversation_id: str, writer: int) -> None:
    """Append batches whose ids name the writer, the batch and the place in it."""
    for batch in range(batches):
        ids = [f"{writer}/{batch}/{each}" for each in range(batch_entries)]
        receipt = await backend.commit(change(conversation_id, *(entry(each) for each in ids)))
        assert ids == [each.entry_id for each in receipt.appended]


async def append_elsewhere(factory: Opener, conversation_id: str, writer: int) -> None:
    """Do so through a handle of one's own."""
    async with opened(factory) as backend:
        await append_batches(backend, conversation_id, writer)


async def append_for_ever(factory: Opener, conversation_id: str, acknowledge: Acknowledge) -> None:
    """Append batches of three until killed; acknowledge each with its number."""
    async with opened(factory) as backend:
        for number in range(1_000_000):
            await backend.commit(change(conversation_id, *(entry(f"{number}-{each}") for each in range(3))))
            acknowledge(number)


async def commit_and_die(factory: Opener, conversation_id: str, acknowledge: Acknowledge) -> None:
    """Create a conversation, acknowledge it with its revision, and die by SIGKILL at once."""
    async with opened(factory) as backend:
        receipt = await backend.commit(creation(conversation_id, entry("a"), entry("b"), documents={"d": b"1"}))
        acknowledge(receipt.head.revision)
        os.kill(os.getpid(), signal.SIGKILL)


async def create(factory: Opener, conversation_id: str) -> None:
    """Open, create a conversation and read it."""
    async with opened(factory) as backend:
        await backend.commit(creation(conversation_id, entry("a")))
        assert ["a"] == await entry_ids(backend, conversation_id)


async def refused_or_found(factory: Opener, conversation_id: str) -> str | None:
    """Return the revision of a conversation, None where it is not there, "refused" where the storage is somebody else's."""
    try:
        async with opened(factory) as backend:
            snapshot = await backend.read(conversation_id)
    except (UnavailableError, UnsupportedError):
        return "refused"
    return None if snapshot is None else str(snapshot.head.revision)


_left: list[Any] = []


async def use_and_leave(factory: Opener, conversation_id: str) -> list[str]:
    """Use a handle and keep it open until the process ends."""
    made = factory()
    backend = await made if inspect.isawaitable(made) else made
    _left.append(backend)
    await backend.commit(creation(conversation_id, entry("a")))
    return await entry_ids(backend, conversation_id)


async def fork(factory: Opener, conversation_id: str) -> int:
    """Fork with an open handle, use it on both sides, return the child's exit code."""
    async with opened(factory) as backend:
        await backend.commit(change(conversation_id, entry("before")))
        child = os.fork()
        if not child:
            # A forked child has the parent's running loop; it begins a thread to have a loop of its own.
            status = [1]
            thread = threading.Thread(target=lambda: status.append(_in_child(backend, conversation_id)))
            thread.start()
            thread.join()
            os._exit(status[-1])
        for number in range(5):
            await backend.commit(change(conversation_id, entry(f"parent{number}")))
        _, ended = await asyncio.to_thread(os.waitpid, child, 0)
        await backend.commit(change(conversation_id, entry("after")))
        return os.waitstatus_to_exitcode(ended)


def _in_child(backend: Backend, conversation_id: str) -> int:
    async def use() -> None:
        for number in range(5):
            await backend.commit(change(conversation_id, entry(f"child{number}")))
        assert "before" in await entry_ids(backend, conversation_id)

    asyncio.run(use())
    return 0
