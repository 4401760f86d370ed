"""Damage below the SQLite backend is named, hides nothing else, and is never taken for absence."""

import pickle
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from convostore.backends.sqlite import SqliteBackend
from convostore.contracts.backend import HeadQuery, Snapshot, Window
from convostore.errors import ConversationNotFoundError, CorruptDataError, StoreError
from convostore.testing.drafts import change, creation, entry, entry_ids, refused, walk
from tests.backends.sqlite_files import lose_keys, raw

ODD = ["NULL", "x'ff00'", "'\u05d0'", "CAST(x'ff' AS TEXT)", "1.5", "-1", "9223372036854775807", "''", "x''", "0"]
REPORT = Window(damaged="report")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


async def _fill(path: Path) -> None:
    backend = SqliteBackend(path)
    for name in ("b", "c", "d"):
        await backend.commit(
            creation(
                name,
                *(entry(f"e{number}", f"{name}{number}".encode()) for number in range(5)),
                context="k",
                subject_id="s",
                fields={"title": name.encode()},
                documents={"todos": b"t", "info": b"i"},
            )
        )
        await backend.commit(change(name, replace=(entry("e1", b"new"),)))
    await backend.aclose()


async def _report(backend: SqliteBackend) -> Snapshot:
    snapshot = await backend.read("c", REPORT, None)
    assert snapshot is not None, "damage was taken for absence"
    return snapshot


@pytest.mark.parametrize("column", ["stamp", "entry_id", "words", "created_at_ms", "checksum", "body"])
@pytest.mark.parametrize("odd", ODD)
async def test_an_odd_column_of_an_entry_damages_that_entry_only(path: Path, column: str, odd: str) -> None:
    """Whatever is in one column of one entry, that entry is named and the four others read."""
    await _fill(path)
    raw(path, f"UPDATE entries SET {column} = {odd} WHERE key = (2 << 32) + 3")
    backend = SqliteBackend(path)
    if (column, odd) == ("stamp", "NULL"):
        assert 5 == len((await _report(backend)).entries)  # what it was
    else:
        snapshot = await _report(backend)
        assert ["e0", "e1", "e3", "e4"] == [each.entry_id for each in snapshot.entries]
        assert [3] == [each.position for each in snapshot.damage]
        assert {"todos": b"t", "info": b"i"} == snapshot.documents
        with pytest.raises(CorruptDataError):
            await backend.read("c", Window())
    assert ["e0", "e1", "e2", "e3", "e4"] == await entry_ids(backend, "b")
    assert 3 == len((await backend.scan_heads(HeadQuery())).items)
    await backend.commit(change("c", entry("e9")))
    assert ["e9"] == await entry_ids(backend, "c", Window(limit=1, newest=True))
    await backend.aclose()


@pytest.mark.parametrize(
    "column",
    [
        "conversation_id",
        "born",
        "revision",
        "created_at_ms",
        "updated_at_ms",
        "context",
        "subject_id",
        "entry_count",
        "last_stamp",
        "last_rewrite",
        "fields",
        "documents",
        "checksum",
    ],
)
@pytest.mark.parametrize("odd", ODD)
async def test_an_odd_column_of_a_head_damages_that_head_only(path: Path, column: str, odd: str) -> None:
    """Whatever is in one column of one head, listings name it and go on, and a read reports it with all entries."""
    await _fill(path)
    raw(path, f"UPDATE conversations SET {column} = {odd} WHERE number = 2")
    backend = SqliteBackend(path)
    for order in ("id", "created", "updated"):
        page = await backend.scan_heads(HeadQuery(order=order))
        assert {"b", "d"} == {each.conversation_id for each in page.items}
        assert 1 == len(page.damage)
        walked = [head.conversation_id async for heads in walk(backend, order=order, limit=1) for head in heads]
        assert ["b", "d"] == sorted(walked)
    if column != "conversation_id":
        snapshot = await _report(backend)
        assert ["e0", "e1", "e2", "e3", "e4"] == [each.entry_id for each in snapshot.entries]
        if column != "documents":
            assert {"todos": b"t", "info": b"i"} == snapshot.documents
        assert ["its head is not what was written"] == [each.what for each in snapshot.damage]
        for there in (change("c", entry("x")), creation("c"), change("c", delete=True, only_subject="s")):
            await refused(CorruptDataError, backend.commit(there))
        await backend.commit(change("c", delete=True))
        assert await backend.read("c") is None
    await backend.aclose()


