"""sqlite3's errors in this library's words: the one place where they are translated."""

from __future__ import annotations

import sqlite3
from typing import Final, TypeAlias

from convostore.contracts.backend import Damage
from convostore.errors import CorruptDataError, StoreError, UnavailableError

__all__ = [
    "SQLITE_ERRORS",
    "SqliteError",
    "is_busy",
    "is_corrupt",
    "is_read_only",
    "is_undecodable",
    "translated",
    "unusable",
]

# Primary result codes; the sqlite3 module has names for them only where SQLite was built with each.
_ERROR, _PERM, _BUSY, _LOCKED, _NOMEM, _READONLY, _IOERR, _CORRUPT, _FULL = 1, 3, 5, 6, 7, 8, 10, 11, 13
_CANTOPEN, _PROTOCOL, _SCHEMA, _CONSTRAINT, _MISMATCH, _NOTADB = 14, 15, 17, 19, 20, 26

_DAMAGE = frozenset({_ERROR, _CORRUPT, _CONSTRAINT, _MISMATCH, _NOTADB})

_ADVICE = {
    _PERM: "check the rights on it",
    _BUSY: "another process keeps it locked; try again, or raise busy_timeout_s",
    _LOCKED: "another connection keeps it locked; try again",
    _NOMEM: "there is no memory left; try again",
    _READONLY: "it may not be written; check the rights on the file and its folder",
    _IOERR: "reading or writing it failed; check the disk, then try again",
    _FULL: "the disk is full; make room, then try again",
    _CANTOPEN: "it cannot be opened; check the path, the rights and the number of open files",
    _PROTOCOL: "its lock could not be had; try again",
}


def is_busy(error: SqliteError) -> bool:
    """Say whether waiting may help."""
    return _primary(error) in (_BUSY, _PROTOCOL)


def is_corrupt(error: sqlite3.Error) -> bool:
    """Say whether SQLite found a page that is not what it wrote."""
    return _primary(error) in (_CORRUPT, _NOTADB)


def is_read_only(error: sqlite3.Error) -> bool:
    """Say whether the database may not be written."""
    return _primary(error) == _READONLY


def is_undecodable(error: sqlite3.Error) -> bool:
    """Say whether a text column held bytes that are no UTF-8; the module has no code for it."""
    return _primary(error) is None and "decode" in str(error)


def unusable(error: BaseException | None) -> bool:
    """Say whether a connection that met `error` is better opened anew."""
    return isinstance(error, SQLITE_ERRORS) and _primary(error) in (
        None,
        _IOERR,
        _CORRUPT,
        _CANTOPEN,
        _PROTOCOL,
        _NOTADB,
    )


SqliteError: TypeAlias = sqlite3.Error | UnicodeDecodeError
SQLITE_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What a statement may raise: the second where SQLite's message quotes a damaged schema and the module cannot decode it."""


def translated(error: SqliteError, path: str | None, conversation_id: str = "") -> StoreError:
    """Return a new error of this library for one of sqlite3's, which becomes its cause.

    Locks, full disks and failing ones are UnavailableError. What SQLite cannot make sense of (a malformed page, a missing
    table, an index that contradicts its table) is CorruptDataError, of `conversation_id` if one was asked for.
    """
    where = "the in-memory database" if path is None else f"the database {path!r}"
    primary = _primary(error)
    result: StoreError
    if primary in _DAMAGE or isinstance(error, UnicodeDecodeError) or is_undecodable(error):
        what = f"{where} is damaged ({error})"
        result = CorruptDataError(conversation_id, [Damage(conversation_id, what)])
        if not conversation_id:
            result.args = (f"{what}; its bytes are untouched, restore it from a backup or recover it with sqlite3",)
    else:
        advice = _ADVICE.get(primary or 0, "try again")
        result = UnavailableError(f"{where} is unavailable ({error}): {advice}", context={"sqliteCode": primary})
    result.__cause__ = error
    return result


def _primary(error: SqliteError) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
