"""What a measurement says: a line with its bounds, and whether it keeps them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from benchmarks.timing import Spread

__all__ = ["Line", "Setting"]


class Setting(Struct, frozen=True):
    """Where and how long to measure. `say` tells a person how far it is."""

    folder: Path
    quick: bool
    say: Callable[[str], None]

    def rounds(self, count: int) -> int:
        """Return how many of `count` rounds to take."""
        return max(3, count // 5) if self.quick else count

    def size(self, count: int) -> int:
        """Return how large a fixture to make where `count` is asked for."""
        return count // 10 if self.quick else count


class Line(Struct, frozen=True, kw_only=True):
    """One measured figure. Without `must` it is for information; `better` says which way a bound goes."""

    what: str
    measured: float
    spread: Spread | None = None
    unit: str = "x"
    better: Literal["less", "more"] = "less"
    must: float | None = None
    aim: float | None = None

    @property
    def verdict(self) -> Literal["pass", "MISS", ""]:
        """Say whether the figure, as it is printed, keeps its bound; empty when there is none."""
        if self.must is None:
            return ""
        return "pass" if self._reaches(self.must) else "MISS"

    @property
    def reaches_aim(self) -> bool:
        return self.aim is not None and self._reaches(self.aim)

    def _reaches(self, bound: float) -> bool:
        figure = round(self.measured, 2)
        return figure <= bound if self.better == "less" else figure >= bound
