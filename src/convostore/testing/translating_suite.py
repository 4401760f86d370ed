"""Clauses X2 to X5 and X7 as tests: what one store wrote, as the others read it, value by value."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from convostore.model.message import ImagePart, Message, TextPart, ThinkingPart, ToolCallRecord, ToolResultPart
from convostore.model.session_message import SessionMessage
from convostore.opening import Store
from convostore.testing.session_saving_suite import assistant, tool_result
from convostore.testing.storage_adapter_suite import chat_items, conversation, message, tool_call
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["TranslatingAcross", "check_session_message", "saying"]

_AT = datetime(2026, 11, 30, 12, 0, 0, 5_000, tzinfo=UTC)
_AT_MS = 1_796_040_000_005
_SEED = {"success": True, "message": "Found 12 bookings", "data": {"rows": [1]}}


def check_session_message(given: Any) -> None:
    """Assert that a message has all that the original runtime requires of its role (X5)."""
    match given["role"]:
        case "system" | "user":
            assert isinstance(given["content"], str | list)
        case "assistant":
            assert isinstance(given["content"], list)
            assert all(isinstance(given[name], str) for name in ("api", "provider", "model"))
            assert given["stopReason"] in ("stop", "length", "toolUse", "error", "aborted")
            usage = given["usage"]
            for name in ("input", "output", "cacheRead", "cacheWrite", "totalTokens"):
                assert isinstance(usage[name], int | float)
            for name in ("input", "output", "cacheRead", "cacheWrite", "total"):
                assert isinstance(usage["cost"][name], int | float)
            for part in given["content"]:
                if part["type"] == "toolCall":
                    assert (str, str, dict) == (type(part["id"]), type(part["name"]), type(part["arguments"]))
        case "toolResult":
            assert (str, str, bool) == (type(given["toolCallId"]), type(given["toolName"]), type(given["isError"]))
            assert isinstance(given["content"], list)
        case role:
            raise AssertionError(f"no runtime knows the role {role!r}")
    assert type(given["timestamp"]) is int
    for part in given["content"] if isinstance(given["content"], list) else ():
        assert isinstance(part["type"], str)


def _without(value: Any, *names: str) -> dict[str, Any]:
    return {name: each for name, each in value.items() if name not in names}


def _text(given: Any) -> str:
    content = given["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content if part["type"] == "text")


def _calls(given: Any) -> list[Any]:
    return [part for part in given["content"] if part["type"] == "toolCall"]


def saying(id: str, content: str, *calls: ToolCallRecord) -> Message:
    """Return an assistant message with calls."""
    return Message(role="assistant", content=content, tool_calls=calls, id=id, created_at=_AT)


class _FromConversations(Suite):
    """What C wrote, in A and S."""

    async def _append(self, store: Store, conversation_id: str, *messages: Message) -> None:
        await store.create_conversation(conversation_id, conversation_id, id=conversation_id)
        await store.append_messages(conversation_id, messages)

    @clause("X2", "X3", "X4", "X6")
    async def test_a_message_with_calls_in_a_chat(self, store: Store, samples: Samples) -> None:
        """Text is a message item, each call a tool_call item; the first has the record's id, the others `id:call_id`."""
        await self._append(
            store,
            samples.id("c"),
            Message(role="system", content="hidden", id="s"),
            Message(role="user", content="Show", id="u", created_at=_AT),
            saying(
                "a",
                "Let me look.",
                ToolCallRecord("getBookings", "tc-1", "success", {"date": "x"}, _SEED),
                ToolCallRecord("getBookings", "tc-2", "pending", ["x"]),
            ),
            saying(
                "b",
                "",
                ToolCallRecord("f", "tc-3", "error", None, {"success": False, "message": "m", "error": "no way"}),
                ToolCallRecord("f", "tc-4", "success", {}, [1, None]),
                ToolCallRecord("f", "tc-5", "success", {}, {"success": True, "message": "no data"}),
            ),
        )
        items: list[Any] = await store.chat.get_conversation_items(samples.id("c"))
        assert ["u", "a", "a:tc-1", "a:tc-2", "b", "b:tc-4", "b:tc-5"] == [each["id"] for each in items]
        assert {"id": "u", "type": "message", "content": "Show", "role": "user"} == _without(items[0], "timestamp")
        expected = {"id": "a", "type": "message", "content": "Let me look.", "role": "assistant"}
        assert expected == _without(items[1], "timestamp")
        assert "2026-11-30T12:00:00.005Z" == items[1].get("timestamp", "2026-11-30T12:00:00.005Z")
        calls = [each["toolCall"] for each in items[2:]]
        assert {"tool_call"} == {each["type"] for each in items[2:]}
        done = {"id": "tc-1", "name": "getBookings", "arguments": {"date": "x"}, "status": "completed"}
        assert done | {"result": {"rows": [1]}} == calls[0]
        assert {"id": "tc-2", "name": "getBookings", "arguments": {"value": ["x"]}, "status": "pending"} == calls[1]
        assert ("tc-3", "error", "no way", {"value": None}) == (
            calls[2]["id"], calls[2]["status"], calls[2]["error"], calls[2]["arguments"],
        )  # fmt: skip
        assert ("completed", [1, None], {}) == (calls[3]["status"], calls[3]["result"], calls[3]["arguments"])
        assert "completed" == calls[4]["status"]
        assert calls[4].get("result") in (None, "no data")

    @clause("X2", "X4", "X5")
    async def test_a_message_with_calls_in_a_session(self, store: Store, samples: Samples) -> None:
        """Text and calls are one assistant message, each finished call has one toolResult behind it, with defaults."""
        await self._append(
            store,
            samples.id("c"),
            Message(role="user", content="Show", id="u", created_at=_AT),
            saying(
                "a",
                "Let me look.",
                ToolCallRecord("getBookings", "tc-1", "success", {"date": "x"}, _SEED),
                ToolCallRecord("getBookings", "tc-2", "pending", ["x"]),
                ToolCallRecord("f", "tc-3", "error", None, {"success": False, "message": "no way", "error": "no way"}),
                ToolCallRecord("f", "tc-4", "success", {}, [1, None]),
            ),
            saying("b", "Twelve."),
        )
        loaded: list[Any] = await store.sessions.load_messages(samples.id("c"))
        expected = ["user", "assistant", "toolResult", "toolResult", "toolResult", "assistant"]
        assert expected == [each["role"] for each in loaded]
        for each in loaded:
            check_session_message(each)
            assert _AT_MS == each["timestamp"]
        assert ["Show", "Let me look.", "Twelve."] == [_text(loaded[n]) for n in (0, 1, 5)]
        assert [
            {"type": "toolCall", "id": "tc-1", "name": "getBookings", "arguments": {"date": "x"}},
            {"type": "toolCall", "id": "tc-2", "name": "getBookings", "arguments": {"value": ["x"]}},
            {"type": "toolCall", "id": "tc-3", "name": "f", "arguments": {"value": None}},
            {"type": "toolCall", "id": "tc-4", "name": "f", "arguments": {}},
        ] == _calls(loaded[1])
        assert ["tc-1", "tc-3", "tc-4"] == [each["toolCallId"] for each in loaded[2:5]]
        assert ["getBookings", "f", "f"] == [each["toolName"] for each in loaded[2:5]]
        assert [False, True, False] == [each["isError"] for each in loaded[2:5]]
        assert ["Found 12 bookings", "no way"] == [_text(each) for each in loaded[2:4]]
        assert {"rows": [1]} == loaded[2]["details"]
        assert [1, None] == loaded[4]["details"]
        for each, reason in ((loaded[1], "toolUse"), (loaded[5], "stop")):
            assert ("unknown", "unknown", "unknown", reason) == (
                each["api"], each["provider"], each["model"], each["stopReason"],
            )  # fmt: skip
            assert {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0} == _without(
                each["usage"], "cost"
            )
            zeros = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
            assert zeros == each["usage"]["cost"]

    @clause("X2")
    async def test_system_messages_across(self, store: Store, samples: Samples) -> None:
        """System messages are in S, in C when asked for, and not in A."""
        await self._append(
            store, samples.id("c"), Message(role="system", content="be"), Message(role="user", content="u")
        )
        await store.sessions.append_messages(
            samples.id("c"), [cast(SessionMessage, {"role": "system", "content": "brief"})]
        )
        loaded = await store.sessions.load_messages(samples.id("c"))
        assert ["be", "u", "brief"] == [_text(each) for each in loaded]
        assert ["u"] == [each.content for each in await store.load_messages(samples.id("c"))]
        messages = await store.load_messages(samples.id("c"), system=True)
        assert ["be", "u", "brief"] == [each.content for each in messages]
        assert ["u"] == [
            cast(Any, each)["content"] for each in await store.chat.get_conversation_items(samples.id("c"))
        ]

    @clause("X2", "X3", "X4")
    async def test_a_tool_message_completes_its_call(self, store: Store, samples: Samples) -> None:
        """A tool message is the toolResult of its call in S, and in A the call's result or error, as its result part says."""
        calls = [ToolCallRecord("look", each, "pending", {}) for each in ("x", "y", "z")]
        await self._append(
            store,
            samples.id("c"),
            saying("a", "", *calls),
            Message(role="tool", content="12", tool_call_id="x", parts=(ToolResultPart(_SEED),), created_at=_AT),
            Message(
                role="tool",
                content="no",
                tool_call_id="y",
                parts=(ToolResultPart("no", is_error=True),),
                created_at=_AT,
            ),
            Message(role="tool", content="plain", tool_call_id="z", created_at=_AT),
        )
        assert [] == await store.open_tool_calls(samples.id("c"))
        loaded: list[Any] = await store.sessions.load_messages(samples.id("c"))
        assert ["assistant", "toolResult", "toolResult", "toolResult"] == [each["role"] for each in loaded]
        for each in loaded:
            check_session_message(each)
        assert [("x", "look", False), ("y", "look", True), ("z", "look", False)] == [
            (each["toolCallId"], each["toolName"], each["isError"]) for each in loaded[1:]
        ]
        assert {"rows": [1]} == loaded[1]["details"]
        assert ["no", "plain"] == [_text(each) for each in loaded[2:]]
        items: list[Any] = await store.chat.get_conversation_items(samples.id("c"))
        shown = [each["toolCall"] for each in items]
        assert [("x", "completed"), ("y", "error"), ("z", "completed")] == [
            (each["id"], each["status"]) for each in shown
        ]
        assert {"rows": [1]} == shown[0]["result"]
        assert "no" == shown[1].get("error", shown[1].get("result"))
        assert "plain" == shown[2]["result"]

    @clause("X2")
    async def test_thinking_and_images_in_a_session(self, store: Store, samples: Samples) -> None:
        """Thinking and base64 images of C are the runtime's own parts in S, in their place."""
        await self._append(
            store,
            samples.id("c"),
            Message(
                role="user", content="look", parts=(TextPart("look"), ImagePart(media_type="image/png", data="aGk="))
            ),
            Message(
                role="assistant", content="Twelve.", parts=(ThinkingPart("hm", signature="sig"), TextPart("Twelve."))
            ),
        )
        user, answer = cast(Any, await store.sessions.load_messages(samples.id("c")))
        assert [
            {"type": "text", "text": "look"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        ] == user["content"]
        assert [
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
            {"type": "text", "text": "Twelve."},
        ] == answer["content"]

    @clause("X7")
    async def test_a_result_in_the_record_and_behind_is_one(self, store: Store, samples: Samples) -> None:
        """A call whose result is in its record and in a later tool message has one result, in every reading."""
        await self._append(
            store,
            samples.id("c"),
            saying("a", "", ToolCallRecord("f", "x", "success", {}, _SEED)),
            Message(role="tool", content="Found 12 bookings", tool_call_id="x", id="t"),
        )
        loaded = await store.sessions.load_messages(samples.id("c"))
        assert ["assistant", "toolResult"] == [each["role"] for each in loaded]
        items = await store.chat.get_conversation_items(samples.id("c"))
        assert ["tool_call"] == [each["type"] for each in items]
        assert [] == await store.open_tool_calls(samples.id("c"))


class _FromSessions(_FromConversations):
    """What S wrote, in C and A."""

    def _session(self) -> list[SessionMessage]:
        call = {"type": "toolCall", "name": "look", "arguments": {"b": 1, "a": 2}}
        return [
            cast(SessionMessage, {"role": "user", "content": "Show", "timestamp": _AT_MS}),
            assistant(
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
                "Let me look.",
                {**call, "id": "x"},
                {**call, "id": "y"},
                {**call, "id": "z"},
                timestamp=_AT_MS,
            ),
            tool_result("x", "12", details={"rows": [1]}, timestamp=_AT_MS),
            tool_result("y", "failed", isError=True, timestamp=_AT_MS),
            assistant("Twelve.", timestamp=_AT_MS),
        ]

    @clause("X2", "X3", "X4")
    async def test_a_session_in_conversations(self, store: Store, samples: Samples) -> None:
        """An assistant message is text, thinking and calls; its toolResults complete them and are tool messages too."""
        await store.sessions.save_messages(samples.id("s"), self._session())
        loaded = await store.load_messages(samples.id("s"))
        assert ["user", "assistant", "tool", "tool", "assistant"] == [each.role for each in loaded]
        assert ["Show", "Let me look.", "12", "failed", "Twelve."] == [each.content for each in loaded]
        assert ThinkingPart("hm", "sig") in loaded[1].parts
        inputs = {"b": 1, "a": 2}
        first, second, third = loaded[1].tool_calls
        assert (
            ToolCallRecord("look", "x", "success", inputs, {"success": True, "message": "12", "data": {"rows": [1]}})
            == first
        )
        assert ("look", "y", "error") == (second.tool_name, second.tool_call_id, second.state)
        assert (False, "failed") == (second.output["success"], second.output["message"])
        assert second.output.get("data") is None
        assert ToolCallRecord("look", "z", "pending", inputs) == third
        assert repr(inputs) == repr(first.input)
        assert [None, None, "x", "y", None] == [each.tool_call_id for each in loaded]
        assert {_AT} == {each.created_at for each in loaded}
        assert {samples.id("s")} == {each.conversation_id for each in loaded}
        assert ["z"] == [each.tool_call_id for each in await store.open_tool_calls(samples.id("s"))]

    @clause("X2", "X3", "X4", "X6")
    async def test_a_session_in_a_chat(self, store: Store, samples: Samples) -> None:
        """Messages are message items, calls tool_call items with the results they have; toolResults are no items."""
        await store.sessions.save_messages(samples.id("s"), self._session())
        items: list[Any] = await store.chat.get_conversation_items(samples.id("s"))
        expected = ["message", "message", "tool_call", "tool_call", "tool_call", "message"]
        assert expected == [each["type"] for each in items]
        assert ["Show", "Let me look.", "Twelve."] == [each["content"] for each in items if each["type"] == "message"]
        assert ["user", "assistant", "assistant"] == [each["role"] for each in items if each["type"] == "message"]
        calls = [each["toolCall"] for each in items if each["type"] == "tool_call"]
        assert [("x", "completed"), ("y", "error"), ("z", "pending")] == [
            (each["id"], each["status"]) for each in calls
        ]
        assert {"rows": [1]} == calls[0]["result"]
        assert "failed" == calls[1]["error"]
        assert {"b": 1, "a": 2} == calls[2]["arguments"]
        assert ["result" in each for each in calls] == [True, False, False]
        assert f"{items[1]['id']}:x" == items[2]["id"]
        assert 6 == len({each["id"] for each in items})

    @clause("X6")
    async def test_windows_show_final_states(self, store: Store, samples: Samples) -> None:
        """A window shows what calls came to, also when their results lie outside it."""
        await store.sessions.save_messages(samples.id("s"), self._session())
        everything = await store.load_messages(samples.id("s"))
        expected = everything[1].tool_calls
        for window in (
            await store.load_messages(samples.id("s"), before=everything[2].id),
            await store.load_messages(samples.id("s"), before=everything[3].id, limit=2),
            await store.load_messages(samples.id("s"), role="assistant"),
            await store.load_messages(samples.id("s"), after=everything[0].id, limit=1),
        ):
            (asking,) = [each for each in window if each.tool_calls]
            assert expected == asking.tool_calls

    @clause("X7")
    async def test_recurring_call_ids_belong_to_their_turn(self, store: Store, samples: Samples) -> None:
        """Where a call id recurs, each result belongs to the nearest earlier call of it that is still open."""
        call = {"type": "toolCall", "id": "call_id", "name": "look", "arguments": {}}
        await store.sessions.save_messages(
            samples.id("s"),
            [
                assistant("1", call), tool_result("call_id", "r1"), assistant("2", call), tool_result("call_id", "r2"),
                assistant("3", call), assistant("4", call), tool_result("call_id", "r4"), tool_result("call_id", "r3"),
                assistant("5", call),
            ],
        )  # fmt: skip
        loaded = await store.load_messages(samples.id("s"), role="assistant")
        results = {each.content: each.tool_calls[0].output and each.tool_calls[0].output["message"] for each in loaded}
        assert {"1": "r1", "2": "r2", "3": "r3", "4": "r4", "5": None} == results
        items: list[Any] = await store.chat.get_conversation_items(samples.id("s"))
        statuses = [each["toolCall"]["status"] for each in items if each["type"] == "tool_call"]
        assert ["completed"] * 4 + ["pending"] == statuses
        assert len(items) == len({each["id"] for each in items})
        assert 1 == len(await store.open_tool_calls(samples.id("s")))


class TranslatingAcross(_FromSessions):
    """What A wrote, in C and S."""

    @clause("X2", "X3", "X4")
    async def test_a_chat_in_conversations(self, store: Store, samples: Samples) -> None:
        """A tool_call item folds into the assistant message before it, or an empty one; cards are shown to no model."""
        items = [
            message("u", "Show"),
            message("a", "Let me look.", role="assistant"),
            tool_call("t1", "x", "completed", result={"n": 1}, arguments={"b": 1, "a": 2}),
            tool_call("t2", "y", "executing"),
            tool_call("t3", "z", "error", error="no"),
            message("v", "And?"),
            tool_call("t4", "w", "pending"),
            chat_items()[3],
        ]
        await store.chat.save_conversation(conversation(samples.id("a"), *items))
        loaded = await store.load_messages(samples.id("a"))
        assert [("user", "Show"), ("assistant", "Let me look."), ("user", "And?"), ("assistant", "")] == [
            (each.role, each.content) for each in loaded
        ]
        done, running, failed = loaded[1].tool_calls
        assert ("look", "x", "success", {"b": 1, "a": 2}) == (done.tool_name, done.tool_call_id, done.state, done.input)
        assert {"success": True, "message": "", "data": {"n": 1}} == done.output
        assert ToolCallRecord("look", "y", "pending", {}) == running
        assert ("error", False, "no", "no") == (
            failed.state, failed.output["success"], failed.output["message"], failed.output["error"],
        )  # fmt: skip
        assert ["w"] == [each.tool_call_id for each in loaded[3].tool_calls]
        assert ["y", "w"] == [each.tool_call_id for each in await store.open_tool_calls(samples.id("a"))]
        assert repr(items) == repr(await store.chat.get_conversation_items(samples.id("a")))

    @clause("X2", "X4", "X5")
    async def test_a_chat_in_a_session(self, store: Store, samples: Samples) -> None:
        """Calls are toolCall parts of the assistant message before them, finished ones have a toolResult; no cards."""
        items = [
            message("u", "Show"),
            message("a", "Let me look.", role="assistant"),
            tool_call("t1", "x", "completed", result={"n": 1}, arguments={"b": 1}),
            tool_call("t2", "y", "executing"),
            tool_call("t3", "z", "error", error="no"),
            chat_items()[3],
            message("v", "And?"),
        ]
        await store.chat.save_conversation(conversation(samples.id("a"), *items))
        loaded: list[Any] = await store.sessions.load_messages(samples.id("a"))
        for each in loaded:
            check_session_message(each)
        assert ["user", "assistant", "toolResult", "toolResult", "user"] == [each["role"] for each in loaded]
        assert ["x", "y", "z"] == [each["id"] for each in _calls(loaded[1])]
        assert "toolUse" == loaded[1]["stopReason"]
        assert ("x", False, {"n": 1}) == (loaded[2]["toolCallId"], loaded[2]["isError"], loaded[2]["details"])
        assert ("z", True, "no") == (loaded[3]["toolCallId"], loaded[3]["isError"], _text(loaded[3]))
