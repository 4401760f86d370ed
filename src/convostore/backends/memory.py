"""``memory://``: everything in dictionaries. The readable reference of the backend contract.

Kept for the life of the object, shared by every task, thread and event loop of the process. Nothing survives the process,
nothing is indexed: a listing looks at every head. For tests and for reading; `sqlite://` is the one to use in memory when
there is much to keep.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import UNSET, structs

from convostore.contracts import cursor
from convostore.contracts.backend import Capability, Change, Entry, Head, HeadPage, HeadQuery, Receipt, Snapshot, Window
from convostore.contracts.law import Verdict, check_change, check_query, check_read, decide
from convostore.errors import ClosedError, InvalidInput
from convostore.ids import check_id

__all__ = ["MemoryBackend", "from_url"]


def from_url(url: str) -> MemoryBackend:
    """Return a new, empty backend; two stores opened with the same URL share nothing.

    Raises:
        InvalidInput: the URL says more than ``memory://``.
    """
    if url not in ("memory:", "memory://"):
        raise InvalidInput(f"{url!r} says more than 'memory://', which takes no name and no options")
    return MemoryBackend()


class _Conversation:
    """One conversation: the head, the entries by id in position order, the documents, and when it was created."""

    def __init__(self, head: Head, sequence: int) -> None:
        self.head = head
        self.sequence = sequence
        self.entries: dict[str, Entry] = {}
        self.documents: dict[str, bytes] = {}

    def find(self, entry_ids: Iterable[str], /) -> Mapping[str, Entry]:
        return {each: self.entries[each] for each in entry_ids if each in self.entries}

    def count_after(self, position: int, /) -> int:
        return sum(each.position > position for each in self.entries.values())

    def write(self, verdict: Verdict, head: Head) -> None:
        self.head = head
        if verdict.cut_after is not None:
            self.entries = {i: each for i, each in self.entries.items() if each.position <= verdict.cut_after}
        for entry_id in verdict.removed:
            del self.entries[entry_id]
        # Replacing a dictionary's value keeps its place, so the order stays position order.
        self.entries.update({each.entry_id: each for each in (*verdict.replaced, *verdict.appended)})
        for name, value in verdict.documents.items():
            if value is None:
                self.documents.pop(name, None)
            else:
                self.documents[name] = value


_ABSENT = _Conversation(Head("", "", "", 0, 0, None, None, 0, 0, 0), 0)


class MemoryBackend:
    """The backend contract on dictionaries; every call is one short critical section."""

    def __init__(self) -> None:
        self._conversations: dict[str, _Conversation] = {}
        self._created = 0
        self._lock = threading.Lock()
        self._closed = False

    @property
    def capabilities(self) -> frozenset[Capability]:
        """`find_entry` only."""
        return frozenset({"find_entry"})

    async def commit(self, change: Change, /) -> Receipt:
        """Apply `change`; see the contract."""
        check_change(change)
        with self._lock:
            self._check_open()
            there = self._conversations.get(change.conversation_id)
            verdict = decide(change, there.head if there else None, there or _ABSENT)
            head = verdict.receipt.head
            if not verdict.receipt.applied:
                return _own(verdict.receipt)
            if head is None:
                del self._conversations[change.conversation_id]
                return verdict.receipt
            if there is None:
                self._created += 1
                there = self._conversations[change.conversation_id] = _Conversation(head, self._created)
            there.write(verdict, structs.replace(head, fields=dict(head.fields)))
            return _own(verdict.receipt)

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: Sequence[str] | None = (), /
    ) -> Snapshot | None:
        """Return one revision; see the contract."""
        check_read(conversation_id, window, documents)
        with self._lock:
            self._check_open()
            there = self._conversations.get(conversation_id)
            if there is None:
                return None
            entries = () if window is None else _select(there.entries.values(), window)
            names = there.documents if documents is None else documents
            kept = {name: there.documents[name] for name in names if name in there.documents}
            return Snapshot(_own_head(there.head), entries, kept)

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        """Return one page; see the contract. Cost: every head there is."""
        check_query(query)
        with self._lock:
            self._check_open()
            matching = [each for each in self._conversations.values() if _matches(each.head, query)]
        key = _sort_key(query)
        matching.sort(key=key)
        if begin := cursor.decode(query, *(type(part) for part in key(_ABSENT))):
            matching = [each for each in matching if key(each) > begin]
        page = matching[: query.limit]
        more = cursor.encode(query, key(page[-1])) if len(matching) > len(page) else None
        return HeadPage(tuple(_own_head(each.head) for each in page), more)

    async def find_entry(self, entry_id: str, /) -> tuple[str, ...]:
        """Return the conversations that hold an entry of this id, sorted. Cost: every conversation there is."""
        check_id(entry_id, "entry id")
        with self._lock:
            self._check_open()
            return tuple(sorted(key for key, each in self._conversations.items() if entry_id in each.entries))

    async def aclose(self) -> None:
        """Forget everything."""
        with self._lock:
            self._closed = True
            self._conversations = {}

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this memory store was closed and holds nothing any more; open a new one")


def _own_head(head: Head) -> Head:
    """Return a head whose fields its holder may change."""
    return structs.replace(head, fields=dict(head.fields))


def _own(receipt: Receipt) -> Receipt:
    assert receipt.head is not None
    return structs.replace(receipt, head=_own_head(receipt.head))


def _select(entries: Iterable[Entry], window: Window) -> tuple[Entry, ...]:
    wanted = None if window.entry_ids is None else set(window.entry_ids)
    chosen = [
        each
        for each in entries
        if each.position > window.after
        and (window.before is None or each.position < window.before)
        and (window.changed_after is None or each.stamp > window.changed_after)
        and (wanted is None or each.entry_id in wanted)
    ]
    if window.limit is None:
        return tuple(chosen)
    return tuple(chosen[max(0, len(chosen) - window.limit) :] if window.newest else chosen[: window.limit])


def _matches(head: Head, query: HeadQuery) -> bool:
    return (
        (query.context is UNSET or head.context == query.context)
        and (query.subject_id is UNSET or head.subject_id == query.subject_id)
        and head.conversation_id.startswith(query.prefix)
    )


def _sort_key(query: HeadQuery) -> Callable[[_Conversation], list[int | str]]:
    """Return what a query's order sorts by, ascending; the cursor holds it too."""
    if query.order == "id":
        return lambda each: [each.head.conversation_id]
    if query.order == "updated":
        return lambda each: [-each.head.updated_at_ms, -each.sequence]
    sign = -1 if query.newest_first else 1
    return lambda each: [sign * each.sequence]
