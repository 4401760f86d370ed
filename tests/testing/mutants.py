"""Backends that are broken on purpose, each in one way that users of other libraries have met.

Each is a few lines around a sound one: `MemoryBackend`, or `DiskBackend` where the fault is about what outlives a handle.
"""

import asyncio
import fnmatch
import threading
import unicodedata
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, structs

from convostore import limits
from convostore.backends.memory import MemoryBackend
from convostore.contracts.backend import (
    Capability,
    Change,
    HeadPage,
    HeadQuery,
    NewEntry,
    Receipt,
    Snapshot,
    Window,
)
from convostore.errors import (
    ConflictError,
    ConversationNotFoundError,
    CorruptDataError,
    DuplicateEntryError,
    InvalidInput,
    StoreError,
    UnavailableError,
)
from convostore.ids import new_id
from tests.testing.disk import Disk, DiskBackend

__all__ = ["MUTANTS"]

Documents = Sequence[str] | None
put = structs.replace


class DropsTheLastOfABatch(MemoryBackend):
    """An off-by-one in the loop that writes rows."""

    async def commit(self, change: Change, /) -> Receipt:
        return await super().commit(put(change, append=change.append[:-1] if len(change.append) > 1 else change.append))


class OrdersByClock(MemoryBackend):
    """ORDER BY created_at."""

    async def read(self, conversation_id: str, window: Window | None = None, documents: Documents = (), /) -> Any:
        snapshot = await super().read(conversation_id, window, documents)
        return snapshot and put(snapshot, entries=tuple(sorted(snapshot.entries, key=lambda each: each.created_at_ms)))


class ForgetsDocumentsOnDelete(MemoryBackend):
    """A side table that nobody thought of: it is there again when the conversation is."""

    async def commit(self, change: Change, /) -> Receipt:
        there = self._conversations.get(change.conversation_id)
        receipt = await super().commit(change)
        if receipt.head is None and there:
            self.__dict__.setdefault("left", {})[change.conversation_id] = there.documents
        elif there is None and (left := self.__dict__.get("left", {}).get(change.conversation_id)):
            self._conversations[change.conversation_id].documents |= left
        return receipt


class ReusesPositions(MemoryBackend):
    """max(position) + 1."""

    async def commit(self, change: Change, /) -> Receipt:
        if there := self._conversations.get(change.conversation_id):
            highest = max((each.stamp for each in there.entries.values()), default=0)
            there.head = put(there.head, last_stamp=highest)
        return await super().commit(change)


class IgnoresExpectedRevision(MemoryBackend):
    """Optimistic locking that is never checked."""

    async def commit(self, change: Change, /) -> Receipt:
        return await super().commit(put(change, expected_revision=None))


class IgnoresExpectedStamp(MemoryBackend):
    """The same for entries: the later of two edits wins."""

    async def commit(self, change: Change, /) -> Receipt:
        return await super().commit(
            put(change, replace=tuple(put(each, expected_stamp=None) for each in change.replace))
        )


class DoublesOnRetry(MemoryBackend):
    """Ids are the server's, so a repeated append is a new one."""

    async def commit(self, change: Change, /) -> Receipt:
        there = self._conversations.get(change.conversation_id)
        if there and change.append and all(each.entry_id in there.entries for each in change.append):
            fresh = tuple(put(each, entry_id=new_id()) for each in change.append)
            change = put(change, append=fresh, revision=new_id(), existence="may_create", expected_revision=None)
        return await super().commit(change)


class DedupesByContent(MemoryBackend):
    """A second "yes" is taken for a repetition of the first."""

    async def commit(self, change: Change, /) -> Receipt:
        there = self._conversations.get(change.conversation_id)
        bodies = {each.body for each in there.entries.values()} if there else set()
        unique: list[NewEntry] = []
        for each in change.append:
            if each.body not in bodies:
                unique.append(each)
                bodies.add(each.body)
        return await super().commit(put(change, append=tuple(unique)))


class _Renames(MemoryBackend):
    """Ids are changed on their way in."""

    def rename(self, name: str) -> str:
        raise NotImplementedError

    async def commit(self, change: Change, /) -> Receipt:
        name = change.conversation_id
        return await super().commit(put(change, conversation_id=self.rename(name) if type(name) is str else name))

    async def read(self, conversation_id: str, window: Window | None = None, documents: Documents = (), /) -> Any:
        name = self.rename(conversation_id) if type(conversation_id) is str else conversation_id
        return await super().read(name, window, documents)


class FoldsCase(_Renames):
    """A case-insensitive file system, or a collation."""

    def rename(self, name: str) -> str:
        return name.casefold() or name


