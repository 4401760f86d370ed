"""The published suite of the backend contract: every clause B1 to B17 and E1 to E3, on any backend.

Subclass it, define `factory`, run pytest. A backend that declares `multi_process` also defines `process_factory`; one that
declares `durable` also `damage`, `outage` and `newer`, one that declares `self_check` also `structural_damage`, because what
these clauses say cannot be tried from outside.
A missing one fails the tests that need it, it does not skip them: a declared capability is a tested capability.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from convostore.testing.backend_clauses.atomicity import AtomicityClauses
from convostore.testing.backend_clauses.capabilities import CapabilityClauses
from convostore.testing.backend_clauses.damage import DamageClauses, Damager
from convostore.testing.backend_clauses.deletion import DeletionClauses
from convostore.testing.backend_clauses.durability import DurabilityClauses
from convostore.testing.backend_clauses.errors import ErrorClauses
from convostore.testing.backend_clauses.guards import GuardClauses
from convostore.testing.backend_clauses.identity import IdentityClauses
from convostore.testing.backend_clauses.lifecycle import LifecycleClauses
from convostore.testing.backend_clauses.listing import ListingClauses
from convostore.testing.backend_clauses.order import OrderClauses
from convostore.testing.backend_clauses.payload import PayloadClauses
from convostore.testing.backend_clauses.repetition import RepetitionClauses
from convostore.testing.backend_clauses.walking import WalkClauses
from convostore.testing.backend_clauses.writers import WriterClauses

__all__ = ["BackendSuite", "Damager"]


class BackendSuite(
    AtomicityClauses,
    CapabilityClauses,
    DamageClauses,
    DeletionClauses,
    DurabilityClauses,
    ErrorClauses,
    GuardClauses,
    IdentityClauses,
    LifecycleClauses,
    ListingClauses,
    OrderClauses,
    PayloadClauses,
    RepetitionClauses,
    WalkClauses,
    WriterClauses,
):
    """Every clause of `convostore.contracts.backend`."""

    subject = "backend"
    contracts = ("convostore.contracts.backend",)

    @pytest.fixture
    def process_factory(self) -> Callable[[], Any] | None:
        """Return a callable that can be pickled and opens, in another process, a handle on this test's storage.

        ``functools.partial(MyBackend, path)`` is one. A backend that declares `multi_process` must provide it. One that does
        not may: then its absence is tested too.
        """
        return None
