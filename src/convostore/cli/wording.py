"""The library's errors in the words of the command line: what to type next, where the library names one of its calls."""

from __future__ import annotations

import shlex

from convostore.errors import ConversationNotFoundError, CorruptDataError, StoreError
from convostore.interchange.native import DamagedStreamError, NotNativeError

__all__ = ["in_words", "see_sound"]

_NAMED_MAX = 5


def in_words(error: StoreError) -> str:
    """Return what to tell about an error: what is wrong, of what, and what to do next."""
    if isinstance(error, NotNativeError):
        return (
            f"this is not what `convostore export` writes, or its beginning is lost: {error.reason}. Take another copy of"
            " it; transcripts come in with: convostore import FILE"
        )
    if isinstance(error, ConversationNotFoundError):
        return f"there is no conversation {error.conversation_id!r}; see which there are with: convostore list"
    if not isinstance(error, CorruptDataError):
        return str(error)
    named = "; ".join(map(str, error.damage[:_NAMED_MAX])) + (" ..." if len(error.damage) > _NAMED_MAX else "")
    if isinstance(error, DamagedStreamError):
        return f"{named}. Nothing was written; take another copy of the file, or restore what is sound of it with --salvage"
    if not error.conversation_id:
        return f"the storage is damaged: {named}. Its bytes are untouched; name all damage with: convostore verify"
    return (
        f"conversation {error.conversation_id!r} has {len(error.damage)} damaged record(s): {named}. The bytes are untouched;"
        f" {see_sound(error.conversation_id)}, or write it to a file with: convostore export --salvage"
    )


def see_sound(conversation_id: str) -> str:
    """Return the advice for a damaged conversation."""
    return f"see what is sound of it with: convostore salvage {shlex.quote(conversation_id)}"
