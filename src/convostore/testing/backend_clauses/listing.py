"""B10: heads are filtered, then paged; a walk shows each one once, whatever happens meanwhile."""

from __future__ import annotations

import itertools
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import UNSET

from convostore import limits
from convostore.contracts.backend import Backend, Head, HeadQuery
from convostore.errors import InvalidInput
from convostore.testing.drafts import AT, change, creation, entry, refused, walk
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["ListingClauses"]

_orders: tuple[dict[str, Any], ...] = (
    {"order": "id"},
    {"order": "created"},
    {"order": "created", "newest_first": True},
    {"order": "updated"},
)


class ListingClauses(Suite):
    """Pages of heads."""

    @clause("B10")
    async def test_every_order_is_what_it_says(self, backend: Backend, samples: Samples) -> None:
        """By id: code points; by creation: as created, though clocks say otherwise; by update: the last commit first."""
        mine = samples.id("ctx")
        for number, name in enumerate(("b", "\U0001f600", "a", "\uffee", "B")):
            await backend.commit(
                creation(samples.id(name), context=mine, at_ms=AT - number, created_at_ms=AT - number * 1000)
            )
        for number, name in enumerate(("a", "B", "\uffee")):
            await backend.commit(change(samples.id(name), entry("e"), at_ms=AT + 1000 * (number + 1)))
        expected = {
            ("id", False): ["B", "a", "b", "\uffee", "\U0001f600"],
            ("created", False): ["b", "\U0001f600", "a", "\uffee", "B"],
            ("created", True): ["B", "\uffee", "a", "\U0001f600", "b"],
            ("updated", False): ["\uffee", "B", "a", "b", "\U0001f600"],
        }
        for (order, newest_first), names in expected.items():
            page = await backend.scan_heads(HeadQuery(context=mine, order=order, newest_first=newest_first))  # type: ignore[arg-type]
            assert [samples.id(name) for name in names] == [each.conversation_id for each in page.items], order

    @clause("B10")
    async def test_pages_of_any_size_are_the_same_walk(self, backend: Backend, samples: Samples) -> None:
        """Whatever the limit, a walk gives the same heads in the same order, in full pages, though all have one time."""
        names = [await _created(backend, samples, f"c{number:02}") for number in range(11)]
        for order in _orders:
            whole = [
                head async for page in walk(backend, context=samples.id("ctx"), limit=100, **order) for head in page
            ]
            assert sorted(names) == sorted(each.conversation_id for each in whole), order
            for limit in (1, 2, 3, 10, 11, 12):
                pages = [page async for page in walk(backend, context=samples.id("ctx"), limit=limit, **order)]
                assert whole == [head for page in pages for head in page], (order, limit)
                assert all(limit == len(page) for page in pages[:-1]), (order, limit)

    @clause("B10")
    async def test_filters_come_before_pages(self, backend: Backend, samples: Samples) -> None:
        """Every combination of context, subject and their absence lists exactly those, in full pages, in every order."""
        contexts, subjects = (None, samples.id("x"), samples.id("y")), (None, samples.id("x"), samples.id("s"))
        made: list[Head] = []
        for number in range(27):
            pair = {"context": contexts[number % 3], "subject_id": subjects[number // 3 % 3]}
            head = (await backend.commit(creation(samples.id(f"c{number:02}"), **pair))).head
            assert head is not None
            made.append(head)
        for context, subject in itertools.product((UNSET, *contexts), (UNSET, *subjects)):
            expected = [
                each.conversation_id
                for each in made
                if (context is UNSET or context == each.context) and (subject is UNSET or subject == each.subject_id)
            ]
            query: dict[str, Any] = {"context": context, "subject_id": subject}
            pages = [p async for p in walk(backend, prefix=samples.prefix, limit=2, **query)]
            assert expected == [head.conversation_id for page in pages for head in page], (context, subject)
            assert all(2 == len(page) for page in pages[:-1]), (context, subject)
            if isinstance(context, str) or isinstance(subject, str):
                for order in _orders[1:]:
                    pages = [p async for p in walk(backend, limit=2, **query, **order)]
                    assert sorted(expected) == sorted(head.conversation_id for page in pages for head in page)
                    assert all(2 == len(page) for page in pages[:-1]), (context, subject, order)

    @clause("B10")
    async def test_a_prefix_goes_with_the_filters(self, backend: Backend, samples: Samples) -> None:
        """A prefix and a filter hold together, on every page."""
        for number in range(12):
            await _created(backend, samples, f"{'ab'[number % 2]}{number:02}", context=samples.id("xyz"[number % 3]))
        query = {"prefix": samples.id("a"), "context": samples.id("x"), "limit": 1}
        pages = [page async for page in walk(backend, **query)]
        assert [samples.id("a00"), samples.id("a06")] == [head.conversation_id for page in pages for head in page]

    @clause("B10")
    async def test_a_listed_head_is_the_head(self, backend: Backend, samples: Samples) -> None:
        """A listing carries every head whole, fields included, as a read shows it."""
        for number in range(3):
            name = await _created(backend, samples, f"c{number}", fields={"title": b"t", "n": bytes([number])})
            await backend.commit(change(name, *(entry(f"e{each}") for each in range(number)), fields={"title": None}))
        page = await backend.scan_heads(HeadQuery(prefix=samples.prefix))
        read = [await backend.read(samples.id(f"c{number}")) for number in range(3)]
        assert [each.head for each in read if each] == list(page.items)
        assert [0, 1, 2] == [each.entry_count for each in page.items]

    @clause("B10")
    async def test_a_walk_by_id_or_creation_survives_what_happens_meanwhile(
        self, backend: Backend, samples: Samples
    ) -> None:
        """With creations, deletions, re-creations and commits between pages, each head that stays comes exactly once."""
        for which, order in enumerate(_orders[:3]):
            context = samples.id(f"ctx{which}")
            names = [await _created(backend, samples, f"{which}-c{n:02}", context=context) for n in range(0, 24, 2)]
            gone: set[str] = set()

            async def meanwhile(
                number: int,
                seen: list[str],
                which: int = which,
                names: list[str] = names,
                gone: set[str] = gone,
                context: str = context,
            ) -> None:
                await _created(backend, samples, f"{which}-c{2 * number + 1:02}", context=context)
                await _created(backend, samples, f"{which}-a{number:02}", context=context)
                for name in (names[number], names[-1 - number], seen[-1]):
                    if name not in gone:
                        await backend.commit(change(name, entry(f"e{number}-{name == seen[-1]}"), at_ms=AT + number))
                for name in (names[2 * number + 1], seen[0]):
                    if name not in gone and number in (1, 3):
                        gone.add(name)
                        await backend.commit(change(name, delete=True))
                        if number == 3:
                            await _created(backend, samples, name.removeprefix(samples.prefix), context=context)

            seen = await _walked(backend, meanwhile, context=context, limit=3, **order)
            for name in names:
                if name not in gone:
                    assert 1 == seen.count(name), (order, name)
            if order["order"] == "id":
                assert sorted(set(seen)) == seen, "out of order or twice"

    @clause("B10")
    async def test_a_walk_by_update_shows_what_nobody_touched_once(self, backend: Backend, samples: Samples) -> None:
        """In updated order with commits between pages: nothing twice, and all that nobody committed to exactly once."""
        names = [await _created(backend, samples, f"c{number:02}", at_ms=AT + number) for number in range(12)]
        touched: set[str] = set()

        async def meanwhile(number: int, seen: list[str]) -> None:
            unseen = [name for name in names if name not in seen]
            for name in (seen[-1], *unseen[:1]):
                touched.add(name)
                await backend.commit(change(name, entry(f"e{number}"), at_ms=AT + 1000 + number))

        seen = await _walked(backend, meanwhile, context=samples.id("ctx"), order="updated", limit=2)
        assert len(set(seen)) == len(seen), "one head came twice"
        untouched = [name for name in reversed(names) if name not in touched]
        assert untouched == [name for name in seen if name not in touched]
        assert 3 <= len(untouched)

    @clause("B10")
    async def test_a_walk_by_update_skips_no_ties(self, backend: Backend, samples: Samples) -> None:
        """Heads updated in the same millisecond come exactly once, in pages of one."""
        names = [await _created(backend, samples, f"c{number}") for number in range(7)]
        for name in names:
            await backend.commit(change(name, entry("e"), at_ms=AT + 50))
        pages = [page async for page in walk(backend, context=samples.id("ctx"), order="updated", limit=1)]
        assert sorted(names) == sorted(head.conversation_id for page in pages for head in page)

    @clause("B10")
    async def test_a_bad_cursor_is_refused(self, backend: Backend, samples: Samples) -> None:
        """A made-up, broken or truncated cursor, and one of another order or filter, is InvalidInput, never another page."""
        for number in range(4):
            await _created(backend, samples, f"c{number}")
        mine: dict[str, Any] = {"context": samples.id("ctx"), "limit": 1}
        cursors = {str(order): (await backend.scan_heads(HeadQuery(**mine, **order))).cursor for order in _orders}
        for order in _orders:
            own = cursors[str(order)]
            assert own is not None
            assert 1 == len((await backend.scan_heads(HeadQuery(cursor=own, **mine, **order))).items)
            bad: list[Any] = ["", "x", "!!!", "\ud83d", own[:-3], own[3:], own + own, "AAAA", 7, b"x", "9" * 5000]
            bad += [other for key, other in cursors.items() if key != str(order)]
            for cursor in bad:
                await refused(
                    InvalidInput,
                    backend.scan_heads(HeadQuery(cursor=cursor, **mine, **order)),
                    f"order {order} with the cursor {cursor!r}",
                )
            for other in ({"context": samples.id("y")}, {"context": None}, {"subject_id": None}, {"context": UNSET}):
                await refused(
                    InvalidInput,
                    backend.scan_heads(HeadQuery(cursor=own, **{**mine, **order, **other})),
                    f"{other} with the cursor of {mine}",
                )
        with pytest.raises(InvalidInput):
            await backend.scan_heads(HeadQuery(cursor=cursors[str(_orders[0])], prefix=samples.prefix, **mine))

    @clause("B10", "B17")
    async def test_a_bad_query_is_refused(self, backend: Backend, samples: Samples) -> None:
        """An unknown order, a limit out of bounds, a prefix in another order and a filter that is no id are InvalidInput."""
        await _created(backend, samples, "c")
        bad: list[dict[str, Any]] = [
            *({"order": each} for each in ("", "ID", "name", None, 7)),
            *({"limit": each} for each in (0, -1, limits.page_heads_max + 1, True, 2.0, "5", None)),
            *({"prefix": samples.prefix, "order": each} for each in ("created", "updated")),
            *({"context": each} for each in ("", "a\nb", 5, b"x")),
            *({"subject_id": each} for each in ("", "a\nb", 5, b"x")),
        ]
        for query in bad:
            await refused(InvalidInput, backend.scan_heads(HeadQuery(**query)), query)
        page = await backend.scan_heads(HeadQuery(prefix=samples.prefix, limit=limits.page_heads_max))
        assert ((samples.id("c"),), None) == (tuple(each.conversation_id for each in page.items), page.cursor)

    @clause("B10")
    async def test_an_empty_listing_is_an_empty_page(self, backend: Backend, samples: Samples) -> None:
        """Where nothing matches there is one page, empty, without a cursor; a last page that is full has none either."""
        page = await backend.scan_heads(HeadQuery(context=samples.id("ctx")))
        assert ((), None, ()) == (page.items, page.cursor, page.damage)
        for number in range(2):
            await _created(backend, samples, f"c{number}")
        pages = [page async for page in walk(backend, context=samples.id("ctx"), limit=2)]
        assert [2] == [len(page) for page in pages if page]

    @clause("B10")
    async def test_a_walk_goes_on_behind_a_deleted_head(self, backend: Backend, samples: Samples) -> None:
        """The head that a cursor stands behind may be gone by the time of the next page."""
        for order in _orders:
            names = [await _created(backend, samples, f"c{number}", at_ms=AT + number) for number in range(5)]

            async def meanwhile(number: int, seen: list[str]) -> None:
                await backend.commit(change(seen[-1], delete=True))

            seen = await _walked(backend, meanwhile, context=samples.id("ctx"), limit=1, **order)
            assert sorted(names) == sorted(seen), order
            for name in names:
                if await backend.read(name):
                    await backend.commit(change(name, delete=True))

    @clause("B10", needs_fresh=True)
    async def test_an_indexed_listing_does_not_look_at_what_the_filter_excludes(
        self, backend: Backend, samples: Samples
    ) -> None:
        """With `indexed`, a page costs the same beside a thousand conversations that the filter excludes."""
        if "indexed" not in backend.capabilities:
            pytest.skip("not declared: indexed")
        mine: dict[str, Any] = {"context": samples.id("ctx"), "subject_id": samples.id("me"), "limit": 5}
        for number in range(5):
            await _created(backend, samples, f"c{number}", subject_id=samples.id("me"))
        few = [await _seconds(backend, mine | order) for order in _orders]
        for number in range(1000):
            other = (
                {"context": samples.id("ctx")}
                if number % 2
                else {"context": samples.id("x"), "subject_id": mine["subject_id"]}
            )
            await _created(backend, samples, f"d{number}", **other)
        many = [await _seconds(backend, mine | order) for order in _orders]
        for order, before, after in zip(_orders, few, many, strict=True):
            assert after < 8 * before + 0.001, f"{order}: {before * 1e6:.0f} us, then {after * 1e6:.0f} us"


async def _created(backend: Backend, samples: Samples, name: str, **other: Any) -> str:
    await backend.commit(creation(samples.id(name), **{"context": samples.id("ctx"), **other}))
    return samples.id(name)


async def _walked(backend: Backend, meanwhile: Callable[[int, list[str]], Awaitable[None]], **query: Any) -> list[str]:
    """Walk, calling `meanwhile` after each of the first pages with its number and the ids so far; return all ids."""
    seen: list[str] = []
    number = 0
    async for page in walk(backend, **query):
        seen += [head.conversation_id for head in page]
        if page and number < 4:
            await meanwhile(number, seen)
        number += 1
    return seen


async def _seconds(backend: Backend, query: dict[str, Any]) -> float:
    """Return the shortest of many times for one page: what it costs when nothing else runs."""
    shortest = 60.0
    for _ in range(30):
        begin = time.perf_counter()
        await backend.scan_heads(HeadQuery(**query))
        shortest = min(shortest, time.perf_counter() - begin)
    return shortest
