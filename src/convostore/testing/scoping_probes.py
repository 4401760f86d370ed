"""One probe for each verb of the three contracts: whether a view can see or change a conversation (C10).

Each says True for one of the view's own and False for any other, whatever form "not found" takes on that verb.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

from convostore.errors import ConversationExistsError, ConversationNotFoundError, NotFoundError, StoreError
from convostore.model.chat_item import ChatConversation, ChatItem, ChatMessage
from convostore.model.message import Message
from convostore.model.session_message import SessionMessage
from convostore.model.todo import AgentInfo, TodoSnapshot
from convostore.opening import Store

__all__ = ["Names", "Probe", "agent_info", "chat_probes", "conversation_probes", "hello", "session_probes"]

Names: TypeAlias = list[tuple[str, str]]
"""Every context and subject that the test uses."""
Probe: TypeAlias = Callable[[Store, str, Names], Awaitable[bool]]

hello: SessionMessage = {"role": "user", "content": "hi"}
_ITEM: ChatItem = {"id": 1, "type": "message", "role": "user", "content": "hi"}
_CHAT_MESSAGE: ChatMessage = {"id": 2, "role": "user", "content": "hi"}


async def _not_found(call: Awaitable[Any], error: type[StoreError] = ConversationNotFoundError) -> bool:
    """Return True when the call went through, False when it raised `error`."""
    try:
        await call
    except error:
        return False
    return True


async def _listed(view: Store, conversation_id: str, names: Names) -> bool:
    ids: list[str] = []
    cursor = None
    while True:
        page = await view.list_conversations(cursor=cursor, limit=2)
        ids += [each.id for each in page.items]
        if (cursor := page.cursor) is None:
            return conversation_id in ids


async def _append(view: Store, conversation_id: str, names: Names) -> bool:
    return await _not_found(view.append_messages(conversation_id, [Message(role="user", content="x")]))


async def _update_message(view: Store, conversation_id: str, names: Names) -> bool:
    return await _not_found(
        view.update_message(conversation_id, Message(role="user", content="changed", id="m1")), NotFoundError
    )


async def _latest(view: Store, conversation_id: str, names: Names) -> bool:
    found = [await view.find_latest(context, subject) for context, subject in names]
    return conversation_id in [each.id for each in found if each is not None]


async def _latest_or_create(view: Store, conversation_id: str, names: Names) -> bool:
    found = False
    for context, subject in names:
        try:
            made = await view.latest_or_create(context, subject)
        except StoreError:
            continue  # a view may refuse to speak of another subject
        found = found or made.id == conversation_id
    return found


async def _iterated(view: Store, conversation_id: str, names: Names) -> bool:
    return conversation_id in [each["id"] async for each in view.chat.iterate_conversations()]


async def _save_chat(view: Store, conversation_id: str, names: Names) -> bool:
    conversation: ChatConversation = {"id": conversation_id, "title": "mine now", "items": [_ITEM]}
    return await _not_found(view.chat.save_conversation(conversation), ConversationExistsError)


async def _deleted_session(view: Store, conversation_id: str, names: Names) -> bool:
    before = await view.sessions.exists(conversation_id)
    await view.sessions.delete(conversation_id)
    return before and not await view.sessions.exists(conversation_id)


async def _cleared(view: Store, conversation_id: str, names: Names) -> bool:
    before = await view.chat.get_conversation_items(conversation_id)
    await view.chat.clear_conversation_history(conversation_id)
    return before != [] and [] == await view.chat.get_conversation_items(conversation_id)


async def _erased(view: Store, conversation_id: str, names: Names) -> bool:
    before = await view.find_by_id(conversation_id)
    for _, subject in names:
        try:
            await view.erase_subject(subject)
        except StoreError:
            continue  # a view may refuse to speak of another subject
    return before is not None and await view.find_by_id(conversation_id) is None


def agent_info(conversation_id: str) -> AgentInfo:
    """Return something to save about an agent."""
    return AgentInfo(
        session_id=conversation_id,
        model="m",
        provider="p",
        system_prompt="",
        created_at=1,
        updated_at=2,
        message_count=0,
    )


async def _create(view: Store, conversation_id: str, names: Names) -> bool:
    """Creating over what is there is refused for everyone, so what is probed is that nothing shows through."""
    assert not await _not_found(
        view.create_conversation(*names[0], id=conversation_id, title="mine now"), ConversationExistsError
    )
    return await view.find_by_id(conversation_id) is not None


async def _open_calls(view: Store, conversation_id: str, names: Names) -> bool:
    return [] != await view.open_tool_calls(conversation_id)


conversation_probes: dict[str, Probe] = {
    "create_conversation": _create,
    "find_latest": _latest,
    "latest_or_create": _latest_or_create,
    "append_messages": _append,
    "update_message": _update_message,
    "list_conversations": _listed,
    "open_tool_calls": _open_calls,
    "erase_subject": _erased,
}


def _probe(table: dict[str, Probe]) -> Callable[[Probe], None]:
    def add(function: Probe) -> None:
        table[getattr(function, "__name__", "").strip("_")] = function

    return add


@_probe(conversation_probes)
async def _find_by_id(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.find_by_id(conversation_id) is not None


@_probe(conversation_probes)
async def _load_messages(view: Store, conversation_id: str, names: Names) -> bool:
    return [] != await view.load_messages(conversation_id)


@_probe(conversation_probes)
async def _rate(view: Store, conversation_id: str, names: Names) -> bool:
    return await _not_found(view.rate(conversation_id, 1, "spied"))


@_probe(conversation_probes)
async def _update_conversation(view: Store, conversation_id: str, names: Names) -> bool:
    for _, subject in names:
        with suppress(StoreError):
            await view.update_conversation(conversation_id, subject_id=subject)
    return await _not_found(view.update_conversation(conversation_id, title="mine now"))


@_probe(conversation_probes)
async def _finish_tool_call(view: Store, conversation_id: str, names: Names) -> bool:
    return await _not_found(view.finish_tool_call(conversation_id, "c", "success", {}))


@_probe(conversation_probes)
async def _delete_conversation(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.delete_conversation(conversation_id)


@_probe(conversation_probes)
async def _fork_conversation(view: Store, conversation_id: str, names: Names) -> bool:
    return await _not_found(view.fork_conversation(conversation_id))


@_probe(conversation_probes)
async def _salvage(view: Store, conversation_id: str, names: Names) -> bool:
    return await _not_found(view.salvage(conversation_id))


session_probes: dict[str, Probe] = {
    "save_messages": lambda view, each, names: _not_found(
        view.sessions.save_messages(each, [hello]), ConversationExistsError
    ),
    "append_messages": lambda view, each, names: _not_found(
        view.sessions.append_messages(each, [hello]), ConversationExistsError
    ),
    "save_todos": lambda view, each, names: _not_found(
        view.sessions.save_todos(each, TodoSnapshot((), "mine now")), ConversationExistsError
    ),
    "save_info": lambda view, each, names: _not_found(
        view.sessions.save_info(each, agent_info(each)), ConversationExistsError
    ),
    "exists": lambda view, each, names: view.sessions.exists(each),
    "delete": _deleted_session,
}


@_probe(session_probes)
async def _load_todos(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.sessions.load_todos(conversation_id) is not None


@_probe(session_probes)
async def _load_info(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.sessions.load_info(conversation_id) is not None


@_probe(session_probes)
async def _list(view: Store, conversation_id: str, names: Names) -> bool:
    return conversation_id in await view.sessions.list() or conversation_id in await view.sessions.list(conversation_id)


async def _load_session(view: Store, conversation_id: str, names: Names) -> bool:
    return [] != await view.sessions.load_messages(conversation_id)


session_probes["load_messages"] = _load_session

chat_probes: dict[str, Probe] = {
    "save_conversation": _save_chat,
    "iterate_conversations": _iterated,
    "delete_conversation": lambda view, each, names: view.chat.delete_conversation(each),
    "append_item": lambda view, each, names: view.chat.append_item(each, _ITEM),
    "clear_conversation_history": _cleared,
    "set_conversation_agent": lambda view, each, names: _not_found(
        view.chat.set_conversation_agent(each, "spy"), ConversationExistsError
    ),
}


@_probe(chat_probes)
async def _initialize(view: Store, conversation_id: str, names: Names) -> bool:
    await view.chat.initialize({"subject_id": None})
    return await view.chat.get_conversation(conversation_id) is not None


@_probe(chat_probes)
async def _get_conversation(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.chat.get_conversation(conversation_id) is not None


@_probe(chat_probes)
async def _get_all_conversations(view: Store, conversation_id: str, names: Names) -> bool:
    return conversation_id in [each["id"] for each in await view.chat.get_all_conversations()]


@_probe(chat_probes)
async def _add_item(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.chat.add_item(conversation_id, _ITEM) is not None


@_probe(chat_probes)
async def _add_message(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.chat.add_message(conversation_id, _CHAT_MESSAGE) is not None


@_probe(chat_probes)
async def _get_conversation_items(view: Store, conversation_id: str, names: Names) -> bool:
    return [] != await view.chat.get_conversation_items(conversation_id)


@_probe(chat_probes)
async def _get_conversation_history(view: Store, conversation_id: str, names: Names) -> bool:
    return [] != await view.chat.get_conversation_history(conversation_id)


@_probe(chat_probes)
async def _get_conversation_agent(view: Store, conversation_id: str, names: Names) -> bool:
    return await view.chat.get_conversation_agent(conversation_id) is not None
