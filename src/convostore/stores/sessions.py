"""The session store on any backend. A session id is a conversation id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast, get_args

import msgspec
from msgspec import structs

from convostore import limits
from convostore.contracts.backend import Backend, Change, Damage, HeadQuery, Window
from convostore.contracts.session_store import SessionRole
from convostore.contracts.walking import pages
from convostore.errors import CorruptDataError, InvalidInput
from convostore.ids import Clock, Mint, check_id, new_id, now_ms
from convostore.model import exact_json
from convostore.model.exact_json import JsonObject
from convostore.model.session_message import SessionMessage
from convostore.model.times import ms_from_datetime
from convostore.model.todo import AgentInfo, TodoItem, TodoSnapshot
from convostore.stores.excerpt import read_excerpt
from convostore.stores.heads import delete
from convostore.stores.list_saving import save_list
from convostore.stores.listed import listed
from convostore.stores.loading import check_limit
from convostore.stores.session_view import SessionView

__all__ = ["INFO", "TODOS", "Sessions", "create_todo_snapshot", "serialize_agent_state"]

TODOS = "todos"
INFO = "info"

_Saved = TypeVar("_Saved", TodoSnapshot, AgentInfo)
_MARGIN = 8


class Sessions:
    """What an agent runtime asks of a store; see `contracts.session_store` for every promise."""

    def __init__(self, backend: Backend, *, clock: Clock = now_ms, mint: Mint = new_id) -> None:
        self._backend = backend
        self._clock = clock
        self._mint = mint
        self._view = SessionView()

    async def save_messages(self, session_id: str, messages: Sequence[SessionMessage]) -> None:
        """Make the session's messages be `messages`, in one commit."""
        check_id(session_id, "session id")
        values = [cast(JsonObject, each) for each in listed(messages, "messages")]
        await save_list(self._backend, self._view, session_id, values, clock=self._clock, mint=self._mint)

    async def append_messages(self, session_id: str, messages: Sequence[SessionMessage]) -> None:
        """Add to the end, creating the session if need be."""
        check_id(session_id, "session id")
        now = self._clock()
        values = [cast(JsonObject, each) for each in listed(messages, "messages")]
        entries = tuple(self._view.write(each, entry_id=self._mint(), now_ms=now) for each in values)
        if entries:
            await self._backend.commit(structs.replace(self._change(session_id), append=entries))

    async def load_messages(
        self,
        session_id: str,
        *,
        role: SessionRole | None = None,
        limit: int | None = None,
        since: int | datetime | None = None,
    ) -> list[SessionMessage]:
        """Return messages oldest first, filtered, then the last `limit`."""
        check_id(session_id, "session id")
        check_limit(limit)
        if role is not None and role not in get_args(SessionRole):
            raise InvalidInput(f"role must be one of {get_args(SessionRole)}, not {role!r}")
        since_ms = _since_ms(since)
        if limit == 0:
            return []
        size = None if limit is None else limit + _MARGIN
        while True:
            window = Window(limit=size, newest=size is not None)
            excerpt = await read_excerpt(self._backend, session_id, window, names_calls=True)
            if excerpt is None:
                return []
            first = len(excerpt.before)
            values = [each.value for each in self._view.project(excerpt.transcript()) if each.anchor >= first]
            chosen = [each for each in values if _wanted(each, role, since_ms)]
            if size is None or limit is None or len(excerpt.entries) < size or len(chosen) >= limit:
                kept = chosen if limit is None else chosen[-limit:]
                return [cast(SessionMessage, each) for each in kept]
            size *= 4

    async def save_todos(self, session_id: str, snapshot: TodoSnapshot) -> None:
        """Save all todos, creating the session if need be."""
        await self._save(session_id, TODOS, snapshot, TodoSnapshot)

    async def load_todos(self, session_id: str) -> TodoSnapshot | None:
        """Return the todos saved last, or None."""
        return await self._load(session_id, TODOS, TodoSnapshot)

    async def save_info(self, session_id: str, info: AgentInfo) -> None:
        """Save what is known about the agent, creating the session if need be."""
        await self._save(session_id, INFO, info, AgentInfo)

    async def load_info(self, session_id: str) -> AgentInfo | None:
        """Return the info saved last, or None."""
        return await self._load(session_id, INFO, AgentInfo)

    async def exists(self, session_id: str) -> bool:
        """Say whether the session is there."""
        return await self._backend.read(session_id) is not None

    async def delete(self, session_id: str) -> None:
        """Delete the session and all that belongs to it; no error when there is none."""
        await delete(self._backend, session_id, clock=self._clock, mint=self._mint)

    async def list(self, prefix: str = "") -> list[str]:
        """Return the ids of all sessions that begin with `prefix`, sorted by code point."""
        found: list[str] = []
        async for page in pages(self._backend, HeadQuery(prefix=prefix, order="id", limit=limits.page_heads_max)):
            found += [head.conversation_id for head in page.items] + [each.conversation_id for each in page.damage]
        return sorted(found)

    def _change(self, session_id: str) -> Change:
        return Change(conversation_id=session_id, revision=self._mint(), at_ms=self._clock(), existence="may_create")

    async def _save(self, session_id: str, name: str, value: _Saved, kind: type[_Saved]) -> None:
        check_id(session_id, "session id")
        if not isinstance(value, kind):
            raise InvalidInput(f"{name} must be a {kind.__name__}, not {type(value).__name__}")
        data = exact_json.encode(_plain(value), name)
        try:
            msgspec.convert(exact_json.decode(data), kind)  # a Struct does not check its fields when it is built
        except msgspec.ValidationError as error:
            raise InvalidInput(f"not a {kind.__name__}: {error}") from error
        await self._backend.commit(structs.replace(self._change(session_id), documents={name: data}))

    async def _load(self, session_id: str, name: str, kind: type[_Saved]) -> _Saved | None:
        snapshot = await self._backend.read(session_id, None, (name,))
        if snapshot is None or (data := snapshot.documents.get(name)) is None:
            return None
        try:
            return msgspec.convert(exact_json.decode(data), kind)
        except (ValueError, msgspec.ValidationError) as error:
            damage = Damage(session_id, f"document {name!r} is not a {kind.__name__}: {error}")
            raise CorruptDataError(session_id, [damage]) from error


