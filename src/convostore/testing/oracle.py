"""What should be stored, kept in plain dictionaries: the rules of a commit once more, in the simplest way.

On purpose without `contracts.law`: a mistake there is not made here as well. Positions and stamps are the backend's to choose;
the oracle checks what is promised of them and learns them from what is read.
"""

from __future__ import annotations

from typing import Any

from convostore.contracts.backend import Change, Entry, Head, NewEntry, Snapshot

__all__ = ["Oracle"]


class Oracle:
    """What should be stored: conversations as dictionaries, in the order they were created."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}

    def commit(self, wanted: Change) -> str:
        """Do `wanted` and return "applied", or return "repeated" or the code of the error and do nothing."""
        there = self.kept.get(wanted.conversation_id)
        if there and wanted.only_subject is not None and there["subject"] != wanted.only_subject:
            return "CONVERSATION_NOT_FOUND" if wanted.existence == "must_exist" else "CONVERSATION_EXISTS"
        if there is None:
            if wanted.existence == "must_exist" or wanted.delete:
                return "CONVERSATION_NOT_FOUND"
            if wanted.expected_revision is not None:
                return "REVISION_CONFLICT"
            return self._rewrite(wanted, _newborn(wanted))
        if _has_happened(wanted, there):
            return "repeated"
        if wanted.existence == "must_create":
            return "CONVERSATION_EXISTS"
        if wanted.expected_revision not in (None, there["revision"]):
            return "REVISION_CONFLICT"
        if wanted.delete:
            del self.kept[wanted.conversation_id]
            return "applied"
        if wanted.set_subject is not None and there["subject"] not in (None, wanted.set_subject):
            return "CONFLICT"
        return self._rewrite(wanted, {**there, "updated": max(wanted.at_ms, there["updated"] + 1)})

    def _rewrite(self, wanted: Change, after: dict[str, Any]) -> str:
        log = [dict(each) for each in after["log"]]
        if wanted.cut_after is not None:
            log = [each for each in log if each["position"] <= wanted.cut_after]
        log = [each for each in log if each["id"] not in wanted.remove]
        rewritten = len(log) < len(after["log"]) or bool(wanted.replace)
        for new in wanted.replace:
            old = next((each for each in log if each["id"] == new.entry_id), None)
            if old is None:
                return "NOT_FOUND"
            if new.expected_stamp not in (None, old["stamp"]):
                return "REVISION_CONFLICT"
            old |= {"content": _content(new), "created": new.created_at_ms, "stamp": None}
        for new in wanted.append:
            if any(each["id"] == new.entry_id for each in log):
                return "DUPLICATE_ENTRY"
            log.append(
                {
                    "id": new.entry_id,
                    "content": _content(new),
                    "created": new.created_at_ms,
                    "position": None,
                    "stamp": None,
                }
            )
        self.kept[wanted.conversation_id] = {
            **after,
            "log": log,
            "rewritten": rewritten,
            "revision": wanted.revision,
            "subject": wanted.set_subject or after["subject"],
            "fields": _updated(after["fields"], wanted.fields),
            "documents": _updated(after["documents"], wanted.documents),
        }
        return "applied"

    def compare(self, conversation_id: str, snapshot: Snapshot | None) -> None:
        """Raise AssertionError if `snapshot`, all of a conversation, is not what should be there; learn its counters."""
        there = self.kept.get(conversation_id)
        if there is None:
            assert snapshot is None, "it should not be there"
            return
        assert snapshot is not None, "it should be there"
        head = snapshot.head
        assert [(each["id"], each["content"], each["created"]) for each in there["log"]] == [
            (each.entry_id, _content(each), each.created_at_ms) for each in snapshot.entries
        ]
        assert there["documents"] == snapshot.documents
        assert {
            **{
                name: there[name] for name in ("born", "revision", "created", "updated", "context", "subject", "fields")
            },
            "count": len(there["log"]),
        } == {
            "born": head.born,
            "revision": head.revision,
            "created": head.created_at_ms,
            "updated": head.updated_at_ms,
            "context": head.context,
            "subject": head.subject_id,
            "fields": head.fields,
            "count": head.entry_count,
        }
        self._learn(there, snapshot.entries, head)

    def _learn(self, there: dict[str, Any], entries: tuple[Entry, ...], head: Head) -> None:
        counter = there["counter"]
        for mine, theirs in zip(there["log"], entries, strict=True):
            if mine["position"] is None:
                assert theirs.position > counter, "a position was given again"
                assert theirs.position == theirs.stamp
            else:
                assert mine["position"] == theirs.position, "an entry moved"
                assert theirs.stamp > counter if mine["stamp"] is None else theirs.stamp == mine["stamp"]
            mine |= {"position": theirs.position, "stamp": theirs.stamp}
        positions = [each.position for each in entries]
        assert sorted(set(positions)) == positions
        assert head.last_stamp >= max([counter, *(each.stamp for each in entries)])
        if there["rewritten"]:
            assert counter < head.last_rewrite <= head.last_stamp
        else:
            assert there["rewrite"] == head.last_rewrite
        there |= {"counter": head.last_stamp, "rewrite": head.last_rewrite, "rewritten": False}


def _newborn(wanted: Change) -> dict[str, Any]:
    created = wanted.at_ms if wanted.created_at_ms is None else wanted.created_at_ms
    return {
        "born": wanted.revision,
        "created": created,
        "updated": max(created, wanted.at_ms),
        "context": wanted.context,
        "subject": wanted.subject_id,
        "fields": {},
        "documents": {},
        "log": [],
        "counter": 0,
        "rewrite": 0,
        "rewritten": False,
    }


def _has_happened(wanted: Change, there: dict[str, Any]) -> bool:
    if wanted.revision == there["revision"]:
        return True
    if not wanted.append or wanted.cut_after is not None or wanted.remove or wanted.delete:
        return False
    contents = {each["id"]: each["content"] for each in there["log"]}
    return all(contents.get(each.entry_id) == _content(each) for each in wanted.append)


def _content(given: NewEntry | Entry) -> tuple[str, str | None, str, bytes]:
    return given.kind, given.role, given.dialect, given.body


def _updated(kept: dict[str, bytes], given: Any) -> dict[str, bytes]:
    return {name: value for name, value in {**kept, **given}.items() if value is not None}
