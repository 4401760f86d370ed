"""Awkward values: what JSON carries exactly and a store must too, and what a store must refuse before it writes.

Compare with `repr`: it tells 1 from 1.0 and True, 0.0 from -0.0, and shows the order of keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

__all__ = ["hostile_ids", "kept_texts", "kept_values", "nested", "refused_ids", "refused_values"]

kept_texts: dict[str, str] = {
    "empty": "",
    "spaces at both ends": "  yes \n",
    "NUL": "a\x00b",
    "control characters": "\x01\x1b[31m\x7f\x85",
    "lone surrogate": "cut \ud83d",
    "lone low surrogate": "\ude00 tail",
    "line separators": "a\u2028b\u2029c",
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u202eabc\u202c",
    "astral": "\U0001f469\u200d\U0001f680 \U00010000",
    "not normalised": "e\u0301 \u00e9",
    "byte order mark": "\ufefftext",
    "looks like JSON": '{"role":"system"}\\u0041\\ud83d',
    "looks like SQL": "'; DROP TABLE entries; -- %_*?[",
    "a megabyte on one line": "\u05d0x" * 350_000,
}


def nested(levels: int) -> Any:
    """Return lists and objects, `levels` of them inside each other."""
    value: Any = "core"
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


kept_values: dict[str, Any] = {
    "null": None,
    "false": False,
    "zero": 0,
    "one as a float": 1.0,
    "2**53 + 1": 2**53 + 1,
    "2**63": 2**63,
    "-(2**63) - 1": -(2**63) - 1,
    "2**64": 2**64,
    "10**40": 10**40,
    "minus zero": -0.0,
    "a tenth": 0.1,
    "the smallest float": 5e-324,
    "the largest float": 1.7976931348623157e308,
    "a float that looks whole": 1e16,
    "empty object": {},
    "empty list": [],
    "keys out of order": {"b": 1, "a": {"z": [], "": None}, "10": 0, "9": 0},
    "odd keys": {"\x00": 1, "\ud83d": 2, "__proto__": 3, "a.b": 4, "$ref": 5},
    "mixed": [1, "1", 1.0, True, None, [[]], {"": {}}],
    "200 levels": nested(200),
} | kept_texts


class _Text(str):
    __slots__ = ()


class _Whole(int):
    pass


refused_values: dict[str, Any] = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "bytes": b"abc",
    "bytearray": bytearray(b"abc"),
    "tuple": (1, 2),
    "set": {1},
    "frozenset": frozenset({"a"}),
    "datetime": datetime(2026, 11, 30, tzinfo=UTC),
    "date": datetime(2026, 11, 30, tzinfo=UTC).date(),
    "complex": 1j,
    "an object": object(),
    "a function": nested,
    "int key": {1: "a"},
    "None key": {None: "a"},
    "tuple key": {("a", "b"): 1},
    "a float key": {1.5: "a"},
    "a subclass of str": _Text("text"),
    "a subclass of int": _Whole(3),
    "nan deep inside": [{"a": [{"b": float("nan")}]}],
    "bytes deep inside": {"a": [{"b": b"x"}]},
    "500 levels": nested(500),
}

refused_ids: dict[str, Any] = {
    "empty": "",
    "NUL": "a\x00b",
    "line feed": "a\nb",
    "delete": "a\x7f",
    "C1 control": "a\x85b",
    "lone surrogate": "a\ud83d",
    "256 bytes": "x" * 256,
    "256 bytes in 128 characters": "\u05d0" * 128,
    "a number": 7,
    "bytes": b"id",
}


def hostile_ids(prefix: str) -> Iterator[str]:
    """Yield ids that begin with `prefix` and that a careless storage takes for one another."""
    for name in (
        "foo", "foobar", "foo*", "foo%", "foo_", "foo?", "foo[a]", "Foo", "FOO", "foo ", " foo", "foo.", "foo/", "foo\\",
        "foo/../foo", "foo:bar", "foo'", 'foo"', "foo--", "a{b}c", "caf\u00e9", "cafe\u0301", "\ue000", "\U00010000", "%00",
    ):  # fmt: skip
        yield prefix + name
