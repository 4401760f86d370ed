"""Clauses X3 and X5 to X7 as tests: windows, edits and finished calls across stores."""

from __future__ import annotations

from typing import Any, cast

import pytest

from convostore.errors import ConflictError
from convostore.model.chat_item import ChatItem
from convostore.model.message import Message, TextPart, ToolCallRecord
from convostore.opening import Store
from convostore.testing.session_saving_suite import assistant
from convostore.testing.storage_adapter_suite import conversation, message, tool_call
from convostore.testing.suite import Samples, clause
from convostore.testing.translating_suite import TranslatingAcross, check_session_message, saying
from convostore.testing.voices import dump, voices

__all__ = ["ReadingAcross"]


class ReadingAcross(TranslatingAcross):
    """X2 to X7."""

    @clause("X6")
    async def test_limits_count_what_is_shown(self, store: Store, samples: Samples) -> None:
        """Limits, role filters and since apply to projected messages: every filter gives a piece of the whole reading."""
        for voice, say in voices.items():
            conversation_id = samples.id(voice)
            await say(store, conversation_id)
            everything: list[Any] = await store.sessions.load_messages(conversation_id)
            for limit in range(len(everything) + 2):
                loaded = await store.sessions.load_messages(conversation_id, limit=limit)
                assert repr(everything[max(0, len(everything) - limit) :]) == repr(loaded), (voice, limit)
            for role in ("system", "user", "assistant", "toolResult"):
                expected = [each for each in everything if each["role"] == role]
                loaded = await store.sessions.load_messages(conversation_id, role=role)
                assert repr(expected) == repr(loaded), (voice, role)
                loaded = await store.sessions.load_messages(conversation_id, role=role, limit=1)
                assert repr(expected[-1:]) == repr(loaded), (voice, role)
            for since in sorted({each.get("timestamp", 0) for each in everything}):
                expected = [each for each in everything if each.get("timestamp", since - 1) >= since]
                assert repr(expected) == repr(await store.sessions.load_messages(conversation_id, since=since)), voice

    @clause("X6", "C5")
    async def test_conversation_windows_are_pieces_of_the_whole(self, store: Store, samples: Samples) -> None:
        """For whoever wrote, each window of C is a piece of the whole reading, calls and all; ids are unique."""
        for voice, say in voices.items():
            conversation_id = samples.id(voice)
            await say(store, conversation_id)
            everything = await store.load_messages(conversation_id, system=True)
            assert len(everything) == len({each.id for each in everything})
            for index, each in enumerate(everything):
                window = await store.load_messages(conversation_id, system=True, after=each.id)
                assert everything[index + 1 :] == window, (voice, index)
                window = await store.load_messages(conversation_id, system=True, before=each.id)
                assert everything[:index] == window, (voice, index)
                window = await store.load_messages(conversation_id, system=True, after=each.id, limit=2)
                assert everything[index + 1 : index + 3] == window, (voice, index)
                window = await store.load_messages(conversation_id, system=True, before=each.id, limit=2)
                assert everything[max(0, index - 2) : index] == window, (voice, index)
            for limit in range(len(everything) + 2):
                window = await store.load_messages(conversation_id, system=True, limit=limit)
                assert everything[max(0, len(everything) - limit) :] == window, (voice, limit)
            for role in ("system", "user", "assistant", "tool"):
                window = await store.load_messages(conversation_id, role=role)
                assert [each for each in everything if each.role == role] == window, (voice, role)

    @clause("X5")
    async def test_the_runtime_can_read_what_others_wrote(self, store: Store, samples: Samples) -> None:
        """Every message of S that S did not write has all fields that the original runtime requires."""
        for voice in ("C", "A", "openai", "unknown"):
            await voices[voice](store, samples.id(voice))
            for each in await store.sessions.load_messages(samples.id(voice)):
                check_session_message(each)

    @clause("X3", "X7")
    async def test_a_call_is_finished_across(self, store: Store, samples: Samples) -> None:
        """Finishing a call through C shows in A and S, whoever made the call, and there is one result."""
        call = {"type": "toolCall", "id": "x", "name": "look", "arguments": {}}
        await store.create_conversation(samples.id("context"), samples.id("subject"), id=samples.id("C"))
        await store.append_messages(samples.id("C"), [saying("a", "", ToolCallRecord("look", "x", "pending", {}))])
        await store.sessions.save_messages(samples.id("S"), [assistant("", call)])
        await store.chat.save_conversation(conversation(samples.id("A"), tool_call(7, "x", "executing", note="kept")))
        output = {"success": True, "message": "12", "data": {"n": 1}}
        for voice in ("C", "S", "A"):
            conversation_id = samples.id(voice)
            for _ in range(2):
                record = await store.finish_tool_call(conversation_id, "x", "success", output)
                assert ("success", {"n": 1}) == (record.state, record.output["data"]), voice
            with pytest.raises(ConflictError):
                await store.finish_tool_call(conversation_id, "x", "error", {"success": False, "message": "no"})
            assert [] == await store.open_tool_calls(conversation_id)
            results: list[Any] = await store.sessions.load_messages(conversation_id, role="toolResult")
            assert [("x", False, {"n": 1})] == [
                (each["toolCallId"], each["isError"], each["details"]) for each in results
            ], voice
            items: list[Any] = await store.chat.get_conversation_items(conversation_id)
            shown = [each["toolCall"] for each in items if each["type"] == "tool_call"]
            assert [("x", "completed", {"n": 1})] == [(each["id"], each["status"], each["result"]) for each in shown], (
                voice
            )
            loaded = [call for each in await store.load_messages(conversation_id) for call in each.tool_calls]
            assert [("x", "success", {"n": 1})] == [
                (each.tool_call_id, each.state, each.output["data"]) for each in loaded
            ], voice
        (item,) = cast(Any, await store.chat.get_conversation_items(samples.id("A")))
        assert (7, "kept") == (item["id"], item["toolCall"]["note"])

    @clause("X3", "X7")
    async def test_a_chat_finishes_a_call_of_others(self, store: Store, samples: Samples) -> None:
        """A tool_call item added with the id of a derived one edits the record behind it: its state and its output."""
        await store.create_conversation(samples.id("context"), samples.id("subject"), id=samples.id("C"))
        await store.append_messages(
            samples.id("C"), [saying("a", "text", ToolCallRecord("look", "x", "pending", {"q": 1}))]
        )
        before = await dump(store, samples.id("C"))
        done = tool_call("a:x", "x", "completed", result={"n": 1}, arguments={"q": 1})
        updated = await store.chat.add_item(samples.id("C"), done)
        assert updated is not None
        assert ["message", "tool_call"] == [each["type"] for each in updated["items"]]
        assert cast(Any, done)["toolCall"] == cast(Any, updated["items"][1])["toolCall"]
        (loaded,) = await store.load_messages(samples.id("C"))
        assert ("a", "text") == (loaded.id, loaded.content)
        (record,) = loaded.tool_calls
        assert ("look", "x", "success", {"q": 1}) == (record.tool_name, record.tool_call_id, record.state, record.input)
        assert (True, {"n": 1}) == (record.output["success"], record.output["data"])
        after = await dump(store, samples.id("C"))
        assert [(each.entry_id, each.dialect) for each in before.entries] == [
            (each.entry_id, each.dialect) for each in after.entries
        ]

    @clause("X3")
    async def test_executing_is_kept_in_the_item(self, store: Store, samples: Samples) -> None:
        """`executing` is pending for C, has no toolResult in S, and stays `executing` in A, whoever appends behind it."""
        item: ChatItem = tool_call("t", "x", "executing")
        await store.chat.save_conversation(conversation(samples.id("a"), item))
        await store.append_messages(samples.id("a"), [Message(role="user", content="well?")])
        messages = await store.sessions.load_messages(samples.id("a"))
        await store.sessions.save_messages(samples.id("a"), messages)
        assert ["pending"] == [
            call.state for each in await store.load_messages(samples.id("a")) for call in each.tool_calls
        ]
        assert ["assistant", "user"] == [each["role"] for each in messages]
        assert item == (await store.chat.get_conversation_items(samples.id("a")))[0]

    @clause("X7", "C8")
    async def test_an_update_keeps_what_c_cannot_see(self, store: Store, samples: Samples) -> None:
        """C's edit of the text of a runtime's message leaves thinking, usage and odd fields of it alone."""
        saved: list[Any] = [
            assistant(
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}, "Let me look.", responseId="r"
            )
        ]
        await store.sessions.save_messages(samples.id("s"), saved)
        (loaded,) = await store.load_messages(samples.id("s"))
        parts = tuple(TextPart("Let me see.") if isinstance(each, TextPart) else each for each in loaded.parts)
        changed = Message(
            role="assistant", content="Let me see.", parts=parts, id=loaded.id, created_at=loaded.created_at
        )
        await store.update_message(samples.id("s"), changed)
        saved[0]["content"][1]["text"] = "Let me see."
        assert repr(saved) == repr(await store.sessions.load_messages(samples.id("s")))

    @clause("X7", "C8")
    async def test_an_update_edits_the_items_behind_a_message(self, store: Store, samples: Samples) -> None:
        """C's edit of a message that folds chat items changes the item it comes from: the text's or the call's."""
        items: list[Any] = [message("a", "look", role="assistant", note=1), tool_call("t", "x", "executing", note=2)]
        await store.chat.save_conversation(conversation(samples.id("a"), *items))
        (loaded,) = await store.load_messages(samples.id("a"))
        output = {"success": True, "message": "", "data": {"n": 1}}
        done = ToolCallRecord("look", "x", "success", {}, output)
        changed = Message(
            role="assistant", content="seen", tool_calls=(done,), id=loaded.id, created_at=loaded.created_at
        )
        await store.update_message(samples.id("a"), changed)
        items[0]["content"] = "seen"
        items[1]["toolCall"] |= {"status": "completed", "result": {"n": 1}}
        assert items == await store.chat.get_conversation_items(samples.id("a"))
        (loaded,) = await store.load_messages(samples.id("a"))
        assert ("seen", (done,)) == (loaded.content, loaded.tool_calls)

    @clause("X3", "X7")
    async def test_a_call_of_an_imported_message_is_finished(self, store: Store, samples: Samples) -> None:
        """A call that an importer kept in its own words is finished through C and shown finished everywhere."""
        await voices["openai"](store, samples.id("o"))
        assert ["o2"] == [each.tool_call_id for each in await store.open_tool_calls(samples.id("o"))]
        await store.finish_tool_call(samples.id("o"), "o2", "error", {"success": False, "message": "no", "error": "no"})
        assert [] == await store.open_tool_calls(samples.id("o"))
        results: list[Any] = await store.sessions.load_messages(samples.id("o"), role="toolResult")
        assert [("o1", False), ("o2", True)] == sorted((each["toolCallId"], each["isError"]) for each in results)
        items: list[Any] = await store.chat.get_conversation_items(samples.id("o"))
        shown = {each["toolCall"]["id"]: each["toolCall"]["status"] for each in items if each["type"] == "tool_call"}
        assert {"o1": "completed", "o2": "error"} == shown

    @clause("C8", "X2")
    async def test_a_fork_after_any_message_has_the_history_up_to_it(self, store: Store, samples: Samples) -> None:
        """Forked after each message in turn, a conversation reads as the origin does up to that message, calls and all."""
        for voice, say in voices.items():
            conversation_id = samples.id(voice)
            await say(store, conversation_id)
            everything = await store.load_messages(conversation_id, system=True)
            for index, each in enumerate(everything):
                fork = await store.fork_conversation(conversation_id, after=each.id)
                told = [
                    (one.role, one.content, one.parts, [call.tool_call_id for call in one.tool_calls])
                    for messages in (everything[: index + 1], await store.load_messages(fork.id, system=True))
                    for one in messages
                ]
                assert told[: index + 1] == told[index + 1 :], (voice, index)

    @clause("B12", "C8")
    async def test_salvage_reads_every_voice(self, store: Store, samples: Samples) -> None:
        """Salvage of a sound log gives what loading all of it gives, whoever wrote it."""
        for voice, say in voices.items():
            await say(store, samples.id(voice))
            loaded = await store.load_messages(samples.id(voice), system=True)
            assert (loaded, ()) == await store.salvage(samples.id(voice)), voice

    @clause("C9", "X2")
    async def test_whole_turns_in_every_voice(self, store: Store, samples: Samples) -> None:
        """Whole turns begin with no result and leave no call without its results, whoever wrote them."""
        for voice, say in voices.items():
            await say(store, samples.id(voice))
            everything = await store.load_messages(samples.id(voice), system=True)
            for limit in range(1, len(everything) + 1):
                window = await store.load_messages(samples.id(voice), system=True, limit=limit, whole_turns=True)
                if not window:
                    continue
                asked: set[str | None] = set()
                for each in window:
                    asked |= {call.tool_call_id for call in each.tool_calls}
                    assert each.role != "tool" or each.tool_call_id in asked, (voice, limit, each)

    @clause("C8", "X1")
    async def test_a_fork_takes_every_voice_along(self, store: Store, samples: Samples) -> None:
        """A fork reads in S and A as its origin does, what C cannot see included."""
        for voice, say in voices.items():
            conversation_id = samples.id(voice)
            await say(store, conversation_id)
            fork = await store.fork_conversation(conversation_id)
            assert repr(await store.sessions.load_messages(conversation_id)) == repr(
                await store.sessions.load_messages(fork.id)
            ), voice
            before, after = await dump(store, conversation_id), await dump(store, fork.id)
            assert [(each.dialect, each.body) for each in before.entries] == [
                (each.dialect, each.body) for each in after.entries
            ], voice
