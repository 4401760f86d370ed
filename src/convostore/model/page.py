"""One page of a listing."""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

__all__ = ["Page"]

T = TypeVar("T")


class Page(Struct, Generic[T], frozen=True):
    """`items` in the order asked for; `cursor` asks for the next page, None when this is the last."""

    items: tuple[T, ...]
    cursor: str | None = None
