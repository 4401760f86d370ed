"""Message lists: every shape is read, every message keeps its own text, and what cannot be read is named."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convostore.interchange.json_slices import compact, elements, members, parse
from convostore.interchange.message_lists import MessageList, Problem, read_message_lists

HELLO = b'{"role": "user", "content": "hello"}'
HI = b'{"role": "assistant", "content": "hi"}'


def read(data: bytes) -> tuple[list[MessageList], list[Problem]]:
    found = list(read_message_lists(io.BytesIO(data)))
    return [each for each in found if isinstance(each, MessageList)], [
        each for each in found if isinstance(each, Problem)
    ]


def roles(data: bytes) -> list[list[str | None]]:
    lists, problems = read(data)
    assert [] == problems
    return [[message.role for message in each.messages] for each in lists]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"[%b, %b]" % (HELLO, HI), [["user", "assistant"]]),
        (b"[\n%b,\n%b\n]\n" % (HELLO, HI), [["user", "assistant"]]),
        (b'{"messages": [%b], "tools": []}' % HELLO, [["user"]]),
        (b'[{"messages": [%b]}, {"messages": [%b]}]' % (HELLO, HI), [["user"], ["assistant"]]),
        (b"[[%b], [%b]]" % (HELLO, HI), [["user"], ["assistant"]]),
        (b'{"messages": [%b]}\n{"messages": [%b]}\n' % (HELLO, HI), [["user"], ["assistant"]]),
        (b"[%b]\n[%b]" % (HELLO, HI), [["user"], ["assistant"]]),
        (b"%b\n%b\n" % (HELLO, HI), [["user", "assistant"]]),
        (HELLO, [["user"]]),
        (b"", []),
        (b"\n \r\n\0\0\n", []),
    ],
)
def test_shapes(data: bytes, expected: list[list[str]]) -> None:
    """A list, an object, lists of either, one a line, and bare messages are told apart by content alone."""
    assert expected == roles(data)
    assert expected == roles(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    assert expected == roles(b"\n\n" + data + b"\n\0\0\0\0")


def test_lines_end_at_newlines_only() -> None:
    """Other characters that split lines elsewhere are text."""
    said = "a\u2028b\u2029c\u0085d"
    ((only,),) = [
        each.messages for each in read(json.dumps({"role": "user", "content": said}, ensure_ascii=False).encode())[0]
    ]
    assert said == json.loads(only.body)["content"]


def test_a_message_keeps_its_text() -> None:
    """Key order, number forms, escapes, lone surrogates, repeated keys and unknown fields stay; space between tokens goes."""
    said = (
        rb'{"x": [1e5 , 0.10,-0.0,10000000000000000000000], "role":"user","content" :"\u00e9 \ud83d \/  \"", "x": {}}'
    )
    kept = rb'{"x":[1e5,0.10,-0.0,10000000000000000000000],"role":"user","content":"\u00e9 \ud83d \/  \"","x":{}}'
    for data in (said, b"[%b]" % said, b'{"messages": [%b]}' % said, said.replace(b" ,", b"\n,")):
        (found,) = read(data)[0]
        assert (kept,) == tuple(each.body for each in found.messages)


def test_what_stands_beside_is_metadata() -> None:
    """Everything else in a conversation's object is kept as its text; without anything else there is no metadata."""
    (found,) = read(b'{"tools": [ {"a": 1e5} ], "messages": [%b], "k\\u00e9y": 0.10}' % HELLO)[0]
    assert b'{"tools":[{"a":1e5}],"k\\u00e9y":0.10}' == found.metadata
    assert [None] == [each.metadata for each in read(b'{"messages": [%b]}' % HELLO)[0]]


def test_roles_and_odd_messages() -> None:
    """Older and newer roles are mapped; null and missing content and repeated call ids are taken."""
    said = [
        {"role": "developer", "content": "be kind"},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "look"}],
        },
        {"role": "assistant", "content": None, "tool_calls": [{"id": "call_id"}, {"id": "call_id"}]},
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": ""},
    ]
    (found,) = read(json.dumps(said).encode())[0]
    assert ["system", "user", "assistant", "assistant", "tool"] == [each.role for each in found.messages]
    assert "look" == found.first_user_text


