"""The random walk as a test of the suite: whatever changes come in whatever order, the backend does what the oracle says."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings

from convostore.contracts.backend import Backend
from convostore.testing.random_walk import random_walk, short_walk
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["WalkClauses"]


class WalkClauses(Suite):
    """A random walk beside a plain dictionary."""

    @pytest.fixture
    def walk_settings(self) -> settings:
        """How far to walk; hypothesis settings."""
        return short_walk

    @clause("B1", "B3", "B6", "B7", "B9")
    async def test_a_random_walk_is_what_the_oracle_says(
        self, backend: Backend, samples: Samples, walk_settings: settings
    ) -> None:
        """Any sequence of changes, repetitions, deletions, reads and listings has the outcome that plain dictionaries have."""
        await asyncio.to_thread(random_walk, backend, samples.prefix, walk_settings)
