"""The other writer in a test about concurrency: a second handle, threads with event loops of their own, processes.

Nothing here imports pytest: a child process that a test starts has to be up quickly.
"""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from convostore.contracts.backend import Backend

__all__ = ["Job", "in_processes", "in_threads", "opened", "second_handle", "until_killed"]

Job: TypeAlias = tuple[Callable[..., Coroutine[Any, Any, Any]], tuple[object, ...]]
"""An async function that can be pickled, and its arguments."""

_wait_s = 60.0


@asynccontextmanager
async def opened(factory: Callable[[], Any]) -> AsyncIterator[Any]:
    """Open what `factory` opens (it may be async) and close it in the end."""
    made = factory()
    subject = await made if inspect.isawaitable(made) else made
    try:
        yield subject
    finally:
        await subject.aclose()


@asynccontextmanager
async def second_handle(backend: Backend, factory: Callable[[], Any]) -> AsyncIterator[Backend]:
    """Open another handle on the same storage; `backend` itself where the capability `multi_process` is missing."""
    if "multi_process" not in backend.capabilities:
        yield backend
        return
    async with opened(factory) as other:
        yield other


async def in_threads(*jobs: Callable[[], Coroutine[Any, Any, Any]]) -> list[Any]:
    """Run each job in a thread and an event loop of its own, all at once; return what they return, in their order.

    Raises:
        The first failure, once every job has ended.
    """
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(len(jobs), thread_name_prefix="suite") as pool:
        futures = [loop.run_in_executor(pool, lambda job=job: asyncio.run(job())) for job in jobs]  # type: ignore[misc]
        done = await asyncio.gather(*futures, return_exceptions=True)
    for each in done:
        if isinstance(each, BaseException):
            raise each
    return done


async def in_processes(*jobs: Job) -> list[Any]:
    """Run each job in a new process, all released at the same moment; return what they return, in their order.

    Raises:
        AssertionError: one failed, with its traceback, or died.
    """
    return await asyncio.to_thread(_in_processes, jobs)


async def until_killed(job: Job, acknowledged: int) -> list[Any]:
    """Run a job in a new process and kill it (SIGKILL) once it has acknowledged so many times.

    The job gets one more argument: a function to call with each acknowledgement. Returns all that were received.
    """
    return await asyncio.to_thread(_until_killed, job, acknowledged)


def _in_processes(jobs: Sequence[Job]) -> list[Any]:
    started = [_start(_run_job, job) for job in jobs]
    try:
        for _, connection in started:
            _receive(connection)  # ready
        for _, connection in started:
            connection.send("go")
        return [_receive(connection) for _, connection in started]
    finally:
        for process, connection in started:
            connection.close()
            process.join(_wait_s)
            process.kill()
            process.join()
            process.close()


def _until_killed(job: Job, acknowledged: int) -> list[Any]:
    process, connection = _start(_run_acknowledging, job)
    received: list[Any] = []
    try:
        while len(received) < acknowledged:
            received.append(_receive(connection))
        process.kill()
        process.join()
        # What the child sent between our last look and its death was acknowledged too.
        try:
            while connection.poll():
                received.append(_receive(connection))
        except EOFError:
            pass
        return received
    finally:
        process.kill()
        process.join()
        process.close()
        connection.close()


def _start(target: Callable[..., None], job: Job) -> tuple[Any, Connection]:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=target, args=(theirs, *job), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _receive(connection: Connection) -> Any:
    if not connection.poll(_wait_s):
        raise AssertionError(f"a process of the test did not answer within {_wait_s:.0f} s")
    went_well, value = connection.recv()
    assert went_well, f"a process of the test failed:\n{value}"
    return value


def _run_job(
    connection: Connection, function: Callable[..., Coroutine[Any, Any, Any]], args: tuple[object, ...]
) -> None:
    connection.send((True, "ready"))
    connection.recv()
    try:
        connection.send((True, asyncio.run(function(*args))))
    except Exception:  # noqa: BLE001  the parent says what it was
        connection.send((False, traceback.format_exc()))


def _run_acknowledging(
    connection: Connection, function: Callable[..., Coroutine[Any, Any, Any]], args: tuple[object, ...]
) -> None:
    try:
        asyncio.run(function(*args, lambda value: connection.send((True, value))))
    except Exception:  # noqa: BLE001  the parent says what it was
        connection.send((False, traceback.format_exc()))
