"""Which store a command is about: `--store URL`, or the environment variable CONVOSTORE_URL."""

from __future__ import annotations

import os
from typing import Annotated, TypeAlias
from urllib.parse import quote

import typer

from convostore import opening
from convostore.errors import InvalidInput, NotFoundError

__all__ = ["AsJson", "StoreUrl", "TargetUrl", "open_existing", "open_target"]

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


def open_target(url: str) -> opening.Store:
    """Return the store at `url`, which may come into being by being written to.

    Raises:
        InvalidInput: it is no URL, or what is written there is gone when the command ends.
    """
    store = _opened(url)
    if "durable" not in store.backend.capabilities:
        raise InvalidInput(
            f"{url!r} is in memory and would be gone when this command ends; name a file, e.g. sqlite:///chats.db"
        )
    return store


def open_existing(url: str, *, named_by: str = "--store") -> opening.Store:
    """Return the store at `url`; a command that reads must not make an empty file where there was none.

    Raises:
        InvalidInput: it is no URL.
        NotFoundError: there is no such file; `named_by` is what to check.
    """
    store = _opened(url)
    path: str | None = getattr(store.backend, "path", None)
    if path is not None and not os.path.exists(path):
        raise NotFoundError(
            f"there is no store at {path!r}; create one with: convostore import FILE --to {url}, or check {named_by}"
        )
    return store


def _opened(url: str) -> opening.Store:
    scheme, colon, _ = url.partition(":")
    if url and (not colon or "/" in scheme or len(scheme) < 2):
        raise InvalidInput(f"{url!r} is a file name, not a URL; write sqlite:///{quote(url, safe='/')}")
    return opening.open(url)
