"""The application: its help, its commands and what they share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from convostore.cli import backup, conversation, copying, importing, listing

__all__ = ["app"]

_HELP = """Keep what AI agents say: import, find, read, rate and copy conversations.

\b
Start with:
  convostore import chats.jsonl --to sqlite:///chats.db
  export CONVOSTORE_URL=sqlite:///chats.db
  convostore list
  convostore latest imported imported

Every command takes --json and then prints one JSON document (list: one per line) on stdout and nothing else. Messages
about the work go to stderr.

\b
Exit codes:
  0    done
  1    the store said no: it is there already, taken, or of another version
  2    the command is not written right
  3    there is no such conversation, store or file
  4    something is damaged, could not be read or differs; the rest was done
  5    the storage cannot be used now; try again
  130  interrupted
"""

app = typer.Typer(
    name="convostore",
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"convostore {installed_version('convostore')}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Take what comes before the command."""


def _help_of(command: Callable[..., None]) -> str:
    r"""Return a command's docstring; the lines of its examples stay apart, which is what ``\b`` tells the formatter."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(f"\b\n{each}" if each.startswith("convostore ") else each for each in paragraphs)


_COMMANDS: dict[str, Callable[..., None]] = {
    "import": importing.import_,
    "list": listing.list_,
    "latest": listing.latest,
    "show": conversation.show,
    "rate": conversation.rate,
    "delete": conversation.delete,
    "stats": listing.stats,
    "verify": listing.verify,
    "salvage": conversation.salvage,
    "copy": copying.copy,
    "export": backup.export,
    "restore": backup.restore,
}
for _name, _command in _COMMANDS.items():
    app.command(_name, help=_help_of(_command))(_command)