@pytest.mark.parametrize("odd", ODD)
async def test_an_odd_document_is_named(path: Path, odd: str) -> None:
    """Whatever is in the place of one document, it is named, and the other one and the entries read."""
    await _fill(path)
    raw(path, f"UPDATE documents SET value = {odd} WHERE number = 2 AND name = 'todos'")
    backend = SqliteBackend(path)
    snapshot = await _report(backend)
    assert (5, {"info": b"i"}) == (len(snapshot.entries), snapshot.documents)
    assert ["its document 'todos' is not what was written"] == [each.what for each in snapshot.damage]
    await backend.aclose()


@pytest.mark.parametrize("column", ["number", "name"])
async def test_a_document_that_lost_its_name_is_missing_and_not_absent(path: Path, column: str) -> None:
    """The head knows which documents there are, so one that cannot be found is damage."""
    await _fill(path)
    raw(path, f"UPDATE documents SET {column} = NULL WHERE number = 2 AND name = 'todos'")
    backend = SqliteBackend(path)
    await refused(CorruptDataError, backend.read("c", None, ["todos"]))
    assert ["its document 'todos' is missing"] == [each.what for each in (await _report(backend)).damage]
    await backend.aclose()


@pytest.mark.parametrize(
    "words",
    [
        "message\nuser",
        "message\nuser\nsample/1\n",
        "message\nuser\nsample/2",
        "message\n\nsample/1",
        "\n\n",
        "note\nuser\n",
    ],
)
async def test_damaged_words_damage_the_entry_that_has_them(path: Path, words: str) -> None:
    """Too few words, too many or others: the entry is named, and those with the same words read, in every conversation."""
    await _fill(path)
    raw(path, "UPDATE entries SET words = ? WHERE key = (2 << 32) + 3", words)
    backend = SqliteBackend(path)
    snapshot = await _report(backend)
    assert ["e0", "e1", "e3", "e4"] == [each.entry_id for each in snapshot.entries]
    assert ["e2"] == [each.entry_id for each in snapshot.damage]
    for name in ("b", "d"):
        assert 5 == len(await entry_ids(backend, name))
    await backend.aclose()


@pytest.mark.parametrize("number", [9223372036854775807, -9223372036854775808, -1, 0, (1 << 32) + 1, (1 << 31) - 1])
async def test_a_number_that_is_none_shows_and_deletes_nobody_elses_entries(path: Path, number: int) -> None:
    """A head with a number that none can have is damage without entries; it can be deleted, and others be created."""
    await _fill(path)
    raw(path, "UPDATE conversations SET number = ? WHERE number = 2", number)
    backend = SqliteBackend(path)
    for window in (Window(), Window(entry_ids=("e1",)), Window(changed_after=1), Window(limit=2, newest=True)):
        await refused(CorruptDataError, backend.read("c", window))
        snapshot = await backend.read("c", structs.replace(window, damaged="report"))
        assert snapshot is not None
        assert () == snapshot.entries
    assert ["b", "d"] == sorted(each.conversation_id for each in (await backend.scan_heads(HeadQuery())).items)
    await refused(CorruptDataError, backend.commit(change("c", entry("x"))))
    await backend.commit(creation("new", entry("a")))
    await backend.commit(change("c", delete=True))
    assert await backend.read("c") is None
    for name, ids in {"b": 5, "d": 5, "new": 1}.items():
        assert ids == len(await entry_ids(backend, name))
    assert [(4,)] == raw(path, "SELECT number FROM conversations WHERE conversation_id = 'new'")
    await backend.aclose()


async def test_entries_that_vanished_are_counted(path: Path) -> None:
    """A head knows how many entries it has: a read of all of them, or of the last ones, notices that some are gone."""
    await _fill(path)
    raw(path, "DELETE FROM entries WHERE key > (2 << 32) + 1 AND key < 3 << 32")
    backend = SqliteBackend(path)
    assert ["4 of its 5 entries are missing"] == [each.what for each in (await _report(backend)).damage]
    await refused(CorruptDataError, backend.read("c", Window(limit=3, newest=True)))
    assert ["e0"] == await entry_ids(backend, "c", Window(limit=1))
    await backend.aclose()


async def test_an_entry_in_another_place_is_damage(path: Path) -> None:
    """An entry whose key or stamp changed, even to another sound one, is named where it turns up."""
    await _fill(path)
    raw(path, "UPDATE entries SET key = (1 << 32) + 9, entry_id = 'e2x' WHERE key = (2 << 32) + 3")
    raw(path, "UPDATE entries SET key = (3 << 32) + 9 WHERE key = (3 << 32) + 3")
    backend = SqliteBackend(path)
    for name in ("b", "d"):
        snapshot = await backend.read(name, REPORT)
        assert snapshot is not None
        assert 9 in [each.position for each in snapshot.damage]
    await backend.aclose()


