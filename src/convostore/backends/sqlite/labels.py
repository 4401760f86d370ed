"""Labels: a small number for each combination of kind, role and dialect, which an entry carries in their place.

There are a handful, so a process remembers them. It remembers only what it has seen committed: a number given in a
transaction that is rolled back may go to another combination later.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

from convostore.backends.sqlite.rows import Label

__all__ = ["Labels"]

_remembered_max: Final = 10_000
_SELECT: Final = "SELECT label FROM labels WHERE kind = ? AND role IS ? AND dialect = ?"
_INSERT: Final = "INSERT INTO labels (kind, role, dialect) VALUES (?, ?, ?)"


class Labels:
    """The labels of one store that this process has seen, shared by its threads."""

    def __init__(self) -> None:
        self._by_number: dict[int, Label] = {}
        self._by_words: dict[Label, int] = {}
        self._pending: dict[Label, int] = {}  # given in the write transaction that is open; the writer's alone

    @property
    def by_number(self) -> Mapping[int, Label]:
        """What is remembered; it may lack one that is stored."""
        return self._by_number

    def reload(self, connection: sqlite3.Connection) -> Mapping[int, Label]:
        """Return every label that a read sees, and remember them."""
        found = self.stored(connection)
        self._remember(found)
        return found

    @staticmethod
    def stored(connection: sqlite3.Connection) -> Mapping[int, Label]:
        """Return every label that the connection sees; in a write they may be rolled back, so nothing is remembered."""
        found: dict[int, Label] = {}
        for label, kind, role, dialect in connection.execute("SELECT label, kind, role, dialect FROM labels"):
            if type(kind) is str and (role is None or type(role) is str) and type(dialect) is str:
                found[label] = (kind, role, dialect)
        return found

    def give(self, connection: sqlite3.Connection, words: Label) -> int:
        """Return the number of `words` inside a write, adding it if there is none yet."""
        label = self._by_words.get(words) or self._pending.get(words)
        if label is None:
            row = connection.execute(_SELECT, words).fetchone()
            label = connection.execute(_INSERT, words).lastrowid if row is None else row[0]
            assert isinstance(label, int)
            self._pending[words] = label
        return label

    def committed(self) -> None:
        """Remember what the write gave."""
        if self._pending:
            self._remember({label: words for words, label in self._pending.items()})
            self._pending = {}

    def rolled_back(self) -> None:
        """Forget what the write gave."""
        self._pending = {}

    def _remember(self, found: Mapping[int, Label]) -> None:
        if len(self._by_number) + len(found) > _remembered_max:
            self._by_number, self._by_words = {}, {}
        self._by_number.update(found)
        self._by_words.update({words: label for label, words in found.items()})
