"""The backend contract: one atomic `commit`, one `read`, one `scan_heads`, and `aclose`. The whole storage law.

A backend keeps *conversations*. Each has a **head** (what is known without reading messages), a log of **entries** and a few
named **documents**. A `Change` is everything one commit does to one conversation. Bodies, fields and documents are bytes;
what is in them is the dialects' and the stores' business. Times are whole milliseconds since 1970 UTC and come from
the caller. The suite in `convostore.testing` tests every clause below under its id.

Clauses:
    B1: A commit is all or nothing. After an exception, a cancellation at any await, kill -9 or a power cut, all of it is
        there or none of it, and the backend goes on working. A cancelled caller may find that its commit happened.
    B2: When commit returns, the change survives what the backend promises; with the capability `durable`, a power cut.
    B3: Order inside a conversation is position order: given by the backend, strictly increasing, never given twice, not
        even after removal. No clock orders entries.
    B4: One read shows one revision: head, entries and documents belong together.
    B5: Writers never lose each other's work nor interleave: from any number of tasks, threads and (capability
        `multi_process`) processes, each change's entries stay together and each writer's own order holds.
    B6: An `expected_revision` or `expected_stamp` that no longer holds raises RevisionConflictError and changes nothing. A
        revision never recurs, not even after deletion and re-creation.
    B7: Repeating a change is harmless: when its revision is the head's, or when it cuts and removes nothing and all its
        appended entries are there with equal kind, role, dialect and body, it has happened and the receipt shows what is
        there. An id that is there otherwise raises DuplicateEntryError.
        (What remains: a guarded change without entries whose answer was lost, overtaken by another commit, gets
        RevisionConflictError.)
    B8: Ids are compared exactly; what a backend cannot keep apart it refuses on every verb alike.
    B9: Delete leaves nothing readable. A later commit raises ConversationNotFoundError unless it may create.
    B10: scan_heads filters before it pages. In id and created order a head that stays through the walk comes exactly once;
        in updated order at most once, and exactly once if nobody committed to it meanwhile. A bad cursor is InvalidInput.
        Cost does not grow with stored messages, nor (capability `indexed`) with conversations that the filter excludes.
    B11: Bodies are any bytes and come back byte for byte.
    B12: A damaged record hides no other. Reading raises CorruptDataError that names every damaged record, or with
        ``damaged="report"`` returns the sound ones and the damage. No read changes anything.
    B13: Opening is safe to race.
    B14: An older store is upgraded in one transaction, or per conversation where there are none; a newer one is refused
        untouched, also by a process that opened it before someone else upgraded it.
    B15: Handles and threads do not grow with use; one backend serves several event loops, one after the other or at once;
        after a fork the child reopens; leaving without closing does not hang the interpreter.
    B16: What is returned is the caller's own.
    B17: The limits in `convostore.limits` hold on every backend alike; exceeding one is InvalidInput.
    E1: Every error says what, which and what to do next, carries its facts in `code` and `context`, and survives pickling.
    E2: Damage, a lock, a refused connection or a full disk is never reported as absence and never followed by a write.
    E3: Driver errors are translated once, in the backend, and chained.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import UNSET, Struct, UnsetType

from convostore import limits
from convostore.model.page import Page

__all__ = [
    "Backend",
    "Capability",
    "Change",
    "Damage",
    "Entry",
    "FindingEntries",
    "Head",
    "HeadPage",
    "HeadQuery",
    "NewEntry",
    "Receipt",
    "SelfChecking",
    "Snapshot",
    "Watching",
    "Window",
]

Capability: TypeAlias = Literal["durable", "multi_process", "indexed", "watch", "find_entry", "search", "self_check"]


class NewEntry(Struct, frozen=True, kw_only=True, gc=False):
    """An entry to append, or (same id) to put in the place of one that is there.

    `dialect` names the format of `body` with its version, e.g. ``hub/1``; bytes stay for ever, so versions do. `expected_stamp`
    is for `Change.replace` only: the entry must still be as it was read.
    """

    entry_id: str
    kind: str
    role: str | None
    dialect: str
    created_at_ms: int
    body: bytes
    expected_stamp: int | None = None


class Entry(Struct, frozen=True, gc=False):
    """One stored record of a conversation's log.

    `position` is its place: given once, never given again. `stamp` says when it last changed, on the same counter: equal to
    `position` until the entry is replaced.
    """

    position: int
    stamp: int
    entry_id: str
    kind: str
    role: str | None
    dialect: str
    created_at_ms: int
    body: bytes

    def as_new(self) -> NewEntry:
        """Return the entry as one to store again: the same in everything but its place."""
        return NewEntry(
            entry_id=self.entry_id,
            kind=self.kind,
            role=self.role,
            dialect=self.dialect,
            created_at_ms=self.created_at_ms,
            body=self.body,
        )


class Head(Struct, frozen=True):
    """What is known about a conversation without reading its entries.

    `born` is the revision that created it and tells incarnations of one id apart. `revision` is that of the last commit.
    `updated_at_ms` grows with every commit, by at least 1, whatever the clock does. `last_stamp` is the counter behind
    positions and stamps; `last_rewrite` its value at the last cut, removal or replacement (0: only appends so far), so a
    reader in chunks can prove that nothing but appends happened meanwhile. `fields` are small and come with listings.
    """

    conversation_id: str
    born: str
    revision: str
    created_at_ms: int
    updated_at_ms: int
    context: str | None
    subject_id: str | None
    entry_count: int
    last_stamp: int
    last_rewrite: int
    fields: Mapping[str, bytes] = {}


class Change(Struct, frozen=True, kw_only=True):
    """Everything one commit does to one conversation, in this order, all or nothing.

    1. `only_subject`: a conversation of anyone else (or of nobody) counts as absent; creating over it is refused.
    2. Has it happened already (B7)? Then nothing more is done.
    3. `existence`; `context`, `subject_id` and `created_at_ms` (None: `at_ms`) are used when creating.
    4. `expected_revision`.
    5. `set_subject`: gives a conversation without an owner this one; ConflictError if it has another.
    6. `cut_after` drops every entry behind that position (0 clears the log).
    7. `remove` drops entries by id; an id that is not there is passed over.
    8. `replace` puts entries in the place of those with the same ids; NotFoundError for an id that is not there.
    9. `append`. Ids must be unique in the conversation after steps 6 and 7.
    10. `fields` and `documents`: None drops one, what is not named stays.

    `delete` removes the conversation instead of steps 5 to 10. `revision` is minted by the caller, a fresh one for every
    change that is not a repetition.
    """

    conversation_id: str
    revision: str
    at_ms: int
    existence: Literal["must_exist", "may_create", "must_create"] = "must_exist"
    expected_revision: str | None = None
    only_subject: str | None = None
    context: str | None = None
    subject_id: str | None = None
    created_at_ms: int | None = None
    set_subject: str | None = None
    fields: Mapping[str, bytes | None] = {}
    documents: Mapping[str, bytes | None] = {}
    cut_after: int | None = None
    remove: tuple[str, ...] = ()
    replace: tuple[NewEntry, ...] = ()
    append: tuple[NewEntry, ...] = ()
    delete: bool = False


class Receipt(Struct, frozen=True):
    """What a commit left: the head (None after a delete), and the appended entries as stored, in the change's order.

    `applied` False: it had happened before, and this is what is there.
    """

    head: Head | None
    applied: bool
    appended: tuple[Entry, ...] = ()


class Window(Struct, frozen=True, kw_only=True):
    """Which entries of a conversation to read; always returned in position order.

    `after` and `before` are positions, exclusive. `changed_after` keeps entries whose stamp is greater. `entry_ids` keeps
    those named. `limit` None is all, 0 none; the first ones, or with `newest` the last ones.
    """

    after: int = 0
    before: int | None = None
    changed_after: int | None = None
    entry_ids: tuple[str, ...] | None = None
    limit: int | None = None
    newest: bool = False
    damaged: Literal["raise", "report"] = "raise"


class Damage(Struct, frozen=True):
    """One record that is not what was written. `position` and `entry_id` are None where it is not an entry.

    `conversation_id` is "" where it is no conversation's, but the storage's own structure.
    """

    conversation_id: str
    what: str
    position: int | None = None
    entry_id: str | None = None

    def __str__(self) -> str:
        return self.what if self.position is None else f"entry {self.entry_id!r} at {self.position}: {self.what}"


class Snapshot(Struct, frozen=True):
    """One revision of a conversation: its head, the window's entries, the documents asked for that exist."""

    head: Head
    entries: tuple[Entry, ...] = ()
    documents: Mapping[str, bytes] = {}
    damage: tuple[Damage, ...] = ()


