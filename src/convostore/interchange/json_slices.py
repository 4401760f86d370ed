"""JSON texts cut into their members and elements, each with its own text beside its value.

What a decoder throws away (the form of numbers and escapes, a key that comes twice) stays in the text. The standard library's
decoder does the work: unlike msgspec it says where a value ends, and reads escapes of lone surrogates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NoReturn

import msgspec
from msgspec import Struct

from convostore.model.exact_json import JsonValue

__all__ = ["Slice", "compact", "elements", "members", "parse"]


class Slice(Struct, frozen=True):
    """A value and the text it was read from; `start` is where that begins in the whole text."""

    value: JsonValue
    text: str
    start: int


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)
_decode_key = json.JSONDecoder().raw_decode
_skip_space = re.compile(r"[ \t\n\r]*").match
# Possessive, so that a string of megabytes leaves nothing to go back to.
_STRING_OR_SPACE = re.compile(r'("(?:[^"\\]++|\\.)*+")|[ \t\n\r]+')


def parse(data: bytes) -> Slice:
    """Return the value of a whole JSON text.

    Raises:
        ValueError: it is not JSON in UTF-8; a `json.JSONDecodeError` where it has a place.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: byte {error.start + 1} is 0x{data[error.start]:02x}") from None
    try:
        return Slice(_decoder.decode(text), text, 0)
    except RecursionError:
        raise ValueError("nested too deep") from None


def elements(text: str) -> Iterator[Slice]:
    """Yield the elements of a JSON list that `parse` has accepted."""
    at = _behind_space(text, _behind_space(text, 0) + 1)
    while text[at] != "]":
        value, end = _decoder.raw_decode(text, at)
        yield Slice(value, text[at:end], at)
        at = _behind_space(text, end)
        if text[at] == ",":
            at = _behind_space(text, at + 1)


def members(text: str) -> Iterator[tuple[Slice, Slice]]:
    """Yield the keys and values of a JSON object that `parse` has accepted, in order, repeated keys too."""
    at = _behind_space(text, _behind_space(text, 0) + 1)
    while text[at] != "}":
        key, end = _decode_key(text, at)
        named = Slice(key, text[at:end], at)
        at = _behind_space(text, _behind_space(text, end) + 1)
        value, end = _decoder.raw_decode(text, at)
        yield named, Slice(value, text[at:end], at)
        at = _behind_space(text, end)
        if text[at] == ",":
            at = _behind_space(text, at + 1)


def compact(text: str) -> str:
    """Return a JSON text without the space between its tokens, otherwise as it is."""
    try:
        return msgspec.json.format(text, indent=-1)
    except msgspec.MsgspecError:  # it does not read escapes of lone surrogates; this does, at a tenth of the speed
        return _STRING_OR_SPACE.sub(lambda found: found[1] or "", text)


def _behind_space(text: str, at: int) -> int:
    found = _skip_space(text, at)
    assert found is not None
    return found.end()
