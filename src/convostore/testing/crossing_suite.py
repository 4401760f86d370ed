"""Clauses X1 to X8 as tests: the suite of what crosses from store to store. `factory` returns a full store."""

from __future__ import annotations

from typing import ClassVar

from convostore.testing.crossing_walk import CrossingWalk
from convostore.testing.golden_suite import GoldenReadings
from convostore.testing.reading_across_suite import ReadingAcross
from convostore.testing.saving_across_suite import SavingAcross

__all__ = ["CrossingSuite"]


class CrossingSuite(SavingAcross, ReadingAcross, CrossingWalk, GoldenReadings):
    """Every clause of X."""

    contracts: ClassVar[tuple[str, ...]] = ("convostore.contracts.crossing",)
