"""Windows that a model's provider accepts: no result without its call, no call without its result (C9)."""

from __future__ import annotations

from collections.abc import Sequence

from convostore.model.message import Message

__all__ = ["whole_turns"]


def whole_turns(messages: Sequence[Message], *, begins_late: bool, ends_early: bool) -> list[Message]:
    """Return the longest run of `messages` in which every call has its result, but for a trailing open one.

    `begins_late`, `ends_early`: the log goes on before or behind the window, so a call or a result may lie outside it. A
    call is trailing when nothing but results follows it. The run ends as late as it can, and begins as early as it can.
    """
    end = len(messages)
    while ends_early and (where := _unanswered(messages[:end])[0]) and _trails(messages[:end], where[-1]):
        end = where[-1]
    begin = 0
    while True:
        run = messages[begin:end]
        open_calls, orphans = _unanswered(run)
        cuts = [each for each in open_calls if not _trails(run, each)]
        if begins_late or begin:
            cuts += orphans
        if not cuts:
            return list(run)
        begin += max(cuts) + 1


def _unanswered(messages: Sequence[Message]) -> tuple[list[int], list[int]]:
    """Return the indexes of messages with a call that has no result, in itself or later, and of results without a call."""
    waiting: dict[str, list[int]] = {}
    settled: set[str] = set()
    orphans = []
    for index, message in enumerate(messages):
        if message.role == "tool" and message.tool_call_id is not None:
            if waiting.get(message.tool_call_id):
                waiting[message.tool_call_id].pop()
            elif message.tool_call_id not in settled:
                orphans.append(index)
        for call in message.tool_calls:
            if call.state == "pending":
                waiting.setdefault(call.tool_call_id, []).append(index)
            else:
                settled.add(call.tool_call_id)
    return sorted({index for indexes in waiting.values() for index in indexes}), orphans


def _trails(messages: Sequence[Message], index: int) -> bool:
    return all(each.role == "tool" for each in messages[index + 1 :])
