"""Commands about one conversation: show, salvage, rate, delete."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from convostore.cli.address import AsJson, StoreUrl, open_existing
from convostore.cli.exits import Exit, execute
from convostore.cli.listing import print_damage
from convostore.cli.printing import print_json, print_text, printable
from convostore.cli.viewing import conversation_wire, entry_wire, print_conversation, print_entries, print_messages
from convostore.contracts.backend import Window
from convostore.dialects import hub
from convostore.errors import ConversationNotFoundError, InvalidInput
from convostore.model.conversation import Conversation
from convostore.model.exact_json import JsonValue
from convostore.opening import Store

__all__ = ["View", "delete", "rate", "salvage", "show"]


class View(StrEnum):
    """How a conversation may be seen."""

    MESSAGES = "messages"
    SESSION = "session"
    CHAT = "chat"
    RAW = "raw"


Id = Annotated[str, typer.Argument(metavar="ID", help="The conversation's id.")]


def show(
    id: Id,
    store: StoreUrl,
    view: Annotated[
        View, typer.Option("--as", help="messages; session messages; chat items; raw, as stored.")
    ] = View.MESSAGES,
    last: Annotated[int | None, typer.Option("--last", "-n", min=0, metavar="N", help="Only the last N.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show a conversation and what was said in it, system messages too.

    convostore show 01a2... -s sqlite:///chats.db --last 10
    convostore show 01a2... --as session --json
    """

    async def work() -> Exit:
        async with open_existing(store) as opened:
            conversation = await _found(opened, id)
            said, print_said = await _said(opened, id, view, last)
        if as_json:
            print_json({"conversation": conversation_wire(conversation), _NAMES[view]: said})
        else:
            print_conversation(conversation)
            print_said()
        return Exit.OK

    execute(work())


_NAMES = {View.MESSAGES: "messages", View.SESSION: "messages", View.CHAT: "items", View.RAW: "entries"}


async def _found(store: Store, id: str) -> Conversation:
    conversation = await store.find_by_id(id)
    if conversation is None:
        raise ConversationNotFoundError(id)
    return conversation


async def _said(store: Store, id: str, view: View, last: int | None) -> tuple[Sequence[JsonValue], Callable[[], None]]:
    """Return what was said in one of the views, as JSON, and what prints it for people."""
    if view is View.MESSAGES:
        messages = await store.load_messages(id, system=True, limit=last)
        return [hub.message_to_wire(each) for each in messages], lambda: print_messages(messages)
    if view is View.RAW:
        snapshot = await store.backend.read(id, Window(limit=last, newest=last is not None))
        entries = snapshot.entries if snapshot else ()
        return [entry_wire(each) for each in entries], lambda: print_entries(entries)
    values: list[JsonValue]
    if view is View.SESSION:
        values = list(await store.sessions.load_messages(id, limit=last))
    else:
        items = await store.chat.get_conversation_items(id)
        values = list(items if last is None else items[max(0, len(items) - last) :])

    def print_values() -> None:
        for each in values:
            print_text()
            print_text(printable(json.dumps(each, ensure_ascii=False, indent=2), lines=True))

    return values, print_values


def salvage(id: Id, store: StoreUrl, as_json: AsJson = False) -> None:
    """Show what is sound of a damaged conversation, and what is not. Changes nothing; exit code 4 if anything is damaged.

    convostore salvage 01a2... --json > saved.json
    """

    async def work() -> Exit:
        async with open_existing(store) as opened:
            messages, damage = await opened.salvage(id)
        if as_json:
            wire = [hub.message_to_wire(each) for each in messages]
            print_json({"id": id, "messages": wire, "damage": [str(each) for each in damage]})
        else:
            print_messages(messages)
            print_damage(damage)
        return Exit.DAMAGED if damage else Exit.OK

    execute(work())


def rate(
    id: Id,
    rating: Annotated[int, typer.Argument(metavar="RATING", help="A whole number from 1 to 5.")],
    store: StoreUrl,
    comment: Annotated[str | None, typer.Option(help="Why; without it an earlier comment stays.")] = None,
    as_json: AsJson = False,
) -> None:
    """Rate a conversation from 1 to 5.

    convostore rate 01a2... 5 --comment "Very helpful!"
    """

    async def work() -> Exit:
        async with open_existing(store) as opened:
            await opened.rate(id, rating, comment)
            conversation = await _found(opened, id)
        if as_json:
            print_json(conversation_wire(conversation))
        else:
            print_text(printable(f"rated {id}: {rating} of 5"))
        return Exit.OK

    execute(work())


def delete(
    id: Id,
    store: StoreUrl,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete a conversation and all that belongs to it. Asks first; there is no way back.

    convostore delete 01a2...
    convostore delete 01a2... --yes --json
    """

    async def work() -> Exit:
        async with open_existing(store) as opened:
            conversation = await _found(opened, id)
            if not yes and not _agreed(conversation):
                print_text("nothing was deleted")
                return Exit.REFUSED
            if not await opened.delete_conversation(id):
                raise ConversationNotFoundError(id)
        if as_json:
            print_json({"id": id, "deleted": True})
        else:
            print_text(printable(f"deleted {id}"))
        return Exit.OK

    execute(work())


def _agreed(conversation: Conversation) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput("there is nobody to ask; add --yes to delete without asking")
    what = printable(
        f"Delete {conversation.id} ({conversation.title or 'no title'}, {conversation.message_count} entries)?"
    )
    sys.stderr.write(f"{what} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
