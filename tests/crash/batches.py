"""Batches of messages that say of themselves where they belong, so that whoever reads a conversation can judge it.

Every message names its writer, the number of its batch, its place in the batch and the batch's size. From what is stored and
what was acknowledged follows what was lost, doubled, torn or reordered, without a second copy of the truth.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import convostore
from convostore import Message
from convostore.operations.verify import verify

__all__ = ["Name", "batch", "judge_conversation", "judge_file", "judge_messages", "key_of"]

Name: TypeAlias = tuple[int, int]
"""A batch: its writer and its number."""


def key_of(name: Name) -> str:
    """Return the idempotency key of a batch."""
    return f"w{name[0]}-b{name[1]}"


def _content(name: Name, place: int, size: int) -> str:
    writer, number = name
    # Of different lengths, from one frame of the log to several pages.
    return json.dumps({"w": writer, "b": number, "i": place, "n": size, "fill": "é·" * (number * 37 % 3000)})


def batch(name: Name, size: int = 3) -> list[Message]:
    """Return the messages of a batch."""
    return [
        Message(role="user" if place % 2 else "assistant", content=_content(name, place, size)) for place in range(size)
    ]


def judge_messages(messages: Iterable[Message], acknowledged: Collection[Name]) -> list[str]:
    """Return what is wrong with a conversation that several writers filled with batches, each in the order of its numbers."""
    found: list[Name] = []
    wrong: list[str] = []
    place = size = 0
    for message in messages:
        said: dict[str, Any] = json.loads(message.content)
        name = (said["w"], said["b"])
        if place == size:
            place, size = 0, said["n"]
            found.append(name)
        if (name, said["i"], said["n"]) != (found[-1], place, size):
            wrong.append(f"{name} {said['i']} of {said['n']} lies inside {found[-1]} at {place} of {size}")
        if message.content != _content(name, said["i"], said["n"]):
            wrong.append(f"{name} has other content than was written")
        place += 1
    if place != size:
        wrong.append(f"only {place} of the {size} messages of {found[-1]} are there")
    if missing := sorted(set(acknowledged) - set(found)):
        wrong.append(f"acknowledged and lost: {missing}")
    if len(set(found)) != len(found):
        wrong.append("a batch is there twice")
    numbers = defaultdict(list)
    for writer, number in found:
        numbers[writer].append(number)
    wrong += [
        f"the batches of {writer} are out of order: {each}" for writer, each in numbers.items() if each != sorted(each)
    ]
    return wrong


async def judge_conversation(
    store: convostore.Store, conversation_id: str, acknowledged: Collection[Name], *, then_append: Name
) -> list[str]:
    """Return what is wrong with a conversation; append one batch to it and judge it once more."""
    if await store.find_by_id(conversation_id) is None:
        return [f"{conversation_id} is not there"]
    wrong = judge_messages(await store.load_messages(conversation_id), acknowledged)
    await store.append_messages(conversation_id, batch(then_append), idempotency_key=key_of(then_append))
    messages = await store.load_messages(conversation_id)
    return wrong + judge_messages(messages, {*acknowledged, then_append})


async def judge_file(store: convostore.Store, file: Path) -> list[str]:
    """Return the damage that reading every record finds, and what SQLite itself finds in the file."""
    wrong = [str(each) for each in (await verify(store.backend)).damage]
    with closing(sqlite3.connect(file)) as database:
        checked = [line for (line,) in database.execute("PRAGMA integrity_check")]
    return wrong if checked == ["ok"] else wrong + checked