class StripsIds(_Renames):
    """Somebody trimmed input."""

    def rename(self, name: str) -> str:
        return name.strip() or name


class NormalisesIds(_Renames):
    """A file system that normalises names."""

    def rename(self, name: str) -> str:
        return unicodedata.normalize("NFC", name)


class TrimsOnOneVerbOnly(MemoryBackend):
    """Stored under one id, looked for under another."""

    async def read(self, conversation_id: str, window: Window | None = None, documents: Documents = (), /) -> Any:
        name = conversation_id.rstrip(" ") if type(conversation_id) is str else conversation_id
        return await super().read(name or conversation_id, window, documents)


class RefusesOnOneVerbOnly(MemoryBackend):
    """Cannot store an id, and says of it that it is not there instead of that it cannot be."""

    async def commit(self, change: Change, /) -> Receipt:
        if type(change.conversation_id) is str and "*" in change.conversation_id:
            raise InvalidInput("no asterisks, please")
        return await super().commit(change)


class ChecksNoIdsInReads(MemoryBackend):
    """What cannot be an id is just not found."""

    async def read(self, conversation_id: str, window: Window | None = None, documents: Documents = (), /) -> Any:
        try:
            return await super().read(conversation_id, window, documents)
        except InvalidInput:
            return None


class DeletesByPrefix(MemoryBackend):
    """DELETE ... LIKE 'foo%'."""

    async def commit(self, change: Change, /) -> Receipt:
        receipt = await super().commit(change)
        if receipt.head is None:
            for name in [each for each in self._conversations if each.startswith(change.conversation_id)]:
                del self._conversations[name]
        return receipt


class FiltersAfterPaging(MemoryBackend):
    """A page is fetched, then filtered."""

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        await super().scan_heads(query)
        everything = put(query, context=UNSET, cursor=None, limit=limits.page_heads_max)
        heads = (await super().scan_heads(everything)).items
        begin = int(query.cursor.partition(".")[0]) if query.cursor and query.cursor.isdigit() else 0
        page = heads[begin : begin + query.limit]
        more = str(begin + query.limit) if len(heads) > begin + query.limit else None
        return HeadPage(tuple(each for each in page if query.context in (UNSET, each.context)), more)


class PagesByOffset(MemoryBackend):
    """LIMIT ... OFFSET: what is deleted before the offset moves everything behind it."""

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        if query.cursor is not None and not (type(query.cursor) is str and query.cursor.isdecimal()):
            raise InvalidInput("no cursor")
        heads = (await super().scan_heads(put(query, cursor=None, limit=limits.page_heads_max))).items
        begin = int(query.cursor or 0)
        end = begin + query.limit
        return HeadPage(heads[begin:end], str(end) if end < len(heads) else None)


class CursorSkipsTies(MemoryBackend):
    """WHERE updated_at < the last one's."""

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        page = await super().scan_heads(query)
        last: dict[str | None, int] = self.__dict__.setdefault("last", {})
        items = page.items
        if query.cursor in last and query.order == "updated":
            items = tuple(each for each in items if each.updated_at_ms < last[query.cursor])
        if page.cursor:
            last[page.cursor] = page.items[-1].updated_at_ms
        return put(page, items=items)


class CreatedOrderByClock(MemoryBackend):
    """ORDER BY created_at again, for conversations."""

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        page = await super().scan_heads(query)
        if query.order == "created":
            ordered = sorted(page.items, key=lambda each: each.created_at_ms, reverse=query.newest_first)
            return put(page, items=tuple(ordered))
        return page


class ListsInUtf16Order(MemoryBackend):
    """Sorted as JavaScript and some databases sort."""

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        page = await super().scan_heads(query)
        if query.order == "id":
            ordered = sorted(page.items, key=lambda each: each.conversation_id.encode("utf-16-be"))
            return put(page, items=tuple(ordered))
        return page


class TakesNoneForAny(MemoryBackend):
    """if filter: where(...)."""

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        return await super().scan_heads(
            put(query, context=UNSET if query.context is None else query.context, subject_id=query.subject_id)
        )


class TakesAPrefixForAPattern(MemoryBackend):
    """LIKE and GLOB, unescaped."""

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        page = await super().scan_heads(query)
        if not query.prefix or not any(each in query.prefix for each in "*?["):
            return page
        everything = (await super().scan_heads(put(query, prefix="", cursor=None, limit=limits.page_heads_max))).items
        return HeadPage(
            tuple(each for each in everything if fnmatch.fnmatchcase(each.conversation_id, query.prefix + "*"))
        )