async def test_a_damaged_entry_can_be_replaced_or_removed_but_not_repeated(path: Path) -> None:
    """Repair by replacing or removing works; an append of its id cannot be compared, so it is refused."""
    await _fill(path)
    raw(path, "UPDATE entries SET body = x'00' WHERE key IN ((2 << 32) + 3, (2 << 32) + 4)")
    backend = SqliteBackend(path)
    await refused(CorruptDataError, backend.commit(change("c", entry("e2"))))
    await backend.commit(change("c", replace=(entry("e2", b"mended"),), remove=("e3",)))
    assert ["e0", "e1", "e2", "e4"] == await entry_ids(backend, "c")
    await backend.aclose()


async def test_a_damaged_page_hides_only_itself(path: Path) -> None:
    """With a page of the table overwritten, entries before and behind it are reported; other conversations read."""
    backend = SqliteBackend(path)
    await backend.commit(creation("b", entry("a")))
    await backend.commit(creation("c", *(entry(f"e{n:03}", bytes(500)) for n in range(300))))
    await backend.commit(creation("d", entry("a")))
    await backend.aclose()
    marker = b"e150"
    data = bytearray(path.read_bytes())
    pages = [at for at in range(0, len(data), 4096) if data[at] == 13 and marker in data[at : at + 4096]]
    assert pages, "the entry is on a leaf of the table"
    data[pages[0] : pages[0] + 4096] = random.Random(1).randbytes(4096)
    path.write_bytes(data)
    backend = SqliteBackend(path)
    for window in (Window(), Window(limit=300, newest=True), Window(limit=200)):
        await refused(CorruptDataError, backend.read("c", window))
    snapshot = await backend.read("c", REPORT)
    assert snapshot is not None
    found = [each.entry_id for each in snapshot.entries]
    assert ["e000", "e001"] == found[:2]
    assert ["e298", "e299"] == found[-2:]
    assert 280 < len(found) < 300
    assert "e150" not in found
    assert any("page" in each.what for each in snapshot.damage)
    assert ["e000"] == await entry_ids(backend, "c", Window(limit=1))
    for name in ("b", "d"):
        assert ["a"] == await entry_ids(backend, name)
    await backend.aclose()


async def test_flipped_bytes_anywhere_never_change_what_is_read(path: Path) -> None:
    """After any byte of the file is changed, every answer is what was written, or an error that says so."""
    await _fill(path)
    backend = SqliteBackend(path)
    before = {name: await backend.read(name, Window(), None) for name in "bcd"}
    await backend.aclose()
    data = path.read_bytes()
    chance = random.Random(2)
    used = [at for at in range(len(data)) if data[at]]
    told = 0
    for _ in range(150):
        at = chance.choice(used)
        changed = bytearray(data)
        changed[at] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        backend = SqliteBackend(path)
        for name in "bcd":
            try:
                found = await backend.read(name, Window(), None)
            except StoreError:
                told += 1
            else:
                assert before[name] == found or (found is None and _index_lost(path, name)), f"byte {at}"
        await backend.aclose()
    assert told > 20


def _index_lost(path: Path, name: str) -> bool:
    """Say whether the index of ids no longer leads to a conversation: a loss that only a scan of the table can see."""
    with closing(sqlite3.connect(path)) as made:
        try:
            statement = "SELECT count(*) FROM conversations INDEXED BY heads_id WHERE conversation_id = ?"
            return bool(made.execute(statement, (name,)).fetchone() == (0,))
        except sqlite3.Error:
            return False


