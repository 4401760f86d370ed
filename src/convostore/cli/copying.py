"""The command that takes one store to another: copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from convostore.cli.address import AsJson, open_existing, open_target
from convostore.cli.exits import Exit, execute
from convostore.cli.printing import complain, print_json, print_text, progress_bar
from convostore.operations.copy import CopyReport, Progress
from convostore.operations.copy import copy as copy_store

__all__ = ["SkipRefused", "copy", "copy_progress", "told"]

SkipRefused = Annotated[
    bool, typer.Option("--skip-refused", help="Leave out what the target refuses, instead of writing nothing at all.")
]


def copy(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The URL to copy from.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The URL to copy to; created if need be.")],
    skip_refused: SkipRefused = False,
    as_json: AsJson = False,
) -> None:
    """Copy every conversation of one store to another, byte for byte, and compare. Copying twice adds nothing.

    First everything is read and the target is asked about every id; if it refuses any, or holds any with other content,
    they are listed and nothing is written. An interrupted copy is completed by running it again.

    convostore copy sqlite:///chats.db sqlite:////backup/chats.db
    """

    async def work() -> Exit:
        async with open_existing(source, named_by="SOURCE") as origin, open_target(target) as destination:
            with copy_progress() as progress:
                report = await copy_store(
                    origin.backend, destination.backend, skip_refused=skip_refused, progress=progress
                )
        return told(report, as_json, skip_refused)

    execute(work())


@contextmanager
def copy_progress() -> Iterator[Progress]:
    """Show on stderr how many conversations are done."""
    with progress_bar("checking, then writing") as show:
        yield lambda _, done: show(done)


def told(report: CopyReport, as_json: bool, skip_refused: bool) -> Exit:
    """Print what a copy came to and return its exit code."""
    if as_json:
        print_json(
            {
                "copied": report.copied,
                "completed": report.completed,
                "alreadyThere": report.already_there,
                "entries": report.entries,
                "refused": [{"id": each.conversation_id, "reason": each.reason} for each in report.refused],
                "differing": [{"id": each.conversation_id, "reason": each.reason} for each in report.differing],
                "damage": [str(each) for each in report.stream_damage],
            }
        )
    else:
        print_text(
            f"{report.copied} conversations copied, {report.completed} completed, {report.already_there} already there;"
            f" {report.entries} entries written"
        )
    for damage in report.stream_damage:
        complain(str(damage))
    for each in report.differing:
        complain(f"differs: conversation {each.conversation_id!r}: {each.reason}")
    for each in report.refused:
        complain(f"refused: conversation {each.conversation_id!r}: {each.reason}")
    if report.refused and not skip_refused:
        complain("nothing was written; --skip-refused copies everything else")
    if report.differing or report.stream_damage:
        return Exit.DAMAGED
    return Exit.REFUSED if report.refused else Exit.OK
