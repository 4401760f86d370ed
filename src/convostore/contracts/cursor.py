"""Cursors: where the next page begins, in a form that only the query which gave it accepts.

A cursor is base64url JSON: a digest of the query's filters and order, and the backend's own key of the last head given.
Callers treat it as opaque.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from zlib import crc32

import msgspec
from msgspec import UNSET, UnsetType

from convostore.contracts.backend import HeadQuery
from convostore.errors import InvalidInput

__all__ = ["decode", "encode"]

_to_json = msgspec.json.Encoder().encode
_from_json = msgspec.json.Decoder(list[int | str]).decode


def encode(query: HeadQuery, key: list[int | str]) -> str:
    """Return the cursor behind the head whose sort key is `key`."""
    return base64.urlsafe_b64encode(_to_json([_digest(query), *key])).decode().rstrip("=")


def decode(query: HeadQuery, *kinds: type[int] | type[str]) -> list[int | str] | None:
    """Return the key in `query.cursor`, its parts being of `kinds`; None when the query begins at the beginning.

    Raises:
        InvalidInput: it is not a cursor, or was given by another query.
    """
    if query.cursor is None:
        return None
    try:
        padded = query.cursor + "=" * (-len(query.cursor) % 4)
        parts = _from_json(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
        digest, key = parts[0], parts[1:]
    except (ValueError, TypeError, AttributeError, IndexError):
        raise InvalidInput(f"cursor {str(query.cursor)[:60]!r} is none; pass one that a page gave, or none") from None
    if digest != _digest(query):
        raise InvalidInput("this cursor was given by a query with other filters or another order; begin without one")
    if len(key) != len(kinds) or any(type(part) is not kind for part, kind in zip(key, kinds, strict=True)):
        raise InvalidInput("this cursor was given by another backend; begin without one")
    return key


def _digest(query: HeadQuery) -> int:
    newest_first = query.newest_first and query.order == "created"
    return _filters_digest(query.context, query.subject_id, query.prefix, query.order, newest_first)


@lru_cache(maxsize=1024)
def _filters_digest(
    context: str | UnsetType | None, subject_id: str | UnsetType | None, prefix: str, order: str, newest_first: bool
) -> int:
    filters = [None if each is UNSET else [each] for each in (context, subject_id)]
    return crc32(_to_json([filters, prefix, order, newest_first]))
