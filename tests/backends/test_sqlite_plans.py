"""Hot statements go along an index, and need no sorting."""

import itertools
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest
from msgspec import UNSET, UnsetType, structs

from convostore.backends.sqlite import committing, listing, reading, schema
from convostore.contracts import cursor
from convostore.contracts.backend import HeadQuery


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        schema.prepare(made)
        yield made


def plan(connection: sqlite3.Connection, statement: str, values: Sequence[object] = ()) -> list[str]:
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]


def heads(connection: sqlite3.Connection, query: HeadQuery) -> list[list[str]]:
    return [plan(connection, *each) for each in listing.statements_for(query)]


def test_the_latest_of_a_subject_is_one_step(connection: sqlite3.Connection) -> None:
    """find_latest begins at the end of an index of context and subject."""
    query = HeadQuery(context="k", subject_id="s", order="created", newest_first=True, limit=1)
    assert [["SEARCH conversations USING INDEX heads_created_both (context=? AND subject_id=?)"]] == heads(
        connection, query
    )


@pytest.mark.parametrize("order", ["id", "created", "updated"])
@pytest.mark.parametrize(
    ("context", "subject_id", "index", "terms"),
    [
        (UNSET, UNSET, "", ""),
        ("k", UNSET, "_context", "context=?"),
        (None, UNSET, "_context", "context=?"),
        (UNSET, "s", "_subject", "subject_id=?"),
        (UNSET, None, "_subject", "subject_id=?"),
        ("k", "s", "_both", "context=? AND subject_id=?"),
        (None, None, "_both", "context=? AND subject_id=?"),
    ],
)
def test_every_order_and_filter_has_its_index(
    connection: sqlite3.Connection,
    order: str,
    context: str | UnsetType | None,
    subject_id: str | UnsetType | None,
    index: str,
    terms: str,
) -> None:
    """A first page steps along the index of its order and filter, and only the rows it returns."""
    query = HeadQuery(order=order, context=context, subject_id=subject_id)  # type: ignore[arg-type]
    if terms:
        expected = f"SEARCH conversations USING INDEX heads_{order}{index} ({terms})"
    elif order == "created":
        expected = "SCAN conversations"  # the table, in its own order, until the page is full
    else:
        expected = f"SCAN conversations USING INDEX heads_{order}"
    assert [[expected]] == heads(connection, query)
    newest = structs.replace(query, newest_first=order == "created")
    assert [[expected]] == heads(connection, newest)


@pytest.mark.parametrize("context", [UNSET, "k"])
@pytest.mark.parametrize("subject_id", [UNSET, "s"])
def test_later_pages_begin_where_the_last_one_ended(
    connection: sqlite3.Connection, context: str | UnsetType, subject_id: str | UnsetType
) -> None:
    """Whatever the filter, a cursor is a bound in the index; conversations of the same time are not stepped through."""

    def page(key: list[int | str], **query: object) -> str:
        asked = HeadQuery(context=context, subject_id=subject_id, **query)  # type: ignore[arg-type]
        later = structs.replace(asked, cursor=cursor.encode(asked, key))
        return "; ".join(itertools.chain.from_iterable(heads(connection, later)))

    assert "conversation_id>?" in page(["c"], order="id")
    assert "conversation_id>? AND conversation_id<?" in page(["pc"], order="id", prefix="p")
    assert "rowid>?" in page([7], order="created")
    assert "rowid<?" in page([7], order="created", newest_first=True)
    same_time, earlier = page([7, 7], order="updated").split("; ")
    assert "updated_at_ms=? AND rowid<?" in same_time
    assert "updated_at_ms<?" in earlier


def test_a_prefix_is_a_range_of_the_index(connection: sqlite3.Connection) -> None:
    """Listing by prefix reads no id without it."""
    expected = "SEARCH conversations USING INDEX heads_id (conversation_id>? AND conversation_id<?)"
    assert [[expected]] == heads(connection, HeadQuery(prefix="p"))
    expected = (
        "SEARCH conversations USING INDEX heads_id_subject (subject_id=? AND conversation_id>? AND conversation_id<?)"
    )
    assert [[expected]] == heads(connection, HeadQuery(prefix="p", subject_id="s"))


@pytest.mark.parametrize("statements", [reading._WHOLE, reading._SMALL])
def test_windows_are_ranges_of_the_table(connection: sqlite3.Connection, statements: reading._Statements) -> None:
    """The first and the last entries are found by their keys, named ones by the index of ids; nothing is sorted."""
    by_key = ["SEARCH entries USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]
    assert by_key == plan(connection, statements.first, (1, 2, 3))
    assert by_key == plan(connection, statements.last, (1, 2, 3))
    for count, statement in statements.named.items():
        expected = ["SEARCH entries USING INDEX entries_id (entry_id=? AND <expr>=?)"]
        assert expected == plan(connection, statement, ("e",) * count + (1,))


def test_replaced_entries_have_an_index_of_their_own(connection: sqlite3.Connection) -> None:
    """What was replaced after a stamp is found without reading the entries that never were."""
    expected = ["SEARCH entries USING COVERING INDEX entries_changed (<expr>=? AND stamp>?)"]
    assert expected == plan(connection, reading._SELECT_CHANGED, (1, 1, -1))


def test_heads_and_documents_are_searched(connection: sqlite3.Connection) -> None:
    """No commit and no read scans a table that grows."""
    expected = ["SEARCH conversations USING INDEX heads_id (conversation_id=?)"]
    assert expected == plan(connection, reading.SELECT_HEAD, ("c",))
    expected = ["SEARCH documents USING INDEX documents_name (number=? AND name=?)"]
    assert expected == plan(connection, reading._SELECT_DOCUMENT, (1, "d"))
    holders = plan(connection, listing._SELECT_HOLDERS, ("e",))
    assert "SEARCH entries USING COVERING INDEX entries_id (entry_id=?)" == holders[0]
    assert "SEARCH conversations USING INTEGER PRIMARY KEY (rowid=?)" == holders[1]
    next_number = plan(connection, committing._NEXT_NUMBER)
    assert [] == [each for each in next_number if each.startswith("SCAN") and "CONST" not in each]
