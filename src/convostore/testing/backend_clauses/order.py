"""B3 and the windows of a read: position order, whatever the clock does; positions and stamps from one counter."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from convostore.contracts.backend import Backend, Entry, Window
from convostore.testing.drafts import AT, change, creation, entries_of, entry, entry_ids
from convostore.testing.suite import Samples, Suite, clause
from convostore.testing.workers import opened

__all__ = ["OrderClauses"]

_FAR_FUTURE = 7_258_118_400_000  # 2200-01-01


class OrderClauses(Suite):
    """Entries come in position order, and no position is given twice."""

    @clause("B3")
    async def test_positions_increase_in_the_order_of_appending(self, backend: Backend, samples: Samples) -> None:
        """Entries come back in the order they were appended, at strictly increasing positions, as the receipt said."""
        made = await backend.commit(creation(samples.id("c"), entry("z"), entry("a")))
        more = await backend.commit(change(samples.id("c"), entry("m"), entry("B"), entry("b")))
        stored = await entries_of(backend, samples.id("c"))
        assert ["z", "a", "m", "B", "b"] == [each.entry_id for each in stored]
        assert stored == made.appended + more.appended
        _assert_increasing(each.position for each in stored)
        assert [each.position for each in stored] == [each.stamp for each in stored]
        assert stored[0].position > 0

    @clause("B3")
    async def test_no_clock_orders_entries(self, backend: Backend, samples: Samples) -> None:
        """Equal, stepped-back and far-future times leave the order alone and come back as given."""
        times = [AT, AT, AT - 3_600_000, _FAR_FUTURE, AT, -1, AT + 1]
        await backend.commit(creation(samples.id("c")))
        for number, at_ms in enumerate(times):
            await backend.commit(change(samples.id("c"), entry(f"e{number}", created_at_ms=at_ms), at_ms=at_ms))
        stored = await entries_of(backend, samples.id("c"))
        assert [f"e{number}" for number in range(len(times))] == [each.entry_id for each in stored]
        assert times == [each.created_at_ms for each in stored]

    @clause("B3")
    async def test_updated_at_grows_whatever_the_clock_does(self, backend: Backend, samples: Samples) -> None:
        """updated_at_ms is the time of the commit, or one more than it was where the clock stands still or steps back."""
        seen = [await backend.commit(creation(samples.id("c"), at_ms=AT))]
        seen += [
            await backend.commit(change(samples.id("c"), at_ms=at_ms)) for at_ms in (AT, AT - 5_000, AT + 10_000, AT)
        ]
        assert [AT, AT + 1, AT + 2, AT + 10_000, AT + 10_001] == [each.head.updated_at_ms for each in seen if each.head]
        assert [AT] * 5 == [each.head.created_at_ms for each in seen if each.head]

    @clause("B3")
    async def test_a_position_is_never_given_again(self, backend: Backend, samples: Samples) -> None:
        """After a removal, a cut, a clearing and a replacement, what is appended lies behind all there ever was."""
        highest = 0
        rewrites: list[dict[str, Any]] = [
            {"remove": ("e0-2",)},
            {"cut_after": 1},
            {"cut_after": 0},
            {"replace": (entry("e3-0", b"other"),)},
            {"remove": ("e4-0", "e4-1", "e4-2")},
        ]
        await backend.commit(creation(samples.id("c")))
        for number, rewrite in enumerate(rewrites):
            appended = [entry(f"e{number}-{each}") for each in range(3)]
            highest = max(highest, _last((await backend.commit(change(samples.id("c"), *appended))).appended))
            await backend.commit(change(samples.id("c"), **rewrite))
            after = await backend.commit(change(samples.id("c"), entry(f"after-{number}")))
            assert after.appended[0].position > highest, f"{rewrite} freed a position"
            highest = after.appended[0].position
        _assert_increasing(each.position for each in await entries_of(backend, samples.id("c")))

    @clause("B3")
    async def test_a_restart_gives_no_position_again(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """With `durable`, a handle opened later goes on counting behind entries that are gone."""
        made = await backend.commit(creation(samples.id("c"), entry("a"), entry("b")))
        await backend.commit(change(samples.id("c"), cut_after=0))
        if "durable" not in backend.capabilities:
            again = await backend.commit(change(samples.id("c"), entry("c")))
        else:
            await backend.aclose()
            async with opened(factory) as later:
                again = await later.commit(change(samples.id("c"), entry("c")))
        assert again.appended[0].position > made.appended[-1].position

    @clause("B3", "B4")
    async def test_a_replaced_entry_keeps_its_place_and_gets_a_new_stamp(
        self, backend: Backend, samples: Samples
    ) -> None:
        """Replacing changes content and stamp; position and neighbours stay; the head's counters tell."""
        made = await backend.commit(creation(samples.id("c"), entry("a"), entry("b"), entry("c")))
        assert made.head is not None
        new = entry("b", b"new", kind="note", role=None, dialect="other/2", created_at_ms=AT + 5)
        await backend.commit(change(samples.id("c"), replace=(new,)))
        snapshot = await backend.read(samples.id("c"), Window())
        assert snapshot is not None
        old_a, old_b, old_c = made.appended
        found = snapshot.entries[1]
        assert (old_a, old_c) == (snapshot.entries[0], snapshot.entries[2])
        assert (old_b.position, "b", "note", None, "other/2", AT + 5, b"new") == (
            found.position,
            found.entry_id,
            found.kind,
            found.role,
            found.dialect,
            found.created_at_ms,
            found.body,
        )
        assert found.stamp > made.head.last_stamp
        assert (found.stamp, found.stamp, 3) == (
            snapshot.head.last_stamp,
            snapshot.head.last_rewrite,
            snapshot.head.entry_count,
        )

    @clause("B3", "B4")
    async def test_the_head_counts_entries_and_tells_rewrites_from_appends(
        self, backend: Backend, samples: Samples
    ) -> None:
        """last_rewrite is 0 while there were only appends and moves with every cut, removal and replacement."""
        await backend.commit(creation(samples.id("c"), *(entry(f"e{number}") for number in range(6))))
        receipt = await backend.commit(change(samples.id("c"), entry("x"), fields={"title": b"t"}))
        assert receipt.head is not None
        assert (7, 0, receipt.appended[-1].stamp) == (
            receipt.head.entry_count,
            receipt.head.last_rewrite,
            receipt.head.last_stamp,
        )
        before = receipt.head
        rewrites: list[tuple[int, dict[str, Any]]] = [
            (6, {"remove": ("e1",)}),
            (6, {"replace": (entry("e2", b"new"),)}),
            (5, {"cut_after": receipt.appended[-1].position - 1}),
            (0, {"cut_after": 0}),
        ]
        for count, rewrite in rewrites:
            head = (await backend.commit(change(samples.id("c"), **rewrite))).head
            assert head is not None
            assert count == head.entry_count, rewrite
            assert before.last_stamp < head.last_rewrite <= head.last_stamp, rewrite
            before = head
        appended = await backend.commit(change(samples.id("c"), entry("y")))
        assert appended.head is not None
        assert (1, before.last_rewrite) == (appended.head.entry_count, appended.head.last_rewrite)
        assert appended.head.last_stamp == appended.appended[0].stamp > before.last_stamp

    @clause("B3")
    async def test_every_window_shows_what_its_words_say(self, backend: Backend, samples: Samples) -> None:
        """after, before, changed_after, entry_ids, limit and newest combine as filters first, then the count."""
        await backend.commit(creation(samples.id("c"), *(entry(f"e{number}") for number in range(9))))
        await backend.commit(change(samples.id("c"), entry("late"), remove=("e3",), replace=(entry("e1", b"new"),)))
        log = await entries_of(backend, samples.id("c"))
        assert ["e0", "e1", "e2", "e4", "e5", "e6", "e7", "e8", "late"] == [each.entry_id for each in log]
        middle, last = log[4].position, log[-1].position
        for after, before, changed_after, named, limit, newest in itertools.product(
            (0, middle, last + 9),
            (None, middle + 2, 0),
            (None, log[-2].stamp),
            (None, (), ("late", "e6", "e1", "gone", "e6", "e3")),
            (None, 0, 2, 99),
            (False, True),
        ):
            window = Window(
                after=after, before=before, changed_after=changed_after, entry_ids=named, limit=limit, newest=newest
            )
            assert _shown(log, window) == await entries_of(backend, samples.id("c"), window), window

    @clause("B3")
    async def test_the_last_n_are_the_last_n_in_order(self, backend: Backend, samples: Samples) -> None:
        """With newest, a limit takes from the end, and what it takes is still oldest first."""
        await backend.commit(creation(samples.id("c"), *(entry(f"e{number}") for number in range(5))))
        assert ["e3", "e4"] == await entry_ids(backend, samples.id("c"), Window(limit=2, newest=True))
        assert ["e0", "e1"] == await entry_ids(backend, samples.id("c"), Window(limit=2))


def _shown(log: tuple[Entry, ...], window: Window) -> tuple[Entry, ...]:
    chosen = [
        each
        for each in log
        if each.position > window.after
        and (window.before is None or each.position < window.before)
        and (window.changed_after is None or each.stamp > window.changed_after)
        and (window.entry_ids is None or each.entry_id in window.entry_ids)
    ]
    if window.limit is not None:
        chosen = list(reversed(list(reversed(chosen))[: window.limit])) if window.newest else chosen[: window.limit]
    return tuple(chosen)


def _assert_increasing(positions: Iterable[int]) -> None:
    listed = list(positions)
    assert sorted(set(listed)) == listed, f"not strictly increasing: {listed}"


def _last(entries: tuple[Entry, ...]) -> int:
    return entries[-1].position
