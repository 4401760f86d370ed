"""A conversation that begins as another one's history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from convostore import limits
from convostore.contracts.backend import Backend, Change, Entry, Head, NewEntry, Window
from convostore.errors import ConversationExistsError, ConversationNotFoundError, InvalidInput
from convostore.ids import Clock, Mint
from convostore.model.conversation import Conversation
from convostore.stores.heads import FORKED_FROM, METADATA, TITLE, conversation_of, encoded
from convostore.stores.transcript import transcribe

__all__ = ["fork"]


async def fork(
    backend: Backend, conversation_id: str, new: str, *, after: str | None, clock: Clock, mint: Mint
) -> Conversation:
    """Create conversation `new` with the history up to message `after`; see `ConversationStore.fork_conversation`.

    One commit, as long as the history fits into one change; a longer one is created with its beginning first.
    """
    snapshot = await backend.read(conversation_id, Window())
    if snapshot is None:
        raise ConversationNotFoundError(conversation_id)
    entries = _up_to(snapshot.entries, conversation_id, after)
    origin = {"conversation_id": conversation_id, "message_id": entries[-1].entry_id if entries else None}
    head: Head | None = None
    for chunk in _chunks([each.as_new() for each in entries]):
        source = snapshot.head
        change = Change(
            conversation_id=new,
            revision=mint(),
            at_ms=clock(),
            existence="must_exist" if head else "must_create",
            expected_revision=head.revision if head else None,
            context=source.context,
            subject_id=source.subject_id,
            fields={}
            if head
            else {
                **{name: source.fields[name] for name in (TITLE, METADATA) if name in source.fields},
                **encoded(**{FORKED_FROM: origin}),
            },
            append=chunk,
        )
        receipt = await backend.commit(change)
        if receipt.head is not None and receipt.head.revision != change.revision:
            raise ConversationExistsError(new)  # it holds these very entries, and this call did not put them there
        head = receipt.head
    assert head is not None
    return conversation_of(head)


def _up_to(entries: Sequence[Entry], conversation_id: str, after: str | None) -> Sequence[Entry]:
    if after is None:
        return entries
    for index, entry in enumerate(entries):
        if entry.entry_id == after:
            # The chat items that are shown as calls of this message stand behind it.
            folded = transcribe(entries, conversation_id).folded.get(index, [index])
            return entries[: folded[-1] + 1]
    raise InvalidInput(f"conversation {conversation_id!r} has no message {after!r} to fork after")


def _chunks(entries: Sequence[NewEntry]) -> Iterator[tuple[NewEntry, ...]]:
    """Yield the entries in runs that fit into one change each; at least one run."""
    chunk: list[NewEntry] = []
    size = 0
    for each in entries:
        if chunk and (size + len(each.body) > limits.change_bytes_max // 2 or len(chunk) == limits.change_entries_max):
            yield tuple(chunk)
            chunk, size = [], 0
        chunk.append(each)
        size += len(each.body)
    yield tuple(chunk)