@pytest.mark.parametrize(
    "bad", [b'{"messages": [', b'{"messages": [{"role": "user", "content": "\xff"}]}', b"NaN", b"[1e"]
)
def test_a_corrupt_line_is_named(bad: bytes) -> None:
    """A line that is not JSON is named by number, wherever it is, and all others are read."""
    for index in range(3):
        lines = [b'{"messages": [%b]}' % HELLO] * 3
        lines[index] = bad
        lists, problems = read(b"\n".join(lines) + b"\n")
        assert [n for n in (1, 2, 3) if n != index + 1] == [each.line for each in lists]
        assert [(index + 1, "corrupt")] == [(each.line, each.kind) for each in problems]


def test_a_corrupt_bare_message_is_named() -> None:
    """In a file of bare messages the conversation consists of what could be read."""
    lists, problems = read(HELLO + b"\n" + HI[:-5] + b"\n" + HI + b"\n")
    assert [["user", "assistant"]] == [[m.role for m in each.messages] for each in lists]
    assert [(2, "corrupt")] == [(each.line, each.kind) for each in problems]


def test_a_torn_last_line_is_pending() -> None:
    """A last line without its end is pending if it is no JSON, and a record if it is."""
    assert [(2, "pending")] == [(each.line, each.kind) for each in read(HELLO + b"\n" + HI[:-5])[1]]
    assert [["user", "assistant"]] == roles(HELLO + b"\n" + HI)


def test_glued_records_are_parted() -> None:
    """Two records on one line are both read; of a torn one and another, the second is, and the loss is named."""
    assert [["user", "assistant", "user"]] == roles(HELLO + HI + b"\n" + HELLO + b"\n")
    lists, problems = read(HELLO + b"\n" + HI[:20] + HI + b"\n")
    assert [["user", "assistant"]] == [[m.role for m in each.messages] for each in lists]
    assert ["line 2: a torn record before byte 21; the one behind it was read"] == [str(each) for each in problems]


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b'{"type": "session_meta", "payload": {}}\n', "neither a list of messages"),
        (b'[{"id": "1", "role": "user", "parts": []}]', "this object has id, role, parts"),
        (b'[{"role": "user", "content": [{"type": "tool_result"}]}]', "an Anthropic message"),
        (b'[{"role": "toolResult", "content": []}]', "the role of a message"),
        (b'{"messages": []}', "without messages"),
        (b'{"messages": [%b, 5]}' % HELLO, "message 2 of this conversation: a message must be a JSON object"),
        (b'{"messages": [%b], "x": 1e999}' % HELLO, "metadata"),
        (b'[{"role": "user", "content": "x", "y": 1e999}]', "message 1 of this conversation"),
        (b"\xff\xfe[\0]\0", "UTF-16"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deep"),
        (b'{\n "messages": [\n  %b,\n  {"role": "assis' % HELLO, "neither one JSON document"),
    ],
)
def test_what_is_none_is_named(data: bytes, named: str) -> None:
    """Other formats, broken documents and values that cannot be kept give a problem, and no part of a conversation."""
    lists, problems = read(data)
    assert [] == lists
    assert [True] == [named in str(each) for each in problems]


def test_problems_in_a_document_have_their_line() -> None:
    """In a document of many lines each conversation and each problem has the line where it begins."""
    lists, problems = read(b'[\n{"messages": [%b]},\n\n{"messages": 5},\n[%b]\n]' % (HELLO, HI))
    assert ([2, 5], [4]) == ([each.line for each in lists], [each.line for each in problems])


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(_json, st.booleans(), st.sampled_from([None, 1]))
def test_slices_are_the_text(value: object, ascii_only: bool, indent: int | None) -> None:
    """Cut into elements or members and put together again, a text is the same; compacting changes no value."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    if isinstance(value, list):
        assert value == [each.value for each in elements(text)] == [json.loads(each.text) for each in elements(text)]
        assert all(text.startswith(each.text, each.start) for each in elements(text))
    elif isinstance(value, dict):
        assert value == {key.value: json.loads(each.text) for key, each in members(text)}
        assert list(value) == [json.loads(key.text) for key, _ in members(text)]
    compacted = json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))
    assert compacted == compact(text)
    assert f'[{compacted},"\\ud83d"]' == compact(f'[{text} , "\\ud83d"]')  # not read by the fast way


def test_parse_refuses_what_is_no_json() -> None:
    """NaN, control characters and bytes that are not UTF-8 are no JSON."""
    for bad in (b"NaN", b"[Infinity]", b'"\x01"', b'"\xff"', b"1 2", b""):
        with pytest.raises(ValueError, match=r"."):
            parse(bad)
