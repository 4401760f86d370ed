"""The same stores without await: one thread runs the event loop, every call is handed to it and waited for.

No second copy of any store: each method here is the asynchronous one, run there. For scripts, notebooks and frameworks
that do not know asyncio; inside a running event loop use the asynchronous store.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import os
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from convostore import opening
from convostore.contracts.backend import Backend
from convostore.errors import ClosedError, InvalidInput
from convostore.ids import Clock, Mint, new_id, now_ms
from convostore.stores.chat import Chat
from convostore.stores.conversations import Conversations
from convostore.stores.sessions import Sessions

__all__ = ["BlockingChat", "BlockingSessions", "BlockingStore", "open"]

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")


class Portal:
    """One event loop in one daemon thread, started at the first call and again in a forked child."""

    def __init__(self) -> None:
        self._thread: threading.Thread
        self._closed = False
        self.begin_anew()
        _portals.add(self)

    def begin_anew(self) -> None:
        """Forget the loop and the lock, which in a forked child are the parent's."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run `coroutine` in the portal's loop and return its result; interrupted, cancel it.

        Raises:
            ClosedError: the portal was closed, before the call or during it.
        """
        try:
            future = self._submit(coroutine)
        except BaseException:
            coroutine.close()
            raise
        try:
            return future.result()
        except BaseException as error:
            if future.cancelled() and self._closed:
                raise ClosedError(
                    "this store was closed during the call; open it again and look what was kept"
                ) from error
            future.cancel()
            raise

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        with self._lock:
            if self._closed:
                raise ClosedError("this store was closed; open it again")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="convostore-portal", daemon=True
                )
                self._thread.start()
                # Whoever forgets to close loses the thread with the last object that uses it.
                weakref.finalize(self, _stop, self._loop).atexit = False
            elif self._thread is threading.current_thread():
                raise InvalidInput(
                    "a blocking store was called from its own thread, which would wait for itself for ever"
                )
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        """Cancel what still runs, stop the loop and wait for its thread; may be repeated."""
        with self._lock:
            loop, self._loop, self._closed = self._loop, None, True
        if loop is not None:
            _stop(loop)
            self._thread.join()


_portals: weakref.WeakSet[Portal] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for each in list(_portals):
        each.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.run_until_complete(_cancel_others())
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    with suppress(RuntimeError):  # it is closed already
        loop.call_soon_threadsafe(loop.stop)


async def _cancel_others() -> None:
    """Cancel every other task of this loop and wait until each has ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for each in others:
        each.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class _Blocking:
    """Something asynchronous and the portal it runs in."""

    def __init__(self, inner: Any, portal: Portal) -> None:
        self._inner = inner
        self._portal = portal


def _blocking(method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._portal.run(method(self._inner, *args, **kwargs))
        return result

    functools.update_wrapper(call, method)
    return call


def _iterating(method: Callable[Concatenate[S, P], AsyncIterator[T]]) -> Callable[Concatenate[Any, P], Iterator[T]]:
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        iterator = method(self._inner, *args, **kwargs)

        async def following() -> T:
            return await anext(iterator)

        while True:
            try:
                yield self._portal.run(following())
            except StopAsyncIteration:
                return

    functools.update_wrapper(call, method)
    return call


class BlockingSessions(_Blocking):
    """The session store without await; see `contracts.session_store`."""

    save_messages = _blocking(Sessions.save_messages)
    append_messages = _blocking(Sessions.append_messages)
    load_messages = _blocking(Sessions.load_messages)
    save_todos = _blocking(Sessions.save_todos)
    load_todos = _blocking(Sessions.load_todos)
    save_info = _blocking(Sessions.save_info)
    load_info = _blocking(Sessions.load_info)
    exists = _blocking(Sessions.exists)
    delete = _blocking(Sessions.delete)
    list = _blocking(Sessions.list)


class BlockingChat(_Blocking):
    """The chat store without await; see `contracts.storage_adapter`."""

    initialize = _blocking(Chat.initialize)
    save_conversation = _blocking(Chat.save_conversation)
    get_conversation = _blocking(Chat.get_conversation)
    get_all_conversations = _blocking(Chat.get_all_conversations)
    iterate_conversations = _iterating(Chat.iterate_conversations)
    delete_conversation = _blocking(Chat.delete_conversation)
    add_item = _blocking(Chat.add_item)
    append_item = _blocking(Chat.append_item)
    add_message = _blocking(Chat.add_message)
    get_conversation_items = _blocking(Chat.get_conversation_items)
    get_conversation_history = _blocking(Chat.get_conversation_history)
    clear_conversation_history = _blocking(Chat.clear_conversation_history)
    set_conversation_agent = _blocking(Chat.set_conversation_agent)
    get_conversation_agent = _blocking(Chat.get_conversation_agent)


class BlockingStore(_Blocking):
    """The store without await; see `contracts.conversation_store`. A context manager; `close` when done."""

    _inner: opening.Store
    _is_view = False

    create_conversation = _blocking(Conversations.create_conversation)
    find_latest = _blocking(Conversations.find_latest)
    find_by_id = _blocking(Conversations.find_by_id)
    latest_or_create = _blocking(Conversations.latest_or_create)
    append_messages = _blocking(Conversations.append_messages)
    load_messages = _blocking(Conversations.load_messages)
    rate = _blocking(Conversations.rate)
    list_conversations = _blocking(Conversations.list_conversations)
    update_conversation = _blocking(Conversations.update_conversation)
    update_message = _blocking(Conversations.update_message)
    finish_tool_call = _blocking(Conversations.finish_tool_call)
    open_tool_calls = _blocking(Conversations.open_tool_calls)
    delete_conversation = _blocking(Conversations.delete_conversation)
    fork_conversation = _blocking(Conversations.fork_conversation)
    erase_subject = _blocking(Conversations.erase_subject)
    salvage = _blocking(Conversations.salvage)

    @property
    def sessions(self) -> BlockingSessions:
        """The same conversations for an agent runtime."""
        return BlockingSessions(self._inner.sessions, self._portal)

    @property
    def chat(self) -> BlockingChat:
        """The same conversations for a chat interface."""
        return BlockingChat(self._inner.chat, self._portal)

    @property
    def backend(self) -> Backend:
        """What keeps it all; asynchronous."""
        return self._inner.backend

    def for_subject(self, subject_id: str) -> BlockingStore:
        """Return a store limited to one subject's conversations; see `Store.for_subject`. Closing it leaves this one open."""
        view = BlockingStore(self._inner.for_subject(subject_id), self._portal)
        view._is_view = True
        return view

    def close(self) -> None:
        """Finish what was accepted and free every handle and the thread; may be repeated."""
        if self._is_view:
            return
        try:
            self._portal.run(self._inner.aclose())
        except ClosedError:
            return
        self._portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open(  # noqa: A001  as in `convostore.open`
    url: str | os.PathLike[str], *, clock: Clock = now_ms, mint: Mint = new_id, **options: Any
) -> BlockingStore:
    """Return the store at `url`, to be used without await; see `convostore.open`.

    Raises:
        InvalidInput: the URL names no backend, or an option is unknown.
    """
    return BlockingStore(opening.open(url, clock=clock, mint=mint, **options), Portal())
