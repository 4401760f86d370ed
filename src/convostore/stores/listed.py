"""Lists that callers give: copied once, before anything waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from convostore.errors import InvalidInput

__all__ = ["listed"]

T = TypeVar("T")


def listed(values: Iterable[T], what: str) -> tuple[T, ...]:
    """Return `values` as a tuple of the caller's own objects; `what` names them in the error.

    Raises:
        InvalidInput: it is not a list, or is one value where a list belongs.
    """
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidInput(f"{what} must be a list, not {type(values).__name__}; put a single one into [...]")
    return tuple(values)
