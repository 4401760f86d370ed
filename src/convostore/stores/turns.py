"""Windows that a model's provider accepts: no result without its call, no call without its result (C9)."""

from __future__ import annotations

from collections.abc import Sequence

from convostore.model.message import Message

__all__ = ["whole_turns"]


def whole_turns(messages: Sequence[Message], *, log_goes_on: bool) -> list[Message]:
    """Return the longest run of `messages` in which every call has its result, but for a trailing open one.

    A call is trailing when nothing but results of its own message follows it and, unless `log_goes_on` behind the
    window, nothing can. The run ends where `messages` end if it can, and begins as early as it can.
    """
    end = len(messages)
    while end and log_goes_on and (where := _unanswered(messages[:end])) and _trails(messages[:end], where[-1]):
        end = where[-1]
    open_before = [each for each in _unanswered(messages[:end]) if not _trails(messages[:end], each)]
    begin = open_before[-1] + 1 if open_before else 0
    while begin < end and messages[begin].role == "tool":
        begin += 1
    return list(messages[begin:end])


def _unanswered(messages: Sequence[Message]) -> list[int]:
    """Return the indexes of the messages with a call that has no result, neither in itself nor in a later message."""
    waiting: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        if message.role == "tool" and message.tool_call_id is not None and waiting.get(message.tool_call_id):
            waiting[message.tool_call_id].pop()
        for call in message.tool_calls:
            if call.state == "pending":
                waiting.setdefault(call.tool_call_id, []).append(index)
    return sorted({index for indexes in waiting.values() for index in indexes})


def _trails(messages: Sequence[Message], index: int) -> bool:
    return all(each.role == "tool" for each in messages[index + 1 :])
