"""How a suite is written: a class of async tests, each under the ids of the clauses it tests, each on a fresh store.

Someone with a backend of their own writes::

    class TestMyBackend(BackendSuite):
        @pytest.fixture
        def factory(self, tmp_path):
            return lambda: MyBackend(tmp_path / "data")

and runs pytest; no plugin is needed. `factory` returns a new object on the same storage each time it is called (a second
worker, a restart); fresh storage for every test is the fixture's business.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Literal

import pytest

from convostore.ids import new_id
from convostore.testing.awkward import hostile_ids, kept_texts, kept_values
from convostore.testing.workers import opened

__all__ = ["Samples", "Suite", "clause", "clauses_of", "timeout_s"]

timeout_s = 120
"""Seconds after which a test is cancelled: a lost lock shows as a failure, not as a run that never ends."""


class Samples:
    """Names and payloads that a suite uses; override the `samples` fixture to use others.

    Every id, context and subject that a test creates begins with `prefix`, so a suite can run on a store that holds
    other people's conversations, and clean up after itself.
    """

    def __init__(self, prefix: str | None = None) -> None:
        self.prefix = prefix or f"suite-{new_id()}-"
        self.given: set[str] = set()

    def id(self, name: str = "") -> str:
        """Return an id, context or subject of this test's own; `given` keeps all that were returned."""
        given = f"{self.prefix}{name}"
        self.given.add(given)
        return given

    @property
    def bodies(self) -> tuple[bytes, ...]:
        """Bodies that a backend must give back byte for byte."""
        return (
            b"",
            b"{}",
            b"\x00\xff\xfe",
            bytes(range(256)),
            '{"text":"\u2028 \u05e9\u05dc\u05d5\u05dd"}'.encode(),
            b"x" * 1_000_000,
        )

    @property
    def texts(self) -> dict[str, str]:
        """Text, by what is odd about it, that a store must give back exactly."""
        return kept_texts

    @property
    def payloads(self) -> dict[str, Any]:
        """JSON, by what is odd about it, that a store must give back exactly; the texts are among them."""
        return kept_values

    @property
    def look_alikes(self) -> list[str]:
        """Ids that a careless storage takes for one another; a storage that refuses some leaves them out here."""
        return list(hostile_ids(self.prefix))


class Suite:
    """Base of every published suite.

    `subject` says what `factory` returns. `contracts` are the modules whose docstrings list the clauses that it tests.
    """

    subject: ClassVar[Literal["backend", "store"]] = "store"
    contracts: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def view(store: Any) -> Any:
        """Return what this suite tests of one of our stores: the store itself, or one of its contracts."""
        return store

    @pytest.fixture
    def factory(self) -> Callable[[], Any]:
        """Return a callable that opens a new handle on this test's storage; subclasses provide it."""
        raise NotImplementedError(f"{type(self).__name__} must define a pytest fixture named 'factory'")

    @pytest.fixture
    def samples(self) -> Samples:
        """Names and payloads."""
        return Samples()


def clause(
    *ids: str, needs_fresh: bool = False
) -> Callable[[Callable[..., Coroutine[Any, Any, None]]], Callable[..., None]]:
    """Mark an async test ``(self, subject, ...fixtures)`` as testing these clauses.

    The test's first argument after self (named `backend` or `store`) is what `factory` returns, made inside the test's
    event loop and closed behind it; an argument named `factory` gives the factory itself, for a second handle. A test
    whose first argument is `factory` opens everything itself. `needs_fresh`: the test needs storage of its own (it
    damages it, fills it or looks at all that is there), so it is not run on a live store.
    """

    def mark(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
        own, first, *others = inspect.signature(test).parameters.values()
        wants_factory = any(each.name == "factory" for each in others)
        given = inspect.Parameter("factory", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        fixtures = [each for each in others if each.name != "factory"]

        @functools.wraps(test)
        def run(self: Suite, factory: Callable[[], Any], **others: Any) -> None:
            async def body() -> None:
                async with asyncio.timeout(timeout_s):
                    if first.name == "factory":
                        await test(self, factory, **others)
                        return
                    async with opened(factory) as subject:
                        await test(self, subject, **others, **({"factory": factory} if wants_factory else {}))

            asyncio.run(body())

        run.__signature__ = inspect.Signature([own, given, *fixtures])  # type: ignore[attr-defined]
        run.clauses = ids  # type: ignore[attr-defined]
        run.needs_fresh = needs_fresh  # type: ignore[attr-defined]
        return run

    return mark


def clauses_of(suite: type[Suite]) -> dict[str, list[str]]:
    """Return, by clause id, the names of the tests that test it."""
    found: dict[str, list[str]] = {}
    for name in dir(suite):
        for each in getattr(getattr(suite, name), "clauses", ()):
            found.setdefault(each, []).append(name)
    return found
