"""A process that appends until it is killed, and says on standard output what was acknowledged.

A line is one write of a few bytes to a pipe, made after the await has returned: it is whole or not there.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys

import convostore
from tests.crash.batches import batch, key_of

__all__ = ["SHARED", "TASKS", "conversations_of", "own_conversation"]

TASKS = 6
SHARED = range(4)
"""These tasks of a round write to one conversation, each of the others to its own."""


def own_conversation(round_: int, task: int) -> str:
    """Return the conversation that a task of a round writes to."""
    return f"round-{round_}-{'shared' if task in SHARED else task}"


def conversations_of(round_: int) -> list[str]:
    """Return every conversation that a round writes to."""
    return sorted({own_conversation(round_, task) for task in range(TASKS)})


async def _append_for_ever(store: convostore.Store, round_: int, task: int) -> None:
    for number in itertools.count():
        name = (round_ * TASKS + task, number)
        await store.append_messages(own_conversation(round_, task), batch(name), idempotency_key=key_of(name))
        os.write(1, b"%d %d\n" % name)


async def _main(file: str, round_: int) -> None:
    store = convostore.open(f"sqlite:///{file}")
    for conversation_id in conversations_of(round_):
        await store.create_conversation("storm", "s", id=conversation_id)
        os.write(1, b"created %s\n" % conversation_id.encode())
    await asyncio.gather(*(_append_for_ever(store, round_, task) for task in range(TASKS)))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2])))
