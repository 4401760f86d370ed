"""Saving a list: the smallest change after which the store shows exactly that list (X1).

What is equal keeps its entry: bytes, id and position. What changed is said in its entry's own words where they can say it,
so that what this store cannot see of the entry stays; otherwise in the store's. What cannot be put in its place, because
the log only grows at its end, moves there with all that follows it. What the store does not show stays where it is.

A plan is proven before it is used: the log as it would be is projected again and must be the list that was to be saved. If
it is not, the next, blunter way is taken; the last one writes everything shown anew, in the store's own words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, structs

from convostore.contracts.backend import Entry, NewEntry
from convostore.dialects import chat_item, hub, openai_chat, session
from convostore.ids import Mint
from convostore.model import exact_json
from convostore.model.exact_json import JsonObject
from convostore.model.message import Message
from convostore.model.times import ms_from_datetime
from convostore.stores.alignment import align
from convostore.stores.projection import Projected, Rewriting, View, key_of
from convostore.stores.transcript import Transcript, transcribe

__all__ = ["Plan", "as_entry", "as_new", "plan_save", "reworded"]


class Plan(Struct, frozen=True):
    """What to commit; all empty: nothing changed."""

    remove: tuple[str, ...] = ()
    replace: tuple[NewEntry, ...] = ()
    append: tuple[NewEntry, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.remove or self.replace or self.append)


def plan_save(
    view: View, entries: Sequence[Entry], conversation_id: str, values: Sequence[JsonObject], now_ms: int, mint: Mint
) -> Plan:
    """Return the change after which `view` shows `values` of the log that now is `entries`. Cost: both lists, once or twice.

    Raises:
        InvalidInput: a value is not what this store keeps.
        CorruptDataError: an entry of a dialect we know is not one of it.
    """
    written = [view.write(value, entry_id=mint(), now_ms=now_ms) for value in values]
    new_keys = [key_of(value) for value in values]
    for way in (_Draft, _BlunterDraft, _BluntestDraft):
        draft = way(view, transcribe(entries, conversation_id), values, written, new_keys)
        plan = draft.plan()
        if way is _BluntestDraft or _shows(view, entries, conversation_id, plan, new_keys):
            return plan
    raise AssertionError("the bluntest way always answers")


def _shows(view: View, entries: Sequence[Entry], conversation_id: str, plan: Plan, keys: Sequence[bytes]) -> bool:
    replaced = {each.entry_id: each for each in plan.replace}
    removed = set(plan.remove)
    after = [
        as_entry(replaced.get(each.entry_id, each), each.position) for each in entries if each.entry_id not in removed
    ]
    last = entries[-1].position if entries else 0
    after += [as_entry(each, last + 1 + k) for k, each in enumerate(plan.append)]
    return [key_of(each.value) for each in view.project(transcribe(after, conversation_id))] == list(keys)


def as_entry(entry: Entry | NewEntry, position: int) -> Entry:
    """Return what a new entry will be once stored at `position`."""
    return Entry(
        position, position, entry.entry_id, entry.kind, entry.role, entry.dialect, entry.created_at_ms, entry.body
    )


class _Draft:
    """A plan in the making: edits are said in the words of the entries they change."""

    edits_in_place = True

    def __init__(
        self,
        view: View,
        transcript: Transcript,
        values: Sequence[JsonObject],
        written: Sequence[NewEntry],
        new_keys: Sequence[bytes],
    ) -> None:
        self._view = view
        self._transcript = transcript
        self._values = values
        self._written = written
        self._shown = view.project(transcript)
        self._readings = [each.message for each in transcript.records]
        self._rewritten: dict[int, NewEntry] = {}
        self._dropped: set[int] = set()
        self._overwritten: set[int] = set()
        old_keys = [key_of(each.value) for each in self._shown]
        self._matches = self._match(old_keys, new_keys)
        self._equal = {j for j, i in enumerate(self._matches) if i is not None and old_keys[i] == new_keys[j]}

    def _match(self, old_keys: Sequence[bytes], new_keys: Sequence[bytes]) -> list[int | None]:
        old_ids = [self._view.identity(each.value) for each in self._shown]
        return align(old_keys, new_keys, old_ids, [self._view.identity(value) for value in self._values])

    def plan(self) -> Plan:
        self._edit()
        self._break_up_interrupted_groups()
        self._remove_unmatched()
        return self._arranged()

    def _break_up_interrupted_groups(self) -> None:
        """Let go of pieces that no longer stand with the record they come from, or whose record no longer holds them.

        They become entries of their own.
        """
        left: set[int] = set()
        current: int | None = None
        for j, i in enumerate(self._matches):
            anchor = None if i is None else self._shown[i].anchor
            if i is not None and (anchor in left or self._lost_its_record(self._shown[i])):
                self._matches[j] = None
                anchor = None
            if anchor != current and current is not None:
                left.add(current)
            current = anchor

    def _lost_its_record(self, shown: Projected) -> bool:
        return shown.call is not None and shown.record in self._overwritten

    def _edit(self) -> None:
        for j, i in enumerate(self._matches):
            if i is not None and j not in self._equal:
                shown = self._shown[i]
                rewriting = self._rewriting(shown, self._values[j])
                if rewriting is None:
                    self._matches[j] = None
                else:
                    self._apply(rewriting)

    def _rewriting(self, shown: Projected, value: JsonObject) -> Rewriting | None:
        return self._view.edit(self._transcript, shown, value)

    def _remove_unmatched(self) -> None:
        matched = set(self._matches)
        # Backwards, so that dropping one of a record's calls does not renumber those still to be dropped.
        for i in reversed(range(len(self._shown))):
            if i not in matched and self._shown[i].record not in self._dropped | self._overwritten:
                self._apply(self._view.remove(self._transcript, self._shown[i]))

    def _apply(self, rewriting: Rewriting) -> None:
        for index, change in rewriting.items():
            record = self._transcript.records[index]
            entry = record.entry
            if change is None:
                self._dropped.add(index)
            elif not isinstance(change, Message):
                self._overwritten.add(index)
                self._rewritten[index] = self._view.write(change, entry_id=entry.entry_id, now_ms=entry.created_at_ms)
            elif change != record.message:
                record.message = change
                said = reworded(entry, self._readings[index], change)
                self._rewritten[index] = said or hub.write(
                    change, entry_id=entry.entry_id, created_at_ms=entry.created_at_ms
                )

    def _arranged(self) -> Plan:
        stays = [i is not None for i in self._matches]
        last_staying = max((j for j, each in enumerate(stays) if each), default=-1)
        first_new = next((j for j, each in enumerate(stays) if not each), len(stays))
        append: list[NewEntry] = []
        moved: set[int] = set()
        for j in range(first_new, len(self._matches)):
            i = self._matches[j]
            if i is None:
                append.append(self._written[j])
            elif first_new < last_staying:
                for index in self._belonging(self._shown[i].anchor):
                    if index not in moved:
                        moved.add(index)
                        append.append(self._rewritten.get(index) or as_new(self._transcript.records[index].entry))
        records = self._transcript.records
        return Plan(
            remove=tuple(records[index].entry.entry_id for index in sorted(self._dropped | moved)),
            replace=tuple(
                each for index, each in sorted(self._rewritten.items()) if index not in moved | self._dropped
            ),
            append=tuple(append),
        )

    def _belonging(self, anchor: int) -> list[int]:
        """Return the records that must move along with `anchor`: what folds into it, and unseen answers to its calls."""
        seen = {each.record for each in self._shown}
        transcript = self._transcript
        answers = [transcript.answers.get(each) for each in transcript.calls_shown_with(anchor)]
        unseen = [each for each in answers if each is not None and each not in seen]
        return [each for each in (anchor, *transcript.folded.get(anchor, ()), *unseen) if each not in self._dropped]


class _BlunterDraft(_Draft):
    """What is edited, and is not the store's own, is taken out of its record and written as an entry of the store's own."""

    def _rewriting(self, shown: Projected, value: JsonObject) -> Rewriting | None:
        return self._view.overwrite(self._transcript, shown, value)


class _BluntestDraft(_Draft):
    """Everything shown goes, and the list is written anew."""

    def _match(self, old_keys: Sequence[bytes], new_keys: Sequence[bytes]) -> list[int | None]:
        return [None] * len(new_keys)


def as_new(entry: Entry) -> NewEntry:
    """Return a stored entry as one to store again, the same in everything that is its own."""
    return NewEntry(
        entry_id=entry.entry_id,
        kind=entry.kind,
        role=entry.role,
        dialect=entry.dialect,
        created_at_ms=entry.created_at_ms,
        body=entry.body,
    )


def reworded(entry: Entry, old: Message, message: Message) -> NewEntry | None:
    """Return `entry`, whose reading is `old`, saying `message` in its own dialect; None if that dialect is unknown.

    Raises:
        InvalidInput: JSON cannot carry a value in the message exactly.
    """
    created_at_ms = entry.created_at_ms if message.created_at is None else ms_from_datetime(message.created_at)
    if entry.dialect == hub.DIALECT:
        return hub.write(message, entry_id=entry.entry_id, created_at_ms=created_at_ms)
    revise = _REVISERS.get(entry.dialect)
    if revise is None:
        return None
    plain = revise(entry, old, message)
    return structs.replace(as_new(entry), created_at_ms=created_at_ms, body=exact_json.encode(plain, "message"))


_REVISERS: Final = {
    session.DIALECT: session.revise,
    chat_item.DIALECT: chat_item.revise,
    openai_chat.DIALECT: openai_chat.revise,
}
