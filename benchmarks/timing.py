"""Taking turns: how two things are timed so that their ratio means something on a machine that others use too.

The two alternate sample by sample, as in a program in which other work comes before each call, and who begins alternates by
round. Each side does the same number of samples in a round, without the garbage collector (it runs between rounds). The
first rounds warm caches and are thrown away. A round gives one ratio, that of the two medians in it; what is told is the median
of the rounds' ratios, with the middle half of them as its spread.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from msgspec import Struct

__all__ = ["Sample", "Spread", "quantile", "spread_of", "take_turns", "without_collector"]

Sample: TypeAlias = Callable[[int], Awaitable[float]]
"""Does the n-th sample and returns the seconds it took."""

_WARM_UP = 2


class Spread(Struct, frozen=True):
    """A median, and the bounds of the middle half."""

    median: float
    low: float
    high: float


async def take_turns(
    ours: Sample, floor: Sample, *, rounds: int, samples: int, in_a_row: int = 1
) -> tuple[list[float], list[float]]:
    """Return the median seconds of each round for both, after the warm-up, which is one round in four, two at least.

    `in_a_row`: how many samples of one side come before the other's turn, a divisor of `samples`.
    """
    warm_up = max(_WARM_UP, rounds // 4)
    medians: tuple[list[float], list[float]] = ([], [])
    count = 0
    for number in range(warm_up + rounds):
        order = (0, 1) if number % 2 else (1, 0)
        taken: tuple[list[float], list[float]] = ([], [])
        with without_collector():
            for begin in range(count, count + samples, in_a_row):
                for side in order:
                    do = (ours, floor)[side]
                    taken[side].extend([await _alone(do, begin + each) for each in range(in_a_row)])
        if number >= warm_up:
            for side in order:
                medians[side].append(statistics.median(taken[side]))
        count += samples
    return medians


async def _alone(do: Sample, number: int) -> float:
    seconds = await do(number)
    await asyncio.sleep(0)  # the loop lets go of the answer here, not inside the next sample
    return seconds


@contextmanager
def without_collector() -> Iterator[None]:
    """Collect garbage now, and not inside the block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def spread_of(ours: Sequence[float], floor: Sequence[float]) -> Spread:
    """Return the spread of the rounds' ratios."""
    ratios = [a / b for a, b in zip(ours, floor, strict=True)]
    return Spread(statistics.median(ratios), quantile(ratios, 0.25), quantile(ratios, 0.75))


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values lie, by nearest rank."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]
