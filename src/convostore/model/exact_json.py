r"""JSON in, the same JSON out: the one place where values become JSON text and come back.

Kept exactly: key order, integers up to 4300 digits, floats (-0.0 too), every string (lone surrogates too, as ``\ud83d``
escapes: cut-off JavaScript strings carry them). Refused before anything is written: NaN, infinities, bytes, tuples,
sets, datetimes, keys that are not strings, subclasses (an enum would come back as plain text), other objects, and nesting
beyond `limits.json_depth_max`. msgspec does the work; it turns the refused ones into something else silently and cannot
carry lone surrogates, hence the check before it and the standard library's json behind it.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, NoReturn, TypeAlias

import msgspec

from convostore import limits
from convostore.errors import InvalidInput

__all__ = ["JsonObject", "JsonValue", "check", "decode", "decode_object", "encode", "encode_checked"]

JsonValue: TypeAlias = Any
"""dict with str keys, list, str, int, float, bool or None, all the way down; what `check` accepts."""

JsonObject: TypeAlias = dict[str, Any]

_LEAVES = frozenset({str, int, bool, type(None)})
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def check(value: JsonValue, what: str) -> None:
    """Raise InvalidInput, naming the place inside `value`, if JSON cannot carry `value` exactly.

    What only shows when it is encoded (too many digits, a surrogate pair in halves) is left to the encoder.
    """
    if not _is_exact(value, limits.json_depth_max):
        raise InvalidInput(f"{what} cannot be kept exactly: {_explain(value, what, limits.json_depth_max)}")


def encode(value: JsonValue, what: str = "value") -> bytes:
    """Return `value` as compact UTF-8 JSON; `what` names it in the error.

    Raises:
        InvalidInput: JSON cannot carry it exactly.
    """
    check(value, what)
    try:
        return encode_checked(value)
    except ValueError as error:
        raise InvalidInput(f"{what} cannot be kept exactly: {error}") from None


def encode_checked(value: JsonValue) -> bytes:
    """Return a value that `check` has passed, or a Struct made of such values, as compact UTF-8 JSON.

    Raises:
        ValueError: an integer in it has too many digits, or a string both halves of a surrogate pair side by side.
    """
    try:
        return _encode(value)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, builtin_types=(msgspec.Raw,))
        text = json.dumps(plain, separators=(",", ":"), default=_decode_raw)
        if _as_read(json.loads(text)) != _as_read(plain):
            raise ValueError(
                "both halves of a surrogate pair stand side by side in a string, which JSON would join; join them first"
            ) from None
        return text.encode()


def _as_read(value: JsonValue) -> str:
    """Return JSON in which each string stands as it is, not as escapes that may say two things."""
    return json.dumps(value, ensure_ascii=False, default=_decode_raw)


def _decode_raw(value: object) -> JsonValue:
    if isinstance(value, msgspec.Raw):
        return decode(bytes(value))
    raise TypeError(f"{type(value).__name__} is not JSON")


def decode(data: bytes) -> JsonValue:
    """Return the value that `data` is the JSON text of.

    Raises:
        ValueError: `data` is not JSON, or holds a number that no Python float or int is.
    """
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # Lone surrogates are what msgspec refuses and json reads; anything else is refused again below.
        value = json.loads(data.decode("utf-8", "surrogatepass"), parse_constant=_refuse_constant)
        if not _is_exact(value, 10**6):
            raise ValueError("a number in this JSON is out of range") from None
        return value


def decode_object(data: bytes) -> JsonObject:
    """Return the JSON object that `data` is the text of.

    Raises:
        ValueError: it is not JSON, or no object.
    """
    value = decode(data)
    if not isinstance(value, dict):
        raise ValueError(f"a JSON {type(value).__name__}, not an object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_exact(value: Any, depth: int) -> bool:
    """Walk a value that may be large: the common leaves are passed without a call."""
    kind = type(value)
    if kind is dict:
        if depth == 0:
            return False
        for key, each in value.items():
            if type(key) is not str:
                return False
            kind = type(each)
            if kind in _LEAVES or (kind is float and isfinite(each)):
                continue
            if not _is_exact(each, depth - 1):
                return False
        return True
    if kind is list:
        if depth == 0:
            return False
        for each in value:
            kind = type(each)
            if kind in _LEAVES or (kind is float and isfinite(each)):
                continue
            if not _is_exact(each, depth - 1):
                return False
        return True
    return kind in _LEAVES or (kind is float and isfinite(value))


def _explain(value: object, path: str, depth: int) -> str:
    """Say where and why; slow, and only called when there is something to say."""
    if isinstance(value, dict) and type(value) is dict and depth:
        for key, each in value.items():
            if type(key) is not str:
                return f"{path} has the key {key!r} of type {type(key).__name__}; keys must be strings"
            if not _is_exact(each, depth - 1):
                return _explain(each, f"{path}[{key!r}]", depth - 1)
    if isinstance(value, list) and type(value) is list and depth:
        for index, each in enumerate(value):
            if not _is_exact(each, depth - 1):
                return _explain(each, f"{path}[{index}]", depth - 1)
    path = path if len(path) <= 200 else f"{path[:120]}...{path[-60:]}"
    if type(value) in (dict, list):
        return f"{path} is nested deeper than {limits.json_depth_max} levels (or contains itself)"
    if type(value) is float:
        return f"{path} is {value}; JSON has no such number"
    return f"{path} is of type {type(value).__name__}; convert it to dict, list, str, int, float, bool or None"
