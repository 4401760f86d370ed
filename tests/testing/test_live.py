"""``python -m convostore.testing URL`` on stores that hold other people's conversations."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from convostore.backends.memory import MemoryBackend
from convostore.contracts.backend import Backend, Change, FindingEntries, HeadQuery, Receipt
from convostore.errors import InvalidInput
from convostore.opening import open_backend
from convostore.testing import live
from convostore.testing.__main__ import main
from convostore.testing.backend_suite import BackendSuite
from convostore.testing.drafts import census, change, creation, entry
from convostore.testing.suite import Samples, Suite, clause
from convostore.testing.workers import opened
from tests.testing.mutants import FirstForLast

QUICK = ("B3", "B6", "B8", "B9", "B10")


class Kept(MemoryBackend):
    """A memory backend that outlives its handles."""

    async def aclose(self) -> None:
        """Stay open."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'chats.db'}"


async def fill(backend: Backend) -> None:
    """Put in what other people might have: similar ids, no owner, the same context, the suites' own words."""
    for number, name in enumerate(("mine", "suite-", "suite-0", "c", "foo*", "zz\U0001f600")):
        await backend.commit(
            creation(
                name,
                *(entry(f"e{each}", b"%d" % number) for each in range(number)),
                context=None if number % 2 else "ctx",
                subject_id=None if number % 3 else "owner",
                fields={"title": b"t"},
                documents={"todos": b"d"},
            )
        )
    await backend.commit(creation("deleted"))
    await backend.commit(change("deleted", delete=True))


async def dump(factory: Callable[[], Backend]) -> object:
    """Return everything a store holds, in every order that it can be listed, and what a search for ids finds."""
    async with opened(factory) as backend:
        listed = [
            (await backend.scan_heads(HeadQuery(order=order, limit=1000))).items
            for order in ("id", "created", "updated")
        ]
        held = await backend.find_entry("e0") if isinstance(backend, FindingEntries) else ()
        return await census(backend), listed, held


async def filled(factory: Callable[[], Backend]) -> object:
    async with opened(factory) as backend:
        await fill(backend)
    return await dump(factory)


def test_a_live_store_is_as_it_was(url: str) -> None:
    """A store with conversations in it passes, and a full dump before equals one after."""
    factory = partial(open_backend, url)
    before = asyncio.run(filled(factory))
    report = live.run_live(factory, suites=(BackendSuite,))
    failed = [each for clauses in report.suites.values() for each in clauses if each.failed]
    assert ([], True) == (failed, report.ok)
    assert report.deleted > 100
    assert before == asyncio.run(dump(factory))


def test_a_failure_is_reported_and_cleaned_up() -> None:
    """A broken store fails by clause, with the sentence that is not true of it, and still nothing of the run is left."""
    store = type("Broken", (Kept, FirstForLast), {})()
    before = asyncio.run(filled(lambda: store))
    report = live.run_live(lambda: store, suites=(BackendSuite,), only=QUICK)
    by_id = {each.clause: each for each in report.suites["BackendSuite"]}
    assert not report.ok
    assert ("failed", "passed") == (by_id["B3"].verdict, by_id["B10"].verdict)
    assert "newest" in by_id["B3"].message
    assert before == asyncio.run(dump(lambda: store))


def test_ctrl_c_cleans_up() -> None:
    """An interruption in the middle deletes what was made so far, and goes on to the caller."""

    class Interrupted(Suite):
        subject = "backend"

        @clause("Z1")
        async def test_a_begins(self, backend: Backend, samples: Samples) -> None:
            await backend.commit(creation(samples.id("a")))
            await backend.commit(creation("minted elsewhere " + samples.prefix, subject_id=samples.id("me")))

        @clause("Z1")
        async def test_b_is_interrupted(self, backend: Backend, samples: Samples) -> None:
            await backend.commit(creation(samples.id("b"), context=samples.id("ctx")))
            raise KeyboardInterrupt

    store = Kept()
    before = asyncio.run(filled(lambda: store))
    with pytest.raises(KeyboardInterrupt):
        live.run_live(lambda: store, suites=(Interrupted,))
    assert before == asyncio.run(dump(lambda: store))


def test_a_killed_run_can_be_swept(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--sweep deletes what lies below a run's prefix, and refuses a prefix that no run has."""
    factory = partial(open_backend, url)
    prefix = Samples().prefix

    async def leave() -> None:
        async with opened(factory) as backend:
            await backend.commit(creation(f"{prefix}0-c"))
            await backend.commit(creation("suite-mine"))

    asyncio.run(leave())
    assert 0 == main([url, "--sweep", prefix])
    assert "deleted 1 conversation" in capsys.readouterr().out
    assert 2 == main([url, "--sweep", "suite-"])
    with pytest.raises(InvalidInput):
        live.swept(factory, "mine")

    async def left() -> set[str]:
        async with opened(factory) as backend:
            return set(await census(backend))

    assert {"suite-mine"} == asyncio.run(left())


def test_the_table_has_a_line_for_each_clause(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, and one line for every clause, which says how many tests passed, are not declared or not run."""
    assert 0 == main(["memory://", *(word for each in (*QUICK, "B14") for word in ("--clause", each))])
    lines = capsys.readouterr().out.splitlines()
    told = {line.split()[0]: line for line in lines[: lines.index("ConversationSuite")] if line.startswith("  B")}
    assert set(QUICK) < set(told)
    assert "not run" in told["B14"]
    assert "passed" in told["B3"]
    assert "1 not run" in told["B10"]


def test_json_is_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints one JSON object with every clause's verdict and counts."""
    assert 0 == main(["memory://", "--json", "--clause", "B3"])
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (True, ["find_entry"]) == (report["ok"], report["capabilities"])
    (clause,) = [each for each in report["suites"]["BackendSuite"] if each["clause"] == "B3"]
    assert ("passed", 0, 0, "") == (clause["verdict"], clause["failed"], clause["notRun"], clause["message"])


def test_a_failing_store_exits_with_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, FAILED and the first failure's message."""
    monkeypatch.setattr("convostore.testing.__main__.backend_at", lambda url: FirstForLast)
    assert 1 == main(["memory://", "--clause", "B3"])
    out = capsys.readouterr().out
    assert "B3   FAILED" in out
    assert "failed: B3" in out


def test_a_store_that_cannot_be_opened_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and a message that says what to write, without the password that was in the URL."""
    assert 2 == main(["nosuch://me:secret@host/db"])
    told = capsys.readouterr().err
    assert "nosuch" in told
    assert "secret" not in told


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    """--help says what is written, what is left and what the verdicts mean, with examples."""
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert 0 == left.value.code
    told = capsys.readouterr().out
    for word in ("sqlite:///", "deleted in the end", "not run", "exit code", "--sweep"):
        assert word in told


def test_a_lost_race_while_sweeping_is_no_failure() -> None:
    """A conversation that somebody else deletes first does not stop the cleaning up."""

    class Racing(Kept):
        async def commit(self, change: Change, /) -> Receipt:
            if change.delete:
                await super().commit(change)
            return await super().commit(change)

    store = Racing()

    async def sweep() -> int:
        await store.commit(creation("suite-x-1"))
        return await live._sweep_all(lambda: store, "suite-x-", {"suite-x-"})

    assert 0 == asyncio.run(sweep())
