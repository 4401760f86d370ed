"""What commands print: JSON for programs on stdout and nothing else, or text for people.

Stored text may hold anything, escape sequences for a terminal too. For people it is printed with control characters, bidi
overrides and lone surrogates escaped; JSON is printed as ASCII.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from convostore.model.exact_json import JsonValue

__all__ = ["complain", "print_json", "print_table", "print_text", "printable", "progress_bar", "short_json"]

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_UNPRINTABLE_IN_LINE = re.compile("[\t\n]|" + _UNPRINTABLE.pattern)
_WIDE = 10_000
"""Columns where nobody looks at a terminal: nothing is folded or cut."""


def printable(text: str, *, lines: bool = False) -> str:
    """Return `text` with everything escaped that could do more than be read; `lines` leaves tabs and line ends."""
    return (_UNPRINTABLE if lines else _UNPRINTABLE_IN_LINE).sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def print_json(value: JsonValue) -> None:
    """Print one JSON document on one line."""
    sys.stdout.write(json.dumps(value) + "\n")


def print_text(text: str = "") -> None:
    """Print text of our own or made `printable`; what stdout's encoding lacks is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def complain(text: str) -> None:
    """Print one line on stderr."""
    sys.stderr.write(f"convostore: {printable(text)}\n")
    sys.stderr.flush()


def short_json(value: JsonValue, characters_max: int = 400) -> str:
    """Return a value as JSON for people, cut where it is long."""
    text = printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= characters_max else f"{text[:characters_max]}… ({len(text)} characters)"


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[str] = ()) -> None:
    """Print a table for people; the last column is cut to the terminal's width, the others never."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        last = name == columns[-1]
        table.add_column(
            name, justify="right" if name in numbers else "left", no_wrap=True, overflow="ellipsis" if last else "fold"
        )
    for row in rows:
        table.add_row(*(Text("" if each is None else printable(str(each))) for each in row))
    console = Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False, markup=False, emoji=False)
    with console.capture() as printed:
        console.print(table)
    print_text(printed.get().rstrip("\n"))  # rich by itself fails where stdout's encoding lacks a character


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr if that is a terminal; the callable takes how much is done."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)

        def show(done: int) -> None:
            progress.update(task, completed=done)

        yield show
