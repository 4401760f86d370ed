"""Saving a list: the smallest change after which the store shows exactly that list (X1).

What is equal keeps its entry: bytes, id and position. What changed is said in its entry's own words where they can say it,
so that what this store cannot see of the entry stays; otherwise in the store's. What cannot be put in its place, because
the log only grows at its end, moves there with all that follows it. What the store does not show stays where it is.

A plan is proven before it is used: the log as it would be is projected again and must be the list that was to be saved. If
it is not, the next, blunter way is taken; the last one writes all but plain messages anew, in the store's own words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import Final

from msgspec import Struct, structs

from convostore.contracts.backend import Entry, NewEntry
from convostore.dialects import chat_item, hub, openai_chat, session
from convostore.ids import Mint
from convostore.model import exact_json
from convostore.model.exact_json import JsonObject
from convostore.model.message import Message
from convostore.model.times import ms_from_datetime
from convostore.stores.alignment import Alignment, align
from convostore.stores.projection import Projected, Rewriting, View, key_of
from convostore.stores.transcript import Transcript, transcribe

__all__ = ["Plan", "as_entry", "plan_save", "reworded"]


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
    """Return the change after which `view` shows `values` of the log that now is `entries`.

    Cost: that of both lists, a few times over.

    Raises:
        InvalidInput: a value is not what this store keeps.
        CorruptDataError: an entry of a dialect we know is not one of it.
    """
    written = [view.write(value, entry_id=mint(), now_ms=now_ms) for value in values]
    new_keys = [each.body for each in written]
    log: Sequence[Entry] = entries
    strays = _strays(transcribe(entries, conversation_id))
    last = entries[-1].position if entries else 0
    # Nearly always the first step does it. A second one mends what the first has changed elsewhere; where the words of the
    # entries cannot say it, one of the blunter steps does, and the next two mend that.
    for way in (_Draft, _Draft, _BlunterDraft, _BlunterDraft, _BlunterDraft):
        # A change may alter what is shown elsewhere (which call a result answers), so the next step begins from what came
        # of the one before, and sees that as a difference too.
        draft = way(view, transcribe(log, conversation_id), values, written, new_keys, mint, strays)
        log = _applied(log, draft.plan(), last)
        plan = _difference(entries, log)
        after = transcribe(_applied(entries, plan, last), conversation_id)
        if [key_of(each.value) for each in view.project(after)] == new_keys:
            return plan
    return _BluntestDraft(view, transcribe(entries, conversation_id), values, written, new_keys, mint, strays).plan()


def _strays(transcript: Transcript) -> Set[str]:
    """Return the ids of results that answer no call: an edit may make one seem to, which does not make it the call's."""
    return {
        record.entry.entry_id
        for index, record in enumerate(transcript.records)
        if record.message.role == "tool" and index not in transcript.answered
    }


def _applied(entries: Sequence[Entry], plan: Plan, last: int) -> list[Entry]:
    """Return the log as it would be once `plan` is committed; positions up to `last` are not given again."""
    replaced = {each.entry_id: each for each in plan.replace}
    removed = set(plan.remove)
    log = [
        as_entry(replaced.get(each.entry_id, each), each.position) for each in entries if each.entry_id not in removed
    ]
    last = max(last, entries[-1].position if entries else 0)
    return log + [as_entry(each, last + 1 + k) for k, each in enumerate(plan.append)]


def _difference(before: Sequence[Entry], after: Sequence[Entry]) -> Plan:
    """Return the plan that makes a log that was `before` be `after`; what is new there has the higher positions."""
    places = {each.position: each for each in before}
    kept = {each.position for each in after if each.position in places}
    return Plan(
        remove=tuple(each.entry_id for each in before if each.position not in kept),
        replace=tuple(
            each.as_new() for each in after if each.position in kept and each.as_new() != places[each.position].as_new()
        ),
        append=tuple(each.as_new() for each in after if each.position not in kept),
    )


def as_entry(entry: Entry | NewEntry, position: int) -> Entry:
    """Return what a new entry will be once stored at `position`."""
    return Entry(
        position, position, entry.entry_id, entry.kind, entry.role, entry.dialect, entry.created_at_ms, entry.body
    )


