"""Runs the tests of a suite without pytest's collection: against a live store, and against backends broken on purpose."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Container, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from msgspec import Struct

from convostore.testing.suite import Suite

__all__ = ["Outcome", "Verdict", "run_suite"]

_said_max = 300  # a comparison of two snapshots is longer than a table is wide

Verdict: TypeAlias = Literal["passed", "failed", "skipped", "not run"]


class Outcome(Struct, frozen=True):
    """What became of one test. `message` says what failed, what is not declared or why it was not run."""

    test: str
    clauses: tuple[str, ...]
    verdict: Verdict
    message: str = ""


def run_suite(
    suite: type[Suite],
    fixtures: Callable[[], Mapping[str, Any]],
    *,
    live: bool = False,
    only: Container[str] | None = None,
) -> Iterator[Outcome]:
    """Run each test of `suite` and yield its outcome, in the order of their names.

    `fixtures` is called before each test and returns the values of the fixtures by name; a test that needs another one is
    not run. With `live`, tests that need storage of their own are not run. `only`: tests of these clauses. Ctrl-C and
    SystemExit pass through.
    """
    for name in sorted(dir(suite)):
        test = getattr(suite, name)
        clauses: tuple[str, ...] = getattr(test, "clauses", ())
        if not clauses or (only is not None and not any(each in only for each in clauses)):
            continue
        if live and test.needs_fresh:
            yield Outcome(name, clauses, "not run", "it needs storage of its own: not run on a live store")
            continue
        given = fixtures()
        wanted = list(inspect.signature(test).parameters)[1:]
        if missing := [each for each in wanted if each not in given]:
            yield Outcome(name, clauses, "not run", f"it needs the fixture {missing[0]!r}: not run outside pytest")
            continue
        verdict, message = _run(suite, name, {each: given[each] for each in wanted})
        yield Outcome(name, clauses, verdict, message)


def _run(suite: type[Suite], name: str, given: Mapping[str, Any]) -> tuple[Verdict, str]:
    test = getattr(suite(), name)
    try:
        test(**given)
    except (KeyboardInterrupt, SystemExit):
        raise
    except pytest.skip.Exception as skipped:
        return "skipped", str(skipped)
    except BaseException as error:  # noqa: BLE001  a test may end with anything: pytest.fail, a cancellation, a group
        return (
            "failed",
            f"{name}: {_first_line(test.__doc__)} But {_told(error, inspect.unwrap(test).__code__.co_filename)}",
        )
    return "passed", ""


def _first_line(text: str | None) -> str:
    return (text or "").strip().split("\n")[0]


def _told(error: BaseException, file: str) -> str:
    """Say what an error says, and where in the test's own file; a bare assertion says its line of source."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
    where = f" at {Path(file).name}:{frames[-1].lineno}" if frames else ""
    said = str(error).split("\n")[0][:_said_max] or (frames[-1].line if frames else "")
    return f"{type(error).__name__}{where}: {said}"