def _patch(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert 1 == data.count(old), "the bytes to damage are there, once"
    path.write_bytes(data.replace(old, new))


async def test_an_index_that_leads_astray_shows_nobody_elses_conversation(path: Path) -> None:
    """When the index of ids gives c the number of d, c is damaged; d's entries are neither shown, changed nor deleted."""
    await _fill(path)
    _patch(path, b"\x03\x0f\x01c\x02", b"\x03\x0f\x01c\x03")
    backend = SqliteBackend(path)
    await refused(CorruptDataError, backend.read("c", Window()))
    snapshot = await _report(backend)
    assert ("c", (), {}) == (snapshot.head.conversation_id, snapshot.entries, snapshot.documents)
    await refused(CorruptDataError, backend.commit(change("c", entry("x"))))
    await refused(CorruptDataError, backend.commit(change("c", delete=True)))
    assert 5 == len(await entry_ids(backend, "d"))
    await backend.aclose()


async def test_an_index_that_leads_astray_lists_nobody_elses_conversation(path: Path) -> None:
    """When the index of subjects leads to another subject's head, that is damage on the way, and is not listed."""
    backend = SqliteBackend(path)
    await backend.commit(creation("b", subject_id="first"))
    await backend.commit(creation("c", subject_id="other"))
    await backend.commit(creation("d", subject_id="third"))
    await backend.aclose()
    _patch(path, b"\x03\x17\x01other\x02", b"\x03\x17\x01other\x03")
    backend = SqliteBackend(path)
    page = await backend.scan_heads(HeadQuery(subject_id="other", order="created"))
    assert ((), 1) == (page.items, len(page.damage))
    await backend.aclose()


async def test_an_index_that_leads_astray_names_no_other_entry(path: Path) -> None:
    """When the index of entry ids leads to another entry, the entry asked for is damaged; it is never the other one."""
    await _fill(path)
    key = (2 << 32) + 3
    _patch(path, b"e2\x02" + key.to_bytes(6, "big"), b"e2\x02" + (key + 1).to_bytes(6, "big"))
    backend = SqliteBackend(path)
    await refused(CorruptDataError, backend.read("c", Window(entry_ids=("e2",))))
    assert ["e3"] == await entry_ids(backend, "c", Window(entry_ids=("e3",)))
    await refused(CorruptDataError, backend.commit(change("c", entry("e2"))))
    assert ["e0", "e1", "e2", "e3", "e4"] == await entry_ids(backend, "c")
    await backend.aclose()


@pytest.mark.parametrize(
    "content", [b"no database at all, but long enough to be looked at" * 100, b"SQLite format 3\0" * 9]
)
async def test_a_file_that_is_no_database_is_damage_and_left_alone(path: Path, content: bytes) -> None:
    """Reading and writing raise CorruptDataError, and the file stays as it is."""
    path.write_bytes(content)
    backend = SqliteBackend(path)
    error = await refused(CorruptDataError, backend.read("c"))
    assert "is not a database" in str(error)
    await refused(CorruptDataError, backend.commit(creation("c")))
    await backend.aclose()
    assert content == path.read_bytes()


async def test_a_lost_table_is_damage(path: Path) -> None:
    """A store of ours without one of its tables is not an empty one."""
    await _fill(path)
    raw(path, "DROP TABLE entries")
    backend = SqliteBackend(path)
    await refused(CorruptDataError, backend.read("c", Window()))
    await refused(CorruptDataError, backend.commit(change("c", entry("x"))))
    await backend.aclose()


async def test_a_self_check_names_an_index_that_lost_its_keys(path: Path) -> None:
    """What every read takes for absence, or does not see at all, is found by SQLite's own check; a sound store is sound."""
    await _fill(path)
    backend = SqliteBackend(path)
    assert () == await backend.self_check()
    with closing(sqlite3.connect(path, isolation_level=None)) as made:
        lose_keys(made, "heads_id")
    found = await backend.self_check()
    assert "wrong # of entries in index heads_id" in found
    assert any("row 1 missing from index heads_id" in each for each in found)
    await backend.aclose()


async def test_a_self_check_names_an_index_that_is_gone(path: Path) -> None:
    """An index or a table of this schema that the store does not have is missing, whether or not SQLite misses it."""
    await _fill(path)
    raw(path, "DROP INDEX heads_updated_both")
    raw(path, "DROP TABLE documents")
    backend = SqliteBackend(path)
    expected = (
        "the index documents_name is missing",
        "the index heads_updated_both is missing",
        "the table documents is missing",
    )
    assert expected == await backend.self_check()
    await backend.aclose()


async def test_a_self_check_of_what_is_no_database_is_refused(path: Path) -> None:
    """A file that SQLite cannot look through is CorruptDataError, not a finding and not soundness."""
    path.write_bytes(b"no database" * 1000)
    backend = SqliteBackend(path)
    await refused(CorruptDataError, backend.self_check())
    await backend.aclose()


async def test_damage_survives_a_pickle(path: Path) -> None:
    """The error of a damaged file keeps its message and its cause."""
    path.write_bytes(b"no database" * 1000)
    backend = SqliteBackend(path)
    error = await refused(CorruptDataError, backend.read("c"))
    copied = pickle.loads(pickle.dumps(error))
    assert (str(error), repr(error.__cause__)) == (str(copied), repr(copied.__cause__))
    await backend.aclose()


async def test_absence_is_absence(path: Path) -> None:
    """What was never there is None, or not found."""
    backend = SqliteBackend(path)
    assert await backend.read("c", REPORT, None) is None
    await refused(ConversationNotFoundError, backend.commit(change("c")))
    await backend.aclose()
