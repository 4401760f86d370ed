"""Copying to and from SQLite files: the same promises as in memory, with a process that may die in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from convostore.backends.memory import MemoryBackend
from convostore.backends.sqlite import SqliteBackend
from convostore.contracts.backend import Capability, Change, HeadPage, HeadQuery, Receipt, Snapshot, Window
from convostore.errors import UnavailableError
from convostore.interchange import replay
from convostore.opening import open_backend
from convostore.operations.copy import copy
from convostore.operations.verify import fingerprint, verify
from tests.interchange.conversations import add, content, filled


def file_backend(path: Path) -> SqliteBackend:
    backend = open_backend(f"sqlite:///{path}")
    assert isinstance(backend, SqliteBackend)
    return backend


async def test_there_and_back(tmp_path: Path) -> None:
    """From memory to a file, to another file and back to memory, everything is kept and every fingerprint is the same."""
    origin, back = await filled(), MemoryBackend()
    one, two = file_backend(tmp_path / "one.db"), file_backend(tmp_path / "two.db")
    try:
        for source, target in ((origin, one), (one, two), (two, back)):
            report = await copy(source, target)
            assert (3, [], []) == (report.copied, report.refused, report.differing)
        assert await content(origin) == await content(one) == await content(two) == await content(back)
        for name in ("zulu", "alpha"):
            found = {await fingerprint(each, name) for each in (origin, one, two, back)}
            assert 1 == len(found)
        assert () == (await verify(two)).damage
        assert 3 == (await copy(origin, two)).already_there
    finally:
        await one.aclose()
        await two.aclose()


async def test_a_long_conversation(tmp_path: Path) -> None:
    """A conversation of several commits and many chunks arrives whole, grows, and arrives again."""
    source, target = file_backend(tmp_path / "one.db"), file_backend(tmp_path / "two.db")
    try:
        await add(source, "c", *[b"%d" % number * (number % 50) for number in range(2_500)], documents={"todos": b"[]"})
        assert (1, 2_500) == ((report := await copy(source, target)).copied, report.entries)
        await add(source, "c", b"new", b"newer")
        assert (1, 2) == ((report := await copy(source, target)).completed, report.entries)
        assert await fingerprint(source, "c") == await fingerprint(target, "c")
    finally:
        await source.aclose()
        await target.aclose()


class Dying:
    """A process on a file that dies after one commit; a new one opens the file again."""

    def __init__(self, path: Path) -> None:
        self.backend = file_backend(path)
        self.commits = 0

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self.backend.capabilities

    async def commit(self, change: Change, /) -> Receipt:
        if self.commits:
            raise UnavailableError("dead")
        self.commits += 1
        return await self.backend.commit(change)

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: object = (), /
    ) -> Snapshot | None:
        return await self.backend.read(conversation_id, window, documents)  # type: ignore[arg-type]  # handed on

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        return await self.backend.scan_heads(query)

    async def aclose(self) -> None:
        await self.backend.aclose()


async def test_an_interrupted_copy_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that dies after every single commit is complete when it has been run often enough."""
    monkeypatch.setattr(replay, "_CHANGE_ENTRIES", 2)
    source = await filled()
    deaths = 0
    while True:
        target = Dying(tmp_path / "copy.db")
        try:
            await copy(source, target)
        except UnavailableError:
            deaths += 1
            continue
        finally:
            await target.aclose()
        break
    final = file_backend(tmp_path / "copy.db")
    try:
        assert 6 == deaths
        for name in ("zulu", "alpha", "empty \u2028 \u05d0"):
            assert await fingerprint(source, name) == await fingerprint(final, name)
    finally:
        await final.aclose()
