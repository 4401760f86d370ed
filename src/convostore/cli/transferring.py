"""Commands that bring conversations in, out and across: import, copy, export, restore."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer
from msgspec import UNSET

from convostore.cli.address import AsJson, StoreUrl, open_any, open_existing
from convostore.cli.exits import Exit, execute
from convostore.cli.listing import print_damage
from convostore.cli.printing import complain, print_json, print_text, printable, progress_bar
from convostore.contracts.backend import HeadQuery
from convostore.errors import InvalidInput
from convostore.interchange.native import WriteReport, write_native
from convostore.model.exact_json import JsonObject
from convostore.operations.copy import CopyReport, Progress, load_native
from convostore.operations.copy import copy as copy_store
from convostore.operations.import_messages import ImportReport, import_messages

__all__ = ["copy", "export", "import_", "restore"]

To = Annotated[
    str,
    typer.Option(
        "--to", "--store", "-s", envvar="CONVOSTORE_URL", metavar="URL", help="The store; it is created if need be."
    ),
]
SkipRefused = Annotated[
    bool, typer.Option("--skip-refused", help="Leave out what the target refuses, instead of writing nothing at all.")
]


def import_(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="JSON or JSON Lines; - is stdin.")],
    to: To,
    context: Annotated[str, typer.Option(help="The context to import into.")] = "imported",
    subject: Annotated[str, typer.Option(help="The subject they belong to.")] = "imported",
    as_json: AsJson = False,
) -> None:
    """Import message lists as the OpenAI chat API has them. Importing twice adds nothing.

    A file may be a list of messages, an object with "messages", a list of these, one of these per line, or one message
    per line: the content decides. What cannot be read is named by line and everything else is imported (exit code 4).

    convostore import chats.jsonl --to sqlite:///chats.db
    convostore import *.json --to sqlite:///chats.db --context support --subject org-7
    """
    with ExitStack() as stack:
        sources: list[tuple[str, BinaryIO]] = []

        async def work() -> Exit:
            # All of them are opened first: a name that is wrong is known before anything is imported.
            sources.extend((each, _opened(each, stack)) for each in files)
            async with open_any(to) as opened:
                reports = [(name, await _import_one(opened.backend, name, source)) for name, source in sources]
            if as_json:
                print_json({"files": [_import_wire(name, report) for name, report in reports]})
            else:
                for name, report in reports:
                    _print_import(name, report)
            return Exit.DAMAGED if any(_is_lost(each) for each in reports) else Exit.OK

        async def _import_one(backend: Any, name: str, source: BinaryIO) -> ImportReport:
            with progress_bar(f"importing {printable(name)}", _size(source)) as show:

                def progress(report: ImportReport) -> None:
                    show(source.tell() if source.seekable() else report.added)

                return await import_messages(backend, source, context=context, subject_id=subject, progress=progress)

        execute(work())


def _opened(name: str, stack: ExitStack) -> BinaryIO:
    return sys.stdin.buffer if name == "-" else stack.enter_context(open(name, "rb"))


def _kept(stream: BinaryIO, stack: ExitStack) -> BinaryIO:
    """Return a file of what a pipe brings, to be read more than once."""
    file = stack.enter_context(tempfile.TemporaryFile())
    shutil.copyfileobj(stream, file)
    file.seek(0)
    return file


def _size(source: BinaryIO) -> int | None:
    if not source.seekable():
        return None
    here = source.tell()
    size = source.seek(0, os.SEEK_END)
    source.seek(here)
    return size


def _is_lost(named: tuple[str, ImportReport]) -> bool:
    return any(each.kind != "pending" for each in named[1].problems)


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
        async with open_existing(source) as origin, open_any(target) as destination:
            with _copy_progress() as progress:
                report = await copy_store(
                    origin.backend, destination.backend, skip_refused=skip_refused, progress=progress
                )
        return _told(report, as_json, skip_refused)

    execute(work())


def export(
    store: StoreUrl,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where to; - is stdout.")] = "-",
    context: Annotated[str | None, typer.Option(help="Only this context.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only this subject.")] = None,
    salvage: Annotated[bool, typer.Option("--salvage", help="Write what is sound of damaged conversations.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON report on stdout; needs --output FILE.")
    ] = False,
) -> None:
    """Write conversations to one file in the native format, which carries everything: a backup.

    convostore export -s sqlite:///chats.db -o chats.convostore
    convostore export -s sqlite:///chats.db | zstd > chats.convostore.zst
    """

    async def work() -> Exit:
        if as_json and output == "-":
            raise InvalidInput("stdout cannot carry the export and the report; add --output FILE")
        query = HeadQuery(
            order="created",
            context=UNSET if context is None else context,
            subject_id=UNSET if subject is None else subject,
        )
        async with open_existing(store) as opened:
            with _sink(output) as sink, progress_bar("exporting") as show:
                report = await write_native(
                    opened.backend,
                    sink,
                    query,
                    damaged="report" if salvage else "raise",
                    progress=lambda so_far: show(so_far.conversations),
                )
        _tell_export(report, output, as_json)
        return Exit.DAMAGED if report.damage else Exit.OK

    execute(work())


@contextmanager
def _sink(output: str) -> Iterator[BinaryIO]:
    """Open the file to write; it has its name only when it is whole."""
    if output == "-":
        if sys.stdout.isatty():
            raise InvalidInput("an export is not for a terminal; add --output FILE or redirect stdout")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if Path(output).exists():
        raise InvalidInput(f"{output!r} is there already; name another file or remove that one")
    part = Path(f"{output}.part")
    try:
        with part.open("xb") as sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
        part.rename(output)
    except FileExistsError:
        raise InvalidInput(f"{str(part)!r} is left from another export; remove it if none is running") from None
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _tell_export(report: WriteReport, output: str, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "file": output,
                "conversations": report.conversations,
                "entries": report.entries,
                "documents": report.documents,
                "damage": [str(each) for each in report.damage],
            }
        )
    elif output != "-":
        print_text(printable(f"{output}: {report.conversations} conversations, {report.entries} entries"))
        print_damage(report.damage)
    else:
        for each in report.damage:
            complain(f"conversation {each.conversation_id!r}: {each}")


def restore(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `convostore export` wrote; - is stdin.")],
    to: To,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Leave out damaged conversations instead of stopping.")
    ] = False,
    skip_refused: SkipRefused = False,
    as_json: AsJson = False,
) -> None:
    """Put everything of an export into a store. Restoring twice adds nothing.

    The file is checked whole before anything is written.

    convostore restore chats.convostore --to sqlite:///new.db
    """
    with ExitStack() as stack:

        async def work() -> Exit:
            stream = _opened(file, stack)
            if not stream.seekable():
                stream = _kept(stream, stack)
            async with open_any(to) as opened:
                with _copy_progress() as progress:
                    report = await load_native(
                        opened.backend,
                        stream,
                        damaged="report" if salvage else "raise",
                        skip_refused=skip_refused,
                        progress=progress,
                    )
            return _told(report, as_json, skip_refused)

        execute(work())


@contextmanager
def _copy_progress() -> Iterator[Progress]:
    with progress_bar("reading, then writing") as show:
        yield lambda _, done: show(done)


def _told(report: CopyReport, as_json: bool, skip_refused: bool) -> Exit:
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
