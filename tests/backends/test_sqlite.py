"""The SQLite backend keeps every clause of the backend contract, in a file and in memory."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from convostore.backends.sqlite import SqliteBackend
from convostore.backends.sqlite.schema import MIGRATIONS
from convostore.contracts.backend import Backend
from convostore.testing.backend_suite import BackendSuite, Damager
from tests.backends.sqlite_files import lose_keys

DAMAGE = {
    "entry": "UPDATE entries SET body = body || x'00' WHERE entry_id = :name AND key >> 32 = "
    "(SELECT number FROM conversations WHERE conversation_id = :id)",
    "document": "UPDATE documents SET value = value || x'00' WHERE name = :name AND number = "
    "(SELECT number FROM conversations WHERE conversation_id = :id)",
    "head": "UPDATE conversations SET fields = fields || x'00' WHERE conversation_id = :id",
}


class TestSqliteFile(BackendSuite):
    """A file of its own for every test, and a second process where a clause asks for one."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "chats.db"

    @pytest.fixture
    def factory(self, path: Path, request: pytest.FixtureRequest) -> Callable[[], SqliteBackend]:
        # Who is to meet a lock that stays does not wait half a minute for it to go.
        patience_s = 0.1 if "outage" in request.fixturenames else 30.0
        return partial(SqliteBackend, path, busy_timeout_s=patience_s)

    @pytest.fixture
    def process_factory(self, factory: Callable[[], SqliteBackend]) -> Callable[[], SqliteBackend]:
        return factory

    @pytest.fixture
    def damage(self, path: Path) -> Damager:
        def damage(conversation_id: str, what: Literal["entry", "document", "head"], name: str = "", /) -> None:
            with closing(sqlite3.connect(path)) as raw, raw:
                changed = raw.execute(DAMAGE[what], {"id": conversation_id, "name": name}).rowcount
            assert 1 == changed

        return damage

    @pytest.fixture
    def structural_damage(self, path: Path) -> Callable[[Backend], None]:
        def structural_damage(backend: Backend) -> None:
            with closing(sqlite3.connect(path, isolation_level=None)) as raw:
                lose_keys(raw, "heads_created_context")

        return structural_damage

    @pytest.fixture
    def outage(self, path: Path) -> Callable[[], AbstractContextManager[object]]:
        @contextmanager
        def outage() -> Iterator[None]:
            """Hold the write lock, as another program might."""
            with closing(sqlite3.connect(path, isolation_level=None)) as raw:
                raw.execute("BEGIN IMMEDIATE")
                yield
                raw.execute("ROLLBACK")

        return outage

    @pytest.fixture
    def next_version(self, path: Path) -> Callable[[], SqliteBackend]:
        return partial(SqliteBackend, path, migrations=(*MIGRATIONS, ("CREATE TABLE of_the_next_version (name TEXT)",)))

    @pytest.fixture
    def newer(self, path: Path) -> Callable[[], Callable[[], None]]:
        def newer() -> Callable[[], None]:
            with closing(sqlite3.connect(path)) as raw:
                (version,) = raw.execute("PRAGMA user_version").fetchone()
            set_version(version + 1)
            return partial(set_version, version)

        def set_version(version: int) -> None:
            with closing(sqlite3.connect(path)) as raw, raw:
                raw.execute(f"PRAGMA user_version = {version}")

        return newer


class TestSqliteInMemory(BackendSuite):
    """One database for every task and thread of one object; another process has another."""

    @pytest.fixture
    def factory(self) -> Callable[[], SqliteBackend]:
        return partial(SqliteBackend, None)

    @pytest.fixture
    def structural_damage(self) -> Callable[[Backend], None]:
        def structural_damage(backend: Backend) -> None:
            assert isinstance(backend, SqliteBackend)
            with backend._engine._inline as connection:
                lose_keys(connection, "heads_created_context")

        return structural_damage

    @pytest.fixture
    def process_factory(self) -> Callable[[], SqliteBackend]:
        return partial(SqliteBackend, None)
