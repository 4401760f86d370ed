"""B4 and B5: one read shows one revision, and no writer loses or breaks up another's work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from convostore.contracts.backend import Backend, HeadQuery, Window
from convostore.errors import RevisionConflictError
from convostore.testing.drafts import change, creation, entry, entry_ids
from convostore.testing.jobs import append_batches, append_elsewhere, batch_entries, batches, refused_or_found
from convostore.testing.suite import Samples, Suite, clause
from convostore.testing.workers import in_processes, in_threads, second_handle

__all__ = ["WriterClauses"]


class WriterClauses(Suite):
    """Many writers on one conversation."""

    @clause("B4")
    async def test_a_read_during_writes_shows_one_revision(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Head, entries, fields and documents of every read belong to the same commit while two writers commit."""
        await backend.commit(creation(samples.id("c"), fields={"n": b"0"}, documents={"n": b"0"}))
        async with second_handle(backend, factory) as other:
            async with asyncio.TaskGroup() as group:
                writing = [
                    group.create_task(_number(each, samples.id("c"), name, 25))
                    for each, name in ((backend, "a"), (other, "b"))
                ]
                while not all(each.done() for each in writing):
                    await asyncio.gather(_assert_whole(backend, samples.id("c")), _assert_whole(other, samples.id("c")))
                    await asyncio.sleep(0)
            await _assert_whole(other, samples.id("c"))
        assert 50 == len(await entry_ids(backend, samples.id("c")))

    @clause("B4")
    async def test_reads_in_other_threads_show_one_revision(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Readers and writers in threads with event loops of their own see whole revisions, also while it is rewritten."""
        await backend.commit(creation(samples.id("c"), fields={"n": b"0"}, documents={"n": b"0"}))

        async def read() -> None:
            for _ in range(40):
                await _assert_whole(backend, samples.id("c"))

        async def rewrite() -> None:
            async with second_handle(backend, factory) as other:
                for number in range(20):
                    entries = [entry(f"r{number}-{each}") for each in range(number % 4)]
                    values = {"n": str(len(entries)).encode()}
                    await other.commit(change(samples.id("c"), *entries, cut_after=0, fields=values, documents=values))

        await in_threads(read, rewrite, read)

    @clause("B4", "B5")
    async def test_a_page_of_heads_and_a_read_agree_with_the_receipt(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Once a commit has returned, every later read and listing shows it, through any handle."""
        async with second_handle(backend, factory) as other:
            for number in range(10):
                made = await backend.commit(change(samples.id("c"), entry(f"e{number}"), existence="may_create"))
                read = await other.read(samples.id("c"))
                page = await other.scan_heads(HeadQuery(prefix=samples.prefix))
                assert read is not None
                assert (made.head, (made.head,)) == (read.head, page.items)

    @clause("B5")
    async def test_tasks_neither_lose_nor_interleave(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Eight tasks on two handles: every batch is there once and whole, each task's own order holds."""
        await backend.commit(creation(samples.id("c")))
        async with second_handle(backend, factory) as other:
            writers = [append_batches(other if each % 2 else backend, samples.id("c"), each) for each in range(8)]
            await asyncio.gather(*writers)
        await _assert_orderly(backend, samples.id("c"), 8)

    @clause("B5", "B15")
    async def test_threads_neither_lose_nor_interleave(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Eight threads with event loops of their own, half on one handle, half on handles of their own."""
        await backend.commit(creation(samples.id("c")))

        async def elsewhere(writer: int) -> None:
            async with second_handle(backend, factory) as other:
                await append_batches(other, samples.id("c"), writer)

        jobs: list[Callable[[], Coroutine[Any, Any, None]]] = [
            partial(elsewhere, each) if each % 2 else partial(append_batches, backend, samples.id("c"), each)
            for each in range(8)
        ]
        await in_threads(*jobs)
        await _assert_orderly(backend, samples.id("c"), 8)

    @clause("B5")
    async def test_processes_neither_lose_nor_interleave(
        self, backend: Backend, samples: Samples, process_factory: Callable[[], Any] | None
    ) -> None:
        """Four processes (capability `multi_process`) and this one append to one conversation."""
        if "multi_process" not in backend.capabilities:
            pytest.skip("not declared: multi_process")
        assert process_factory is not None, "multi_process is declared: define the fixture process_factory"
        await backend.commit(creation(samples.id("c")))
        jobs = [(append_elsewhere, (process_factory, samples.id("c"), each)) for each in range(1, 5)]
        await asyncio.gather(in_processes(*jobs), append_batches(backend, samples.id("c"), 0))
        await _assert_orderly(backend, samples.id("c"), 5)

    @clause("B5")
    async def test_without_multi_process_another_process_shares_nothing(
        self, backend: Backend, samples: Samples, process_factory: Callable[[], Any] | None
    ) -> None:
        """Where `multi_process` is not declared, another process is refused or has a store of its own."""
        if "multi_process" in backend.capabilities:
            pytest.skip("declared: multi_process")
        if process_factory is None:
            pytest.skip("not declared: multi_process, and no process_factory to try it with")
        await backend.commit(creation(samples.id("c"), entry("a")))
        there = await in_processes((refused_or_found, (process_factory, samples.id("c"))))
        assert there[0] in ("refused", None)

    @clause("B5")
    async def test_creators_at_once_share_one_conversation(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """Sixteen changes that may create one conversation all happen, and one of them creates it."""
        async with second_handle(backend, factory) as other:
            done = await asyncio.gather(
                *(
                    (other if number % 2 else backend).commit(
                        change(samples.id("c"), entry(f"e{number}"), existence="may_create")
                    )
                    for number in range(16)
                )
            )
        assert 1 == len({each.head.born for each in done if each.head})
        assert sorted(f"e{number}" for number in range(16)) == sorted(await entry_ids(backend, samples.id("c")))
        first = min(done, key=lambda each: each.appended[0].position)
        assert first.head is not None
        assert first.head.born == first.head.revision

    @clause("B5")
    async def test_conversations_do_not_touch_each_other(
        self, backend: Backend, samples: Samples, factory: Callable[[], Any]
    ) -> None:
        """The same entry ids and document names in ten conversations written at once stay ten separate things."""

        async def fill(through: Backend, name: str) -> None:
            await through.commit(creation(name, entry("same", name.encode()), documents={"todos": name.encode()}))
            await through.commit(change(name, entry("more", name.encode())))

        names = [samples.id(f"c{number}") for number in range(10)]
        async with second_handle(backend, factory) as other:
            await asyncio.gather(*(fill(other if number % 2 else backend, name) for number, name in enumerate(names)))
        for name in names:
            snapshot = await backend.read(name, Window(), None)
            assert snapshot is not None
            assert [("same", name.encode()), ("more", name.encode())] == [
                (e.entry_id, e.body) for e in snapshot.entries
            ]
            assert {"todos": name.encode()} == snapshot.documents


async def _assert_orderly(backend: Backend, conversation_id: str, writers: int) -> None:
    snapshot = await backend.read(conversation_id, Window())
    assert snapshot is not None
    there = [tuple(map(int, each.entry_id.split("/"))) for each in snapshot.entries]
    assert writers * batches * batch_entries == len(there) == snapshot.head.entry_count
    whole = [there[start : start + batch_entries] for start in range(0, len(there), batch_entries)]
    for batch in whole:
        assert [(*batch[0][:2], each) for each in range(batch_entries)] == batch, "a batch was broken up"
    for writer in range(writers):
        assert list(range(batches)) == [batch[0][1] for batch in whole if batch[0][0] == writer]
    positions = [each.position for each in snapshot.entries]
    assert sorted(set(positions)) == positions


async def _number(backend: Backend, conversation_id: str, writer: str, count: int) -> None:
    """Append `count` entries, each commit writing into a field and a document how many entries there are then."""
    for number in range(count):
        while True:
            snapshot = await backend.read(conversation_id)
            assert snapshot is not None
            values = {"n": str(snapshot.head.entry_count + 1).encode()}
            try:
                await backend.commit(
                    change(
                        conversation_id,
                        entry(f"{writer}{number}"),
                        expected_revision=snapshot.head.revision,
                        fields=values,
                        documents=values,
                    )
                )
                break
            except RevisionConflictError:
                await asyncio.sleep(0)


async def _assert_whole(backend: Backend, conversation_id: str) -> None:
    snapshot = await backend.read(conversation_id, Window(), None)
    assert snapshot is not None
    count = len(snapshot.entries)
    assert [count] * 3 == [
        snapshot.head.entry_count,
        int(snapshot.head.fields["n"]),
        int(snapshot.documents["n"]),
    ], "head, entries and documents are of different revisions"
    assert max((each.stamp for each in snapshot.entries), default=0) <= snapshot.head.last_stamp
