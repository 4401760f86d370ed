"""Every place in the three stores where a caller's own text or JSON goes in, and where it comes out again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple, cast

from convostore import AgentInfo, Message, OpaquePart, TodoItem, TodoSnapshot, ToolCallRecord, ToolResultPart
from convostore.opening import Store

__all__ = ["CARRIERS", "Carrier"]


class Carrier(NamedTuple):
    """`put` gives a value to conversation `name`, beside something harmless; `get` returns it.

    `takes`: text, any JSON, or a JSON object. `is_field`: it is kept with the head, where the limit is `fields_bytes_max`.
    """

    takes: Literal["text", "json", "object"]
    put: Callable[[Store, str, Any], Awaitable[Any]]
    get: Callable[[Store, str], Awaitable[Any]]
    is_field: bool = False


_GOOD = Message(role="user", content="good")
_GOOD_SAID: Any = {"role": "user", "content": "good"}
_GOOD_ITEM: Any = {"id": "g", "type": "message", "role": "user", "content": "good"}
_INFO = AgentInfo(
    session_id="s", model="m", provider="p", system_prompt="", created_at=1, updated_at=2, message_count=0
)


def _message(make: Callable[[Any], Message], take: Callable[[Message], Any]) -> tuple[Any, Any]:
    """Return put and get of something in the second message of a batch."""

    async def put(store: Store, name: str, value: Any) -> None:
        await store.append_messages(name, [_GOOD, make(value)])

    async def get(store: Store, name: str) -> Any:
        return take((await store.load_messages(name, system=True))[-1])

    return put, get


def _said(make: Callable[[Any], Any], take: Callable[[Any], Any], *, save: bool = True) -> tuple[Any, Any]:
    async def put(store: Store, name: str, value: Any) -> None:
        sessions = store.sessions
        await (sessions.save_messages if save else sessions.append_messages)(name, [_GOOD_SAID, make(value)])

    async def get(store: Store, name: str) -> Any:
        return take((await store.sessions.load_messages(name))[-1])

    return put, get


def _item(make: Callable[[Any], Any], take: Callable[[Any], Any], *, save: bool = True) -> tuple[Any, Any]:
    async def put(store: Store, name: str, value: Any) -> None:
        if save:
            conversation: Any = {"id": name, "title": "before", "items": [_GOOD_ITEM, make(value)]}
            await store.chat.save_conversation(conversation)
        else:
            await store.chat.append_item(name, make(value))

    async def get(store: Store, name: str) -> Any:
        return take((await store.chat.get_conversation_items(name))[-1])

    return put, get


def _conversation(keyword: str) -> tuple[Any, Any]:
    async def put(store: Store, name: str, value: Any) -> None:
        await store.update_conversation(name, **{keyword: value})

    async def get(store: Store, name: str) -> Any:
        return getattr(await store.find_by_id(name), keyword)

    return put, get


def _created(keyword: str) -> tuple[Any, Any]:
    async def put(store: Store, name: str, value: Any) -> None:
        await store.create_conversation("x", "s", id=f"{name} new", **{keyword: value})

    async def get(store: Store, name: str) -> Any:
        return getattr(await store.find_by_id(f"{name} new"), keyword)

    return put, get


async def _finish(store: Store, name: str, value: Any) -> None:
    if not await store.open_tool_calls(name):
        call = ToolCallRecord("f", "k", "pending", {})
        await store.append_messages(name, [Message(role="assistant", tool_calls=(call,))])
    await store.finish_tool_call(name, "k", "success", value)


async def _finished(store: Store, name: str) -> Any:
    return (await store.load_messages(name))[-1].tool_calls[0].output


async def _rate(store: Store, name: str, value: Any) -> None:
    await store.rate(name, 3, value)


async def _comment(store: Store, name: str) -> Any:
    conversation = await store.find_by_id(name)
    return conversation and conversation.rating_comment


def _todos(make: Callable[[Any], TodoSnapshot], take: Callable[[TodoSnapshot], Any]) -> tuple[Any, Any]:
    async def put(store: Store, name: str, value: Any) -> None:
        await store.sessions.save_todos(name, make(value))

    async def get(store: Store, name: str) -> Any:
        return take(cast(TodoSnapshot, await store.sessions.load_todos(name)))

    return put, get


def _info(field: str) -> tuple[Any, Any]:
    async def put(store: Store, name: str, value: Any) -> None:
        given: dict[str, Any] = {each: getattr(_INFO, each) for each in _INFO.__struct_fields__}
        await store.sessions.save_info(name, AgentInfo(**{**given, field: value}))

    async def get(store: Store, name: str) -> Any:
        return getattr(await store.sessions.load_info(name), field)

    return put, get


async def _title(store: Store, name: str, value: Any) -> None:
    conversation: Any = {"id": name, "title": value, "items": [_GOOD_ITEM]}
    await store.chat.save_conversation(conversation)


async def _shown_title(store: Store, name: str) -> Any:
    return cast(Any, await store.chat.get_conversation(name))["title"]


async def _extra(store: Store, name: str, value: Any) -> None:
    conversation: Any = {"id": name, "title": "t", "items": [_GOOD_ITEM], "extra": value}
    await store.chat.save_conversation(conversation)


async def _shown_extra(store: Store, name: str) -> Any:
    return cast(Any, await store.chat.get_conversation(name))["extra"]


def _call(value: Any) -> Any:
    return {"role": "assistant", "content": [{"type": "toolCall", "id": "k", "name": "f", "arguments": value}]}


def _result(value: Any) -> Any:
    return {"role": "toolResult", "toolCallId": "k", "toolName": "f", "content": [], "details": value, "isError": False}


def _tool_item(**call: Any) -> Any:
    return {
        "id": "t",
        "type": "tool_call",
        "toolCall": {"id": "k", "name": "f", "arguments": {}, "status": "completed", **call},
    }


def _card(value: Any) -> Any:
    return {"id": "k", "type": "card", "card": {"id": "k", "type": "form", "content": value}}


CARRIERS: dict[str, Carrier] = {
    # ConversationStore
    "message content": Carrier("text", *_message(lambda v: Message(role="user", content=v), lambda m: m.content)),
    "message tool_call_id": Carrier(
        "text", *_message(lambda v: Message(role="tool", tool_call_id=v), lambda m: m.tool_call_id)
    ),
    "message metadata": Carrier("object", *_message(lambda v: Message(role="user", metadata=v), lambda m: m.metadata)),
    "tool name": Carrier(
        "text",
        *_message(
            lambda v: Message(role="assistant", tool_calls=(ToolCallRecord(v, "k", "pending", {}),)),
            lambda m: m.tool_calls[0].tool_name,
        ),
    ),
    "tool input": Carrier(
        "json",
        *_message(
            lambda v: Message(role="assistant", tool_calls=(ToolCallRecord("f", "k", "pending", v),)),
            lambda m: m.tool_calls[0].input,
        ),
    ),
    "tool output": Carrier(
        "json",
        *_message(
            lambda v: Message(role="assistant", tool_calls=(ToolCallRecord("f", "k", "success", {}, v),)),
            lambda m: m.tool_calls[0].output,
        ),
    ),
    "finished output": Carrier("json", _finish, _finished),
    "tool result part": Carrier(
        "json",
        *_message(
            lambda v: Message(role="tool", tool_call_id="k", parts=(ToolResultPart(v),)),
            lambda m: cast(ToolResultPart, m.parts[0]).output,
        ),
    ),
    "opaque part": Carrier(
        "json",
        *_message(
            lambda v: Message(role="user", parts=(OpaquePart("other/1", v),)),
            lambda m: cast(OpaquePart, m.parts[0]).value,
        ),
    ),
    "conversation title": Carrier("text", *_conversation("title"), is_field=True),
    "conversation metadata": Carrier("object", *_conversation("metadata"), is_field=True),
    "title at creation": Carrier("text", *_created("title"), is_field=True),
    "metadata at creation": Carrier("object", *_created("metadata"), is_field=True),
    "rating comment": Carrier("text", _rate, _comment, is_field=True),
    # SessionStore
    "session text": Carrier("text", *_said(lambda v: {"role": "user", "content": v}, lambda m: m["content"])),
    "session appended text": Carrier(
        "text", *_said(lambda v: {"role": "user", "content": v}, lambda m: m["content"], save=False)
    ),
    "session unknown field": Carrier("json", *_said(lambda v: {**_GOOD_SAID, "x": v}, lambda m: m["x"])),
    "session appended unknown field": Carrier(
        "json", *_said(lambda v: {**_GOOD_SAID, "x": v}, lambda m: m["x"], save=False)
    ),
    "session unknown part": Carrier(
        "json",
        *_said(lambda v: {"role": "user", "content": [{"type": "new", "of": v}]}, lambda m: m["content"][0]["of"]),
    ),
    "session arguments": Carrier("json", *_said(_call, lambda m: m["content"][0]["arguments"])),
    "session details": Carrier("json", *_said(_result, lambda m: m["details"])),
    "todo text": Carrier(
        "text", *_todos(lambda v: TodoSnapshot((TodoItem("1", v),)), lambda found: found.items[0].text)
    ),
    "todo id": Carrier("text", *_todos(lambda v: TodoSnapshot((TodoItem(v, ""),)), lambda found: found.items[0].id)),
    "todos rendered": Carrier("text", *_todos(lambda v: TodoSnapshot((), v), lambda found: found.rendered)),
    "info model": Carrier("text", *_info("model")),
    "info system prompt": Carrier("text", *_info("system_prompt")),
    # StorageAdapter
    "item content": Carrier("text", *_item(lambda v: {**_GOOD_ITEM, "content": v}, lambda i: i["content"])),
    "appended item content": Carrier(
        "text", *_item(lambda v: {**_GOOD_ITEM, "content": v}, lambda i: i["content"], save=False)
    ),
    "item timestamp": Carrier("json", *_item(lambda v: {**_GOOD_ITEM, "timestamp": v}, lambda i: i["timestamp"])),
    "item unknown field": Carrier("json", *_item(lambda v: {**_GOOD_ITEM, "x": v}, lambda i: i["x"])),
    "item of unknown type": Carrier("json", *_item(lambda v: {"id": 1, "type": "new", "of": v}, lambda i: i["of"])),
    "item call id": Carrier("text", *_item(lambda v: _tool_item(id=v), lambda i: i["toolCall"]["id"], save=False)),
    "item arguments": Carrier(
        "object", *_item(lambda v: _tool_item(arguments=v), lambda i: i["toolCall"]["arguments"])
    ),
    "item result": Carrier(
        "json", *_item(lambda v: _tool_item(result=v), lambda i: i["toolCall"]["result"], save=False)
    ),
    "card content": Carrier("object", *_item(_card, lambda i: i["card"]["content"])),
    "chat title": Carrier("text", _title, _shown_title, is_field=True),
    "chat unknown field": Carrier("json", _extra, _shown_extra, is_field=True),
}
