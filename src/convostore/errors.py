"""Every error that convostore raises, in one tree.

::

    StoreError                              (also exported as ConversationStoreError)
      the caller's turn: change the call
        InvalidInput(ValueError)            a bad id, rating, limit, cursor, filter or value
        NotFoundError(LookupError)          (also exported as SessionNotFoundError)
          ConversationNotFoundError
        ConflictError
          ConversationExistsError
          RevisionConflictError             .expected .actual
          DuplicateEntryError               that id is there with other content
        UnsupportedError                    the backend lacks that capability
        ClosedError
      the world's turn: try again later
        UnavailableError                    locked, disk full, I/O error, connection lost
      the data's turn: somebody has to look
        CorruptDataError                    .conversation_id .damage; the bytes are left alone
        SchemaTooNewError
        SchemaTooOldError
    MessageAppendError(StoreError)          an append that failed for a reason the caller could not know; __cause__ is set
      AppendUnavailable                     is an UnavailableError too
      AppendCorruptData                     is a CorruptDataError too
      AppendClosed                          is a ClosedError too

Each error has ``code`` (stable, for programs and for the wire), ``context`` (JSON-able facts, camelCase as on the wire),
``retryable`` and a message that says what, which, and what to do next. All of it survives pickling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

__all__ = [
    "AppendClosed",
    "AppendCorruptData",
    "AppendUnavailable",
    "ClosedError",
    "ConflictError",
    "ConversationExistsError",
    "ConversationNotFoundError",
    "CorruptDataError",
    "DuplicateEntryError",
    "InvalidInput",
    "MessageAppendError",
    "NotFoundError",
    "RevisionConflictError",
    "SchemaTooNewError",
    "SchemaTooOldError",
    "StoreError",
    "UnavailableError",
    "UnsupportedError",
]


class StoreError(Exception):
    """Base of every error of this library."""

    code: ClassVar[str] = "CONVERSATION_STORE_ERROR"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, context: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.context: dict[str, object] = dict(context or {})

    def __reduce__(self) -> tuple[Callable[..., StoreError], tuple[Any, ...]]:
        return _revive, (type(self), self.args, self.__dict__, self.__cause__)


def _revive(
    cls: type[StoreError], args: tuple[object, ...], state: Mapping[str, object], cause: BaseException | None
) -> StoreError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    error.__cause__ = cause
    return error


class InvalidInput(StoreError, ValueError):
    """The call cannot be carried out as it is written; nothing was stored."""

    code = "INVALID_INPUT"


class NotFoundError(StoreError, LookupError):
    """What the call names is not there."""

    code = "NOT_FOUND"

    # LookupError prints its argument's repr in some subclasses (KeyError); keep the message readable everywhere.
    __str__ = Exception.__str__


class ConversationNotFoundError(NotFoundError):
    """No such conversation for this caller; ``context["id"]`` is the id that was asked for."""

    code = "CONVERSATION_NOT_FOUND"

    def __init__(self, conversation_id: str) -> None:
        super().__init__(
            f"there is no conversation {conversation_id!r}; create it first, or check the id",
            context={"id": conversation_id},
        )
        self.conversation_id = conversation_id


class ConflictError(StoreError):
    """The call contradicts what is stored; read again, then decide."""

    code = "CONFLICT"


class ConversationExistsError(ConflictError):
    """A conversation with this id is there already."""

    code = "CONVERSATION_EXISTS"

    def __init__(self, conversation_id: str) -> None:
        super().__init__(
            f"a conversation {conversation_id!r} exists already; choose another id, or append to that one",
            context={"id": conversation_id},
        )
        self.conversation_id = conversation_id


class RevisionConflictError(ConflictError):
    """Someone else committed since the caller read."""

    code = "REVISION_CONFLICT"

    def __init__(
        self, conversation_id: str, *, expected: str | int | None, actual: str | int | None, entry_id: str | None = None
    ) -> None:
        what = f"conversation {conversation_id!r}" if entry_id is None else f"entry {entry_id!r} of {conversation_id!r}"
        where = "does not exist" if actual is None else f"is at {actual}"
        super().__init__(
            f"{what} {where}, you expected {expected}; read it again and retry",
            context={"id": conversation_id, "expected": expected, "actual": actual}
            | ({} if entry_id is None else {"entryId": entry_id}),
        )
        self.conversation_id = conversation_id
        self.entry_id = entry_id
        self.expected = expected
        self.actual = actual


class DuplicateEntryError(ConflictError):
    """An entry with this id is in the conversation already, with other content."""

    code = "DUPLICATE_ENTRY"

    def __init__(self, conversation_id: str, entry_id: str) -> None:
        super().__init__(
            f"conversation {conversation_id!r} already holds an entry {entry_id!r} and this one is not a repetition"
            " of it; give the new entry an id of its own",
            context={"id": conversation_id, "entryId": entry_id},
        )
        self.conversation_id = conversation_id
        self.entry_id = entry_id


class UnsupportedError(StoreError):
    """The backend does not have the capability that this call needs."""

    code = "UNSUPPORTED"


class ClosedError(StoreError):
    """The store was closed; open it again."""

    code = "CLOSED"


class UnavailableError(StoreError):
    """The storage cannot answer now: locked, full, broken or out of reach. The only error worth repeating."""

    code = "UNAVAILABLE"
    retryable = True


class CorruptDataError(StoreError):
    """Stored bytes are not what was written. They are left alone; ``damage`` names every damaged record."""

    code = "CORRUPT_DATA"

    def __init__(self, conversation_id: str, damage: Iterable[object]) -> None:
        self.conversation_id = conversation_id
        self.damage = tuple(damage)
        listed = "; ".join(str(each) for each in self.damage[:5]) + (" ..." if len(self.damage) > 5 else "")
        super().__init__(
            f"conversation {conversation_id!r} has {len(self.damage)} damaged record(s): {listed}."
            " The bytes are untouched; salvage() returns what is sound",
            context={"id": conversation_id, "damage": [str(each) for each in self.damage]},
        )

    @property
    def session_id(self) -> str:
        """The conversation's id, by the name the session contract uses."""
        return self.conversation_id


