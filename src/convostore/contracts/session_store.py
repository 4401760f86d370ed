"""The contract of an agent runtime: a session is a list of messages, a list of todos and a note about the agent.

Clauses:
    S1: save_messages makes the list be these in one commit (X1), creating the session if need be; a bad message leaves the
        old list. load_messages filters by role and `since` (milliseconds or an aware datetime, inclusive; a message without
        a timestamp is since nothing), then takes the last `limit`: None all, 0 none, negative InvalidInput (the
        original reads 0 and negatives as "all"). A missing session is [].
    S2: Todos and info are saved whole and loaded as saved; missing is None; saving creates the session.
    S3: exists; delete, which is no error when missing; list, sorted by code point, by prefix.
    S4: Messages are dicts in the session JSON; unknown fields survive.
    S5: append_messages adds to the end at a cost that does not grow with the session.
    S7: serialize_agent_state and create_todo_snapshot turn a runtime's state into what is saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from convostore.model.session_message import SessionMessage
from convostore.model.todo import AgentInfo, TodoSnapshot

__all__ = ["SessionRole", "SessionStore"]

SessionRole: TypeAlias = Literal["system", "user", "assistant", "toolResult"]


class SessionStore(Protocol):
    """What an agent runtime asks of a store. A session id is a conversation id."""

    async def save_messages(self, session_id: str, messages: Sequence[SessionMessage]) -> None:
        """Make the session's messages be `messages`; what is equal already is not written again.

        Raises:
            InvalidInput: a message is not one, or cannot be kept exactly; nothing was changed.
        """
        ...

    async def append_messages(self, session_id: str, messages: Sequence[SessionMessage]) -> None:
        """Add to the end, creating the session if need be. An empty list changes nothing.

        Raises:
            InvalidInput: a message is not one, or cannot be kept exactly; nothing was changed.
        """
        ...

    async def load_messages(
        self,
        session_id: str,
        *,
        role: SessionRole | None = None,
        limit: int | None = None,
        since: int | datetime | None = None,
    ) -> list[SessionMessage]:
        """Return messages oldest first, filtered, then the last `limit`; [] when there is no such session."""
        ...

    async def save_todos(self, session_id: str, snapshot: TodoSnapshot) -> None:
        """Save all todos, creating the session if need be."""
        ...

    async def load_todos(self, session_id: str) -> TodoSnapshot | None:
        """Return the todos saved last, or None."""
        ...

    async def save_info(self, session_id: str, info: AgentInfo) -> None:
        """Save what is known about the agent, creating the session if need be."""
        ...

    async def load_info(self, session_id: str) -> AgentInfo | None:
        """Return the info saved last, or None."""
        ...

    async def exists(self, session_id: str) -> bool:
        """Say whether the session is there."""
        ...

    async def delete(self, session_id: str) -> None:
        """Delete the session and all that belongs to it; no error when there is none."""
        ...

    async def list(self, prefix: str = "") -> list[str]:
        """Return the ids of all sessions that begin with `prefix`, sorted by code point."""
        ...
