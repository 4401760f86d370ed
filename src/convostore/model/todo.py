"""Todos of a session, and what is known about the agent behind it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = ["AgentInfo", "TodoItem", "TodoSnapshot", "TodoStatus"]

TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


class TodoItem(Struct, frozen=True):
    """One thing to do."""

    id: str
    text: str
    status: TodoStatus = "pending"


class TodoSnapshot(Struct, frozen=True):
    """All todos of a session at one moment; `rendered` is how the agent was shown them."""

    items: tuple[TodoItem, ...]
    rendered: str = ""


class AgentInfo(Struct, frozen=True, rename="camel", kw_only=True):
    """Who talks in a session; times are milliseconds since 1970 UTC, as in the original package's files."""

    session_id: str
    model: str
    provider: str
    system_prompt: str
    created_at: int
    updated_at: int
    message_count: int
