"""Which clauses kill which mutant: ``python -m tests.testing.matrix`` prints it all."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from hypothesis import Phase, Verbosity, settings

from convostore.backends.memory import MemoryBackend
from convostore.testing.backend_suite import BackendSuite
from convostore.testing.random_walk import short_walk
from convostore.testing.running import Outcome, run_suite
from convostore.testing.suite import Samples
from tests.testing.disk import Disk, DiskBackend

__all__ = ["failures", "killers"]

_walk = settings(short_walk, max_examples=6, phases=(Phase.generate,), derandomize=True, verbosity=Verbosity.quiet)


def _fixtures(backend: type[MemoryBackend]) -> Mapping[str, Any]:
    given: dict[str, Any] = {
        "samples": Samples(),
        "walk_settings": _walk,
        "process_factory": None,
        "structural_damage": lambda backend: None,
    }
    if issubclass(backend, DiskBackend):
        disk = Disk()
        return given | {
            "factory": partial(backend, disk),
            "damage": disk.damage,
            "outage": disk.outage,
            "newer": disk.newer,
            "next_version": partial(backend.next_version(), disk),
        }
    return given | {"factory": backend, "damage": None, "outage": None, "newer": None, "next_version": None}


def failures(backend: type[MemoryBackend]) -> list[Outcome]:
    """Run the whole suite against a backend and return the tests that failed."""
    outcomes = list(run_suite(BackendSuite, partial(_fixtures, backend)))
    assert not any(each.verdict == "not run" for each in outcomes)
    return [each for each in outcomes if each.verdict == "failed"]


def killers(backend: type[MemoryBackend]) -> set[str]:
    """Return the ids of the clauses that a backend breaks."""
    return {clause for each in failures(backend) for clause in each.clauses}


def _main() -> None:
    from tests.testing.mutants import MUTANTS

    for mutant in MUTANTS:
        found = killers(mutant)
        print(f"{mutant.__name__:<26} {' '.join(sorted(found, key=lambda each: (each[0], int(each[1:]))))}")


if __name__ == "__main__":
    _main()