class HeadQuery(Struct, frozen=True, kw_only=True):
    """Which heads to list, in which order.

    `context` and `subject_id`: UNSET is any, None is those without one. `prefix` of the id goes with order "id" only.
    Orders: "id" by code point; "created" as they were created, oldest first or `newest_first`; "updated", always the most
    recently committed first.
    """

    context: str | UnsetType | None = UNSET
    subject_id: str | UnsetType | None = UNSET
    prefix: str = ""
    order: Literal["id", "created", "updated"] = "id"
    newest_first: bool = False
    cursor: str | None = None
    limit: int = limits.page_heads_default


class HeadPage(Page[Head], frozen=True):
    """A page of heads; a head that cannot be read is left out of `items` and named in `damage`."""

    damage: tuple[Damage, ...] = ()


class Backend(Protocol):
    """What a storage must do to serve every store, integration, server and command of this library.

    Every method raises UnavailableError when the storage cannot answer now, and ClosedError after `aclose`.
    """

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What this backend promises beyond the base; the suite tests each one that is declared, and its absence."""
        ...

    async def commit(self, change: Change, /) -> Receipt:
        """Apply `change`, all or nothing, and return once it is as safe as the backend promises.

        Raises:
            InvalidInput: a limit is exceeded or an id is none.
            ConversationNotFoundError: absent, or someone else's, and the change may not create.
            ConversationExistsError: present, or someone else's, and the change must create.
            RevisionConflictError: `expected_revision` or an `expected_stamp` does not hold.
            ConflictError: `set_subject`, and it has another owner.
            NotFoundError: `replace` names an entry that is not there.
            DuplicateEntryError: an appended id is there with other content.

        Cost: that of what is written, whatever the conversation's length.
        """
        ...

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: Sequence[str] | None = (), /
    ) -> Snapshot | None:
        """Return one revision of a conversation, or None when it is absent.

        `window` None reads no entries; `documents` None reads all of them, () none.

        Raises:
            InvalidInput: the id or the window is none.
            CorruptDataError: a record asked for is damaged and the window does not say "report".

        Cost: that of the head and of what is returned.
        """
        ...

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        """Return one page of heads.

        Raises:
            InvalidInput: an unknown order, a limit outside 1 to `limits.page_heads_max`, a prefix with another order
                than "id", or a cursor that this query did not give.
        """
        ...

    async def aclose(self) -> None:
        """Finish what was accepted and free every handle; afterwards every call raises ClosedError. May be repeated."""
        ...


@runtime_checkable
class Watching(Backend, Protocol):
    """The capability `watch`."""

    def watch(self, conversation_id: str, after_stamp: int = 0, /) -> AsyncIterator[Snapshot]:
        """Yield a snapshot of the entries changed after `after_stamp`, then one after each commit that changes any."""
        ...


@runtime_checkable
class FindingEntries(Backend, Protocol):
    """The capability `find_entry`."""

    async def find_entry(self, entry_id: str, /) -> tuple[str, ...]:
        """Return the ids of the conversations that hold an entry of this id, sorted; () when none does."""
        ...


@runtime_checkable
class SelfChecking(Backend, Protocol):
    """The capability `self_check`."""

    async def self_check(self) -> tuple[str, ...]:
        """Return what the storage itself finds wrong with its structure, in its own words; () when nothing is.

        Records are checked by every read. This is for what no read can see, such as an index that does not lead to a record
        that is there; a storage may end after a number of findings. Nothing is changed. Cost: all that is stored.

        Raises:
            CorruptDataError: it is too damaged to be looked through.
        """
        ...
