"""Commands about the store as a whole that change nothing: list, latest, stats, verify."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import typer
from msgspec import UNSET, structs, to_builtins

from convostore import limits
from convostore.cli.address import AsJson, StoreUrl, open_existing
from convostore.cli.exits import Exit, execute
from convostore.cli.printing import complain, print_json, print_table, print_text, printable, progress_bar
from convostore.cli.viewing import conversation_wire, print_conversation, print_conversations
from convostore.cli.wording import see_sound
from convostore.contracts.backend import Damage, HeadPage, HeadQuery
from convostore.errors import CorruptDataError, InvalidInput, NotFoundError
from convostore.model.exact_json import JsonObject
from convostore.operations.statistics import statistics
from convostore.operations.verify import verify as verify_store
from convostore.stores.heads import conversation_of

__all__ = ["Order", "latest", "list_", "print_damage", "stats", "verify"]


class Order(StrEnum):
    """The orders of a listing."""

    UPDATED = "updated"
    CREATED = "created"
    ID = "id"


def list_(
    store: StoreUrl,
    context: Annotated[str | None, typer.Option(help="Only this context.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only this subject.")] = None,
    prefix: Annotated[str, typer.Option(help="Only ids that begin so; goes with --order id.")] = "",
    order: Annotated[Order, typer.Option(help="updated and created: newest first.")] = Order.UPDATED,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="How many at most.")] = 50,
    all_: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    as_json: AsJson = False,
) -> None:
    """List conversations, the one written to last first. One that is damaged is named on stderr (exit code 4).

    convostore list -s sqlite:///chats.db
    convostore list --context support --subject org-7 --limit 5
    convostore list --all --json | jq -r .id
    """

    async def work() -> Exit:
        if prefix and order is not Order.ID:
            raise InvalidInput("--prefix goes with --order id; add that")
        query = HeadQuery(
            context=UNSET if context is None else context,
            subject_id=UNSET if subject is None else subject,
            prefix=prefix,
            order=order.value,
            newest_first=order is Order.CREATED,
        )
        left, damaged = None if all_ else limit, False
        async with open_existing(store) as opened:
            while True:
                count = limits.page_heads_max if left is None else min(left, limits.page_heads_max)
                page = await opened.backend.scan_heads(structs.replace(query, limit=count))
                damaged |= _print_page(page, as_json)
                query = structs.replace(query, cursor=page.cursor)
                if left is not None:
                    left -= len(page.items)
                if page.cursor is None or left == 0:
                    break
        if page.cursor is not None and not as_json:
            complain(f"there are more than these {limit}; see them with --limit N or --all")
        return Exit.DAMAGED if damaged else Exit.OK

    execute(work())


def _print_page(page: HeadPage, as_json: bool) -> bool:
    """Print what is sound of a page, name on stderr what is not, and say whether there was any."""
    damage: list[object] = list(page.damage)
    sound = []
    for head in page.items:
        try:
            sound.append(conversation_of(head))
        except CorruptDataError as error:
            damage += error.damage
    if as_json:
        for each in sound:
            print_json(conversation_wire(each))
    else:
        print_conversations(sound)
    for found in damage:
        of = found.conversation_id if isinstance(found, Damage) else ""
        complain(f"left out: conversation {of!r}: {found}; {see_sound(of)}")
    return bool(damage)


def latest(
    context: Annotated[str, typer.Argument(metavar="CONTEXT")],
    subject: Annotated[str, typer.Argument(metavar="SUBJECT")],
    store: StoreUrl,
    as_json: AsJson = False,
) -> None:
    """Find the conversation of a subject that was created last.

    convostore latest support org-7 -s sqlite:///chats.db
    convostore show "$(convostore latest support org-7 --json | jq -r .id)"
    """

    async def work() -> Exit:
        async with open_existing(store) as opened:
            found = await opened.find_latest(context, subject)
        if found is None:
            raise NotFoundError(f"subject {subject!r} has no conversation in context {context!r}; see: convostore list")
        if as_json:
            print_json(conversation_wire(found))
        else:
            print_conversation(found)
        return Exit.OK

    execute(work())


def stats(store: StoreUrl, as_json: AsJson = False) -> None:
    """Count conversations, entries and bytes, and of what kind they are. Reads everything.

    convostore stats -s sqlite:///chats.db
    """

    async def work() -> Exit:
        async with open_existing(store) as opened:
            with progress_bar("counting") as show:
                counted = await statistics(opened.backend, progress=lambda so_far: show(so_far.conversations))
        if as_json:
            print_json(_camel(to_builtins(counted)))
            return Exit.OK
        rows: list[tuple[str, str, int]] = []
        for name, value in to_builtins(counted).items():
            label = name.replace("_", " ")
            if isinstance(value, dict):
                rows += [(label, each or "(none)", count) for each, count in sorted(value.items(), key=_most_first)]
            else:
                rows.append((label, "", value))
        print_table(("what", "which", "count"), rows, numbers=("count",))
        return Exit.OK

    execute(work())


def verify(store: StoreUrl, as_json: AsJson = False) -> None:
    """Read everything and name whatever is damaged. Changes nothing; exit code 4 if anything is.

    convostore verify -s sqlite:///chats.db
    convostore verify --json | jq .damage
    """

    async def work() -> Exit:
        async with open_existing(store) as opened:
            with progress_bar("verifying") as show:
                report = await verify_store(opened.backend, progress=lambda so_far: show(so_far.conversations))
        if as_json:
            print_json(_camel(to_builtins(report)))
        else:
            print_text(
                f"{report.conversations} conversations, {report.entries} entries, {report.documents} documents,"
                f" {report.body_bytes} bytes of bodies: {'damaged' if report.damage else 'all sound'}"
            )
            print_damage(report.damage)
        return Exit.DAMAGED if report.damage else Exit.OK

    execute(work())


def print_damage(damage: Iterable[Damage]) -> None:
    """Print one line a damaged record."""
    for each in damage:
        of = f"conversation {each.conversation_id!r}" if each.conversation_id else "the storage itself"
        print_text(printable(f"{of}: {each}"))


def _most_first(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _camel(fields: JsonObject) -> JsonObject:
    return {
        name.split("_")[0] + "".join(part.title() for part in name.split("_")[1:]): each
        for name, each in fields.items()
    }
