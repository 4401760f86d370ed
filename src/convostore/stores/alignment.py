"""Which element of a new list is which element of the old one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import Final

from msgspec import Struct

__all__ = ["Alignment", "align"]

_product_max: Final = 250_000
"""Beyond this, equal elements are told apart by their order alone: looking at their neighbours may take quadratic time."""


class Alignment(Struct):
    """`matches`: for each element of the new list, the index in the old one of what it is or was, None if it is new.

    Increasing, but for those in `moved`, which are equal to something that stood elsewhere.
    """

    matches: list[int | None]
    moved: set[int]


def align(
    old: Sequence[bytes], new: Sequence[bytes], old_ids: Sequence[Hashable], new_ids: Sequence[Hashable]
) -> Alignment:
    """Align two lists: equal elements in order, then equal ones anywhere, then those that changed where they stood.

    Elements are equal when their keys are. A changed one is recognised by its id, else by its place between equal ones; an
    id None says nothing.
    """
    alignment = Alignment(_equal(old, new), set())
    _find_moved(alignment, old, new)
    _find_changed(alignment, len(old), old_ids, new_ids)
    return alignment


def _equal(old: Sequence[bytes], new: Sequence[bytes]) -> list[int | None]:
    begin = 0
    while begin < min(len(old), len(new)) and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < min(len(old), len(new)) - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    middle_old, middle_new = old[begin : len(old) - end], new[begin : len(new) - end]
    matches: list[int | None] = [*range(begin), *[None] * len(middle_new), *range(len(old) - end, len(old))]
    if len(middle_old) * len(middle_new) <= _product_max:
        pairs = _common(middle_old, middle_new)
    else:
        pairs = _increasing(middle_old, middle_new)
    for i, j in pairs:
        matches[begin + j] = begin + i
    return matches


def _common(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return a long common subsequence as pairs of indexes. Cost: up to the product of the lengths."""
    from difflib import SequenceMatcher  # only for lists that were changed in their middle

    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return [(block.a + k, block.b + k) for block in blocks for k in range(block.size)]


def _increasing(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the longest common subsequence if each n-th occurrence of a key is the n-th occurrence in the other list.

    The longest increasing run of places, by patience sorting. Cost: n log n.
    """
    places: dict[bytes, list[int]] = {}
    for i in reversed(range(len(old))):
        places.setdefault(old[i], []).append(i)
    tops: list[int] = []
    ends: list[tuple[int, int]] = []  # the pair on top of each pile
    before: dict[tuple[int, int], tuple[int, int] | None] = {}
    for j, key in enumerate(new):
        if places.get(key):
            pair = (places[key].pop(), j)
            pile = bisect_left(tops, pair[0])
            before[pair] = ends[pile - 1] if pile else None
            tops[pile : pile + 1], ends[pile : pile + 1] = [pair[0]], [pair]
    run: list[tuple[int, int]] = []
    last = ends[-1] if ends else None
    while last is not None:
        run.append(last)
        last = before[last]
    return run[::-1]


def _find_moved(alignment: Alignment, old: Sequence[bytes], new: Sequence[bytes]) -> None:
    matched = set(alignment.matches)
    elsewhere: dict[bytes, list[int]] = {}
    for i in reversed(range(len(old))):
        if i not in matched:
            elsewhere.setdefault(old[i], []).append(i)
    for j, key in enumerate(new):
        if alignment.matches[j] is None and elsewhere.get(key):
            alignment.matches[j] = elsewhere[key].pop()
            alignment.moved.add(j)


def _find_changed(
    alignment: Alignment, old_count: int, old_ids: Sequence[Hashable], new_ids: Sequence[Hashable]
) -> None:
    """Pair what is left between two neighbours that stayed: by id while ids are in the old order, else by place."""
    matches = alignment.matches
    taken = {i for i in matches if i is not None}
    stays = [j for j, i in enumerate(matches) if i is not None and j not in alignment.moved]
    for before, behind in zip([None, *stays], [*stays, None], strict=True):
        first = 0 if before is None else (matches[before] or 0) + 1
        last = old_count if behind is None else matches[behind]
        assert last is not None
        left_old = [i for i in range(first, last) if i not in taken]
        between = range(0 if before is None else before + 1, len(matches) if behind is None else behind)
        left_new = [j for j in between if matches[j] is None]
        for j, i in _pairs(left_old, left_new, old_ids, new_ids):
            matches[j] = i


def _pairs(
    left_old: Sequence[int], left_new: Sequence[int], old_ids: Sequence[Hashable], new_ids: Sequence[Hashable]
) -> list[tuple[int, int]]:
    by_id: dict[Hashable, int] = {}
    for i in reversed(left_old):
        old_id = old_ids[i]
        if old_id is not None:
            by_id[old_id] = i
    pairs = []
    last = -1
    for j in left_new:
        new_id = new_ids[j]
        found = by_id.get(new_id, -1)
        if found > last:
            last = found
            pairs.append((j, found))
    if pairs:
        return pairs
    # An element with an id of its own that the old list did not have is new, not a changed other one.
    return [(j, i) for i, j in zip(left_old, left_new, strict=False) if new_ids[j] is None or old_ids[i] is None]
