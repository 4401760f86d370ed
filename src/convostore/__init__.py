"""convostore keeps what AI agents say: conversations, messages, tool calls, cards, todos, ratings, session state.

`open` a store by its URL; it is the conversation store, with the session store as ``store.sessions`` and the chat store as
``store.chat``. `convostore.blocking` is the same without await.

Importing this loads nothing else: a name brings its module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from convostore import blocking
    from convostore.errors import (
        AppendClosed,
        AppendCorruptData,
        AppendUnavailable,
        ClosedError,
        ConflictError,
        ConversationExistsError,
        ConversationNotFoundError,
        CorruptDataError,
        DuplicateEntryError,
        InvalidInput,
        MessageAppendError,
        NotFoundError,
        RevisionConflictError,
        SchemaTooNewError,
        SchemaTooOldError,
        StoreError,
        UnavailableError,
        UnsupportedError,
    )
    from convostore.errors import NotFoundError as SessionNotFoundError
    from convostore.errors import StoreError as ConversationStoreError
    from convostore.ids import natural_key
    from convostore.model.conversation import Conversation, ForkOrigin
    from convostore.model.message import (
        FilePart,
        ImagePart,
        Message,
        OpaquePart,
        TextPart,
        ThinkingPart,
        ToolCallRecord,
        ToolResultPart,
    )
    from convostore.model.page import Page
    from convostore.model.todo import AgentInfo, TodoItem, TodoSnapshot
    from convostore.opening import InMemoryConversationStore, Store, open  # noqa: A004  convostore.open is the way in
    from convostore.stores.sessions import create_todo_snapshot, serialize_agent_state

__version__ = "0.1.0"

__all__ = [
    "AgentInfo",
    "AppendClosed",
    "AppendCorruptData",
    "AppendUnavailable",
    "ClosedError",
    "ConflictError",
    "Conversation",
    "ConversationExistsError",
    "ConversationNotFoundError",
    "ConversationStoreError",
    "CorruptDataError",
    "DuplicateEntryError",
    "FilePart",
    "ForkOrigin",
    "ImagePart",
    "InMemoryConversationStore",
    "InvalidInput",
    "Message",
    "MessageAppendError",
    "NotFoundError",
    "OpaquePart",
    "Page",
    "RevisionConflictError",
    "SchemaTooNewError",
    "SchemaTooOldError",
    "SessionNotFoundError",
    "Store",
    "StoreError",
    "TextPart",
    "ThinkingPart",
    "TodoItem",
    "TodoSnapshot",
    "ToolCallRecord",
    "ToolResultPart",
    "UnavailableError",
    "UnsupportedError",
    "blocking",
    "create_todo_snapshot",
    "natural_key",
    "open",
    "serialize_agent_state",
]

_HOMES = {
    "AgentInfo": "convostore.model.todo:AgentInfo",
    "AppendClosed": "convostore.errors:AppendClosed",
    "AppendCorruptData": "convostore.errors:AppendCorruptData",
    "AppendUnavailable": "convostore.errors:AppendUnavailable",
    "ClosedError": "convostore.errors:ClosedError",
    "ConflictError": "convostore.errors:ConflictError",
    "Conversation": "convostore.model.conversation:Conversation",
    "ConversationExistsError": "convostore.errors:ConversationExistsError",
    "ConversationNotFoundError": "convostore.errors:ConversationNotFoundError",
    "ConversationStoreError": "convostore.errors:StoreError",
    "CorruptDataError": "convostore.errors:CorruptDataError",
    "DuplicateEntryError": "convostore.errors:DuplicateEntryError",
    "FilePart": "convostore.model.message:FilePart",
    "ForkOrigin": "convostore.model.conversation:ForkOrigin",
    "ImagePart": "convostore.model.message:ImagePart",
    "InMemoryConversationStore": "convostore.opening:InMemoryConversationStore",
    "InvalidInput": "convostore.errors:InvalidInput",
    "Message": "convostore.model.message:Message",
    "MessageAppendError": "convostore.errors:MessageAppendError",
    "NotFoundError": "convostore.errors:NotFoundError",
    "OpaquePart": "convostore.model.message:OpaquePart",
    "Page": "convostore.model.page:Page",
    "RevisionConflictError": "convostore.errors:RevisionConflictError",
    "SchemaTooNewError": "convostore.errors:SchemaTooNewError",
    "SchemaTooOldError": "convostore.errors:SchemaTooOldError",
    "SessionNotFoundError": "convostore.errors:NotFoundError",
    "Store": "convostore.opening:Store",
    "StoreError": "convostore.errors:StoreError",
    "TextPart": "convostore.model.message:TextPart",
    "ThinkingPart": "convostore.model.message:ThinkingPart",
    "TodoItem": "convostore.model.todo:TodoItem",
    "TodoSnapshot": "convostore.model.todo:TodoSnapshot",
    "ToolCallRecord": "convostore.model.message:ToolCallRecord",
    "ToolResultPart": "convostore.model.message:ToolResultPart",
    "UnavailableError": "convostore.errors:UnavailableError",
    "UnsupportedError": "convostore.errors:UnsupportedError",
    "create_todo_snapshot": "convostore.stores.sessions:create_todo_snapshot",
    "natural_key": "convostore.ids:natural_key",
    "open": "convostore.opening:open",
    "serialize_agent_state": "convostore.stores.sessions:serialize_agent_state",
}


def __getattr__(name: str) -> object:
    if name == "blocking":
        return import_module("convostore.blocking")
    if name not in _HOMES:
        raise AttributeError(f"module 'convostore' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value: object = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
