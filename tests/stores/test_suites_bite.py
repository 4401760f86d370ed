"""The suites of the stores find out stores that are broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from convostore.backends.memory import MemoryBackend
from convostore.opening import Store
from convostore.testing.contract_view import ContractView
from convostore.testing.conversation_suite import ConversationSuite
from convostore.testing.crossing_suite import CrossingSuite
from convostore.testing.full_storage_adapter_suite import FullStorageAdapterSuite
from convostore.testing.random_walk import short_walk
from convostore.testing.running import run_suite
from convostore.testing.session_suite import SessionSuite
from convostore.testing.suite import Samples, Suite
from tests.stores import mutants
from tests.stores.engines import Handle


def _found_out(suite: type[Suite], clause: str, make: Callable[[Any, Any], Any]) -> bool:
    """Run the tests of one clause, each on storage of its own, until one fails."""

    def fixtures() -> dict[str, Any]:
        backend = MemoryBackend()
        return {
            "samples": Samples(),
            "walk_settings": short_walk,
            "factory": lambda: make(Handle(backend), None),
            "clocked": lambda clock: make(Handle(backend), clock),
        }

    for outcome in run_suite(suite, fixtures, only={clause}):
        assert outcome.verdict != "not run"
        if outcome.verdict == "failed":
            return True
    return False


def _store(kind: type[Store], backend: Any, clock: Any) -> Store:
    return kind(backend, **({} if clock is None else {"clock": clock}))


def _view(kind: type[Any], backend: Any, clock: Any) -> ContractView:
    return ContractView(_store(Store, backend, clock), kind(backend))


@pytest.mark.parametrize(
    ("suite", "make", "mutant"),
    [
        *((ConversationSuite, _store, each) for each in mutants.CONVERSATIONS),
        *((SessionSuite, _view, each) for each in mutants.SESSIONS),
        *((FullStorageAdapterSuite, _view, each) for each in mutants.CHATS),
        *((CrossingSuite, _store, each) for each in mutants.CROSSING),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_mutant_is_found_out(suite: type[Suite], make: Callable[..., Any], mutant: type[Any]) -> None:
    """The clause that the mutant breaks fails for it."""
    assert _found_out(suite, mutant.noticed_by, partial(make, mutant))
