"""The harness takes turns fairly, judges by what it prints, and says what it measured."""

import gc
import json
import math
from pathlib import Path

import pytest

from benchmarks import __main__ as program
from benchmarks import counting
from benchmarks.machine import file_system, kind_of_machine, on_disk
from benchmarks.report import as_text
from benchmarks.result import Line, Setting
from benchmarks.timing import Spread, quantile, spread_of, take_turns
from tests.faults.syscalls import unavailable


async def test_rounds_alternate_and_the_warm_up_is_thrown_away() -> None:
    """Both sides do the same samples, each begins every other round, without the collector, and warm-up does not count."""
    done: list[tuple[str, int, bool]] = []

    async def ours(number: int) -> float:
        done.append(("ours", number, gc.isenabled()))
        return 1000.0 if number < 4 else 4.0

    async def floor(number: int) -> float:
        done.append(("floor", number, gc.isenabled()))
        return 2.0

    medians = await take_turns(ours, floor, rounds=4, samples=2)
    assert ([4.0] * 4, [2.0] * 4) == medians
    assert gc.isenabled()
    assert not any(enabled for _, _, enabled in done)
    assert list(range(12)) == [number for side, number, _ in done if side == "ours"]
    assert list(range(12)) == [number for side, number, _ in done if side == "floor"]
    starters = [side for side, number, _ in done if number % 2 == 0]
    assert ["floor", "ours", "ours", "floor"] == starters[:4]


def test_a_spread_is_that_of_the_rounds_ratios() -> None:
    """A round that was slow on both sides moves nothing."""
    assert Spread(2.0, 2.0, 2.0) == spread_of([2.0, 4.0, 200.0], [1.0, 2.0, 100.0])
    assert 3.0 == quantile([1.0, 2.0, 3.0, 4.0], 0.5)
    assert 4.0 == quantile([4.0, 1.0, 3.0, 2.0], 0.99)


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        (Line(what="a", measured=1.6, must=1.6), "pass"),
        (Line(what="a", measured=1.61, must=1.6), "MISS"),
        (Line(what="a", measured=2.5, must=2.5, better="more"), "pass"),
        (Line(what="a", measured=2.4, must=2.5, better="more"), "MISS"),
        (Line(what="a", measured=9.0), ""),
    ],
)
def test_a_bound_is_kept_or_missed(line: Line, verdict: str) -> None:
    """A figure on the bound keeps it, one beyond misses it, and without a bound there is no verdict."""
    assert verdict == line.verdict


def test_the_report_says_what_is_missed() -> None:
    """The table shows bounds and verdicts, and its last line names what was missed."""
    lines = [
        Line(what="reached", measured=1.0, spread=Spread(1.0, 0.9, 1.1), must=1.6, aim=1.3),
        Line(what="missed", measured=2.0, must=1.6),
        Line(what="told", measured=1.0, unit=""),
    ]
    report = as_text("a machine", lines, quick=False)
    assert "1.00x  0.90 to 1.10  pass, aim reached" in report
    assert report.endswith("1 of 2 bounds kept; missed: missed\n")


async def test_an_append_is_one_transaction_and_one_sync(tmp_path: Path) -> None:
    """What the counts say of one writer: one transaction, one sync and one wake-up an append; a small read wakes nobody."""
    lines = await counting.measure(Setting(tmp_path, True, lambda what: None))
    counts = {line.what: line.measured for line in lines}
    assert 1.0 == counts["transactions an append, one writer"]
    assert 1.0 == counts["wake-ups an append, one writer"]
    assert 0.0 == counts["wake-ups a read of the last 20"]
    assert counts["transactions an append, 64 tasks"] < 0.5
    if unavailable() is None:
        assert 1.0 == counts["syncs an append, one writer"]


def test_the_machine_is_described_and_not_named(tmp_path: Path) -> None:
    """One line says what kind of machine it is; neither its name nor a path is in it."""
    kind = kind_of_machine(tmp_path)
    assert "cores" in kind
    assert "SQLite" in kind
    assert f"{file_system(tmp_path)} file system" in kind
    assert str(tmp_path) not in kind
    assert not on_disk(Path("/dev/shm")) or file_system(Path("/dev/shm")) != "tmpfs"


def test_the_exit_code_says_whether_a_bound_is_missed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 when every bound is kept, 1 when one is missed; JSON carries the figures and the verdicts."""
    measured = 1.0

    async def measure(setting: Setting) -> list[Line]:
        setting.say("measuring")
        return [Line(what="a figure", measured=measured, must=1.5)]

    monkeypatch.setattr(program, "on_disk", lambda folder: True)
    monkeypatch.setattr(program, "MEASUREMENTS", {"figure": measure})
    assert 0 == program.main(["--json"])
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert "figure: measuring" in captured.err
    assert [("a figure", "pass")] == [(line["what"], line["verdict"]) for line in told["lines"]]
    assert math.isclose(1.0, told["lines"][0]["measured"])
    measured = 2.0
    assert 1 == program.main(["--quick"])
    assert "MISS" in capsys.readouterr().out


def test_a_short_run_is_not_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """--save goes with a whole run only."""
    assert 2 == program.main(["--quick", "--save"])
    assert "whole runs" in capsys.readouterr().err
