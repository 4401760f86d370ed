"""The frame of the suites: what is opened is closed, what is declared is tested, what is missing is said."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from convostore.backends.memory import MemoryBackend
from convostore.contracts.backend import Capability
from convostore.testing.backend_suite import BackendSuite
from convostore.testing.running import run_suite
from convostore.testing.suite import Samples, Suite, clause, clauses_of
from tests.testing.disk import Disk, DiskBackend


class Opened(MemoryBackend):
    """Counts what is open."""

    now_open = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).now_open += 1

    async def aclose(self) -> None:
        type(self).now_open -= 1
        await super().aclose()


class Small(Suite):
    subject = "backend"

    @clause("Z1", "Z2")
    async def test_passes(self, backend: Opened) -> None:
        """One is open."""
        assert 1 == Opened.now_open

    @clause("Z2")
    async def test_fails(self, backend: Opened, samples: Samples) -> None:
        """Two is three."""
        assert samples.prefix == "x", "because"

    @clause("Z3")
    async def test_skips(self, backend: Opened) -> None:
        """It is not declared."""
        pytest.skip("not declared: wings")

    @clause("Z4", needs_fresh=True)
    async def test_needs_fresh(self, backend: Opened) -> None:
        """It runs on a store of its own."""

    @clause("Z5")
    async def test_needs_more(self, backend: Opened, wings: object) -> None:
        """It flies."""

    @clause("Z6")
    async def test_opens_itself(self, factory: Callable[[], Any]) -> None:
        """Nothing was opened for it."""
        assert 0 == Opened.now_open


def test_outcomes_say_what_became_of_each_test() -> None:
    """Passed, failed, skipped and not run, each with its reason; whatever was opened is closed."""
    fixtures = partial(dict[str, Any], factory=Opened, samples=Samples("x-"))
    found = {each.test: (each.verdict, each.message) for each in run_suite(Small, fixtures, live=True)}
    message = found["test_fails"][1]
    assert message.startswith("test_fails: Two is three. But AssertionError at test_suite.py:")
    assert "because" in message
    assert {
        "test_fails": ("failed", message),
        "test_needs_fresh": ("not run", "it needs storage of its own: not run on a live store"),
        "test_needs_more": ("not run", "it needs the fixture 'wings': not run outside pytest"),
        "test_opens_itself": ("passed", ""),
        "test_passes": ("passed", ""),
        "test_skips": ("skipped", "not declared: wings"),
    } == found
    assert 0 == Opened.now_open


def test_only_some_clauses_can_be_run() -> None:
    """`only` runs the tests of these clauses, whatever else they test."""
    fixtures = partial(dict[str, Any], factory=Opened, samples=Samples("x-"))
    assert ["test_fails", "test_passes"] == [each.test for each in run_suite(Small, fixtures, only={"Z2"})]


def test_clauses_of_lists_the_tests_by_clause() -> None:
    """A test of two clauses is listed under both."""
    assert ["test_fails", "test_passes"] == sorted(clauses_of(Small)["Z2"])
    assert ["test_passes"] == clauses_of(Small)["Z1"]


def test_a_factory_may_be_async() -> None:
    """What a factory returns is awaited if it can be."""

    async def factory() -> Opened:
        await asyncio.sleep(0)
        return Opened()

    Small().test_passes(factory)
    assert 0 == Opened.now_open


class Claims(DiskBackend):
    """Declares more than anybody has prepared for."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset({"durable", "multi_process", "find_entry"})


def test_a_declared_capability_without_its_fixture_fails() -> None:
    """What is declared and cannot be tried fails; it is not skipped."""

    def fixtures() -> dict[str, Any]:
        given = dict.fromkeys(("damage", "outage", "newer", "next_version", "process_factory"))
        return {"factory": partial(Claims, Disk()), "samples": Samples(), **given}

    outcomes = run_suite(BackendSuite, fixtures, only={"B2", "B5", "B12", "B13", "B14", "E3"})
    failed = {each.test: each.message for each in outcomes if each.verdict == "failed"}
    for fixture, test in {
        "process_factory": "test_processes_neither_lose_nor_interleave",
        "damage": "test_every_damaged_entry_is_named",
        "outage": "test_an_outage_is_unavailable_and_not_absence",
        "newer": "test_a_newer_store_is_refused_untouched",
    }.items():
        assert f"define the fixture {fixture}" in failed[test]


def test_a_test_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost lock shows as a failure."""

    class Hangs(Suite):
        @clause("Z1")
        async def test_hangs(self, backend: Opened) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr("convostore.testing.suite.timeout_s", 0.01)
    with pytest.raises(TimeoutError):
        Hangs().test_hangs(Opened)
    assert 0 == Opened.now_open