class TakesAnyCursor(MemoryBackend):
    """A cursor it cannot read begins again at the beginning."""

    async def scan_heads(self, query: HeadQuery, /) -> HeadPage:
        try:
            return await super().scan_heads(query)
        except InvalidInput:
            if query.cursor is None:
                raise
            return await super().scan_heads(put(query, cursor=None))


class ReturnsSharedFields(MemoryBackend):
    """The stored dictionary itself is handed out."""

    async def read(self, conversation_id: str, window: Window | None = None, documents: Documents = (), /) -> Any:
        snapshot = await super().read(conversation_id, window, documents)
        return snapshot and put(snapshot, head=self._conversations[conversation_id].head)


class KeepsWhatItWasGiven(MemoryBackend):
    """The caller's own dictionary becomes the stored one."""

    async def commit(self, change: Change, /) -> Receipt:
        receipt = await super().commit(change)
        if receipt.applied and change.existence == "must_create" and isinstance(change.documents, dict):
            self._conversations[change.conversation_id].documents = change.documents
        return receipt


class ReadsThenWrites(MemoryBackend):
    """Read, modify, write, with an await in between: the later of two writers wins."""

    async def commit(self, change: Change, /) -> Receipt:
        there = self._conversations.get(change.conversation_id)
        before = there and (there.head, dict(there.entries), dict(there.documents))
        await asyncio.sleep(0)
        if before and (now := self._conversations.get(change.conversation_id)):
            now.head, now.entries, now.documents = before[0], dict(before[1]), dict(before[2])
        return await super().commit(change)


class WritesRowByRow(MemoryBackend):
    """Each entry is a write of its own: others come between, and a cancellation leaves half."""

    async def commit(self, change: Change, /) -> Receipt:
        if len(change.append) < 2 or change.existence != "must_exist":
            return await super().commit(change)
        await super().commit(put(change, append=change.append[:1], revision=new_id()))
        await asyncio.sleep(0)
        return await super().commit(put(change, cut_after=None, remove=(), replace=(), expected_revision=None))


class AppliesHalf(MemoryBackend):
    """No transaction: what came before the refusal stays."""

    async def commit(self, change: Change, /) -> Receipt:
        try:
            return await super().commit(change)
        except DuplicateEntryError:
            await super().commit(put(change, append=(), revision=new_id()))
            raise


class ReadsInTwoSteps(MemoryBackend):
    """Head first, entries later."""

    async def read(self, conversation_id: str, window: Window | None = None, documents: Documents = (), /) -> Any:
        before = await super().read(conversation_id)
        await asyncio.sleep(0)
        after = await super().read(conversation_id, window, documents)
        return before and after and put(after, head=before.head)


class ResurrectsOnLateCommit(MemoryBackend):
    """INSERT ... ON CONFLICT: a late write brings a deleted conversation back."""

    async def commit(self, change: Change, /) -> Receipt:
        known: set[str] = self.__dict__.setdefault("known", set())
        if change.conversation_id in known and change.existence == "must_exist" and not change.delete:
            change = put(change, existence="may_create")
        receipt = await super().commit(change)
        known.add(change.conversation_id)
        return receipt


class IgnoresOnlySubject(MemoryBackend):
    """A filter key misspelt and ignored: other people's history."""

    async def commit(self, change: Change, /) -> Receipt:
        return await super().commit(put(change, only_subject=None))


class GivesAnotherOwner(MemoryBackend):
    """set_subject takes a conversation from its owner."""

    async def commit(self, change: Change, /) -> Receipt:
        there = self._conversations.get(change.conversation_id)
        if there and change.set_subject and there.head.subject_id:
            there.head = put(there.head, subject_id=None)
        return await super().commit(change)


class TruncatesWhatIsTooLong(MemoryBackend):
    """Over the limit: silently cut."""

    async def commit(self, change: Change, /) -> Receipt:
        def cut(entries: tuple[NewEntry, ...]) -> tuple[NewEntry, ...]:
            return tuple(put(each, body=each.body and each.body[: limits.body_bytes_max]) for each in entries)

        return await super().commit(put(change, append=cut(change.append), replace=cut(change.replace)))


class ManglesBodies(MemoryBackend):
    """Bytes are taken for text on their way through."""

    async def read(self, conversation_id: str, window: Window | None = None, documents: Documents = (), /) -> Any:
        snapshot = await super().read(conversation_id, window, documents)
        return snapshot and put(
            snapshot,
            entries=tuple(put(each, body=each.body.decode("utf-8", "replace").encode()) for each in snapshot.entries),
        )


