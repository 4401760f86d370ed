"""The command that brings transcripts in: import."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from convostore.cli.address import AsJson, TargetUrl, open_target
from convostore.cli.exits import Exit, execute
from convostore.cli.printing import complain, print_json, print_text, printable, progress_bar
from convostore.contracts.backend import Backend
from convostore.errors import NotFoundError
from convostore.model.exact_json import JsonObject
from convostore.operations.import_messages import ImportReport, import_messages

__all__ = ["import_", "opened_file"]


def import_(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="JSON or JSON Lines; - is stdin.")],
    to: TargetUrl,
    context: Annotated[str, typer.Option(help="The context to import into.")] = "imported",
    subject: Annotated[str, typer.Option(help="The subject they belong to.")] = "imported",
    as_json: AsJson = False,
) -> None:
    """Import message lists as the OpenAI chat API has them. Importing twice adds nothing.

    A file may be a list of messages, an object with "messages", a list of these, one of these per line, or one message
    per line: the content decides. What cannot be read is named by line and everything else is imported (exit code 4).
    A conversation whose id the store has for another context or subject is named and left as it is (exit code 1).

    convostore import chats.jsonl --to sqlite:///chats.db
    convostore import *.json --to sqlite:///chats.db --context support --subject org-7
    """
    with ExitStack() as stack:
        sources: list[tuple[str, BinaryIO]] = []

        async def work() -> Exit:
            # All of them are opened first: a name that is wrong is known before anything is imported.
            sources.extend((each, opened_file(each, stack)) for each in files)
            async with open_target(to) as opened:
                reports = [(name, await _import_one(opened.backend, name, source)) for name, source in sources]
            if as_json:
                print_json({"files": [_import_wire(name, report) for name, report in reports]})
            else:
                for name, report in reports:
                    _print_import(name, report)
            return _code_of([problem.kind for _, report in reports for problem in report.problems])

        async def _import_one(backend: Backend, name: str, source: BinaryIO) -> ImportReport:
            with progress_bar(f"importing {printable(name)}", _size(source)) as show:

                def progress(report: ImportReport) -> None:
                    show(source.tell() if source.seekable() else report.added)

                return await import_messages(backend, source, context=context, subject_id=subject, progress=progress)

        execute(work())


def opened_file(name: str, stack: ExitStack) -> BinaryIO:
    """Return the file of this name, - being stdin; `stack` closes it.

    Raises:
        NotFoundError: there is none, or none that can be read.
    """
    if name == "-":
        return sys.stdin.buffer
    try:
        return stack.enter_context(Path(name).open("rb"))
    except FileNotFoundError as error:
        raise NotFoundError(f"{name}: {error.strerror}; check the name") from error
    except IsADirectoryError as error:
        raise NotFoundError(f"{name}: this is a folder; name a file in it") from error
    except OSError as error:
        raise NotFoundError(f"{name}: {error.strerror}; name a file that can be read") from error


def _size(source: BinaryIO) -> int | None:
    if not source.seekable():
        return None
    here = source.tell()
    size = source.seek(0, os.SEEK_END)
    source.seek(here)
    return size


def _code_of(problems: list[str]) -> Exit:
    if set(problems) - {"pending", "conflict"}:
        return Exit.DAMAGED
    return Exit.REFUSED if "conflict" in problems else Exit.OK


def _import_wire(name: str, report: ImportReport) -> JsonObject:
    return {
        "file": name,
        "added": report.added,
        "alreadyThere": report.already_there,
        "messagesAdded": report.messages_added,
        "conversations": [
            {"id": each.conversation_id, "line": each.line, "messages": each.messages, "added": each.added}
            for each in report.conversations
        ],
        "problems": [{"line": each.line, "kind": each.kind, "what": each.what} for each in report.problems],
    }


def _print_import(name: str, report: ImportReport) -> None:
    print_text(
        printable(
            f"{name}: {report.added} conversations added with {report.messages_added} messages,"
            f" {report.already_there} already there"
        )
    )
    for each in report.problems:
        complain(f"{name}: {each}")
