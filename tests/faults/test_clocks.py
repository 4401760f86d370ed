"""Clocks that stand still, step back or are far off: nothing is ordered by them."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Literal, get_args

import pytest

import convostore
from convostore import Message
from convostore.backends.memory import MemoryBackend
from convostore.contracts.conversation_store import ConversationOrder
from convostore.errors import InvalidInput
from convostore.model.times import ms_max, ms_min
from convostore.opening import Store, open_backend

_NOW = 1_800_000_000_000
_DAY = 86_400_000

_CLOCKS: dict[str, Callable[[], Iterator[int]]] = {
    "stands still": lambda: itertools.repeat(_NOW),
    "steps back a day in the middle": lambda: itertools.chain(
        itertools.repeat(_NOW, 12), (_NOW - _DAY + tick for tick in itertools.count())
    ),
    "runs backwards": lambda: itertools.count(_NOW, -1),
    "jumps to and fro": lambda: itertools.cycle((_NOW, _NOW - _DAY, _NOW + 400 * _DAY, _NOW - 1)),
    "was in the year 3000 for a moment": lambda: itertools.chain(
        itertools.repeat(_NOW, 5), [32_503_680_000_000], itertools.count(_NOW)
    ),
    "is before 1970": lambda: itertools.count(-5_000),
}


class _Clock:
    """Returns the next time of a sequence each time it is asked."""

    def __init__(self, times: Iterator[int]) -> None:
        self._times = times

    def __call__(self) -> int:
        return next(self._times)


@pytest.fixture(params=_CLOCKS)
def clock(request: pytest.FixtureRequest) -> _Clock:
    """Return a clock that cannot be relied upon."""
    name: str = request.param
    return _Clock(_CLOCKS[name]())


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: _Clock) -> AsyncIterator[Store]:
    """Yield an empty store with that clock."""
    backend = MemoryBackend() if request.param == "memory" else open_backend(tmp_path / "s.db")
    async with Store(backend, clock=clock) as store:
        yield store


async def _walk(store: Store, order: ConversationOrder, *, newest_first: bool = False, limit: int) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page = await store.list_conversations(order=order, newest_first=newest_first, cursor=cursor, limit=limit)
        found += [each.id for each in page.items]
        if (cursor := page.cursor) is None:
            return found


async def test_messages_are_in_the_order_in_which_they_were_appended(store: Store) -> None:
    """Whatever the times say, loading, its limits and its bounds follow the order of the appends."""
    await store.create_conversation("x", "s", id="c")
    names = [f"m{number}" for number in range(20)]
    for name in names:
        await store.append_messages("c", [Message(role="user", id=name)])
    assert names == [each.id for each in await store.load_messages("c")]
    assert names[-3:] == [each.id for each in await store.load_messages("c", limit=3)]
    assert names[8:] == [each.id for each in await store.load_messages("c", after="m7")]
    assert names[:7] == [each.id for each in await store.load_messages("c", before="m7")]


async def test_the_latest_is_the_one_created_last(store: Store) -> None:
    """After every creation find_latest returns that one, and the created order lists all as they were created."""
    names = [f"c{number:02}" for number in (7, 3, 9, 1, 8, 2, 6, 0, 5, 4)]
    for name in names:
        await store.create_conversation("x", "s", id=name)
        latest = await store.find_latest("x", "s")
        assert latest is not None
        assert name == latest.id
    for limit in (1, 3, 100):
        assert names == await _walk(store, "created", limit=limit)
        assert names[::-1] == await _walk(store, "created", newest_first=True, limit=limit)
        assert sorted(names) == await _walk(store, "id", limit=limit)


async def test_updated_at_grows_with_every_commit(store: Store) -> None:
    """A conversation's own updated_at never stands still nor goes back, so who polls it misses nothing."""
    seen = [(await store.create_conversation("x", "s", id="c")).updated_at]
    for number in range(15):
        await store.append_messages("c", [Message(role="user", content=f"{number}")])
        conversation = await store.find_by_id("c")
        assert conversation is not None
        seen.append(conversation.updated_at)
    assert all(before < after for before, after in itertools.pairwise(seen))


async def test_every_page_walk_meets_every_conversation_once(store: Store) -> None:
    """In each order, with ties and jumps among the times, pages of any size leave out none and repeat none."""
    names = {f"c{number}" for number in range(23)}
    for name in sorted(names):
        await store.create_conversation("x", "s", id=name)
    for name in sorted(names)[::3]:
        await store.append_messages(name, [Message(role="user")])
    orders: tuple[ConversationOrder, ...] = get_args(ConversationOrder)
    for order, limit in itertools.product(orders, (1, 2, 5, 23, 24)):
        found = await _walk(store, order, limit=limit)
        assert sorted(names) == sorted(found), f"{order} by {limit}"
    times = [each.updated_at for each in (await store.list_conversations(order="updated", limit=100)).items]
    assert sorted(times, reverse=True) == times


@pytest.mark.parametrize("engine", ["memory", "sqlite"])
@pytest.mark.parametrize("end", ["first", "last"])
async def test_a_clock_at_the_end_of_time_is_kept_or_refused(
    engine: Literal["memory", "sqlite"], end: Literal["first", "last"], tmp_path: Path
) -> None:
    """At the first and the last moment that a datetime has, commits are kept and read, or InvalidInput; nothing breaks."""
    backend = MemoryBackend() if engine == "memory" else open_backend(tmp_path / "s.db")
    moment = ms_min if end == "first" else ms_max
    async with Store(backend, clock=lambda: moment) as store:
        kept = 0
        await store.create_conversation("x", "s", id="c")
        for number in range(3):
            try:
                await store.append_messages("c", [Message(role="user", content=f"{number}")])
                kept += 1
            except InvalidInput:
                continue
        assert kept == len(await store.load_messages("c"))
        conversation = await store.find_by_id("c")
        assert conversation is not None
        assert kept == conversation.message_count
        assert ["c"] == [each.id for each in (await store.list_conversations()).items]
        assert "c" == (await store.latest_or_create("x", "s")).id
    async with convostore.open("memory://", clock=lambda: 10**18) as other:
        with pytest.raises(InvalidInput):
            await other.create_conversation("x", "s")