class DropsEmptyDocuments(MemoryBackend):
    """if value: ..."""

    async def commit(self, change: Change, /) -> Receipt:
        return await super().commit(
            put(change, documents={name: value or None for name, value in change.documents.items()})
        )


class KeepsTheStampOnReplace(MemoryBackend):
    """A follower never hears that a tool call has finished."""

    async def commit(self, change: Change, /) -> Receipt:
        there = self._conversations.get(change.conversation_id)
        stamps = {each.entry_id: each.stamp for each in there.entries.values()} if there else {}
        receipt = await super().commit(change)
        if there and receipt.head:
            for new in change.replace:
                there.entries[new.entry_id] = put(there.entries[new.entry_id], stamp=stamps[new.entry_id])
        return receipt


class ReplacesAtTheEnd(MemoryBackend):
    """Replace is delete and insert."""

    async def commit(self, change: Change, /) -> Receipt:
        receipt = await super().commit(change)
        if receipt.head:
            entries = self._conversations[change.conversation_id].entries
            for new in change.replace:
                entries[new.entry_id] = entries.pop(new.entry_id)
        return receipt


class FirstForLast(MemoryBackend):
    """The last N are the first N."""

    async def read(self, conversation_id: str, window: Window | None = None, documents: Documents = (), /) -> Any:
        return await super().read(conversation_id, window and put(window, newest=False), documents)


class CountsRevisions(MemoryBackend):
    """A revision is a number that begins again with the conversation."""

    async def commit(self, change: Change, /) -> Receipt:
        there = self._conversations.get(change.conversation_id)
        number = int(there.head.revision) + 1 if there else 1
        return await super().commit(put(change, revision=str(number)))


class UpdatedAtIsTheClock(MemoryBackend):
    """updated_at goes back with the clock."""

    async def commit(self, change: Change, /) -> Receipt:
        receipt = await super().commit(change)
        if receipt.head is None or not receipt.applied:
            return receipt
        there = self._conversations[change.conversation_id]
        there.head = put(there.head, updated_at_ms=change.at_ms)
        return put(receipt, head=put(receipt.head, updated_at_ms=change.at_ms))


class FindsTheDeleted(MemoryBackend):
    """A search index that is never told of deletions."""

    async def commit(self, change: Change, /) -> Receipt:
        seen: dict[str, set[str]] = self.__dict__.setdefault("seen", {})
        receipt = await super().commit(change)
        for each in change.append:
            seen.setdefault(each.entry_id, set()).add(change.conversation_id)
        return receipt

    async def find_entry(self, entry_id: str, /) -> tuple[str, ...]:
        await super().find_entry(entry_id)
        return tuple(sorted(self.__dict__.setdefault("seen", {}).get(entry_id, ())))


class DeclaresWhatItLacks(MemoryBackend):
    """A capability is claimed and is not there."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset({"find_entry", "watch"})


class FindsNothingWrong(MemoryBackend):
    """A self-check is declared and looks at nothing."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset({"find_entry", "self_check"})

    async def self_check(self) -> tuple[str, ...]:
        return ()


class LeaksAThreadPerCall(MemoryBackend):
    """A thread is started for each call and waits for work that never comes."""

    def __init__(self) -> None:
        super().__init__()
        self._end = threading.Event()

    async def commit(self, change: Change, /) -> Receipt:
        threading.Thread(target=self._end.wait, daemon=True).start()
        return await super().commit(change)

    async def aclose(self) -> None:
        self._end.set()
        await super().aclose()


class BoundToItsFirstLoop(MemoryBackend):
    """An asyncio lock made in the first loop that used it."""

    async def commit(self, change: Change, /) -> Receipt:
        loop = self.__dict__.setdefault("loop", asyncio.get_running_loop())
        if loop is not asyncio.get_running_loop():
            raise RuntimeError("bound to a different event loop")
        return await super().commit(change)


class WorksWhenClosed(MemoryBackend):
    """Closing closes nothing."""

    def _check_open(self) -> None:
        self._closed = False


class VagueErrors(MemoryBackend):
    """Every refusal is the same sentence."""

    async def commit(self, change: Change, /) -> Receipt:
        try:
            return await super().commit(change)
        except ConflictError as error:
            raise type(error).__new__(type(error), "conflict") from None


class ErrorsThatDoNotTravel(MemoryBackend):
    """An error holds something that cannot be pickled."""

    async def commit(self, change: Change, /) -> Receipt:
        try:
            return await super().commit(change)
        except StoreError as error:
            error.__dict__["lock"] = self._lock
            raise


