"""How a command ends: an exit code for scripts, one clear line on stderr for people, never a traceback for a StoreError."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine
from enum import IntEnum
from typing import Any

import typer

from convostore.cli.printing import complain, printable
from convostore.cli.wording import in_words
from convostore.errors import (
    CorruptDataError,
    InvalidInput,
    NotFoundError,
    SchemaTooNewError,
    SchemaTooOldError,
    StoreError,
    UnavailableError,
)
from convostore.interchange.native import NotNativeError

__all__ = ["Exit", "execute"]


_NO_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class Exit(IntEnum):
    """What the command's exit code says."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    DAMAGED = 4
    UNAVAILABLE = 5
    INTERRUPTED = 130
    BROKEN_PIPE = 141


def execute(work: Coroutine[Any, Any, Exit]) -> None:
    """Run a command's coroutine to its end and leave with its exit code."""
    try:
        code = asyncio.run(work)
        sys.stdout.flush()
    except StoreError as error:
        complain(in_words(error))
        code = _code_of(error)
    except BrokenPipeError:
        # Whoever read our output has left. Nothing may be written any more, not even by the interpreter's last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = Exit.BROKEN_PIPE
    except OSError as error:
        where = f"{printable(os.fsdecode(error.filename))}: " if error.filename else ""
        complain(f"{where}{error.strerror or error}")
        code = Exit.NOT_FOUND if isinstance(error, _NO_FILE) else Exit.UNAVAILABLE
    except KeyboardInterrupt:
        complain("interrupted; what was committed stays, and running the command again goes on from there")
        code = Exit.INTERRUPTED
    if code:
        raise typer.Exit(int(code))


def _code_of(error: StoreError) -> Exit:
    for kind, code in (
        ((CorruptDataError, NotNativeError), Exit.DAMAGED),
        (UnavailableError, Exit.UNAVAILABLE),
        (NotFoundError, Exit.NOT_FOUND),
        ((SchemaTooNewError, SchemaTooOldError), Exit.REFUSED),
        (InvalidInput, Exit.USAGE),
    ):
        if isinstance(error, kind):
            return code
    return Exit.REFUSED
