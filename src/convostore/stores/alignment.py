"""Which element of a new list is which element of the old one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

__all__ = ["align"]

_product_max: Final = 4_000_000
"""Beyond this, elements that differ are paired by place: an exact alignment may take quadratic time."""


def align(
    old: Sequence[bytes], new: Sequence[bytes], old_ids: Sequence[object], new_ids: Sequence[object]
) -> list[int | None]:
    """Return, for each element of `new`, the index in `old` of what it is or was, None if it was not there; increasing.

    Elements are equal when their keys are. Between equal ones, a changed element is recognised by its id, else by its
    place; an id None says nothing.
    """
    begin = 0
    while begin < min(len(old), len(new)) and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < min(len(old), len(new)) - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    matches: list[int | None] = list(range(begin))
    middle_old, middle_new = range(begin, len(old) - end), range(begin, len(new) - end)
    for where_old, where_new in _blocks(old, new, middle_old, middle_new):
        matches += _pair(where_old, where_new, old_ids, new_ids)
    return matches + list(range(len(old) - end, len(old)))


def _blocks(
    old: Sequence[bytes], new: Sequence[bytes], middle_old: range, middle_new: range
) -> list[tuple[range, range]]:
    """Return the blocks of the middle in order; a block of equal elements comes as one pair of ranges an element."""
    if len(middle_old) * len(middle_new) > _product_max:
        return [(middle_old, middle_new)]
    from difflib import SequenceMatcher  # only for lists that were changed in their middle

    matcher = SequenceMatcher(None, [old[i] for i in middle_old], [new[j] for j in middle_new], autojunk=False)
    blocks = []
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            blocks += [(middle_old[k : k + 1], middle_new[j + k - i : j + k - i + 1]) for k in range(i, i_end)]
        else:
            blocks.append((middle_old[i:i_end], middle_new[j:j_end]))
    return blocks


def _pair(where_old: range, where_new: range, old_ids: Sequence[object], new_ids: Sequence[object]) -> list[int | None]:
    """Pair the elements of one block that differ: by id while ids are in the old order, then what is between by place."""
    by_id: dict[Hashable, int] = {}
    for i in reversed(where_old):
        if isinstance(old_ids[i], Hashable) and old_ids[i] is not None:
            by_id[old_ids[i]] = i
    matches: list[int | None] = []
    last = where_old.start - 1
    for j in where_new:
        found = by_id.get(new_ids[j]) if isinstance(new_ids[j], Hashable) else None
        if found is not None and found > last:
            last = found
            matches.append(found)
        else:
            matches.append(None)
    if any(each is not None for each in matches) or len(where_old) == 0:
        return matches
    known = set(by_id)
    for k, (i, j) in enumerate(zip(where_old, where_new, strict=False)):
        # An element with an id of its own that the old list did not have is new, not a changed other one.
        if new_ids[j] is None or old_ids[i] is None or not known:
            matches[k] = i
    return matches