class NeverNone(MemoryBackend):
    """Reading what is not there is an error."""

    async def read(self, conversation_id: str, window: Window | None = None, documents: Documents = (), /) -> Any:
        snapshot = await super().read(conversation_id, window, documents)
        if snapshot is None:
            raise ConversationNotFoundError(conversation_id)
        return snapshot


class TakesDamageForAbsence(DiskBackend):
    """except: return None."""

    async def read(self, conversation_id: str, window: Window | None = None, documents: Documents = (), /) -> Any:
        try:
            return await super().read(conversation_id, window, documents)
        except CorruptDataError:
            return None


class OverwritesDamage(DiskBackend):
    """A head that cannot be read is no head: it is created anew."""

    async def commit(self, change: Change, /) -> Receipt:
        self._disk.damaged.discard((change.conversation_id, "head", ""))
        return await super().commit(change)


class SkipsWhatIsDamaged(DiskBackend):
    """One bad line less, silently."""

    def sort_out(self, snapshot: Snapshot, bad: set[str], lost: set[str], window: Window | None) -> Snapshot:
        return put(super().sort_out(snapshot, bad, lost, Window(damaged="report")), damage=())


class NamesTheFirstDamageOnly(DiskBackend):
    """Stops at the first bad record."""

    def sort_out(self, snapshot: Snapshot, bad: set[str], lost: set[str], window: Window | None) -> Snapshot:
        return super().sort_out(snapshot, set(sorted(bad)[:1]), lost, window)


class LosesAllForOne(DiskBackend):
    """Damage anywhere in a conversation, and nothing of it can be read."""

    async def read(self, conversation_id: str, window: Window | None = None, documents: Documents = (), /) -> Any:
        if window is None or window.damaged == "raise":
            await super().read(conversation_id, Window(), None)
        return await super().read(conversation_id, window, documents)


class RepairsWhenRead(DiskBackend):
    """A read throws the damaged away."""

    def sort_out(self, snapshot: Snapshot, bad: set[str], lost: set[str], window: Window | None) -> Snapshot:
        for name in bad:
            self._conversations[snapshot.head.conversation_id].entries.pop(name, None)
        return super().sort_out(snapshot, bad, lost, window)


class WritesWhenClosed(DiskBackend):
    """Everything is in a buffer until the handle is closed."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk)
        self._conversations = dict(disk.conversations)

    async def aclose(self) -> None:
        if not self._closed:
            self._disk.conversations.clear()
            self._disk.conversations.update(self._conversations)
        await super().aclose()


class LosesOnRestart(DiskBackend):
    """Durable, it says."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk)
        disk.conversations.clear()


class RacesWhenOpened(DiskBackend):
    """Whether the tables are there is asked by one call and answered by another."""

    async def commit(self, change: Change, /) -> Receipt:
        if not self._disk.__dict__.get("ready") and not self.__dict__.get("tried"):
            self.__dict__["tried"] = True
            if self._disk.__dict__.setdefault("opening", self) is not self:
                raise UnavailableError("the database is locked")
            await asyncio.sleep(0.01)
            self._disk.__dict__["ready"] = True
        return await super().commit(change)


class OpensWhatIsNewer(DiskBackend):
    """The version is not looked at."""

    def check_version(self) -> None:
        pass


class LooksAtTheVersionOnce(DiskBackend):
    """The version is looked at when opening only."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk)
        super().check_version()

    def check_version(self) -> None:
        pass


class UpgradesToAnEmptyStore(DiskBackend):
    """The next version looks for its own tables, finds none, and makes them."""

    def upgrade(self) -> None:
        self._disk.conversations.clear()


class TakesAnOutageForAbsence(DiskBackend):
    """A lock looks like a new conversation."""

    def translate(self, error: OSError) -> Exception:
        return ConversationNotFoundError("?")


class LetsDriverErrorsThrough(DiskBackend):
    """The driver's own exception reaches the caller."""

    def translate(self, error: OSError) -> Exception:
        return OSError(*error.args)


class HidesTheCause(DiskBackend):
    """Translated, and what it was is lost."""

    async def commit(self, change: Change, /) -> Receipt:
        try:
            return await super().commit(change)
        except UnavailableError as error:
            raise UnavailableError(str(error)) from None


def _mutants() -> tuple[type[MemoryBackend], ...]:
    public = [each for name, each in globals().items() if isinstance(each, type) and not name.startswith("_")]
    return tuple(each for each in public if issubclass(each, MemoryBackend) and each.__module__ == __name__)


MUTANTS = _mutants()
