"""What a commit does, decided in one place: the order of its steps and every refusal, as pure functions.

A backend that can run Python inside its transaction (memory, file, SQLite) reads the head, calls `decide` and writes the
`Verdict`. One that cannot (a server-side script) states the same rules again in its own language; the suite compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import UNSET, Struct

from convostore import limits
from convostore.contracts.backend import Change, Entry, Head, HeadQuery, NewEntry, Receipt, Window
from convostore.errors import (
    ConflictError,
    ConversationExistsError,
    ConversationNotFoundError,
    DuplicateEntryError,
    InvalidInput,
    NotFoundError,
    RevisionConflictError,
)
from convostore.ids import check_id
from convostore.model.times import check_ms

__all__ = ["Log", "Verdict", "check_change", "check_query", "check_read", "decide"]

_int_max = (1 << 53) - 1
_EXISTENCE = frozenset({"must_exist", "may_create", "must_create"})
_ORDERS = frozenset({"id", "created", "updated"})


class Log(Protocol):
    """The entries of the conversation that a commit is about, as they are inside the transaction."""

    def find(self, entry_ids: Iterable[str], /) -> Mapping[str, Entry]:
        """Return those of the named entries that are there, by id."""
        ...

    def count_after(self, position: int, /) -> int:
        """Return how many entries lie behind `position`."""
        ...


class Verdict(Struct, frozen=True, kw_only=True):
    """What to write: nothing when `receipt.applied` is False; else the steps below, in their order, and the head.

    `receipt.head` None: delete everything. `cut_after` None: no cut. Entries in `replaced` keep their positions.
    """

    receipt: Receipt
    created: bool = False
    cut_after: int | None = None
    removed: tuple[str, ...] = ()
    replaced: tuple[Entry, ...] = ()
    appended: tuple[Entry, ...] = ()
    documents: Mapping[str, bytes | None] = {}


def decide(change: Change, head: Head | None, log: Log) -> Verdict:
    """Return what `change` does to the conversation whose head is `head` (None: absent).

    Cost: one `log.find` for the ids that the change names; one `log.count_after` if it cuts.

    Raises:
        What `Backend.commit` lists, except InvalidInput, which is `check_change`'s.
    """
    conversation_id = change.conversation_id
    foreign = head is not None and change.only_subject is not None and head.subject_id != change.only_subject
    if head is None or foreign:
        if foreign and change.existence != "must_exist":
            raise ConversationExistsError(conversation_id)
        if change.existence == "must_exist" or change.delete:
            raise ConversationNotFoundError(conversation_id)
        if change.expected_revision is not None:
            raise RevisionConflictError(conversation_id, expected=change.expected_revision, actual=None)
        return _rewrite(change, _born(change), {}, log, created=True)

    named = [each.entry_id for each in change.append]
    named += change.remove
    named += [each.entry_id for each in change.replace]
    found = log.find(named) if named else {}
    if repeated := _repetition(change, head, found):
        return Verdict(receipt=repeated)
    if change.existence == "must_create":
        raise ConversationExistsError(conversation_id)
    if change.expected_revision is not None and change.expected_revision != head.revision:
        raise RevisionConflictError(conversation_id, expected=change.expected_revision, actual=head.revision)
    if change.delete:
        return Verdict(receipt=Receipt(None, True))
    if change.set_subject is not None and head.subject_id not in (None, change.set_subject):
        raise ConflictError(
            f"conversation {conversation_id!r} has an owner already; only one without an owner can be given one",
            context={"id": conversation_id},
        )
    return _rewrite(change, head, found, log, created=False)


def _born(change: Change) -> Head:
    created_at_ms = change.at_ms if change.created_at_ms is None else change.created_at_ms
    return Head(
        conversation_id=change.conversation_id,
        born=change.revision,
        revision=change.revision,
        created_at_ms=created_at_ms,
        updated_at_ms=max(change.at_ms, created_at_ms),
        context=change.context,
        subject_id=change.subject_id,
        entry_count=0,
        last_stamp=0,
        last_rewrite=0,
    )


def _repetition(change: Change, head: Head, found: Mapping[str, Entry]) -> Receipt | None:
    said = head.revision == change.revision
    if not said and (not found or not change.append or change.cut_after is not None or change.remove or change.delete):
        return None
    there = tuple(found[each.entry_id] for each in change.append if each.entry_id in found)
    if said or (
        len(there) == len(change.append)
        and all(_same_content(new, old) for new, old in zip(change.append, there, strict=True))
    ):
        return Receipt(head, False, there)
    return None


def _same_content(new: NewEntry, old: Entry) -> bool:
    """Compare what an entry says; its time is envelope."""
    return (new.kind, new.role, new.dialect, new.body) == (old.kind, old.role, old.dialect, old.body)


def _rewrite(change: Change, head: Head, found: Mapping[str, Entry], log: Log, *, created: bool) -> Verdict:
    stamp, rewrite, dropped = head.last_stamp, head.last_rewrite, 0
    kept = dict(found)
    cut_after = None
    if change.cut_after is not None and (dropped := log.count_after(change.cut_after)):
        cut_after = change.cut_after
        kept = {each_id: each for each_id, each in kept.items() if each.position <= change.cut_after}
    removed = tuple(each_id for each_id in dict.fromkeys(change.remove) if kept.pop(each_id, None) is not None)
    dropped += len(removed)
    if dropped:
        stamp = rewrite = stamp + 1
    replaced = []
    for new in change.replace:
        old = kept.get(new.entry_id)
        if old is None:
            raise NotFoundError(
                f"conversation {head.conversation_id!r} has no entry {new.entry_id!r} to replace; read it again",
                context={"id": head.conversation_id, "entryId": new.entry_id},
            )
        if new.expected_stamp is not None and new.expected_stamp != old.stamp:
            raise RevisionConflictError(
                head.conversation_id, expected=new.expected_stamp, actual=old.stamp, entry_id=new.entry_id
            )
        stamp = rewrite = stamp + 1
        replaced.append(_stored(new, old.position, stamp))
    appended = []
    for new in change.append:
        if new.entry_id in kept:
            raise DuplicateEntryError(head.conversation_id, new.entry_id)
        stamp += 1
        appended.append(_stored(new, stamp, stamp))
    after = Head(
        conversation_id=head.conversation_id,
        born=head.born,
        revision=change.revision,
        created_at_ms=head.created_at_ms,
        updated_at_ms=(
            head.updated_at_ms if created else check_ms(max(change.at_ms, head.updated_at_ms + 1), "updated_at")
        ),
        context=head.context,
        subject_id=head.subject_id if change.set_subject is None else change.set_subject,
        entry_count=head.entry_count - dropped + len(appended),
        last_stamp=stamp,
        last_rewrite=rewrite,
        fields=_merged(head.fields, change.fields),
    )
    return Verdict(
        receipt=Receipt(after, True, tuple(appended)),
        created=created,
        cut_after=cut_after,
        removed=removed,
        replaced=tuple(replaced),
        appended=tuple(appended),
        documents=change.documents,
    )


def _stored(new: NewEntry, position: int, stamp: int) -> Entry:
    return Entry(position, stamp, new.entry_id, new.kind, new.role, new.dialect, new.created_at_ms, new.body)


def _merged(fields: Mapping[str, bytes], changes: Mapping[str, bytes | None]) -> Mapping[str, bytes]:
    if not changes:
        return fields
    merged: dict[str, bytes | None] = {**fields, **changes}
    result = {name: value for name, value in merged.items() if value is not None}
    if sum(len(name.encode()) + len(value) for name, value in result.items()) > limits.fields_bytes_max:
        raise InvalidInput(f"the fields of one conversation may hold {limits.fields_bytes_max} bytes together")
    return result


def check_change(change: Change) -> None:
    """Raise InvalidInput if `change` breaks a limit or a rule of form. Every backend calls this first."""
    check_id(change.conversation_id, "conversation id")
    check_id(change.revision, "revision")
    check_ms(change.at_ms, "at_ms")
    if change.existence not in _EXISTENCE:
        raise InvalidInput(f"existence must be one of {sorted(_EXISTENCE)}, not {change.existence!r}")
    for what, value in (
        ("expected_revision", change.expected_revision),
        ("only_subject", change.only_subject),
        ("context", change.context),
        ("subject_id", change.subject_id),
        ("set_subject", change.set_subject),
    ):
        if value is not None:
            check_id(value, what)
    if change.created_at_ms is not None:
        check_ms(change.created_at_ms, "created_at_ms")
    if change.cut_after is not None:
        _check_count(change.cut_after, "cut_after")
    total = _check_entries(change)
    total += _check_named(change.fields, "field", limits.fields_bytes_max)
    total += _check_named(change.documents, "document", limits.document_bytes_max)
    if len(change.documents) > limits.documents_max:
        raise InvalidInput(f"one change may write {limits.documents_max} documents, this one {len(change.documents)}")
    if total > limits.change_bytes_max:
        raise InvalidInput(f"a change of {total} bytes; {limits.change_bytes_max} is the most, split it")


def _check_entries(change: Change) -> int:
    count = len(change.append) + len(change.replace) + len(change.remove)
    if count > limits.change_entries_max:
        raise InvalidInput(f"a change of {count} entries; {limits.change_entries_max} is the most, split it")
    for entry_id in change.remove:
        check_id(entry_id, "entry id")
    total = 0
    written = (*change.replace, *change.append) if change.replace else change.append
    for each in written:
        check_id(each.entry_id, "entry id")
        check_ms(each.created_at_ms, "created_at_ms")
        if not _words_known(each):
            _check_words(each)
        if type(each.body) is not bytes:
            raise InvalidInput(f"the body of entry {each.entry_id!r} must be bytes, not {type(each.body).__name__}")
        if len(each.body) > limits.body_bytes_max:
            raise InvalidInput(
                f"the body of entry {each.entry_id!r} has {len(each.body)} bytes; {limits.body_bytes_max} is the most"
            )
        total += len(each.body)
    if len({each.entry_id for each in written}) != len(written):
        raise InvalidInput("an entry id occurs twice among what one change appends and replaces")
    return total


_words_seen: set[tuple[str, str | None, str]] = set()  # they are few and come with every entry; bounded below


def _words_known(entry: NewEntry) -> bool:
    try:
        return (entry.kind, entry.role, entry.dialect) in _words_seen
    except TypeError:  # not even hashable, so not words
        return False


def _check_words(entry: NewEntry) -> None:
    check_id(entry.kind, "kind", bytes_max=limits.name_bytes_max)
    check_id(entry.dialect, "dialect", bytes_max=limits.name_bytes_max)
    if entry.role is not None:
        check_id(entry.role, "role", bytes_max=limits.name_bytes_max)
    if len(_words_seen) < 1000:
        _words_seen.add((entry.kind, entry.role, entry.dialect))


def _check_named(values: Mapping[str, bytes | None], what: str, bytes_max: int) -> int:
    total = 0
    for name, value in values.items():
        check_id(name, f"{what} name", bytes_max=limits.name_bytes_max)
        if value is not None:
            if type(value) is not bytes:
                raise InvalidInput(f"{what} {name!r} must be bytes or None, not {type(value).__name__}")
            if len(value) > bytes_max:
                raise InvalidInput(f"{what} {name!r} has {len(value)} bytes; {bytes_max} is the most")
            total += len(value)
    return total


def _check_count(value: int | None, what: str) -> None:
    if type(value) is not int or not 0 <= value <= _int_max:
        raise InvalidInput(f"{what} must be a whole number from 0 to 2**53 - 1, not {value!r}")


def check_read(conversation_id: str, window: Window | None, documents: Iterable[str] | None) -> None:
    """Raise InvalidInput if the arguments of a read are none. Every backend calls this first."""
    check_id(conversation_id, "conversation id")
    if isinstance(documents, str):
        raise InvalidInput(f"documents must be a sequence of names, not the string {documents!r}")
    for name in documents or ():
        check_id(name, "document name", bytes_max=limits.name_bytes_max)
    if window is None:
        return
    _check_count(window.after, "after")
    for what in ("before", "changed_after", "limit"):
        if (value := getattr(window, what)) is not None:
            _check_count(value, what)
    if window.damaged not in ("raise", "report"):
        raise InvalidInput(f"damaged must be 'raise' or 'report', not {window.damaged!r}")
    if window.entry_ids is not None:
        if len(window.entry_ids) > limits.change_entries_max:
            raise InvalidInput(f"a window may name {limits.change_entries_max} entries, not {len(window.entry_ids)}")
        for entry_id in window.entry_ids:
            check_id(entry_id, "entry id")


def check_query(query: HeadQuery) -> None:
    """Raise InvalidInput if `query` is none. Every backend calls this first; the cursor is `cursor.decode`'s."""
    if query.order not in _ORDERS:
        raise InvalidInput(f"order must be one of {sorted(_ORDERS)}, not {query.order!r}")
    if type(query.limit) is not int or not 1 <= query.limit <= limits.page_heads_max:
        raise InvalidInput(f"limit must be from 1 to {limits.page_heads_max}, not {query.limit!r}")
    for what in ("context", "subject_id"):
        if (value := getattr(query, what)) is not UNSET and value is not None:
            check_id(value, what)
    if query.prefix:
        check_id(query.prefix, "prefix")
        if query.order != "id":
            raise InvalidInput(f"a prefix goes with order 'id', not with {query.order!r}")
    if query.newest_first and query.order == "id":
        raise InvalidInput("newest_first goes with order 'created'; order 'id' is by code point")
