"""Stores that are broken on purpose, each in one way that peers were found to be, and the clause that has to notice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar

import msgspec

from convostore.model.conversation import Conversation
from convostore.model.message import Message, ToolCallRecord
from convostore.opening import Store
from convostore.stores.chat import Chat
from convostore.stores.sessions import Sessions

__all__ = ["CHATS", "CONVERSATIONS", "CROSSING", "SESSIONS"]


class SortsMetadataKeys(Store):
    noticed_by: ClassVar[str] = "C1"

    async def create_conversation(self, *args: Any, metadata: Any = None, **kwargs: Any) -> Conversation:
        ordered = dict(sorted(metadata.items())) if type(metadata) is dict else metadata
        return await super().create_conversation(*args, metadata=ordered, **kwargs)


class FindsTheLastUsed(Store):
    noticed_by: ClassVar[str] = "C2"

    async def find_latest(self, context: str, subject_id: str) -> Conversation | None:
        await super().find_latest(context, subject_id)
        page = await self.list_conversations(context=context, subject_id=subject_id, order="updated", limit=1)
        return page.items[0] if page.items else None


class FindsThenCreates(Store):
    noticed_by: ClassVar[str] = "C3"

    async def latest_or_create(self, context: str, subject_id: str, **kwargs: Any) -> Conversation:
        found = await self.find_latest(context, subject_id)
        return found or await self.create_conversation(context, subject_id, **kwargs)


class DropsEqualMessages(Store):
    noticed_by: ClassVar[str] = "C4"

    async def append_messages(self, conversation_id: str, messages: Sequence[Message], **kwargs: Any) -> list[Message]:
        there = {each.content for each in await self.load_messages(conversation_id)}
        return await super().append_messages(
            conversation_id, [each for each in messages if each.content not in there], **kwargs
        )


class GivesTheFirstOnes(Store):
    noticed_by: ClassVar[str] = "C5"

    async def load_messages(self, *args: Any, limit: int | None = None, **kwargs: Any) -> list[Message]:
        loaded = await super().load_messages(*args, **kwargs)
        if limit is not None and limit < 0:
            return await super().load_messages(*args, limit=limit, **kwargs)
        return loaded[:limit]


class TakesNegativeForAll(Store):
    noticed_by: ClassVar[str] = "C5"

    async def load_messages(self, *args: Any, limit: int | None = None, **kwargs: Any) -> list[Message]:
        wanted = None if type(limit) is int and limit < 0 else limit
        return await super().load_messages(*args, limit=wanted, **kwargs)


class TakesZeroForAll(Store):
    noticed_by: ClassVar[str] = "C5"

    async def load_messages(self, *args: Any, limit: int | None = None, **kwargs: Any) -> list[Message]:
        return await super().load_messages(*args, limit=limit or None, **kwargs)


class ForgetsTheComment(Store):
    noticed_by: ClassVar[str] = "C6"

    async def rate(self, conversation_id: str, rating: int, comment: str | None = None) -> None:
        await super().rate(conversation_id, rating, comment if comment is not None else "")


class ForgetsEmptyOutputs(Store):
    noticed_by: ClassVar[str] = "C7"

    async def append_messages(self, conversation_id: str, messages: Sequence[Message], **kwargs: Any) -> list[Message]:
        def without(call: ToolCallRecord) -> ToolCallRecord:
            return call if call.output else ToolCallRecord(call.tool_name, call.tool_call_id, call.state, call.input)

        return await super().append_messages(
            conversation_id,
            [msgspec.structs.replace(each, tool_calls=tuple(map(without, each.tool_calls))) for each in messages],
            **kwargs,
        )


class OverwritesResults(Store):
    noticed_by: ClassVar[str] = "C8"

    async def finish_tool_call(
        self, conversation_id: str, tool_call_id: str, state: Any, output: Any = None
    ) -> ToolCallRecord:
        for each in await self.load_messages(conversation_id):
            for call in each.tool_calls:
                if call.tool_call_id == tool_call_id and call.state != "pending":
                    return ToolCallRecord(call.tool_name, tool_call_id, state, call.input, output)
        return await super().finish_tool_call(conversation_id, tool_call_id, state, output)


class FinishesByReadingAndWriting(Store):
    noticed_by: ClassVar[str] = "C8"

    async def finish_tool_call(
        self, conversation_id: str, tool_call_id: str, state: Any, output: Any = None
    ) -> ToolCallRecord:
        loaded = await self.load_messages(conversation_id)
        for each in reversed(loaded):
            for call in each.tool_calls:
                if call.tool_call_id == tool_call_id and call.state == "pending":
                    done = ToolCallRecord(call.tool_name, tool_call_id, state, call.input, output)
                    calls = tuple(done if one is call else one for one in each.tool_calls)
                    await self.update_message(conversation_id, msgspec.structs.replace(each, tool_calls=calls))
                    return done
        return await super().finish_tool_call(conversation_id, tool_call_id, state, output)


class ErasesOnePage(Store):
    noticed_by: ClassVar[str] = "C8"

    async def erase_subject(self, subject_id: str) -> int:
        page = await self.list_conversations(subject_id=subject_id, limit=50)
        return sum([await self.delete_conversation(each.id) for each in page.items])


class DeletesWithoutSaying(Store):
    noticed_by: ClassVar[str] = "C8"

    async def delete_conversation(self, conversation_id: str) -> bool:
        await super().delete_conversation(conversation_id)
        return True


class ListsFoldedPrefixes(Store):
    noticed_by: ClassVar[str] = "C8"

    async def list_conversations(self, *, prefix: str = "", **kwargs: Any) -> Any:
        page = await super().list_conversations(prefix=prefix, **kwargs)
        return msgspec.structs.replace(page, items=tuple(each for each in page.items if "%" not in each.id))


class SaysThatAllCallsAreOpen(Store):
    noticed_by: ClassVar[str] = "C9"

    async def open_tool_calls(self, conversation_id: str) -> list[ToolCallRecord]:
        loaded = await self.load_messages(conversation_id)
        return [call for each in loaded for call in each.tool_calls if call.state == "pending"]


class CutsGroups(Store):
    noticed_by: ClassVar[str] = "C9"

    async def load_messages(self, *args: Any, whole_turns: bool = False, **kwargs: Any) -> list[Message]:
        return await super().load_messages(*args, **kwargs)


class SeesEveryone(Store):
    noticed_by: ClassVar[str] = "C10"

    def for_subject(self, subject_id: str) -> Store:
        super().for_subject(subject_id)
        return self


class RatesForEveryone(Store):
    noticed_by: ClassVar[str] = "C10"

    def for_subject(self, subject_id: str) -> Store:
        everyone, view = self, super().for_subject(subject_id)

        class View(Store):
            async def rate(self, conversation_id: str, rating: int, comment: str | None = None) -> None:
                await Store.rate(everyone, conversation_id, rating, comment)

        return View(view.backend, clock=self._clock, mint=self._mint)


class HasAVerbWithoutAProbe(Store):
    noticed_by: ClassVar[str] = "C10"

    async def export_everything(self) -> None:
        """A verb of tomorrow."""


class EmptiesOnABadMessage(Sessions):
    noticed_by: ClassVar[str] = "S1"

    async def save_messages(self, session_id: str, messages: Any) -> None:
        if await self.exists(session_id):
            await super().save_messages(session_id, [])
        await super().save_messages(session_id, messages)


class SinceIsExclusive(Sessions):
    noticed_by: ClassVar[str] = "S1"

    async def load_messages(self, session_id: str, *, since: Any = None, **kwargs: Any) -> Any:
        later = since + 1 if type(since) is int else since
        return await super().load_messages(session_id, since=later, **kwargs)


class LimitsBeforeFiltering(Sessions):
    noticed_by: ClassVar[str] = "S1"

    async def load_messages(self, session_id: str, *, limit: Any = None, role: Any = None, since: Any = None) -> Any:
        filtered = await super().load_messages(session_id, role=role, since=since, limit=limit)
        last = await super().load_messages(session_id, limit=limit)
        return [each for each in filtered if each in last]


class CountsMessagesItself(Sessions):
    noticed_by: ClassVar[str] = "S2"

    async def save_info(self, session_id: str, info: Any) -> None:
        count = len(await self.load_messages(session_id))
        await super().save_info(session_id, msgspec.structs.replace(info, message_count=count))


class SortsWithoutCase(Sessions):
    noticed_by: ClassVar[str] = "S3"

    async def list(self, prefix: str = "") -> list[str]:
        return sorted(await super().list(prefix), key=str.lower)


class DropsUnknownFields(Sessions):
    noticed_by: ClassVar[str] = "S4"

    async def save_messages(self, session_id: str, messages: Any) -> None:
        known = {"role", "content", "timestamp", "toolCallId", "toolName", "isError", "details", "api", "provider"}
        known |= {"model", "usage", "stopReason"}
        await super().save_messages(
            session_id,
            [{k: v for k, v in each.items() if k in known} if type(each) is dict else each for each in messages],  # type: ignore[misc]
        )


class AppendsByRewriting(Sessions):
    noticed_by: ClassVar[str] = "S5"

    async def append_messages(self, session_id: str, messages: Any) -> None:
        if messages:
            await self.save_messages(session_id, [*await self.load_messages(session_id), *messages])


class ListsById(Chat):
    noticed_by: ClassVar[str] = "A1"

    async def get_all_conversations(self) -> Any:
        return sorted(await super().get_all_conversations(), key=lambda each: each["id"])


class IteratesOnePage(Chat):
    noticed_by: ClassVar[str] = "A1"

    async def iterate_conversations(self) -> AsyncIterator[Any]:
        count = 0
        async for each in super().iterate_conversations():
            if (count := count + 1) > 50:
                return
            yield each


class MakesIdsText(Chat):
    noticed_by: ClassVar[str] = "A2"

    async def get_conversation_items(self, conversation_id: str) -> Any:
        return [{**each, "id": str(each["id"])} for each in await super().get_conversation_items(conversation_id)]


class AppendsEveryCall(Chat):
    noticed_by: ClassVar[str] = "A2"

    async def append_item(self, conversation_id: str, item: Any) -> bool:
        conversation = await self.get_conversation(conversation_id)
        if conversation is None or type(item) is not dict or item.get("type") != "tool_call":
            return await super().append_item(conversation_id, item)
        await self.save_conversation({**conversation, "items": [*conversation["items"], item]})  # type: ignore[list-item]
        return True


class DropsUnknownTypes(Chat):
    noticed_by: ClassVar[str] = "A3"

    async def get_conversation_items(self, conversation_id: str) -> Any:
        known = ("message", "tool_call", "card")
        return [each for each in await super().get_conversation_items(conversation_id) if each["type"] in known]


class ForgetsTheAgentOnSave(Chat):
    noticed_by: ClassVar[str] = "A4"

    async def get_conversation_agent(self, conversation_id: str) -> str | None:
        items = await self.get_conversation_items(conversation_id)
        return await super().get_conversation_agent(conversation_id) if items else None


class ShowsCardsInHistory(Chat):
    noticed_by: ClassVar[str] = "A10"

    async def get_conversation_history(self, conversation_id: str) -> Any:
        return await self.get_conversation_items(conversation_id)


class SavesAnew(Store):
    """Saving clears the log and writes it again."""

    noticed_by: ClassVar[str] = "X1"

    @property
    def sessions(self) -> Sessions:
        class Anew(Sessions):
            async def save_messages(self, session_id: str, messages: Any) -> None:
                await super().save_messages(session_id, [])
                await super().save_messages(session_id, messages)

        return Anew(self._backend, clock=self._clock, mint=self._mint)


class ShowsOpenCallsOnly(Store):
    """A chat does not see results."""

    noticed_by: ClassVar[str] = "X2"

    @property
    def chat(self) -> Chat:
        class Open(Chat):
            async def get_conversation_items(self, conversation_id: str) -> Any:
                items: Any = await super().get_conversation_items(conversation_id)
                for each in items:
                    each.get("toolCall", {}).pop("result", None)
                return items

        return Open(self._backend, clock=self._clock, mint=self._mint)


class LeavesDefaultsOut(Store):
    """A runtime is given what the source has and no more."""

    noticed_by: ClassVar[str] = "X5"

    @property
    def sessions(self) -> Sessions:
        class Bare(Sessions):
            async def load_messages(self, session_id: str, **kwargs: Any) -> Any:
                loaded: Any = await super().load_messages(session_id, **kwargs)
                return [{k: v for k, v in each.items() if v != "unknown"} for each in loaded]

        return Bare(self._backend, clock=self._clock, mint=self._mint)


class LimitsEntries(Store):
    """Limits count entries, not what is shown."""

    noticed_by: ClassVar[str] = "X6"

    @property
    def sessions(self) -> Sessions:
        class Counting(Sessions):
            async def load_messages(self, session_id: str, *, limit: Any = None, **kwargs: Any) -> Any:
                return await super().load_messages(session_id, limit=limit and limit + 1, **kwargs)

        return Counting(self._backend, clock=self._clock, mint=self._mint)


CONVERSATIONS: tuple[type[Any], ...] = (
    SortsMetadataKeys, FindsTheLastUsed, FindsThenCreates, DropsEqualMessages, GivesTheFirstOnes, TakesNegativeForAll,
    TakesZeroForAll, ForgetsTheComment, ForgetsEmptyOutputs, OverwritesResults, FinishesByReadingAndWriting, ErasesOnePage,
    DeletesWithoutSaying, ListsFoldedPrefixes, SaysThatAllCallsAreOpen, CutsGroups, SeesEveryone, RatesForEveryone,
    HasAVerbWithoutAProbe,
)  # fmt: skip
SESSIONS: tuple[type[Any], ...] = (
    EmptiesOnABadMessage, SinceIsExclusive, LimitsBeforeFiltering, CountsMessagesItself, SortsWithoutCase, DropsUnknownFields,
    AppendsByRewriting,
)  # fmt: skip
CHATS: tuple[type[Any], ...] = (
    ListsById, IteratesOnePage, MakesIdsText, AppendsEveryCall, DropsUnknownTypes, ForgetsTheAgentOnSave,
    ShowsCardsInHistory,
)  # fmt: skip
CROSSING: tuple[type[Any], ...] = (SavesAnew, ShowsOpenCallsOnly, LeavesDefaultsOut, LimitsEntries)
