"""A memory backend whose storage outlives its handles and can be damaged, cut off and upgraded: what the suite needs to be
tried on for the clauses about durable backends, without a file."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from convostore.backends.memory import MemoryBackend
from convostore.contracts.backend import (
    Capability,
    Change,
    Damage,
    Entry,
    HeadPage,
    HeadQuery,
    Receipt,
    Snapshot,
    Window,
)
from convostore.contracts.law import check_change
from convostore.errors import CorruptDataError, SchemaTooNewError, UnavailableError

__all__ = ["Disk", "DiskBackend"]


class Disk:
    """What several handles share."""

    def __init__(self) -> None:
        self.conversations = MemoryBackend()._conversations
        self.lock = threading.Lock()
        self.created = 0
        self.version = 1
        self.out = False
        self.damaged: set[tuple[str, str, str]] = set()

    def damage(self, conversation_id: str, what: Literal["entry", "document", "head"], name: str = "", /) -> None:
        self.damaged.add((conversation_id, what, name))

    @contextmanager
    def outage(self) -> Iterator[None]:
        self.out = True
        yield
        self.out = False

    def newer(self) -> Callable[[], None]:
        self.version += 1
        return self._older

    def _older(self) -> None:
        self.version -= 1


class DiskBackend(MemoryBackend):
    """A handle on a disk."""

    known_version = 1

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        super().__init__()
        self._conversations = disk.conversations
        self._lock = disk.lock
        if disk.version < self.known_version:
            self.upgrade()
            disk.version = self.known_version

    @classmethod
    def next_version(cls) -> "type[DiskBackend]":
        return type(f"Next{cls.__name__}", (cls,), {"known_version": 2})

    def upgrade(self) -> None:
        """Do what the next version has to do to what the first one wrote: nothing."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset({"durable", "find_entry"})

    @property
    def _created(self) -> int:
        return self._disk.created

    @_created.setter
    def _created(self, value: int) -> None:
        self._disk.created = max(value, self._disk.created)

    def check_version(self) -> None:
        if self._disk.version > self.known_version:
            raise SchemaTooNewError("a newer version wrote this disk; it was not touched, upgrade")

    def reach(self) -> None:
        """Do what the operating system is asked to do."""
        if self._disk.out:
            raise OSError("the disk is gone")

    def translate(self, error: OSError) -> Exception:
        return UnavailableError(f"the disk does not answer: {error}")

    async def commit(self, change: Change, /) -> Receipt:
        check_change(change)
        self.check_version()
        try:
            self.reach()
        except OSError as error:
            raise self.translate(error) from error
        name = change.conversation_id
        if (name, "head", "") in self._disk.damaged:
            raise CorruptDataError(name, [self._named(name)])
        receipt = await super().commit(change)
        self._disk.damaged -= {(name, "document", each) for each in change.documents}
        return receipt

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: Sequence[str] | None = (), /
    ) -> Snapshot | None:
        self.check_version()
        snapshot = await super().read(conversation_id, window, documents)
        if snapshot is None:
            return None
        if (conversation_id, "head", "") in self._disk.damaged:
            raise CorruptDataError(conversation_id, [self._named(conversation_id)])
        bad = {name for of, what, name in self._disk.damaged if of == conversation_id and what == "entry"}
        lost = {name for of, what, name in self._disk.damaged if of == conversation_id and what == "document"}
        return self.sort_out(snapshot, bad, lost & set(snapshot.documents), window)

    def sort_out(self, snapshot: Snapshot, bad: set[str], lost: set[str], window: Window | None) -> Snapshot:
        """Return what is sound of a snapshot, or raise."""
        name = snapshot.head.conversation_id
        damage = [self._damaged(name, each) for each in snapshot.entries if each.entry_id in bad]
        damage += [Damage(name, f"the document {each!r} is not what was written") for each in sorted(lost)]
        if damage and (window is None or window.damaged == "raise"):
            raise CorruptDataError(name, damage)
        return Snapshot(
            snapshot.head,
            tuple(each for each in snapshot.entries if each.entry_id not in bad),
            {each: value for each, value in snapshot.documents.items() if each not in lost},
            tuple(damage),
        )

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        self.check_version()
        page = await super().scan_heads(query)
        bad = {of for of, what, _ in self._disk.damaged if what == "head"}
        return HeadPage(
            tuple(each for each in page.items if each.conversation_id not in bad),
            page.cursor,
            tuple(self._named(each.conversation_id) for each in page.items if each.conversation_id in bad),
        )

    def _named(self, conversation_id: str) -> Damage:
        return Damage(conversation_id, "the head's fields are not what was written")

    def _damaged(self, conversation_id: str, entry: Entry) -> Damage:
        return Damage(conversation_id, "the body is not what was written", entry.position, entry.entry_id)
