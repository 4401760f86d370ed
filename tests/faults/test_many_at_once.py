"""Threads, processes, event loops and forks at once on one store: nothing lost, doubled, mixed or left open."""

from __future__ import annotations

import asyncio
import json
import textwrap
from pathlib import Path
from typing import Any

import convostore
from convostore import blocking
from convostore.opening import InMemoryConversationStore
from convostore.testing.workers import in_threads
from tests.crash.batches import batch, judge_file, judge_messages
from tests.faults.syscalls import run_supervised

_PREAMBLE = """
import asyncio, json, os, sys, threading
from pathlib import Path

import convostore
from tests.crash.batches import batch, judge_file, judge_messages
from tests.faults.forks import in_fork, in_forks

folder = Path(sys.argv[1])
file = folder / "s.db"

async def append(store, writer, count, first=0):
    for number in range(first, first + count):
        await store.append_messages("c", batch((writer, number)))

async def judge(names):
    async with convostore.open(file) as store:
        return judge_messages(await store.load_messages("c"), names) + await judge_file(store, file)

def tell(**what):
    print(json.dumps(what))
"""


def _told(folder: Path, source: str) -> dict[str, Any]:
    done = run_supervised("".join(map(textwrap.dedent, (_PREAMBLE, source))), str(folder), timeout_s=120)
    assert (0, "") == (done.returncode, done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


async def _append(store: convostore.Store, writer: int, count: int) -> None:
    for number in range(count):
        await store.append_messages("c", batch((writer, number)))


def test_eight_threads_in_each_of_four_processes_append_to_one_conversation(tmp_path: Path) -> None:
    """All 128 batches of 32 writers, half of them with a store of their own, are there, whole, once, in each writer's order."""
    answer = _told(
        tmp_path,
        """
        def process(number):
            shared = convostore.open(file)

            async def thread(writer):
                if writer % 2:
                    await append(shared, writer, 4)
                else:
                    async with convostore.open(file) as own:
                        await append(own, writer, 4)

            writers = range(number * 8, number * 8 + 8)
            threads = [threading.Thread(target=lambda w=w: asyncio.run(thread(w))) for w in writers]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            asyncio.run(shared.aclose())

        async def begin():
            async with convostore.open(file) as store:
                await store.create_conversation("x", "s", id="c")

        asyncio.run(begin())
        ended = in_forks([lambda tell, number=number: process(number) for number in range(4)])
        names = [(writer, number) for writer in range(32) for number in range(4)]

        async def counted():
            async with convostore.open(file) as store:
                return (await store.find_by_id("c")).message_count

        tell(codes=[each.code for each in ended], count=asyncio.run(counted()), wrong=asyncio.run(judge(names)))
        """,
    )
    assert [0] * 4 == answer["codes"]
    assert [] == answer["wrong"]
    assert 3 * 128 == answer["count"]


async def test_eight_threads_append_to_one_conversation_in_memory() -> None:
    """The same of one store in memory and eight threads."""
    async with InMemoryConversationStore() as store:
        await store.create_conversation("x", "s", id="c")
        await in_threads(*(lambda writer=writer: _append(store, writer, 20) for writer in range(8)))
        names = {(writer, number) for writer in range(8) for number in range(20)}
        messages = await store.load_messages("c")
        assert [] == judge_messages(messages, names)
        assert 3 * len(names) == len(messages)


def test_twenty_processes_open_a_store_that_does_not_exist(tmp_path: Path) -> None:
    """Released at the same moment, all twenty succeed, and what each wrote is there."""
    answer = _told(
        tmp_path,
        """
        async def first(number):
            async with convostore.open(file) as store:
                await store.create_conversation("x", "s", id=f"c{number}")
                await store.append_messages(f"c{number}", batch((number, 0)))
                await store.sessions.append_messages("shared", [{"role": "user", "content": f"{number}"}])

        ended = in_forks([lambda tell, number=number: asyncio.run(first(number)) for number in range(20)])

        async def judge_all():
            async with convostore.open(file) as store:
                wrong = await judge_file(store, file)
                for number in range(20):
                    wrong += judge_messages(await store.load_messages(f"c{number}"), [(number, 0)])
                shared = [each["content"] for each in await store.sessions.load_messages("shared")]
                return wrong, sorted(shared, key=int), len((await store.list_conversations()).items)

        wrong, shared, count = asyncio.run(judge_all())
        tell(codes=[each.code for each in ended], wrong=wrong, shared=shared, count=count)
        """,
    )
    assert [0] * 20 == answer["codes"]
    assert [] == answer["wrong"]
    assert [str(number) for number in range(20)] == answer["shared"]
    assert 21 == answer["count"]


def test_a_reader_during_rewrites_sees_one_revision(tmp_path: Path) -> None:
    """While a process saves one list after the other, two others see each time the whole of one, in all three views."""
    answer = _told(
        tmp_path,
        """
        # Five lists of other lengths and words: fewer than a small read returns, and more.
        lists = [[{"role": "user", "content": f"{tag} {place}"} for place in range(4 + tag * 60)] for tag in range(5)]

        async def write(tell):
            async with convostore.open(file) as store:
                number = 0
                while len(list(folder.glob("read-*"))) < 2:
                    number += 1
                    await store.sessions.save_messages("c", lists[number % 5])

        async def read(tell):
            seen, wrong = set(), []
            async with convostore.open(file) as store:
                for number in range(2000):
                    if number >= 60 and len(seen) >= 3:
                        break
                    session = [each["content"] for each in await store.sessions.load_messages("c")]
                    messages = [each.content for each in await store.load_messages("c")]
                    items = [each["content"] for each in await store.chat.get_conversation_items("c")]
                    for view in (session, messages, items):
                        tag = int(view[0].split()[0])
                        seen.add(tag)
                        if view != [each["content"] for each in lists[tag]]:
                            wrong.append(view[:3])
            tell([sorted(seen), wrong])

        def reading(name):
            def job(tell):
                try:
                    asyncio.run(read(tell))
                finally:
                    (folder / f"read-{name}").touch()
            return job

        async def begin():
            async with convostore.open(file) as store:
                await store.sessions.save_messages("c", lists[0])

        asyncio.run(begin())
        writer, reader, second = in_forks(
            [lambda tell: asyncio.run(write(tell)), reading("first"), reading("second")]
        )
        tell(codes=[writer.code, reader.code, second.code], told=[reader.told[0], second.told[0]])
        """,
    )
    assert [0, 0, 0] == answer["codes"]
    for seen, wrong in answer["told"]:
        assert [] == wrong
        assert len(seen) >= 3, "the reader was never in the middle of it"


def test_a_fork_after_opening_shares_no_handle(tmp_path: Path) -> None:
    """Children of a store in use have none of its descriptors; they append, close and end, and nobody loses anything."""
    answer = _told(
        tmp_path,
        """
        def handles():
            links = []
            for each in os.listdir("/proc/self/fd"):
                try:
                    links.append(os.readlink(f"/proc/self/fd/{each}"))
                except OSError:
                    pass
            return sorted(each for each in links if each.startswith(str(file)))

        store = convostore.open(file)

        async def begin():
            await store.create_conversation("x", "s", id="c")
            await append(store, 0, 2)
            await store.load_messages("c")

        asyncio.run(begin())
        opened = handles()

        def child(writer):
            def job(tell):
                tell(handles())
                asyncio.run(append(store, writer, 5))
                asyncio.run(store.aclose())
            return job

        # The parent appends meanwhile, from a thread that the forks find in the middle of it.
        stop = threading.Event()
        count = 0
        def go_on():
            global count
            while not stop.is_set():
                asyncio.run(append(store, 100, 1, first=count))
                count += 1
        thread = threading.Thread(target=go_on)
        thread.start()
        ended = [in_fork(child(writer)) for writer in range(1, 4)] + in_forks([child(writer) for writer in range(4, 7)])
        stop.set()
        thread.join()
        asyncio.run(append(store, 0, 2, first=2))
        asyncio.run(store.aclose())
        names = [(0, n) for n in range(4)] + [(100, n) for n in range(count)] + [(w, n) for w in range(1, 7) for n in range(5)]
        tell(
            opened=len(opened), codes=[each.code for each in ended], inherited=[each.told[0] for each in ended],
            count=count, wrong=asyncio.run(judge(names)),
        )
        """,
    )
    assert answer["opened"] >= 2, "nothing was open when the process forked"
    assert [0] * 6 == answer["codes"]
    assert [[]] * 6 == answer["inherited"]
    assert answer["count"] >= 1
    assert [] == answer["wrong"]


def test_a_hundred_event_loops_leave_descriptors_and_threads_as_they_were(tmp_path: Path) -> None:
    """One store in a hundred asyncio.run calls, one after the other, opens and starts no more than in the first five."""
    answer = _told(
        tmp_path,
        """
        store = convostore.open(file)

        async def use(number):
            if not number:
                await store.create_conversation("x", "s", id="c")
                await store.sessions.save_messages("large", [{"role": "user", "content": "a"}] * 500)
                await asyncio.gather(*(store.sessions.load_messages("large") for _ in range(20)))  # every reader at work
            await asyncio.gather(append(store, number, 1), store.load_messages("c"), store.list_conversations())
            await store.sessions.load_messages("c", limit=3)

        counts = []
        for number in range(100):
            asyncio.run(use(number))
            counts.append((len(os.listdir("/proc/self/fd")), threading.active_count()))
        asyncio.run(store.aclose())
        tell(counts=counts, wrong=asyncio.run(judge([(number, 0) for number in range(100)])))
        """,
    )
    assert [] == answer["wrong"]
    descriptors, threads = zip(*answer["counts"], strict=True)
    assert max(descriptors[5:]) <= max(descriptors[:5])
    assert max(threads[5:]) <= max(threads[:5])


async def test_the_blocking_and_the_asynchronous_store_share_one_backend_at_once(tmp_path: Path) -> None:
    """Four threads that block and four tasks that await append through one backend; all is there, in both views."""
    file = tmp_path / "s.db"
    with blocking.open(file) as blocked:
        store = convostore.Store(blocked.backend)
        blocked.create_conversation("x", "s", id="c")

        def work(writer: int) -> None:
            for number in range(6):
                blocked.append_messages("c", batch((writer, number)))

        await asyncio.gather(
            *(asyncio.to_thread(work, writer) for writer in range(4)),
            *(_append(store, writer, 6) for writer in range(4, 8)),
        )
        names = {(writer, number) for writer in range(8) for number in range(6)}
        messages = await store.load_messages("c")
        assert [] == judge_messages(messages, names)
        assert 3 * len(names) == len(messages)
        assert messages == blocked.load_messages("c")
        assert [] == await judge_file(store, file)
