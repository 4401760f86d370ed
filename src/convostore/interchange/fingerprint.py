"""A conversation's fingerprint: equal for equal content, wherever and however it is stored.

SHA-256 over what a copy must keep: id, context, subject, creation time, fields, documents and every entry (id, kind, role,
dialect, time, body) in order. Left out is what a store gives anew: positions, stamps, revisions and the time of the
last commit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from msgspec import Struct

from convostore.contracts.backend import Entry, Head

__all__ = ["Fingerprint", "Identity"]


class Identity(Struct, frozen=True):
    """What never changes about a conversation, but for an owner given later."""

    conversation_id: str
    context: str | None
    subject_id: str | None
    created_at_ms: int

    @classmethod
    def of(cls, head: Head) -> Identity:
        """Return a head's."""
        return cls(head.conversation_id, head.context, head.subject_id, head.created_at_ms)


class Fingerprint:
    """A fingerprint in the making: entries are added one by one, memory does not grow with them."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.fields: dict[str, str] = {}
        self.documents: dict[str, str] = {}
        self.entry_count = 0
        self._entries = hashlib.sha256()

    def set_fields(self, fields: Mapping[str, bytes]) -> None:
        """Take these for the conversation's fields."""
        self.fields = {name: _digest(value) for name, value in fields.items()}

    def set_document(self, name: str, value: bytes | None) -> None:
        """Take `value` for a document; None drops it."""
        if value is None:
            self.documents.pop(name, None)
        else:
            self.documents[name] = _digest(value)

    def has_document(self, name: str, value: bytes) -> bool:
        """Say whether a document of this name and value was set."""
        return self.documents.get(name) == _digest(value)

    def add(self, entry: Entry) -> None:
        """Add the next entry."""
        self.entry_count += 1
        # No name holds a control character, so nothing runs together.
        role = "" if entry.role is None else f"={entry.role}"
        label = f"{entry.entry_id}\0{entry.kind}\0{role}\0{entry.dialect}\0{entry.created_at_ms}\0{len(entry.body)}\0"
        self._entries.update(label.encode())
        self._entries.update(entry.body)

    def text(self) -> str:
        """Return the fingerprint of what there is so far, 64 hexadecimal digits; adding may go on."""
        whole = [
            self.identity.conversation_id,
            self.identity.context,
            self.identity.subject_id,
            self.identity.created_at_ms,
            sorted(self.fields.items()),
            sorted(self.documents.items()),
            self.entry_count,
            self._entries.hexdigest(),
        ]
        return _digest(json.dumps(whole).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