class SchemaTooNewError(StoreError):
    """A newer convostore wrote this store; it was not touched."""

    code = "SCHEMA_TOO_NEW"


class SchemaTooOldError(StoreError):
    """The store must be upgraded and this process may not do it; the message carries what to run."""

    code = "SCHEMA_TOO_OLD"


class MessageAppendError(StoreError):
    """An append failed for a reason that lies outside the call; ``__cause__`` is the reason, always."""

    code = "MESSAGE_APPEND_FAILED"

    def __init__(self, conversation_id: str, cause: Exception) -> None:
        # Not super(): a member of the family that is also a CorruptDataError must not run that one's constructor.
        StoreError.__init__(
            self,
            f"appending to conversation {conversation_id!r} failed: {cause}",
            context={"conversationId": conversation_id},
        )
        self.__dict__.update({name: value for name, value in vars(cause).items() if name != "context"})
        self.conversation_id = conversation_id
        self.__cause__ = cause

    @staticmethod
    def wrapping(conversation_id: str, cause: Exception) -> MessageAppendError:
        """Return the member of this family that is also of `cause`'s kind, with `cause` as its cause."""
        for kind, member in (
            (CorruptDataError, AppendCorruptData),
            (UnavailableError, AppendUnavailable),
            (ClosedError, AppendClosed),
        ):
            if isinstance(cause, kind):
                return member(conversation_id, cause)
        return MessageAppendError(conversation_id, cause)


class AppendUnavailable(MessageAppendError, UnavailableError):
    """The storage was unavailable during an append; repeating the append is safe."""

    code = "MESSAGE_APPEND_FAILED"
    retryable = True


class AppendCorruptData(MessageAppendError, CorruptDataError):
    """An append met damaged data."""

    code = "MESSAGE_APPEND_FAILED"


class AppendClosed(MessageAppendError, ClosedError):
    """An append was tried on a closed store."""

    code = "MESSAGE_APPEND_FAILED"
