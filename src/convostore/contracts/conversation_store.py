"""The contract of an agent service: conversations found by context and subject, messages appended turn by turn.

Clauses:
    C1: create_conversation gives ids that are unique and sort by time when they are ours; metadata is kept exactly and
        absent stays absent. Repeating it with the same `idempotency_key` returns the conversation it created; if somebody
        else has that id, it is ConversationExistsError.
    C2: find_latest returns the conversation created last for exactly this context and subject, or None. A creation that
        began after another had returned is later, in any process, whatever the clock does.
    C3: find_by_id returns a conversation or None. latest_or_create finds or creates in one call and gives two callers at
        once the same conversation.
    C4: append_messages keeps the caller's own ids and times, gives the others, and returns what is stored. InvalidInput,
        ConversationNotFoundError and ConflictError keep their class; any other failure is a MessageAppendError with its
        cause. An empty list changes nothing. With an idempotency key, repeating adds nothing. updated_at moves.
    C5: load_messages returns oldest first; filters come first, then `limit`: the last N, or with `after` the first N.
        None is all, 0 is none, negative is InvalidInput, an unknown `before` or `after` is InvalidInput.
    C6: rate takes a whole number from 1 to 5; without a comment an earlier comment stays; updated_at moves.
    C7: Tool calls are kept exactly: name, id, state, input and output; output is null while pending.
    C8: list, update, update_message, finish_tool_call (safe when two calls of one message finish at once), delete, fork and
        erase_subject.
    C9: open_tool_calls names the calls without a result. `whole_turns` shrinks a window so that it never begins with a
        result whose call is outside, nor leaves a call without its results, other than a trailing open one.
    C10: for_subject sees, changes, lists and deletes only that subject's conversations, on every verb of every store; all
        else is not found, a conversation without an owner included. The owner is checked inside the commit. Creating an id
        that another subject has is ConversationExistsError.
    C11: The wire form is the original contract's JSON: content always a string, times with three decimals and Z, absent
        fields absent, null where the original has null.
    C12: createConversation (id, context, subject_id) and appendMessages (conversation_id, count) are logged at debug level
        on the logger ``convostore``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from msgspec import UNSET, UnsetType

from convostore import limits
from convostore.contracts.backend import Damage
from convostore.model.conversation import Conversation
from convostore.model.exact_json import JsonObject, JsonValue
from convostore.model.message import Message, Role, ToolCallRecord, ToolCallState
from convostore.model.page import Page

__all__ = ["ConversationOrder", "ConversationPage", "ConversationStore"]

ConversationOrder: TypeAlias = Literal["id", "created", "updated"]


class ConversationPage(Page[Conversation], frozen=True):
    """One page of conversations; one that cannot be read is left out of `items` and named in `damage`."""

    damage: tuple[Damage, ...] = ()


class ConversationStore(Protocol):
    """What an agent service asks of a store."""

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
        """Create a conversation and return it.

        Raises:
            InvalidInput: an id, the title or the metadata cannot be kept, or both `id` and `idempotency_key` are given.
            ConversationExistsError: `id` is taken.
        """
        ...

    async def find_latest(self, context: str, subject_id: str) -> Conversation | None:
        """Return the conversation created last for this context and subject, or None."""
        ...

    async def find_by_id(self, conversation_id: str) -> Conversation | None:
        """Return a conversation, or None when there is none of this id."""
        ...

    async def latest_or_create(
        self, context: str, subject_id: str, *, title: str | None = None, metadata: JsonObject | None = None
    ) -> Conversation:
        """Return find_latest's answer, or create one with this title and metadata; two callers at once get the same."""
        ...

    async def append_messages(
        self,
        conversation_id: str,
        messages: Sequence[Message],
        *,
        idempotency_key: str | None = None,
        expected_revision: str | None = None,
    ) -> list[Message]:
        """Append `messages` in one commit and return them as stored, in the same order; all of them or none.

        Raises:
            ConversationNotFoundError: there is no such conversation.
            InvalidInput: a message cannot be kept exactly, or names another conversation.
            DuplicateEntryError: a message id is there with other content.
            RevisionConflictError: `expected_revision` is not the conversation's.
            MessageAppendError: anything else; `__cause__` is set, and it is also an UnavailableError,
                CorruptDataError or ClosedError where the cause is one.

        Cost: that of the new messages, whatever the conversation's length.
        """
        ...

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
        """Return messages oldest first; [] when there is no such conversation.

        `since` is an aware datetime, inclusive. `before` and `after` are message ids, exclusive. System messages come only
        with `system` or ``role="system"``. Filters come first, then `limit` (the last N, with `after` the first N), then
        `whole_turns`, which only shrinks.

        Raises:
            InvalidInput: an unknown `before`, `after` or role, a naive `since`, a negative limit.
            CorruptDataError: a record in the window is damaged; see `salvage`.

        Cost: that of the window, not of what lies before it.
        """
        ...

    async def rate(self, conversation_id: str, rating: int, comment: str | None = None) -> None:
        """Rate a conversation from 1 to 5; without a comment an earlier one stays.

        Raises:
            InvalidInput: not a whole number from 1 to 5.
            ConversationNotFoundError: there is no such conversation.
        """
        ...

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
        """Return one page. `context` and `subject_id` None mean those without one; left out, any.

        Order "updated" is always most recent first; "created" obeys `newest_first`; "id" is by code point and takes `prefix`.

        Raises:
            InvalidInput: a bad order, limit or cursor, or a prefix with another order than "id".
        """
        ...

    async def update_conversation(
        self,
        conversation_id: str,
        *,
        title: str | UnsetType | None = UNSET,
        metadata: JsonObject | UnsetType | None = UNSET,
        subject_id: str | UnsetType = UNSET,
        expected_revision: str | None = None,
    ) -> Conversation:
        """Change what is given and return the conversation; None drops, what is left out stays.

        `subject_id` may be given to a conversation that has none.

        Raises:
            ConversationNotFoundError: there is no such conversation.
            ConflictError: it has another owner already.
        """
        ...

    async def update_message(
        self, conversation_id: str, message: Message, *, expected_revision: str | None = None
    ) -> Message:
        """Put `message` in the place of the stored one with its id and return it as stored.

        Raises:
            InvalidInput: the message has no id or cannot be kept.
            NotFoundError: no such conversation or message.
        """
        ...

    async def finish_tool_call(
        self, conversation_id: str, tool_call_id: str, state: ToolCallState, output: JsonValue = None
    ) -> ToolCallRecord:
        """Record the result of the latest open call of this id and return it; safe against others finishing theirs.

        Repeating it with the same result changes nothing.

        Raises:
            NotFoundError: no such conversation, or no call of this id.
            ConflictError: the call is finished already, with another result.
            InvalidInput: `state` is "pending", or the output cannot be kept.
        """
        ...

    async def open_tool_calls(self, conversation_id: str) -> list[ToolCallRecord]:
        """Return the calls that have no result, oldest first; [] when there is no such conversation."""
        ...

    async def delete_conversation(self, conversation_id: str) -> bool:
        """Delete a conversation and all that belongs to it; False when there was none."""
        ...

    async def fork_conversation(
        self, conversation_id: str, *, after: str | None = None, id: str | None = None
    ) -> Conversation:
        """Create a conversation with the history up to and including message `after` (None: all of it).

        Context, subject, title and metadata go along, and `forked_from`; ratings and documents do not.

        Raises:
            ConversationNotFoundError: there is no such conversation.
            InvalidInput: `after` is not a message of it.
            ConversationExistsError: `id` is taken.
        """
        ...

    async def erase_subject(self, subject_id: str) -> int:
        """Delete every conversation of a subject and return how many; nothing of them stays readable.

        Looks again until none is left, ten times at most: who still creates conversations for the subject must stop first.

        Raises:
            CorruptDataError: after all others were deleted, one is damaged so that it cannot be found by its id.
        """
        ...

    async def salvage(self, conversation_id: str) -> tuple[list[Message], tuple[Damage, ...]]:
        """Return the sound messages, system ones included, and what is damaged; nothing is changed.

        Raises:
            ConversationNotFoundError: there is no such conversation.
        """
        ...
