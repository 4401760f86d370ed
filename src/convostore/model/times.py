"""Instants: whole milliseconds since 1970 UTC inside, aware datetimes outside, ISO 8601 with three decimals on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from convostore.errors import InvalidInput

__all__ = ["check_ms", "datetime_from_ms", "iso_from_ms", "ms_from_datetime", "ms_from_iso", "ms_max", "ms_min"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)

ms_min: Final = -62_135_596_800_000
"""0001-01-01T00:00:00.000Z, the first instant a datetime has."""
ms_max: Final = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z, the last."""


@lru_cache(maxsize=4096)  # what was appended together has one time, and datetimes are immutable
def datetime_from_ms(ms: int) -> datetime:
    """Return the aware UTC datetime; exact, unlike fromtimestamp, whose float is short of digits in far years."""
    return _EPOCH + timedelta(milliseconds=ms)


def ms_from_datetime(value: datetime, what: str = "time") -> int:
    """Return whole milliseconds, rounded down.

    Raises:
        InvalidInput: not a datetime, or one without a time zone, which is not an instant.
    """
    if not isinstance(value, datetime):
        raise InvalidInput(f"{what} must be a datetime, not {type(value).__name__}")
    if value.utcoffset() is None:
        raise InvalidInput(f"{what} {value.isoformat()} has no time zone; give an aware datetime (tzinfo=UTC)")
    return (value - _EPOCH) // _MILLISECOND


def check_ms(value: object, what: str) -> int:
    """Return `value` if it is a whole number of milliseconds that a datetime can hold.

    Raises:
        InvalidInput: otherwise.
    """
    if type(value) is not int or not ms_min <= value <= ms_max:
        raise InvalidInput(f"{what} must be whole milliseconds between the years 1 and 9999, not {value!r}")
    return value


def iso_from_ms(ms: int) -> str:
    """Return e.g. ``2026-11-30T12:00:00.000Z``: what JavaScript's toISOString prints."""
    return datetime_from_ms(ms).strftime("%Y-%m-%dT%H:%M:%S.").rjust(20, "0") + f"{ms % 1000:03d}Z"


def ms_from_iso(text: str, what: str = "time") -> int:
    """Return the milliseconds of an ISO 8601 time with a zone.

    Raises:
        InvalidInput: it is not one.
    """
    try:
        return ms_from_datetime(datetime.fromisoformat(text), what)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{what} {text!r} is not an ISO 8601 time with a zone: {error}") from error
