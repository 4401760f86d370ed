"""convostore keeps what AI agents say: conversations, messages, tool calls, cards, todos, ratings, session state.

`open` a store by its URL; it is the conversation store, with the session store as ``store.sessions`` and the chat store as
``store.chat``. `convostore.blocking` is the same without await.
"""

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
