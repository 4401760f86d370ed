"""The workload: turns of four messages with bodies of exactly 200, 600, 2048 and 800 bytes as they are stored.

A user's question, an assistant message with one tool call, the tool's result and an answer. In the main variant the result is
structured, 2 KB of JSON in a `ToolResultPart`, as tools give it. In the other it is 2 KB of plain text in `content`, where
there is no payload whose decoding could wait until someone asks.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from convostore.dialects import hub
from convostore.model.exact_json import JsonObject
from convostore.model.message import Message, ToolCallRecord, ToolResultPart

__all__ = ["BODY_BYTES", "Result", "Turn", "turns"]

Result: TypeAlias = Literal["structured", "text"]
Turn: TypeAlias = tuple[Message, Message, Message, Message]

BODY_BYTES: Final = (200, 600, 2048, 800)

_SENTENCE: Final = (
    "please show the bookings of next week and move the one on Tuesday to the afternoon if the room with the large table "
    "is free then tell the guest by mail that breakfast is served from seven and that the invoice will be sent on Friday"
)
_WORDS: Final = _SENTENCE.split()


def turns(count: int, result: Result = "structured", *, seed: int = 1) -> list[Turn]:
    """Return turns that differ from one another and are the same for the same seed."""
    chance = random.Random(seed)
    return [_turn(chance, f"call_{seed:04d}_{number:08d}", result) for number in range(count)]


def _turn(chance: random.Random, call_id: str, result: Result) -> Turn:
    user, assistant, tool, answer = BODY_BYTES
    arguments = {"from": "2026-11-30", "to": "2026-12-06", "rooms": [101, 102, 205], "include_cancelled": False}
    call = ToolCallRecord("search_bookings", call_id, "pending", {**arguments, "reason": _text(chance, 120)})
    bookings = [_booking(chance) for _ in range(11)]

    def told(text: str) -> Message:
        if result == "text":
            return Message(role="tool", tool_call_id=call_id, content=text)
        output = {"success": True, "message": text, "data": {"total": len(bookings), "bookings": bookings}}
        return Message(role="tool", tool_call_id=call_id, parts=(ToolResultPart(output=output),))

    return (
        _of_size(user, chance, lambda text: Message(role="user", content=text)),
        _of_size(assistant, chance, lambda text: Message(role="assistant", content=text, tool_calls=(call,))),
        _of_size(tool, chance, told),
        _of_size(answer, chance, lambda text: Message(role="assistant", content=text)),
    )


def _of_size(body_bytes: int, chance: random.Random, make: Callable[[str], Message]) -> Message:
    """Return the message whose body is `body_bytes` long, by filling it up with words."""
    frame = len(hub.write(make("."), entry_id="x", created_at_ms=0).body) - 1
    return make(_text(chance, body_bytes - frame))


def _text(chance: random.Random, characters: int) -> str:
    words = " ".join(chance.choices(_WORDS, k=characters // 3))
    return words[: characters - 1].ljust(characters - 1, ".") + "."


def _booking(chance: random.Random) -> JsonObject:
    return {
        "id": f"bk_{chance.randrange(10**8):08d}",
        "guest": _text(chance, 14),
        "room": chance.randrange(100, 400),
        "nights": chance.randrange(1, 15),
        "price": chance.randrange(4000, 40000) / 100,
        "paid": chance.random() < 0.5,
        "tags": [_text(chance, 6), _text(chance, 8)],
    }
