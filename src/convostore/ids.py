"""Ids: minted, derived, checked.

Conversation ids, entry ids, contexts and subject ids are any text of 1 to 255 UTF-8 bytes without control characters or
lone surrogates. They are compared exactly: nothing is trimmed, folded or normalised.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import uuid_utils

from convostore import limits
from convostore.errors import InvalidInput

__all__ = ["Clock", "Mint", "check_id", "derived_id", "natural_key", "new_id", "now_ms"]

Clock = Callable[[], int]
"""Returns the time in whole milliseconds since 1970 UTC."""

Mint = Callable[[], str]
"""Returns an id that was never returned before, anywhere."""

_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def new_id() -> str:
    """Return a fresh time-ordered id (UUID version 7, RFC 9562, in its 36-character form)."""
    return str(uuid_utils.uuid7())


def now_ms() -> int:
    """Return the wall clock in whole milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def check_id(value: object, what: str, *, bytes_max: int = limits.id_bytes_max) -> str:
    """Return `value` if it can be an id; `what` names it in the error.

    Raises:
        InvalidInput: it is not a string, is empty, too long, or holds a control character or a lone surrogate.
    """
    if type(value) is str and value and len(value) <= bytes_max and value.isascii() and value.isprintable():
        return value  # nearly every id, at a third of the cost
    if type(value) is not str:
        raise InvalidInput(f"{what} must be a string, not {type(value).__name__}")
    if not value:
        raise InvalidInput(f"{what} is empty; give at least one character")
    if found := _FORBIDDEN.search(value):
        raise InvalidInput(
            f"{what} {value[:80]!r} holds {found.group()!r} at {found.start()}; control characters and lone surrogates"
            " cannot be part of an id"
        )
    if (size := len(value.encode())) > bytes_max:
        raise InvalidInput(f"{what} {value[:40]!r}... is {size} UTF-8 bytes long; {bytes_max} is the most")
    return value


def derived_id(*parts: str | int) -> str:
    """Return the same id for the same parts, always: what makes a repeated call recognisable as a repetition.

    The parts are length-prefixed before they are hashed (SHA-256), so no two lists of parts run together. The result has
    the form of a UUID version 8 (RFC 9562), which is the version for ids made one's own way.
    """
    import hashlib  # brings OpenSSL, which most programs that keep conversations do not need here

    digest = hashlib.sha256()
    for part in parts:
        data = str(part).encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    bits = int.from_bytes(digest.digest()[:16], "big")
    bits = bits & ~(0xF << 76) & ~(0x3 << 62) | (0x8 << 76) | (0x2 << 62)
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def natural_key(*parts: str) -> str:
    """Join the parts of a framework's natural key into one id that no other list of parts has.

    Short keys stay readable (``app/user/session``, with ``%`` and ``/`` inside a part percent-encoded); a key that is
    too long for an id, or holds what an id may not, becomes a derived id.
    """
    joined = "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)
    try:
        return check_id(joined, "key")
    except InvalidInput:
        return derived_id("natural_key", *parts)
