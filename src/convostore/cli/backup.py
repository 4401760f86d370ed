"""The commands for a backup in one file: export and restore."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from msgspec import UNSET

from convostore.cli.address import AsJson, StoreUrl, TargetUrl, open_existing, open_target
from convostore.cli.copying import SkipRefused, copy_progress, told
from convostore.cli.exits import Exit, execute
from convostore.cli.importing import opened_file
from convostore.cli.listing import print_damage
from convostore.cli.printing import complain, print_json, print_text, printable, progress_bar
from convostore.contracts.backend import HeadQuery
from convostore.errors import InvalidInput
from convostore.interchange.native import WriteReport, write_native
from convostore.operations.copy import load_native

__all__ = ["export", "restore"]


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
    to: TargetUrl,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Leave out damaged conversations instead of stopping.")
    ] = False,
    skip_refused: SkipRefused = False,
    as_json: AsJson = False,
) -> None:
    """Put everything of an export into a store. Restoring twice adds nothing.

    The file is checked whole before the store is opened: a damaged file changes nothing and makes no store.

    convostore restore chats.convostore --to sqlite:///new.db
    """
    with ExitStack() as stack:

        async def work() -> Exit:
            stream = opened_file(file, stack)
            if not stream.seekable():
                stream = _kept(stream, stack)
            async with open_target(to) as opened:
                with copy_progress() as progress:
                    report = await load_native(
                        opened.backend,
                        stream,
                        damaged="report" if salvage else "raise",
                        skip_refused=skip_refused,
                        progress=progress,
                    )
            return told(report, as_json, skip_refused)

        execute(work())


def _kept(stream: BinaryIO, stack: ExitStack) -> BinaryIO:
    """Return a file of what a pipe brings, to be read more than once."""
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  the stack closes it
    shutil.copyfileobj(stream, file)
    file.seek(0)
    return file
