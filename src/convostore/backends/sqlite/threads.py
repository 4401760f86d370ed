"""Threads that do a backend's work and hand the answers back to whatever event loop asked.

They are daemons: leaving the interpreter without closing the backend does not wait for them. They start when there is work
and end when they are told to. The queue is the only way in, and a future's own event loop the only way out.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from queue import SimpleQueue
from typing import Any, TypeAlias

from convostore.backends.sqlite.connection import Handle
from convostore.errors import ClosedError

__all__ = ["Answer", "Readers", "answer", "answer_one"]

Answer: TypeAlias = tuple["asyncio.Future[Any]", Any]
"""A future, and what it shall return, or the exception it shall raise."""


def answer(answers: Sequence[Answer]) -> None:
    """Settle futures, each on its own loop, with one wake-up per loop; a loop that has been closed is passed over."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Answer]] = {}
    for each in answers:
        by_loop.setdefault(each[0].get_loop(), []).append(each)
    for loop, some in by_loop.items():
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, some)


def answer_one(future: asyncio.Future[Any], outcome: Any) -> None:
    """Settle one future; see `answer`."""
    with contextlib.suppress(RuntimeError):
        future.get_loop().call_soon_threadsafe(_settle_one, future, outcome)


def _settle(answers: Iterable[Answer]) -> None:
    for future, outcome in answers:
        _settle_one(future, outcome)


def _settle_one(future: asyncio.Future[Any], outcome: Any) -> None:
    if future.done():
        return  # its caller was cancelled
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


class Readers:
    """Up to one thread per handle, each reading on its own."""

    def __init__(self, handles: tuple[Handle, ...]) -> None:
        self._handles = handles
        self._queue: SimpleQueue[tuple[Callable[[Handle], Any], asyncio.Future[Any]] | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._idle = 0  # threads without work, less the reads that wait for one
        self._stopped = False

    def submit(self, read: Callable[[Handle], Any]) -> asyncio.Future[Any]:
        """Return a future of the running loop for what `read` returns in one of the threads, given that thread's handle.

        Raises:
            ClosedError: after `stop`.
        """
        future = asyncio.get_running_loop().create_future()
        with self._gate:
            if self._stopped:
                raise ClosedError("this store was closed; open it again")
            self._idle -= 1
            if self._idle < 0 and len(self._threads) < len(self._handles):
                handle = self._handles[len(self._threads)]
                thread = threading.Thread(target=self._run, args=(handle,), name="convostore-reader", daemon=True)
                thread.start()
                self._threads.append(thread)
                self._idle += 1
            self._queue.put((read, future))
        return future

    def stop(self) -> None:
        """Finish what was accepted, and end the threads; returns when they have ended."""
        with self._gate:
            self._stopped = True
            for _ in self._threads:
                self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self, handle: Handle) -> None:
        while (job := self._queue.get()) is not None:
            read, future = job
            outcome: Any
            try:
                outcome = read(handle)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's
                outcome = error
            with self._gate:
                self._idle += 1
            answer_one(future, outcome)
            del job, read, future, outcome