class _Draft:
    """A plan in the making: edits are said in the words of the entries they change."""

    def __init__(
        self,
        view: View,
        transcript: Transcript,
        values: Sequence[JsonObject],
        written: Sequence[NewEntry],
        new_keys: Sequence[bytes],
        mint: Mint,
        strays: Set[str],
    ) -> None:
        self._view = view
        self._transcript = transcript
        self._values = values
        self._written = written
        self._mint = mint
        self._strays = strays
        self._shown = view.project(transcript)
        self._anchors = {each.record: each.anchor for each in self._shown}
        self._readings = [each.message for each in transcript.records]
        self._rewritten: dict[int, NewEntry] = {}
        self._dropped: set[int] = set()
        self._overwritten: set[int] = set()
        self._removed: set[int] = set()
        self._placed: set[int] = set()
        self._unsayable: set[int] = set()
        old_keys = [key_of(each.value) for each in self._shown]
        alignment = self._aligned(old_keys, new_keys)
        self._matches = alignment.matches
        self._moved = alignment.moved
        self._equal = {j for j, i in enumerate(self._matches) if i is not None and old_keys[i] == new_keys[j]}

    def _aligned(self, old_keys: Sequence[bytes], new_keys: Sequence[bytes]) -> Alignment:
        old_ids = [self._view.identity(each.value) for each in self._shown]
        return align(old_keys, new_keys, old_ids, [self._view.identity(value) for value in self._values])

    def plan(self) -> Plan:
        for j, i in enumerate(self._matches):
            if i is not None and j not in self._equal:
                self._edit(j, self._shown[i])
        while self._remove_unmatched() or self._let_go():
            pass
        return self._arranged()

    def _edit(self, j: int, shown: Projected) -> None:
        rewriting = self._rewriting(shown, self._values[j])
        if rewriting is None:
            self._unsayable.add(j)
        else:
            self._apply(rewriting)

    def _let_go(self) -> bool:
        """Unmatch what no longer stands together with its record, or whose record is gone: it becomes an entry.

        Returns whether there was any.
        """
        any_lost = False
        left: set[int] = set()
        current: int | None = None
        for j, i in enumerate(self._matches):
            anchor = None if i is None else self._shown[i].anchor
            if i is not None and j not in self._placed and (anchor in left or self._is_lost(j, self._shown[i])):
                any_lost = True
                if anchor in left or not self._place(j, self._shown[i].record):
                    self._matches[j] = anchor = None
            if anchor != current and current is not None:
                left.add(current)
            current = anchor
        return any_lost

    def _place(self, j: int, record: int) -> bool:
        """Say value `j` in the place of a record that is to go; False if it stays, or another has taken its place."""
        if record in self._overwritten or not self._is_vacant(record):
            return False
        self._dropped.discard(record)
        self._apply({record: self._values[j]})
        self._placed.add(j)
        return True

    def _is_lost(self, j: int, shown: Projected) -> bool:
        overwritten = shown.call is not None and shown.record in self._overwritten
        return j in self._unsayable or overwritten or self._is_vacant(shown.record)

    def _is_vacant(self, record: int) -> bool:
        return record in self._dropped

    def _rewriting(self, shown: Projected, value: JsonObject) -> Rewriting | None:
        return self._view.edit(self._transcript, shown, value)

    def _remove_unmatched(self) -> bool:
        """Take what is not in the new list out of its record. Returns whether there was any."""
        gone = set(range(len(self._shown))) - set(self._matches) - self._removed
        # Backwards, so that dropping one of a record's calls does not renumber those still to be dropped.
        for i in sorted(gone, reverse=True):
            record = self._shown[i].record
            if record not in self._dropped and record not in self._overwritten:
                self._apply(self._view.remove(self._transcript, self._shown[i]))
        self._removed |= gone
        return bool(gone)

    def _apply(self, rewriting: Rewriting) -> None:
        for index, change in rewriting.items():
            record = self._transcript.records[index]
            entry = record.entry
            if change is None:
                if index in self._anchors or entry.entry_id not in self._strays:
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
        stays = [i is not None and j not in self._moved for j, i in enumerate(self._matches)]
        last_staying = max((j for j, each in enumerate(stays) if each), default=-1)
        first_new = next((j for j, each in enumerate(stays) if not each), len(stays))
        append: list[NewEntry] = []
        moved: set[int] = set()
        for j in range(first_new, len(self._matches)):
            i = self._matches[j]
            if i is None:
                # A fresh id each time: an earlier step may have appended it already, and matched it with its equal.
                append.append(structs.replace(self._written[j], entry_id=self._mint()))
            elif j in self._moved or first_new < last_staying:
                for index in self._belonging(self._shown[i].anchor):
                    if index not in moved:
                        moved.add(index)
                        append.append(self._rewritten.get(index) or self._transcript.records[index].entry.as_new())
        records = self._transcript.records
        gone = self._dropped | moved
        return Plan(
            remove=tuple(records[index].entry.entry_id for index in sorted(gone)),
            replace=tuple(each for index, each in sorted(self._rewritten.items()) if index not in gone),
            append=tuple(append),
        )

    def _belonging(self, anchor: int) -> list[int]:
        """Return the records that must move along with `anchor`: what folds into it, and unseen answers to its calls."""
        transcript = self._transcript
        answers = [transcript.answers.get(each) for each in transcript.calls_shown_with(anchor)]
        along = (anchor, *transcript.folded.get(anchor, ()), *answers)
        return [
            each
            for each in along
            if each is not None and each not in self._dropped and self._anchors.get(each, anchor) == anchor
        ]


class _BlunterDraft(_Draft):
    """What its record's own words could not say is said in the store's: in place if it is all that the record shows.

    The other pieces of such a record follow it, unless the first of them, on which their ids depend, stays as it is.
    """

    def plan(self) -> Plan:
        pieces = [each.record for each in self._shown]
        self._alone = {record for record, count in Counter(pieces).items() if count == 1}
        self._first = {record: i for i, record in reversed(list(enumerate(pieces)))}
        return super().plan()

    def _rewriting(self, shown: Projected, value: JsonObject) -> Rewriting | None:
        return self._view.overwrite(self._transcript, shown, value, alone=shown.record in self._alone)

    def _is_vacant(self, record: int) -> bool:
        return super()._is_vacant(record) or self._first[record] in self._removed


class _BluntestDraft(_Draft):
    """Only what shows the same whatever stands around it is kept; all else is written anew."""

    def _aligned(self, old_keys: Sequence[bytes], new_keys: Sequence[bytes]) -> Alignment:
        alignment = super()._aligned(old_keys, new_keys)
        for j, i in enumerate(alignment.matches):
            if i is not None and not (old_keys[i] == new_keys[j] and self._is_plain(self._shown[i].record)):
                alignment.matches[j] = None
                alignment.moved.discard(j)
        return alignment

    def _is_plain(self, index: int) -> bool:
        message = self._transcript.records[index].message
        return not message.tool_calls and message.role != "tool" and index not in self._transcript.folded


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
    return structs.replace(entry.as_new(), created_at_ms=created_at_ms, body=exact_json.encode(plain, "message"))


_REVISERS: Final = {
    session.DIALECT: session.revise,
    chat_item.DIALECT: chat_item.revise,
    openai_chat.DIALECT: openai_chat.revise,
}
