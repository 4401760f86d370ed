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
from typing import Any

import pytest

from convostore.ids import new_id

__all__ = ["Samples", "Suite", "clause", "clauses_of"]


class Samples:
    """Names and payloads that a suite uses; override the `samples` fixture to use others.

    Every id, context and subject that a test creates begins with `prefix`, so a suite can run on a store that holds
    other people's conversations, and clean up after itself.
    """

    def __init__(self, prefix: str | None = None) -> None:
        self.prefix = prefix or f"suite-{new_id()}-"

    def id(self, name: str = "") -> str:
        """Return an id, context or subject of this test's own."""
        return f"{self.prefix}{name}"

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


class Suite:
    """Base of every published suite."""

    @pytest.fixture
    def factory(self) -> Callable[[], Any]:
        """Return a callable that opens a new handle on this test's storage; subclasses provide it."""
        raise NotImplementedError(f"{type(self).__name__} must define a pytest fixture named 'factory'")

    @pytest.fixture
    def samples(self) -> Samples:
        """Names and payloads."""
        return Samples()


def clause(*ids: str) -> Callable[[Callable[..., Coroutine[Any, Any, None]]], Callable[..., None]]:
    """Mark an async test ``(self, subject, ...fixtures)`` as testing these clauses.

    The test's first argument after self (named `backend` or `store`) is what `factory` returns, made inside the test's
    event loop and closed behind it; an argument named `factory` gives the factory itself, for a second handle.
    """

    def mark(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
        parameters = list(inspect.signature(test).parameters.values())
        fixtures = [each for each in parameters[2:] if each.name != "factory"]
        wants_factory = any(each.name == "factory" for each in parameters[2:])
        given = inspect.Parameter("factory", inspect.Parameter.POSITIONAL_OR_KEYWORD)

        @functools.wraps(test)
        def run(self: Suite, factory: Callable[[], Any], **others: Any) -> None:
            async def body() -> None:
                made = factory()
                subject = await made if inspect.isawaitable(made) else made
                if wants_factory:
                    others["factory"] = factory
                try:
                    await test(self, subject, **others)
                finally:
                    await subject.aclose()

            asyncio.run(body())

        run.__signature__ = inspect.Signature([parameters[0], given, *fixtures])  # type: ignore[attr-defined]
        run.clauses = ids  # type: ignore[attr-defined]
        return run

    return mark


def clauses_of(suite: type[Suite]) -> dict[str, list[str]]:
    """Return, by clause id, the names of the tests that test it."""
    found: dict[str, list[str]] = {}
    for name in dir(suite):
        for each in getattr(getattr(suite, name), "clauses", ()):
            found.setdefault(each, []).append(name)
    return found
