"""The conversation store on any backend."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from msgspec import UNSET, UnsetType, structs

from convostore import limits
from convostore.contracts.backend import Backend, Change, Damage, HeadQuery, NewEntry
from convostore.contracts.conversation_store import ConversationOrder, ConversationPage
from convostore.contracts.walking import pages
from convostore.dialects import hub
from convostore.errors import (
    ConflictError,
    ConversationExistsError,
    ConversationNotFoundError,
    CorruptDataError,
    InvalidInput,
    MessageAppendError,
    NotFoundError,
)
from convostore.ids import Clock, Mint, check_id, derived_id, new_id, now_ms
from convostore.model.conversation import Conversation
from convostore.model.exact_json import JsonObject, JsonValue
from convostore.model.message import Message, Role, ToolCallRecord, ToolCallState
from convostore.model.times import datetime_from_ms, ms_from_datetime
from convostore.stores import editing, forking, tool_calls
from convostore.stores.heads import METADATA, RATING, RATING_COMMENT, TITLE, conversation_of, delete, encoded
from convostore.stores.listed import listed
from convostore.stores.loading import Selection, load
from convostore.stores.salvaging import salvage

__all__ = ["Conversations"]

_log = logging.getLogger("convostore")
_SHARED_IDS = 3
_PASSES_MAX = 10


class Conversations:
    """What an agent service asks of a store; see `contracts.conversation_store` for every promise.

    `clock` and `mint` are arguments so that tests own time and chance.
    """

    def __init__(self, backend: Backend, *, clock: Clock = now_ms, mint: Mint = new_id) -> None:
        self._backend = backend
        self._clock = clock
        self._mint = mint

    def _change(self, conversation_id: str) -> Change:
        return Change(conversation_id=conversation_id, revision=self._mint(), at_ms=self._clock())

    async def create_conversation(
        self,
        context: str,
        subject_id: str,
        *,
        id: str | None = None,
        title: str | None = None,
        metadata: JsonObject | None = None,
        idempotency_key: str | None = None,
    ) -> Conversation:
        """Create a conversation and return it."""
        check_id(context, "context")
        check_id(subject_id, "subject id")
        if idempotency_key is not None:
            if id is not None:
                raise InvalidInput("give an id or an idempotency key, not both")
            conversation_id = derived_id("create", context, subject_id, check_id(idempotency_key, "idempotency key"))
        else:
            conversation_id = self._mint() if id is None else check_id(id, "conversation id")
        change = structs.replace(
            self._change(conversation_id),
            existence="must_create",
            context=context,
            subject_id=subject_id,
            fields={name: each for name, each in encoded(title=title, metadata=metadata).items() if each is not None},
        )
        try:
            receipt = await self._backend.commit(change)
        except ConversationExistsError:
            there = await self.find_by_id(conversation_id) if idempotency_key is not None else None
            # Anyone may have chosen this id for a conversation of their own; only the one asked for is given out.
            if there is None or (there.context, there.subject_id) != (context, subject_id):
                raise
            return there
        assert receipt.head is not None
        _log.debug("createConversation id=%s context=%s subject_id=%s", conversation_id, context, subject_id)
        return conversation_of(receipt.head)

    async def find_latest(self, context: str, subject_id: str) -> Conversation | None:
        """Return the conversation created last for this context and subject, or None."""
        if None in (context, subject_id):  # which to a query would mean those without one
            raise InvalidInput("find_latest needs a context and a subject id")
        query = HeadQuery(context=context, subject_id=subject_id, order="created", newest_first=True, limit=1)
        page = await self._backend.scan_heads(query)
        if page.damage:
            raise CorruptDataError(page.damage[0].conversation_id, page.damage)
        return conversation_of(page.items[0]) if page.items else None

    async def find_by_id(self, conversation_id: str) -> Conversation | None:
        """Return a conversation, or None when there is none of this id."""
        snapshot = await self._backend.read(conversation_id)
        return None if snapshot is None else conversation_of(snapshot.head)

    async def latest_or_create(
        self, context: str, subject_id: str, *, title: str | None = None, metadata: JsonObject | None = None
    ) -> Conversation:
        """Return find_latest's answer, or create one; two callers at once get the same."""
        latest = await self.find_latest(context, subject_id)
        if latest is not None:
            return latest
        for attempt in range(_SHARED_IDS):
            # The id is derived, so whoever comes second finds that the first has created it.
            key = f"latest_or_create {attempt}"
            with suppress(ConversationExistsError):  # somebody else's conversation has that very id
                return await self.create_conversation(
                    context, subject_id, title=title, metadata=metadata, idempotency_key=key
                )
        return await self.create_conversation(context, subject_id, title=title, metadata=metadata)

    async def append_messages(
        self,
        conversation_id: str,
        messages: Sequence[Message],
        *,
        idempotency_key: str | None = None,
        expected_revision: str | None = None,
    ) -> list[Message]:
        """Append `messages` in one commit and return them as stored."""
        check_id(conversation_id, "conversation id")
        messages = listed(messages, "messages")  # the caller may change the list while it waits
        try:
            if not messages:
                if await self._backend.read(conversation_id) is None:
                    raise ConversationNotFoundError(conversation_id)
                return []
            now = self._clock()
            entries = self._entries(conversation_id, messages, idempotency_key, now)
            receipt = await self._backend.commit(
                Change(
                    conversation_id=conversation_id,
                    revision=self._mint(),
                    at_ms=now,
                    expected_revision=expected_revision,
                    append=entries,
                )
            )
        except (InvalidInput, NotFoundError, ConflictError):
            raise
        except Exception as error:
            raise MessageAppendError.wrapping(conversation_id, error) from error
        _log.debug("appendMessages conversation_id=%s count=%d", conversation_id, len(entries))
        return [
            structs.replace(
                message,
                id=entry.entry_id,
                conversation_id=conversation_id,
                created_at=datetime_from_ms(entry.created_at_ms),
            )
            for message, entry in zip(messages, receipt.appended, strict=True)
        ]

    def _entries(
        self, conversation_id: str, messages: Sequence[Message], idempotency_key: str | None, now: int
    ) -> tuple[NewEntry, ...]:
        if idempotency_key is not None:
            check_id(idempotency_key, "idempotency key")
        entries = []
        for index, message in enumerate(messages):
            hub.check_message(message)
            if message.conversation_id not in (None, conversation_id):
                raise InvalidInput(
                    f"message {index} belongs to conversation {message.conversation_id!r}, not {conversation_id!r}"
                )
            if message.id is not None:
                entry_id = message.id
            elif idempotency_key is not None:
                entry_id = derived_id("append", conversation_id, idempotency_key, index)
            else:
                entry_id = self._mint()
            created = now if message.created_at is None else ms_from_datetime(message.created_at, "created_at")
            entries.append(hub.write_checked(message, entry_id=entry_id, created_at_ms=created))
        return tuple(entries)

    async def load_messages(
        self,
        conversation_id: str,
        *,
        role: Role | None = None,
        since: datetime | None = None,
        before: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        system: bool = False,
        whole_turns: bool = False,
    ) -> list[Message]:
        """Return messages oldest first."""
        selection = Selection(
            role=role, since=since, before=before, after=after, limit=limit, system=system, whole_turns=whole_turns
        )
        return await load(self._backend, conversation_id, selection)

    async def rate(self, conversation_id: str, rating: int, comment: str | None = None) -> None:
        """Rate a conversation from 1 to 5; without a comment an earlier one stays."""
        if type(rating) is not int or not 1 <= rating <= 5:
            raise InvalidInput(f"a rating is a whole number from 1 to 5, not {rating!r}")
        if comment is not None and type(comment) is not str:
            raise InvalidInput(f"a comment must be a string, not {type(comment).__name__}")
        fields = {RATING: rating} if comment is None else {RATING: rating, RATING_COMMENT: comment}
        await self._backend.commit(structs.replace(self._change(conversation_id), fields=encoded(**fields)))

    async def list_conversations(
        self,
        *,
        context: str | UnsetType | None = UNSET,
        subject_id: str | UnsetType | None = UNSET,
        prefix: str = "",
        order: ConversationOrder = "updated",
        newest_first: bool = True,
        cursor: str | None = None,
        limit: int = limits.page_heads_default,
    ) -> ConversationPage:
        """Return one page of conversations."""
        page = await self._backend.scan_heads(
            HeadQuery(
                context=context,
                subject_id=subject_id,
                prefix=prefix,
                order=order,
                newest_first=newest_first and order == "created",
                cursor=cursor,
                limit=limit,
            )
        )
        return ConversationPage(tuple(map(conversation_of, page.items)), page.cursor, page.damage)

    async def update_conversation(
        self,
        conversation_id: str,
        *,
        title: str | UnsetType | None = UNSET,
        metadata: JsonObject | UnsetType | None = UNSET,
        subject_id: str | UnsetType = UNSET,
        expected_revision: str | None = None,
    ) -> Conversation:
        """Change what is given and return the conversation."""
        given = {name: each for name, each in ((TITLE, title), (METADATA, metadata)) if each is not UNSET}
        change = structs.replace(
            self._change(conversation_id),
            fields=encoded(**given),
            set_subject=None if subject_id is UNSET else check_id(subject_id, "subject id"),
            expected_revision=expected_revision,
        )
        receipt = await self._backend.commit(change)
        assert receipt.head is not None
        return conversation_of(receipt.head)

    async def update_message(
        self, conversation_id: str, message: Message, *, expected_revision: str | None = None
    ) -> Message:
        """Put `message` in the place of the stored one with its id."""
        return await editing.update(
            self._backend,
            conversation_id,
            message,
            expected_revision=expected_revision,
            clock=self._clock,
            mint=self._mint,
        )

    async def finish_tool_call(
        self, conversation_id: str, tool_call_id: str, state: ToolCallState, output: JsonValue = None
    ) -> ToolCallRecord:
        """Record the result of the latest open call of this id and return it."""
        return await tool_calls.finish(
            self._backend, conversation_id, tool_call_id, state, output, clock=self._clock, mint=self._mint
        )

    async def open_tool_calls(self, conversation_id: str) -> list[ToolCallRecord]:
        """Return the calls that have no result, oldest first."""
        return await tool_calls.open_calls(self._backend, conversation_id)

    async def delete_conversation(self, conversation_id: str) -> bool:
        """Delete a conversation and all that belongs to it; False when there was none."""
        return await delete(self._backend, conversation_id, clock=self._clock, mint=self._mint)

    async def fork_conversation(
        self, conversation_id: str, *, after: str | None = None, id: str | None = None
    ) -> Conversation:
        """Create a conversation with the history up to and including message `after`."""
        new = self._mint() if id is None else check_id(id, "conversation id")
        return await forking.fork(self._backend, conversation_id, new, after=after, clock=self._clock, mint=self._mint)

    async def erase_subject(self, subject_id: str) -> int:
        """Delete every conversation of a subject and return how many."""
        check_id(subject_id, "subject id")
        erased = 0
        left: list[Damage] = []
        for _ in range(_PASSES_MAX):
            ids, damage = await self._ids_of(subject_id)
            left = []
            for each in ids:
                try:
                    erased += await self.delete_conversation(each)
                except CorruptDataError as error:
                    left += [found for found in error.damage if isinstance(found, Damage)]
            for found in damage:  # a damaged head may be deleted all the same, if its id can still be found
                deleted = await self.delete_conversation(found.conversation_id)
                erased += deleted
                left += [] if deleted else [found]
            if len(ids) + len(damage) == len(left):
                break
        if left:
            raise CorruptDataError(left[0].conversation_id, left)
        return erased

    async def _ids_of(self, subject_id: str) -> tuple[list[str], list[Damage]]:
        ids: list[str] = []
        damage: list[Damage] = []
        async for page in pages(self._backend, HeadQuery(subject_id=subject_id, limit=limits.page_heads_max)):
            ids += [head.conversation_id for head in page.items]
            damage += page.damage
        return ids, damage

    async def salvage(self, conversation_id: str) -> tuple[list[Message], tuple[Damage, ...]]:
        """Return the sound messages, system ones included, and what is damaged."""
        return await salvage(self._backend, conversation_id)
