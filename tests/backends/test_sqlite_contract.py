"""The published suite of the backend contract, on SQLite in a file and in memory."""

import functools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from convostore.backends.sqlite import SqliteBackend
from convostore.testing.backend_suite import BackendSuite, Damager


def _execute(path: Path, statement: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


class TestSqliteInAFile(BackendSuite):
    """A file, many processes."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "chats.db"

    @pytest.fixture
    def factory(self, path: Path, request: pytest.FixtureRequest) -> Callable[[], SqliteBackend]:
        busy_timeout_s = 0.2 if "outage" in request.fixturenames else 30.0
        return lambda: SqliteBackend(path, busy_timeout_s=busy_timeout_s)

    @pytest.fixture
    def process_factory(self, path: Path) -> Callable[[], SqliteBackend]:
        return functools.partial(SqliteBackend, str(path))

    @pytest.fixture
    def damage(self, path: Path) -> Damager:
        def damager(conversation_id: str, what: str, name: str = "", /) -> None:
            ((number,),) = _execute(path, "SELECT number FROM conversations WHERE conversation_id = ?", conversation_id)
            if what == "entry":
                statement = "UPDATE entries SET body = CAST(body || x'00' AS BLOB) WHERE entry_id = ? AND key >> 32 = ?"
                _execute(path, statement, name, number)
            elif what == "document":
                statement = "UPDATE documents SET value = CAST(value || x'00' AS BLOB) WHERE name = ? AND number = ?"
                _execute(path, statement, name, number)
            else:
                _execute(path, "UPDATE conversations SET fields = x'80' WHERE number = ?", number)

        return damager

    @pytest.fixture
    def newer(self, path: Path) -> Callable[[], Callable[[], object]]:
        def mark() -> Callable[[], object]:
            ((version,),) = _execute(path, "PRAGMA user_version")
            _execute(path, f"PRAGMA user_version = {version + 1}")
            return lambda: _execute(path, f"PRAGMA user_version = {version}")

        return mark

    @pytest.fixture
    def outage(self, path: Path) -> Callable[[], AbstractContextManager[object]]:
        @contextmanager
        def locked() -> Iterator[None]:
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                yield
                other.execute("ROLLBACK")

        return locked


class TestSqliteInMemory(BackendSuite):
    """One object, one process."""

    @pytest.fixture
    def factory(self) -> Callable[[], SqliteBackend]:
        return lambda: SqliteBackend(None)
