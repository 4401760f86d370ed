"""URLs of SQLite stores."""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

from convostore.backends.sqlite.backend import SqliteBackend
from convostore.errors import InvalidInput

__all__ = ["from_url"]

_FORMS: Final = "write sqlite:///relative.db, sqlite:////absolute.db or, for one in memory, sqlite://"
_PREFIX: Final = "convostore_"


def from_url(url: str, **options: object) -> SqliteBackend:
    """Return the backend that a URL names; nothing is opened yet.

    ``sqlite:///x.db`` is relative to the working directory, ``sqlite:////x.db`` absolute, ``sqlite://`` (and
    ``sqlite:///:memory:``) in memory. The path is percent-decoded: write ``%3F`` for ``?``, ``%23`` for ``#``. Options are
    `busy_timeout_s` and `readers`, as keywords or as query keys, with or without ``convostore_`` before them.

    Raises:
        InvalidInput: another scheme, a host, a fragment, no file, an unknown option or a value that is none.
    """
    if any(control in url for control in "\r\n\t"):  # which urlsplit would drop, and open another file
        raise InvalidInput(f"{url!r} holds a control character; write it as %0A, %0D or %09")
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query), errors="strict")
        path = os.fsdecode(unquote_to_bytes(parts.path))
    except (ValueError, AttributeError) as error:
        raise InvalidInput(f"{url!r} is not the URL of a SQLite store ({error}); {_FORMS}") from error
    if parts.scheme != "sqlite" or "://" not in url:
        raise InvalidInput(f"{url!r} is not the URL of a SQLite store; {_FORMS}")
    if parts.netloc:
        raise InvalidInput(f"{url!r} names a host, {parts.netloc!r}; {_FORMS}")
    if parts.fragment or "#" in url:
        raise InvalidInput(f"{url!r} has a fragment; write %23 for a # in a path")
    if path in ("", "/:memory:"):
        file = None
    elif path == "/":
        raise InvalidInput(f"{url!r} names no file; {_FORMS}")
    else:
        file = path[1:]
    given: dict[str, object] = {}
    for name, value in [*query, *options.items()]:
        option = name.removeprefix(_PREFIX)
        if option in given:
            raise InvalidInput(f"the option {option!r} is given twice")
        given[option] = value
    busy_timeout_s = _number("busy_timeout_s", given.pop("busy_timeout_s", 30.0), float)
    readers = _number("readers", given.pop("readers", 2), int)
    if given:
        raise InvalidInput(f"unknown option {next(iter(given))!r}; there are 'busy_timeout_s' and 'readers'")
    return SqliteBackend(file, busy_timeout_s=busy_timeout_s, readers=int(readers))


def _number(name: str, value: object, kind: type[int] | type[float]) -> float:
    if isinstance(value, str | int | kind) and not isinstance(value, bool):
        try:
            return kind(value)
        except ValueError:
            pass
    raise InvalidInput(f"{name} must be a number, not {value!r}")