def _plain(value: object) -> object:
    """Return a Struct as a dict, and a tuple of them as a list; anything else as it is, for `exact_json` to judge."""
    if isinstance(value, msgspec.Struct):
        return {each.encode_name: _plain(getattr(value, each.name)) for each in structs.fields(value)}
    return [_plain(each) for each in value] if type(value) is tuple else value


def _since_ms(since: int | datetime | None) -> int | None:
    if since is None or type(since) is int:
        return since
    if not isinstance(since, datetime):
        raise InvalidInput(f"since must be whole milliseconds or an aware datetime, not {type(since).__name__}")
    return ms_from_datetime(since, "since")


def _wanted(message: JsonObject, role: str | None, since_ms: int | None) -> bool:
    if role is not None and message["role"] != role:
        return False
    if since_ms is None:
        return True
    timestamp = message.get("timestamp")
    return isinstance(timestamp, int | float) and timestamp >= since_ms


def serialize_agent_state(state: object) -> tuple[list[SessionMessage], dict[str, Any]]:
    """Return the messages and the info fields of a runtime's state, an object or a mapping, in either spelling.

    The info fields are `model`, `provider` and `system_prompt`, as `AgentInfo` names them. Left out on purpose: what is
    only true while the agent runs (the streaming message, pending calls, flags, the last error) and the tools, which are
    functions and must be registered again.

    Raises:
        InvalidInput: messages, the model or the system prompt cannot be found.
    """
    model = _member(state, "model")
    info = {
        "model": _member(model, "id"),
        "provider": str(_member(model, "provider")),
        "system_prompt": _member(state, "system_prompt"),
    }
    return list(_member(state, "messages")), info


def _member(owner: object, name: str) -> Any:
    head, *tail = name.split("_")
    for spelling in (name, head + "".join(part.capitalize() for part in tail)):
        if isinstance(owner, Mapping):
            if spelling in owner:
                return owner[spelling]
        elif hasattr(owner, spelling):
            return getattr(owner, spelling)
    raise InvalidInput(f"the agent's state has no {name!r}: {type(owner).__name__}")


def create_todo_snapshot(items: Sequence[TodoItem], rendered: str = "") -> TodoSnapshot:
    """Return a snapshot that holds a copy of `items`."""
    return TodoSnapshot(tuple(items), rendered)
