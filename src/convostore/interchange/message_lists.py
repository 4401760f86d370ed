r"""Message lists as the OpenAI chat API has them, read from JSON or JSON Lines, whichever the content is.

Accepted: a list of messages; an object with `messages` (what else is in it is kept as metadata); a list of such objects or
lists; one of these per line; or one bare message per line, which makes one conversation of the file. The name of a file says
nothing here. Lines end at ``\n`` only; a byte order mark, ``\r``, NUL padding and blank lines are passed over. What cannot be
read is named by line, and everything else is still read: a conversation with a message that is none is left out whole.
JSON Lines are read line by line; a JSON document, and JSON Lines whose first line is damaged, are read whole.

Each message keeps its own JSON text: key order, number forms, escapes and unknown fields; only space between tokens goes.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final, Literal

from msgspec import Struct

from convostore.contracts.backend import NewEntry
from convostore.dialects import openai_chat
from convostore.errors import InvalidInput
from convostore.interchange.json_slices import Slice, compact, elements, members, parse
from convostore.model import exact_json
from convostore.model.exact_json import JsonValue

__all__ = ["MessageList", "Problem", "read_message_lists"]

_BOM: Final = b"\xef\xbb\xbf"
_PADDING: Final = b"\0 \t\r\n"
_SAYS_SOMETHING: Final = frozenset({"content", "tool_calls", "function_call", "refusal", "audio"})
_FOREIGN_PARTS: Final = {
    "tool_use": "an Anthropic message",
    "tool_result": "an Anthropic message",
    "thinking": "an Anthropic message",
    "toolCall": "a session message",
    "input_text": "an OpenAI Responses item",
    "output_text": "an OpenAI Responses item",
}
_RECORD = re.compile(rb'\{\s*"(?:messages|role)"\s*:')


class MessageList(Struct, frozen=True):
    """One conversation as a file has it, beginning at `line`.

    `messages` are entries without ids and times, which are the importer's to give. `metadata` is the JSON text of what stood
    beside the messages, None for nothing. `first_user_text` is None when no user says anything.
    """

    line: int
    messages: tuple[NewEntry, ...]
    metadata: bytes | None
    first_user_text: str | None


class Problem(Struct, frozen=True):
    """Something that was not read, or not imported.

    "pending": the last line has no end yet, perhaps it is still being written. "conflict": the store holds something else
    under the conversation's id.
    """

    line: int
    kind: Literal["corrupt", "foreign", "pending", "conflict"]
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


class _Line(Struct, frozen=True):
    """A line without its padding; `complete` when a line end was behind it."""

    number: int
    data: bytes
    complete: bool


def read_message_lists(source: BinaryIO) -> Iterator[MessageList | Problem]:
    """Yield each conversation of `source`, and each problem, in the order of the file."""
    lines = _lines(source)
    first = next((each for each in lines if each.data), None)
    if first is None:
        return
    if first.number == 1 and first.data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        yield Problem(1, "foreign", "this is UTF-16; save it as UTF-8")
        return
    try:
        parse(first.data)
    except ValueError:
        # Not JSON by itself: the beginning of a document of many lines, or a damaged first line of JSON Lines.
        yield from _document_or_records([first, *lines])
    else:
        yield from _records(_on_lines(itertools.chain([first], lines)))


def _lines(source: BinaryIO) -> Iterator[_Line]:
    for number, data in enumerate(source, 1):
        yield _Line(number, data.removeprefix(_BOM).strip(_PADDING), data.endswith(b"\n"))


def _document_or_records(lines: list[_Line]) -> Iterator[MessageList | Problem]:
    try:
        document = parse(b"\n".join(each.data for each in lines))
    except ValueError as error:
        later = [each for each in lines[1:] if each.data]
        if later and 2 * sum(map(_is_json, later)) <= len(later):
            line = lines[0].number + (error.lineno - 1 if isinstance(error, json.JSONDecodeError) else 0)
            yield Problem(line, "corrupt", f"neither one JSON document ({error}) nor JSON Lines")
        else:
            yield from _records(_on_lines(lines))
        return
    yield from _records([(lines[0].number, document)])


def _is_json(line: _Line) -> bool:
    try:
        parse(line.data)
    except ValueError:
        return False
    return True


def _records(found: Iterable[tuple[int, Slice | Problem]]) -> Iterator[MessageList | Problem]:
    """Read records and the lines they are on; the first sound one says whether they are conversations or bare messages."""
    bare: bool | None = None
    messages, first_line, text = [], 0, None
    for line, record in found:
        if isinstance(record, Problem):
            yield record
            continue
        if bare is None:
            bare = isinstance(record.value, dict) and "role" in record.value and "messages" not in record.value
        if not bare:
            yield from _conversations(record, line)
            continue
        try:
            messages.append(_message(record))
        except InvalidInput as error:
            yield Problem(line, "foreign", str(error))
            continue
        first_line = first_line or line
        text = text or _user_text(record.value)
    if messages:
        yield MessageList(first_line, tuple(messages), None, text)


def _on_lines(lines: Iterable[_Line]) -> Iterator[tuple[int, Slice | Problem]]:
    for line in lines:
        if line.data:
            for record in _records_of(line):
                yield line.number, record


def _records_of(line: _Line) -> Iterator[Slice | Problem]:
    """Yield what is on a line: a record; or, where a writer was cut off and another went on, what is left of two."""
    try:
        yield parse(line.data)
        return
    except ValueError as error:
        if not line.complete:
            what = f"not JSON yet ({error}); the line has no end, perhaps it is still being written"
            yield Problem(line.number, "pending", what)
            return
        problem = Problem(line.number, "corrupt", f"not JSON: {error}")
    for found in _RECORD.finditer(line.data, 1):
        try:
            behind = parse(line.data[found.start() :])
        except ValueError:
            continue
        try:
            yield parse(line.data[: found.start()])
        except ValueError:
            yield Problem(
                line.number, "corrupt", f"a torn record before byte {found.start() + 1}; the one behind it was read"
            )
        yield behind
        return
    yield problem


def _conversations(record: Slice, line: int) -> Iterator[MessageList | Problem]:
    """Read a value that is a conversation, or a list of conversations."""
    value = record.value
    if isinstance(value, list) and value and _is_conversation(value[0]):
        for each in elements(record.text):
            yield _conversation(each, line + record.text.count("\n", 0, each.start))
    else:
        yield _conversation(record, line)


def _is_conversation(value: JsonValue) -> bool:
    return isinstance(value, list) or (isinstance(value, dict) and isinstance(value.get("messages"), list))


def _conversation(record: Slice, line: int) -> MessageList | Problem:
    listed: Slice | None = record
    beside: list[str] = []
    if isinstance(record.value, dict):
        listed = None
        for key, member in members(record.text):
            if key.value == "messages":
                listed = member
            else:
                beside.append(f"{key.text}:{compact(member.text)}")
    if listed is None or not isinstance(listed.value, list):
        return Problem(line, "foreign", "neither a list of messages nor an object with a list `messages`")
    if not listed.value:
        return Problem(line, "foreign", "a conversation without messages")
    messages: list[NewEntry] = []
    what = "metadata"
    try:
        if beside:
            exact_json.check({key: each for key, each in record.value.items() if key != "messages"}, "metadata")
        for number, each in enumerate(elements(listed.text), 1):
            what = f"message {number} of this conversation"
            messages.append(_message(each))
    except InvalidInput as error:
        return Problem(line, "foreign", f"{what}: {error}")
    text = next(filter(None, map(_user_text, listed.value)), None)
    metadata = f"{{{','.join(beside)}}}".encode() if beside else None
    return MessageList(line, tuple(messages), metadata, text)


def _message(record: Slice) -> NewEntry:
    """Return a message as an entry without id and time.

    Raises:
        InvalidInput: it is none of this format.
    """
    value = record.value
    if not isinstance(value, dict):
        raise InvalidInput(f"a message must be a JSON object, not {json.dumps(value)[:40]}")
    if not value.keys() & _SAYS_SOMETHING:
        raise InvalidInput(f"a message needs content or tool_calls; this object has {', '.join(list(value)[:8])}")
    content = value.get("content")
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind in _FOREIGN_PARTS:
            raise InvalidInput(
                f"content of type {kind!r} makes this {_FOREIGN_PARTS[kind]}; it was not taken for another"
            )
    return openai_chat.write(value, entry_id="", created_at_ms=0, text=compact(record.text).encode())


def _user_text(value: dict[str, Any]) -> str | None:
    if value["role"] != "user":
        return None
    content = value.get("content")
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        content = next((text for text in texts if isinstance(text, str)), None)
    return content or None
