"""Clauses X1 to X7 as tests: the suite of what crosses from store to store. X8, the golden files, is in the project's tests."""

from __future__ import annotations

from convostore.testing.crossing_walk import CrossingWalk
from convostore.testing.reading_across_suite import ReadingAcross
from convostore.testing.saving_across_suite import SavingAcross

__all__ = ["CrossingSuite"]


class CrossingSuite(SavingAcross, ReadingAcross, CrossingWalk):
    """Every clause of X; `factory` returns a full store."""
