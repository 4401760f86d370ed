"""What a list store shows of a log, piece by piece, and how it says its changes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Protocol, TypeAlias

from msgspec import Struct

from convostore.contracts.backend import NewEntry
from convostore.model import exact_json
from convostore.model.exact_json import JsonObject
from convostore.model.message import Message
from convostore.stores.transcript import Call, Transcript

__all__ = ["Projected", "Rewriting", "View", "key_of"]

Rewriting: TypeAlias = Mapping[int, Message | JsonObject | None]
"""By record: its new hub reading (to be said in the record's own dialect), its new value in the view's dialect, or None to
drop the record."""


class Projected(Struct, frozen=True):
    """`value` as the store shows it: the message of a record (`call` None), or one of its calls or results.

    `anchor` is the record at whose place it stands; what shares an anchor stands together.
    """

    value: JsonObject
    record: int
    anchor: int
    call: Call | None = None


def key_of(value: JsonObject) -> bytes:
    """Return what two values have in common when they are the same JSON, key order included."""
    return exact_json.encode_checked(value)


class View(Protocol):
    """How a list store reads a transcript and says a change to it."""

    def project(self, transcript: Transcript, /) -> list[Projected]:
        """Return everything the store shows, oldest first."""
        ...

    def write(self, value: JsonObject, /, *, entry_id: str, now_ms: int) -> NewEntry:
        """Return a new entry that keeps `value` in the store's own words.

        Raises:
            InvalidInput: it is not what this store keeps.
        """
        ...

    def identity(self, value: JsonObject, /) -> Hashable:
        """Return what makes a changed value still the same thing (an id), or None where nothing does."""
        ...

    def edit(self, transcript: Transcript, shown: Projected, value: JsonObject, /) -> Rewriting | None:
        """Return what to rewrite so that `shown` becomes `value`, as well as can be said; None if it cannot."""
        ...

    def overwrite(
        self, transcript: Transcript, shown: Projected, value: JsonObject, /, *, alone: bool
    ) -> Rewriting | None:
        """Return what to rewrite so that `shown` becomes exactly `value`, in the store's own words; None if it cannot.

        `alone`: its record shows nothing else.
        """
        ...

    def remove(self, transcript: Transcript, shown: Projected, /) -> Rewriting:
        """Return what to rewrite so that `shown` is no longer shown."""
        ...
