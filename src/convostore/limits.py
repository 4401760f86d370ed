"""Every limit, in one place, the same on every backend. Exceeding one is InvalidInput, before anything is written."""

from __future__ import annotations

from typing import Final

__all__ = [
    "body_bytes_max",
    "change_bytes_max",
    "change_entries_max",
    "document_bytes_max",
    "documents_max",
    "fields_bytes_max",
    "id_bytes_max",
    "json_depth_max",
    "json_int_digits_max",
    "name_bytes_max",
    "page_heads_default",
    "page_heads_max",
]

id_bytes_max: Final = 255
"""UTF-8 bytes of a conversation id, entry id, context, subject id or revision."""

name_bytes_max: Final = 100
"""UTF-8 bytes of a kind, role, dialect, field or document name."""

body_bytes_max: Final = 32 * 1024 * 1024
"""Bytes of one entry's body."""

change_bytes_max: Final = 64 * 1024 * 1024
"""Bytes of all bodies, fields and documents of one change together."""

change_entries_max: Final = 100_000
"""Entries appended, replaced and removed by one change together."""

document_bytes_max: Final = 32 * 1024 * 1024
"""Bytes of one document."""

documents_max: Final = 64
"""Documents written by one change."""

fields_bytes_max: Final = 256 * 1024
"""Bytes of all fields of a head (title, metadata, ...): they come with every listing."""

page_heads_default: Final = 50
"""Heads in a page when the caller does not say."""

page_heads_max: Final = 1000
"""Heads in one page."""

json_depth_max: Final = 256
"""Levels of lists and objects inside one JSON value: the depth that every Python and every driver can walk."""

json_int_digits_max: Final = 4300
"""Digits of an integer in JSON: CPython prints and parses no more unless told otherwise."""
