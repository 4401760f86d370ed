"""Runs the published suites against a live store that may hold other people's conversations, and cleans up.

Everything a run creates has an id, a context or a subject that begins with the run's own prefix. In the end, after a failure
and after Ctrl-C too, all of that is deleted. Tests that need storage of their own (they damage it, fill it or look at
all that is there) are not run here; run the suites with pytest for those.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from typing import Any

from hypothesis import Verbosity, settings
from msgspec import Struct

from convostore.contracts.backend import Backend, HeadQuery
from convostore.errors import ConversationNotFoundError, InvalidInput
from convostore.ids import new_id
from convostore.opening import Store, open_backend
from convostore.testing.drafts import change, sweep, walk
from convostore.testing.published import SUITES
from convostore.testing.random_walk import short_walk
from convostore.testing.running import Outcome, Verdict, run_suite
from convostore.testing.suite import Samples, Suite
from convostore.testing.workers import opened

__all__ = ["ClauseReport", "Report", "backend_at", "run_live", "swept"]

_prefix = "suite-"


class ClauseReport(Struct, frozen=True, rename="camel"):
    """What became of one clause: the verdict, how many tests came to which, and the first message that explains it."""

    clause: str
    verdict: Verdict
    passed: int
    failed: int
    skipped: int
    not_run: int
    message: str


class Report(Struct, frozen=True, rename="camel"):
    """What a run found. `deleted` counts the conversations that cleaning up removed."""

    prefix: str
    capabilities: tuple[str, ...]
    suites: dict[str, tuple[ClauseReport, ...]]
    deleted: int

    @property
    def ok(self) -> bool:
        """Whether no clause failed."""
        return not any(each.failed for clauses in self.suites.values() for each in clauses)


def run_live(
    factory: Callable[[], Backend],
    *,
    suites: Iterable[type[Suite]] = SUITES,
    only: Container[str] | None = None,
    told: Callable[[str, Outcome], None] = lambda suite, outcome: None,
) -> Report:
    """Run `suites` against the store that `factory` opens, clean up, and return what was found.

    `factory` must be one that can be pickled if the backend declares `multi_process`. `told` hears of each test as it ends.
    """
    prefix = f"{_prefix}{new_id()}-"
    given: set[str] = set()
    numbers = itertools.count()
    deleted = 0
    found: dict[str, tuple[ClauseReport, ...]] = {}
    capabilities = asyncio.run(_capabilities(factory))

    def fixtures(suite: type[Suite]) -> Mapping[str, Any]:
        samples = Samples(f"{prefix}{next(numbers)}-")
        samples.given = given
        store: dict[str, Any] = {
            "factory": lambda: suite.view(Store(factory())),
            "clocked": lambda clock: Store(factory(), clock=clock),
        }
        return {
            "factory": factory,
            "process_factory": factory,
            "walk_settings": settings(short_walk, verbosity=Verbosity.quiet),
            "samples": samples,
            **(store if suite.subject == "store" else {}),
        }

    for suite in suites:
        outcomes = []
        try:
            for outcome in run_suite(suite, partial(fixtures, suite), live=True, only=only):
                told(suite.__name__, outcome)
                outcomes.append(outcome)
        finally:
            # Behind each suite: the next one reads what is there through a store, and this one wrote what no store writes.
            deleted += asyncio.run(_sweep_all(factory, prefix, given))
            given.clear()
        if outcomes:
            found[suite.__name__] = _by_clause(outcomes)
    return Report(prefix, tuple(sorted(capabilities)), found, deleted)


def swept(factory: Callable[[], Backend], prefix: str) -> int:
    """Delete what a run with this prefix that could not clean up has left; return how many conversations that were.

    Raises:
        InvalidInput: no run has such a prefix.
    """
    if not prefix.startswith(_prefix) or len(prefix) < len(_prefix) + 36:
        raise InvalidInput(f"{prefix!r} is not the prefix of a run; it was printed when the run began")
    return asyncio.run(_sweep_all(factory, prefix, ()))


async def _sweep_all(factory: Callable[[], Backend], prefix: str, given: Iterable[str]) -> int:
    """Delete every conversation whose id begins with `prefix`, or whose context or subject is one of `given`."""
    async with opened(factory) as backend:
        count = await sweep(backend, prefix)
        for name in sorted(given):
            assert name.startswith(prefix)
            for query in ({"context": name}, {"subject_id": name}):
                count += await _sweep_query(backend, query)
        return count


async def _sweep_query(backend: Backend, query: Mapping[str, Any]) -> int:
    try:
        pages = [page async for page in walk(backend, **query, limit=1000)]
    except InvalidInput:
        return 0  # the name was given as an example of what is no id
    count = 0
    for head in itertools.chain(*pages):
        try:
            await backend.commit(change(head.conversation_id, delete=True))
            count += 1
        except ConversationNotFoundError:
            continue  # somebody else was quicker
    return count


async def _capabilities(factory: Callable[[], Backend]) -> frozenset[str]:
    async with opened(factory) as backend:
        await backend.scan_heads(HeadQuery(limit=1))  # opening is lazy: say here that it cannot be opened
        return frozenset(backend.capabilities)


def _by_clause(outcomes: Iterable[Outcome]) -> tuple[ClauseReport, ...]:
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        for clause in outcome.clauses:
            found.setdefault(clause, []).append(outcome)
    return tuple(_reported(clause, found[clause]) for clause in sorted(found, key=_clause_order))


def _clause_order(clause: str) -> tuple[str, int]:
    return clause[0], int(clause[1:])


def _reported(clause: str, outcomes: list[Outcome]) -> ClauseReport:
    counts = {verdict: sum(each.verdict == verdict for each in outcomes) for verdict in _verdicts}
    verdict = next(each for each in _verdicts if counts[each])
    messages = [each.message for each in outcomes if each.verdict == verdict and each.message]
    return ClauseReport(
        clause,
        verdict,
        counts["passed"],
        counts["failed"],
        counts["skipped"],
        counts["not run"],
        messages[0] if messages else "",
    )


_verdicts: tuple[Verdict, ...] = ("failed", "passed", "skipped", "not run")


def backend_at(url: str) -> Callable[[], Backend]:
    """Return what opens the backend at `url`; it can be pickled."""
    return partial(open_backend, url)
