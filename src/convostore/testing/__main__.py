"""``python -m convostore.testing URL``: a table of the contracts' clauses, as a live store keeps them."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from convostore.errors import StoreError

try:
    from convostore.testing.live import ClauseReport, Report, backend_at, run_live, swept
    from convostore.testing.running import Outcome
except ModuleNotFoundError as missing:
    if missing.name not in ("pytest", "hypothesis"):
        raise
    sys.exit(f"the suites need {missing.name}: pip install 'convostore[testing]'")

__all__ = ["main"]

_ABOUT = """\
Run the clauses of convostore's contracts against a live store and print one line for each.

The store may hold other conversations: everything the run makes has its own prefix and is deleted in the end, after a
failure and after Ctrl-C too. What the run writes passes through the store's own writes, so expect it to be as busy as with a
few hundred short conversations. Tests that need storage of their own (they damage it or fill it) are not run here;
subclass convostore.testing.BackendSuite and run pytest for those.
"""

_EXAMPLES = """\
examples:
  python -m convostore.testing memory://
  python -m convostore.testing sqlite:///chats.db
  python -m convostore.testing sqlite:///chats.db --clause B5 --clause B7
  python -m convostore.testing sqlite:///chats.db --json > report.json
  python -m convostore.testing sqlite:///chats.db --sweep suite-01a2...-   after a run that was killed

verdicts:
  passed    every test of the clause that was run passed
  FAILED    at least one did not; the first message follows
  skipped   it is about a capability that this backend does not declare
  not run   it needs storage of its own

exit code: 0 no clause failed, 1 one did, 2 the store cannot be opened, 130 interrupted (and cleaned up)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m convostore.testing",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("url", help="the store, e.g. sqlite:///chats.db")
    parser.add_argument(
        "--clause", action="append", metavar="ID", help="run only the tests of this clause (repeatable)"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON instead of a table")
    parser.add_argument("--sweep", metavar="PREFIX", help="run nothing; delete what a killed run with this prefix left")
    given = parser.parse_args(arguments)
    try:
        factory = backend_at(given.url)
        if given.sweep:
            print(f"deleted {swept(factory, given.sweep)} conversations")
            return 0
        report = run_live(factory, only=given.clause, told=_progress if sys.stderr.isatty() else _silent)
    except StoreError as error:
        print(f"{_shown(given.url)}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; what the run had made was deleted", file=sys.stderr)
        return 130
    print(_json(report) if given.json else _table(_shown(given.url), report))
    return 0 if report.ok else 1


def _silent(suite: str, outcome: Outcome) -> None:
    """Say nothing: nobody is watching."""


def _progress(suite: str, outcome: Outcome) -> None:
    print(f"\r\x1b[K{suite} {outcome.test[:90]}", end="", file=sys.stderr, flush=True)


def _shown(url: str) -> str:
    """Return a URL without user and password."""
    parts = urlsplit(url)
    return url.replace(f"{parts.netloc}", parts.netloc.rpartition("@")[2], 1) if "@" in parts.netloc else url


def _json(report: Report) -> str:
    return msgspec.json.encode({"ok": report.ok, **msgspec.to_builtins(report)}).decode()


def _table(url: str, report: Report) -> str:
    lines = [f"{url}  declares {', '.join(report.capabilities) or 'no capability'}"]
    for suite, clauses in report.suites.items():
        lines += ["", suite, *(line for each in clauses for line in _lines(each))]
    return "\n".join([*lines, "", f"{_summary(report)}; {report.deleted} conversations deleted in the end"])


def _lines(each: ClauseReport) -> list[str]:
    verdict = "FAILED" if each.verdict == "failed" else each.verdict
    counts = {"passed": each.passed, "failed": each.failed, "not declared": each.skipped, "not run": each.not_run}
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    first = f"  {each.clause:<4} {verdict:<8} {told}"
    return [first, *textwrap.wrap(each.message, 110, initial_indent=" " * 16, subsequent_indent=" " * 16)]


def _summary(report: Report) -> str:
    every = [each for clauses in report.suites.values() for each in clauses]
    failed = [each.clause for each in every if each.failed]
    return f"{len(every)} clauses, {len(failed)} failed" + (f": {', '.join(failed)}" if failed else "")


if __name__ == "__main__":
    sys.exit(main())
