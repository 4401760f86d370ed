"""Message lists of the OpenAI chat API into a store, so that importing twice adds nothing.

A conversation's id is derived from what it says, from the context and subject it is imported for, and from its number among
equals of the same file: not from the file's name or the time. So the same file from another path is the same import, a
conversation imported for two subjects is two, and one deleted since comes back. A conversation that is there is left alone,
whatever was said in it since; if it is of another context or subject, it is not this one, and that is a conflict. The format
has no times: all messages get the time of their import, and order is the log's.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from msgspec import Struct, structs

from convostore.contracts.backend import Backend, Change, NewEntry
from convostore.errors import ConflictError, InvalidInput
from convostore.ids import Clock, check_id, derived_id, now_ms
from convostore.interchange.message_lists import MessageList, Problem, read_message_lists
from convostore.model import exact_json
from convostore.stores.heads import METADATA, TITLE

__all__ = ["ImportReport", "Imported", "import_messages"]

_TITLE_CHARACTERS: Final = 80
_BATCH_BYTES: Final = 16 * 1024 * 1024
_BATCH_ENTRIES: Final = 5000


class Imported(Struct, frozen=True):
    """One conversation that a file holds and the store now does; `added` False: it had it already."""

    conversation_id: str
    line: int
    messages: int
    added: bool


class ImportReport(Struct):
    """What one file came to. `problems` are what could not be read or was refused; all else was imported."""

    added: int = 0
    already_there: int = 0
    messages_added: int = 0
    conversations: list[Imported] = []
    problems: list[Problem] = []


async def import_messages(
    backend: Backend,
    source: BinaryIO,
    *,
    context: str = "imported",
    subject_id: str = "imported",
    clock: Clock = now_ms,
    progress: Callable[[ImportReport], object] | None = None,
) -> ImportReport:
    """Import every conversation of `source`; what it may look like is told in `interchange.message_lists`.

    Each conversation is committed by itself, in the order of the file. `progress` is called after each.

    Raises:
        InvalidInput: `context` or `subject_id` is none.
    """
    check_id(context, "context")
    check_id(subject_id, "subject_id")
    report = ImportReport()
    equals: Counter[str] = Counter()
    for found in read_message_lists(source):
        if isinstance(found, Problem):
            report.problems.append(found)
            continue
        digest = _digest(found)
        equals[digest] += 1
        conversation_id = derived_id("message list", context, subject_id, digest, equals[digest])
        try:
            added = await _import_one(backend, found, conversation_id, context, subject_id, clock())
        except ConflictError as error:
            report.problems.append(Problem(found.line, "conflict", str(error)))
            continue
        except InvalidInput as error:
            report.problems.append(Problem(found.line, "foreign", f"refused by the store: {error}"))
            continue
        report.conversations.append(Imported(conversation_id, found.line, len(found.messages), added > 0))
        report.added += added > 0
        report.already_there += not added
        report.messages_added += added
        if progress:
            progress(report)
    return report


async def _import_one(
    backend: Backend, found: MessageList, conversation_id: str, context: str, subject_id: str, at_ms: int
) -> int:
    """Return how many messages were added; 0 when it was all there.

    Raises:
        ConflictError: a conversation of another context or subject has this id; nothing was written.
    """
    changes = list(_changes(found, conversation_id, context, subject_id, at_ms))
    begun = await backend.read(conversation_id)
    if begun is not None:
        if (begun.head.context, begun.head.subject_id) != (context, subject_id):
            raise ConflictError(
                f"conversation {conversation_id!r}, the id that follows from these messages, is there already with context"
                f" {begun.head.context!r} and subject {begun.head.subject_id!r}; nothing was imported for it. Delete that"
                " one if it should not be there, or import into another context",
                context={"id": conversation_id},
            )
        # Only an import that was cut off between two commits is taken up again; anything else is left alone.
        revisions = [each.revision for each in changes]
        done = revisions.index(begun.head.revision) + 1 if begun.head.revision in revisions else len(changes)
        changes = changes[done:]
    for change in changes:
        await backend.commit(change)
    return sum(len(each.append) for each in changes)


def _changes(found: MessageList, conversation_id: str, context: str, subject_id: str, at_ms: int) -> Iterator[Change]:
    fields = {} if found.metadata is None else {METADATA: found.metadata}
    if found.first_user_text is not None and (title := _title(found.first_user_text)):
        fields[TITLE] = exact_json.encode(title)
    previous: str | None = None
    for number, batch in enumerate(_batches(found, conversation_id, at_ms)):
        revision = derived_id(conversation_id, "import", number)
        yield Change(
            conversation_id=conversation_id,
            revision=revision,
            at_ms=at_ms,
            existence="must_exist" if previous else "must_create",
            expected_revision=previous,
            context=context,
            subject_id=subject_id,
            fields={} if previous else fields,
            append=batch,
        )
        previous = revision


def _batches(found: MessageList, conversation_id: str, at_ms: int) -> Iterator[tuple[NewEntry, ...]]:
    batch: list[NewEntry] = []
    size = 0
    for number, message in enumerate(found.messages):
        if batch and (size + len(message.body) > _BATCH_BYTES or len(batch) == _BATCH_ENTRIES):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(structs.replace(message, entry_id=derived_id(conversation_id, number), created_at_ms=at_ms))
        size += len(message.body)
    yield tuple(batch)


def _digest(found: MessageList) -> str:
    digest = hashlib.sha256()
    for part in (found.metadata or b"", *(message.body for message in found.messages)):
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()


def _title(text: str) -> str:
    words = " ".join(text[: 4 * _TITLE_CHARACTERS].split())
    return words if len(words) <= _TITLE_CHARACTERS else words[: _TITLE_CHARACTERS - 1].rstrip() + "…"
