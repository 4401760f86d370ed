"""From a URL to a store."""

from __future__ import annotations

import importlib
import os
import pathlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

from convostore.backends.memory import MemoryBackend
from convostore.contracts.backend import Backend
from convostore.errors import InvalidInput
from convostore.ids import Clock, Mint, new_id, now_ms
from convostore.stores.chat import Chat
from convostore.stores.conversations import Conversations
from convostore.stores.sessions import Sessions
from convostore.wrappers.scoped import scoped

__all__ = ["InMemoryConversationStore", "Store", "open", "open_backend"]

_BUILT_IN: Final = {
    "memory": "convostore.backends.memory:from_url",
    "sqlite": "convostore.backends.sqlite:from_url",
}
_ENTRY_POINTS: Final = "convostore.backends"


class Store(Conversations):
    """The conversation store itself, with the session store as `sessions` and the chat store as `chat`: one log, three views.

    One store may be used by any number of tasks, threads and event loops, one after another or at once. Use it as an
    async context manager, or call `aclose` when done.
    """

    def __init__(self, backend: Backend, *, clock: Clock = now_ms, mint: Mint = new_id) -> None:
        super().__init__(backend, clock=clock, mint=mint)
        self._sessions = Sessions(backend, clock=clock, mint=mint)
        self._chat = Chat(backend, clock=clock, mint=mint)

    @property
    def sessions(self) -> Sessions:
        """The same conversations for an agent runtime."""
        return self._sessions

    @property
    def chat(self) -> Chat:
        """The same conversations for a chat interface."""
        return self._chat

    @property
    def backend(self) -> Backend:
        """What keeps it all."""
        return self._backend

    def for_subject(self, subject_id: str) -> Store:
        """Return a store that sees, changes, lists and deletes only that subject's conversations, on every verb.

        It shares this store's backend and lives as long as this store does.

        Raises:
            InvalidInput: the subject id is none.
        """
        return Store(scoped(self._backend, subject_id), clock=self._clock, mint=self._mint)

    async def aclose(self) -> None:
        """Finish what was accepted and free every handle; may be repeated."""
        await self._backend.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class InMemoryConversationStore(Store):
    """A store in memory, for development and tests: no configuration, nothing kept beyond the object."""

    def __init__(self, *, clock: Clock = now_ms, mint: Mint = new_id) -> None:
        super().__init__(MemoryBackend(), clock=clock, mint=mint)


def open(  # noqa: A001  the name users expect: convostore.open(...)
    url: str | os.PathLike[str], *, clock: Clock = now_ms, mint: Mint = new_id, **options: Any
) -> Store:
    """Return the store at `url`. Nothing is opened before the first call.

    `memory://`, `sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite://` (in memory), or a `pathlib.Path` to an SQLite
    file. `options` are the backend's own; they may also be given in the URL as ``convostore_name=value``.

    Raises:
        InvalidInput: the URL names no backend, or an option is unknown.
    """
    return Store(open_backend(url, **options), clock=clock, mint=mint)


def open_backend(url: str | os.PathLike[str], **options: Any) -> Backend:
    """Return the backend at `url`, with `options` as in `open`. Nothing is opened before the first call.

    Raises:
        InvalidInput: the URL names no backend, or an option is unknown.
    """
    if isinstance(url, os.PathLike):
        url = _url_of(pathlib.Path(url))
    if type(url) is not str:
        raise InvalidInput(f"a store is opened by a URL or a path, not by {type(url).__name__}")
    if not url:
        raise InvalidInput("the URL of the store is empty; write e.g. sqlite:///chats.db")
    scheme, colon, _ = url.partition(":")
    if not colon or "/" in scheme or len(scheme) < 2:
        raise InvalidInput(
            f"{url!r} is a file name, not a URL; write {'sqlite:///' + url!r} or pass pathlib.Path({url!r})"
        )
    return _factory(scheme)(url, **options)


def _url_of(path: pathlib.Path) -> str:
    if path.is_dir():
        raise InvalidInput(f"{str(path)!r} is a folder; this version keeps SQLite files only, name one inside it")
    return f"sqlite:///{quote(os.fsencode(path), safe='/')}"


def _factory(scheme: str) -> Callable[..., Backend]:
    if target := _BUILT_IN.get(scheme):
        module, _, name = target.partition(":")
        factory: Callable[..., Backend] = getattr(importlib.import_module(module), name)
        return factory
    from importlib.metadata import entry_points  # costs as much as all else here, and few have another backend

    registered = {each.name: each for each in entry_points(group=_ENTRY_POINTS)}
    if scheme in registered:
        loaded: Callable[..., Backend] = registered[scheme].load()
        return loaded
    known = ", ".join(f"{each}:" for each in sorted({*_BUILT_IN, *registered}))
    raise InvalidInput(
        f"no backend answers to {scheme + ':'!r}; known are {known}. Others register in the entry-point group {_ENTRY_POINTS!r}"
    )
