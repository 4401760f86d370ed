"""``scoped(backend, subject_id)``: one subject's conversations, and nothing else, on every verb (C10).

What belongs to somebody else, or to nobody, is absent. The owner is checked inside the commit, not before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, structs

from convostore.contracts.backend import (
    Backend,
    Capability,
    Change,
    FindingEntries,
    HeadPage,
    HeadQuery,
    Receipt,
    Snapshot,
    Window,
)
from convostore.contracts.law import check_query
from convostore.errors import InvalidInput, UnsupportedError
from convostore.ids import check_id

__all__ = ["scoped"]


def scoped(backend: Backend, subject_id: str) -> Backend:
    """Return a view of `backend` that holds the conversations of `subject_id` only. Closing it does not close `backend`.

    Raises:
        InvalidInput: the subject id is none, so that a missing owner never means everyone.
    """
    return _Scoped(backend, check_id(subject_id, "subject id"))


class _Scoped:
    def __init__(self, backend: Backend, subject_id: str) -> None:
        self._backend = backend
        self._subject_id = subject_id

    @property
    def capabilities(self) -> frozenset[Capability]:
        # What is not scoped here is not offered here.
        return self._backend.capabilities & {"durable", "multi_process", "indexed", "find_entry"}

    async def commit(self, change: Change, /) -> Receipt:
        for named in (change.subject_id, change.set_subject, change.only_subject):
            if named not in (None, self._subject_id):
                raise InvalidInput(f"this store is limited to subject {self._subject_id!r} and cannot serve {named!r}")
        return await self._backend.commit(
            structs.replace(change, only_subject=self._subject_id, subject_id=self._subject_id)
        )

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: Sequence[str] | None = (), /
    ) -> Snapshot | None:
        snapshot = await self._backend.read(conversation_id, window, documents)
        if snapshot is None or snapshot.head.subject_id != self._subject_id:
            return None
        return snapshot

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        if query.subject_id not in (UNSET, self._subject_id):
            check_query(query)
            return HeadPage(())
        return await self._backend.scan_heads(structs.replace(query, subject_id=self._subject_id))

    async def find_entry(self, entry_id: str, /) -> tuple[str, ...]:
        if not isinstance(self._backend, FindingEntries):
            raise UnsupportedError("this backend cannot find an entry without its conversation's id")
        found = await self._backend.find_entry(entry_id)
        return tuple([each for each in found if await self.read(each) is not None])

    async def aclose(self) -> None:
        """Leave `backend` open: whoever opened it closes it."""
