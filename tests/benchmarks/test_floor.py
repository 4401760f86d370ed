"""The floor does by hand what the library does, so that a ratio to it compares like with like."""

from pathlib import Path

import convostore
from benchmarks.filling import append_many, insert_heads
from benchmarks.floor import Floor
from benchmarks.workload import BODY_BYTES, turns
from convostore.dialects import hub


async def test_both_load_the_same_messages_from_a_store_that_the_library_wrote(tmp_path: Path) -> None:
    """What the floor loads is equal to what the library loads, of both variants and of a window."""
    path = tmp_path / "store.db"
    async with convostore.open(path) as store:
        conversation = await store.create_conversation("bench", "subject")
        for result in ("structured", "text"):
            await append_many(store, conversation.id, turns(3, result), 12)
        floor = Floor(path)
        assert await store.load_messages(conversation.id) == floor.load(conversation.id)
        assert await store.load_messages(conversation.id, limit=5) == floor.load(conversation.id, 5)
        floor.close()


async def test_the_floor_stores_what_the_library_stores(tmp_path: Path) -> None:
    """But for ids, times and checksums, appending by hand and by the library leaves the same rows."""
    material = turns(3)
    floor = Floor(tmp_path / "floor.db")
    by_hand = floor.create("bench", "subject")
    async with convostore.open(tmp_path / "store.db") as store:
        conversation = await store.create_conversation("bench", "subject")
        for turn in material:
            await store.append_messages(conversation.id, turn)
            floor.append(by_hand, turn)
        other = Floor(tmp_path / "store.db")
        for statement in (
            "SELECT key, stamp, words, body FROM entries ORDER BY key",
            "SELECT number, context, subject_id, entry_count, last_stamp, last_rewrite, fields FROM conversations",
        ):
            expected = other._connection.execute(statement).fetchall()
            assert expected == floor._connection.execute(statement).fetchall()
            assert expected
        other.close()
    floor.close()


async def test_both_find_the_same_conversations(tmp_path: Path) -> None:
    """The latest conversation of a subject and the first page are equal on both sides."""
    path = tmp_path / "store.db"
    insert_heads(path, contexts=2, subjects=3, each=20)
    async with convostore.open(path) as store:
        floor = Floor(path)
        latest = await store.find_latest("context-1", "subject-00002")
        assert latest is not None
        assert latest == floor.find_latest("context-1", "subject-00002")
        assert list((await store.list_conversations(limit=50)).items) == floor.first_page(50)
        floor.close()


def test_the_floor_syncs_like_the_library(tmp_path: Path) -> None:
    """The floor keeps a write-ahead log and syncs it at every commit."""
    floor = Floor(tmp_path / "floor.db")
    pragma = floor._connection.execute
    assert [("wal",), (2,)] == [pragma("PRAGMA journal_mode").fetchone(), pragma("PRAGMA synchronous").fetchone()]
    floor.close()


def test_turns_have_the_sizes_they_claim() -> None:
    """Every body of every turn has exactly the size of the workload, and no two turns are equal."""
    for result in ("structured", "text"):
        made = turns(20, result)
        for turn in made:
            bodies = [hub.write(message, entry_id="x", created_at_ms=0).body for message in turn]
            assert BODY_BYTES == tuple(map(len, bodies))
        assert len(made) == len({turn[0].content for turn in made})
        assert made == turns(20, result)
