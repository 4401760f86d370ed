"""The report: a table for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from benchmarks.result import Line

__all__ = ["as_json", "as_text"]

_HEADINGS = ("", "must", "aim", "measured", "middle half", "")


def as_text(machine: str, lines: Sequence[Line], *, quick: bool) -> str:
    """Return the table with the kind of machine above it and a summary below."""
    cells = [_HEADINGS, *map(_cells, lines)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADINGS))]
    table = [_row(each, widths) for each in cells]
    missed = [each.what.strip() for each in lines if each.verdict == "MISS"]
    judged = sum(each.verdict != "" for each in lines)
    summary = f"{judged - len(missed)} of {judged} bounds kept" + (f"; missed: {'; '.join(missed)}" if missed else "")
    note = ["A short run with a tenth of the data: for a quick look, not for a claim."] if quick else []
    return "\n".join([machine, *note, "", *table, "", summary, ""])


def as_json(machine: str, lines: Sequence[Line], *, quick: bool) -> str:
    """Return the same as one JSON object."""
    told = [msgspec.to_builtins(each) | {"what": each.what.strip(), "verdict": each.verdict} for each in lines]
    text = msgspec.json.encode({"machine": machine, "quick": quick, "lines": told})
    return msgspec.json.format(text, indent=1).decode() + "\n"


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]).rstrip()


def _cells(line: Line) -> tuple[str, ...]:
    sign = "<=" if line.better == "less" else ">="
    return (
        line.what,
        "" if line.must is None else f"{sign} {line.must:.2f}",
        "" if line.aim is None else f"{line.aim:.2f}",
        f"{line.measured:.2f}{line.unit}",
        "" if line.spread is None else f"{line.spread.low:.2f} to {line.spread.high:.2f}",
        f"{line.verdict}, aim reached" if line.verdict and line.reaches_aim else line.verdict,
    )
