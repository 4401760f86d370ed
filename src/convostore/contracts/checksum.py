"""Checksums: how a damaged record is told from a sound one, the same on every backend and in the native format.

CRC-32 (ISO 3309, as in zlib) over all that identifies the record and over its body; position and stamp are left out, so a
checksum survives a copy. It finds damage, not tampering.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from zlib import crc32

__all__ = ["document_checksum", "entry_checksum", "fields_checksum"]


def entry_checksum(entry_id: str, kind: str, role: str | None, dialect: str, created_at_ms: int, body: bytes) -> int:
    """Return the checksum of an entry, 0 to 2**32 - 1."""
    return crc32(body, crc32(f"{entry_id}\0{created_at_ms}".encode(), _words_checksum(kind, role, dialect)))


@lru_cache(maxsize=1024)
def _words_checksum(kind: str, role: str | None, dialect: str) -> int:
    return crc32(f"{kind}\0{'' if role is None else f'={role}'}\0{dialect}\0".encode())


def document_checksum(name: str, value: bytes) -> int:
    """Return the checksum of a document."""
    return crc32(value, crc32(f"{name}\0".encode()))


def fields_checksum(conversation_id: str, fields: Mapping[str, bytes]) -> int:
    """Return the checksum of a head's fields, which does not depend on their order."""
    checksum = crc32(conversation_id.encode())
    for name in sorted(fields):
        checksum = crc32(fields[name], crc32(f"\0{name}\0{len(fields[name])}\0".encode(), checksum))
    return checksum
