"""Which store a command is about: `--store URL`, or the environment variable CONVOSTORE_URL."""

from __future__ import annotations

import os
from typing import Annotated, TypeAlias

import typer

from convostore import opening
from convostore.errors import NotFoundError

__all__ = ["AsJson", "StoreUrl", "TargetUrl", "open_any", "open_existing"]

StoreUrl: TypeAlias = Annotated[
    str,
    typer.Option(
        "--store",
        "-s",
        envvar="CONVOSTORE_URL",
        metavar="URL",
        help="The store, e.g. sqlite:///chats.db (relative) or sqlite:////data/chats.db (absolute).",
    ),
]

TargetUrl: TypeAlias = Annotated[
    str,
    typer.Option(
        "--to", "--store", "-s", envvar="CONVOSTORE_URL", metavar="URL", help="The store; it is created if need be."
    ),
]

AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON for programs, and nothing else, on stdout.")
]


def open_any(url: str) -> opening.Store:
    """Return the store at `url`, which may come into being by being written to."""
    return opening.open(url)


def open_existing(url: str) -> opening.Store:
    """Return the store at `url`; a command that reads must not make an empty file where there was none.

    Raises:
        NotFoundError: there is no such file.
    """
    store = opening.open(url)
    path: str | None = getattr(store.backend, "path", None)
    if path is not None and not os.path.exists(path):
        raise NotFoundError(
            f"there is no store at {path!r}; create one with: convostore import FILE --to {url}, or check --store"
        )
    return store
