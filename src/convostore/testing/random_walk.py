"""A random walk through a backend beside an oracle made of plain dictionaries (hypothesis, stateful)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar, cast

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from msgspec import UNSET

from convostore.contracts.backend import (
    Backend,
    Change,
    FindingEntries,
    NewEntry,
    Receipt,
    Window,
)
from convostore.errors import StoreError
from convostore.ids import new_id
from convostore.testing.drafts import AT, change, entry, sweep, walk
from convostore.testing.oracle import Oracle

__all__ = ["random_walk", "short_walk"]

T = TypeVar("T")

short_walk = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
    verbosity=Verbosity.normal,
)
"""About five hundred steps: a second on a fast backend. A nightly run may walk further."""


def random_walk(backend: Backend, prefix: str, how: settings = short_walk) -> None:
    """Walk at random below `prefix` and raise AssertionError, after shrinking, where backend and oracle differ.

    Call it in a thread: it runs an event loop of its own.
    """
    machine: Any = partial(_Walk, backend, prefix)  # hypothesis calls it for each example
    run_state_machine_as_test(machine, settings=how)


_which = st.integers(0, 5)
_maybe = st.sampled_from((None, None, None, "now", "old"))
_values = st.dictionaries(st.sampled_from(("f", "g")), st.sampled_from((None, b"", b"1", b"2")), max_size=2)
_entries = st.lists(
    st.tuples(_which, st.sampled_from((b"1", b"2")), _maybe), max_size=3, unique_by=lambda each: each[0]
)
_owners = st.sampled_from((None, None, "ann", "bob"))


class _Walk(RuleBasedStateMachine):
    """Two conversations, six entry ids, two owners: small enough for everything to collide with everything."""

    walks = itertools.count()

    def __init__(self, backend: Backend, prefix: str) -> None:
        super().__init__()
        self.backend = backend
        self.prefix = f"{prefix}walk{next(self.walks)}-"
        self.runner = asyncio.Runner()
        self.oracle = Oracle()
        self.past: list[Change] = []

    @rule(
        existence=st.sampled_from(("may_create", "may_create", "must_create", "must_exist")),
        which=st.integers(0, 1),
        entries=_entries,
        owner=_owners,
        values=_values,
        guard=_maybe,
        at_ms=st.integers(AT - 2, AT + 2),
    )
    def append(
        self,
        which: int,
        existence: str,
        entries: list[Any],
        owner: str | None,
        values: Any,
        guard: str | None,
        at_ms: int,
    ) -> None:
        """Create or append."""
        self._commit(
            change(
                self._name(which),
                *self._drafted(which, entries, stamped=False),
                existence=existence,
                subject_id=self._owner(owner),
                context=self._owner(owner),
                fields=values,
                documents=values,
                expected_revision=self._revision(which, guard),
                at_ms=at_ms,
            )
        )

    @rule(
        which=st.integers(0, 1),
        cut=st.sampled_from((None, None, 0, 1, 2, 3, 5, 8)),
        remove=st.lists(_which, max_size=2),
        replace=_entries,
        append=_entries,
        owner=_owners,
        only=_owners,
        guard=_maybe,
    )
    def rewrite(
        self,
        which: int,
        cut: int | None,
        remove: list[int],
        replace: list[Any],
        append: list[Any],
        owner: str | None,
        only: str | None,
        guard: str | None,
    ) -> None:
        """Do all that one change can do."""
        replaced = {each[0] for each in replace}
        self._commit(
            change(
                self._name(which),
                *self._drafted(which, [each for each in append if each[0] not in replaced], stamped=False),
                cut_after=cut,
                remove=tuple(f"{self.prefix}e{number}" for number in remove),
                replace=tuple(self._drafted(which, replace, stamped=True)),
                set_subject=self._owner(owner),
                only_subject=self._owner(only),
                expected_revision=self._revision(which, guard),
            )
        )

    @rule(which=st.integers(0, 1), only=_owners, guard=_maybe)
    def delete(self, which: int, only: str | None, guard: str | None) -> None:
        """Delete."""
        self._commit(
            change(
                self._name(which),
                delete=True,
                only_subject=self._owner(only),
                expected_revision=self._revision(which, guard),
            )
        )

    @rule(back=st.integers(1, 4))
    def repeat(self, back: int) -> None:
        """Repeat one of the last changes, whatever became of it; a delete that succeeded cannot be told from a new one."""
        if len(self.past) >= back and not self.past[-back].delete:
            self._commit(self.past[-back])

    @rule(
        which=st.integers(0, 1),
        after=st.integers(0, 6),
        before=st.none() | st.integers(0, 9),
        changed_after=st.none() | st.integers(0, 9),
        limit=st.none() | st.integers(0, 4),
        newest=st.booleans(),
    )
    def read(
        self, which: int, after: int, before: int | None, changed_after: int | None, limit: int | None, newest: bool
    ) -> None:
        """Read a window."""
        there = self.oracle.kept.get(self._name(which))
        window = Window(after=after, before=before, changed_after=changed_after, limit=limit, newest=newest)
        snapshot = self._run(self.backend.read(self._name(which), window, ("f",)))
        assert (there is None) == (snapshot is None)
        if there is None or snapshot is None:
            return
        shown = [
            each["id"]
            for each in there["log"]
            if after < each["position"]
            and (before is None or each["position"] < before)
            and (changed_after is None or each["stamp"] > changed_after)
        ]
        if limit is not None:
            shown = shown[len(shown) - min(limit, len(shown)) :] if newest else shown[:limit]
        assert shown == [each.entry_id for each in snapshot.entries]
        assert {name: each for name, each in there["documents"].items() if name == "f"} == snapshot.documents

    @rule(
        order=st.sampled_from(("id", "created")), owner=st.sampled_from(("ann", "bob", UNSET)), limit=st.integers(1, 2)
    )
    def scan(self, order: str, owner: Any, limit: int) -> None:
        """List."""
        wanted = owner if owner is UNSET else self._owner(owner)
        if wanted is UNSET and order != "id":
            return  # on a live store that is everybody's
        query = {"order": order, "subject_id": wanted, "limit": limit, "prefix": self.prefix if order == "id" else ""}
        expected = [name for name, each in self.oracle.kept.items() if wanted is UNSET or each["subject"] == wanted]
        assert (sorted(expected) if order == "id" else expected) == self._run(self._listed(query))

    def teardown(self) -> None:
        """Leave nothing behind."""
        try:
            self._run(sweep(self.backend, self.prefix))
        finally:
            self.runner.close()

    async def _listed(self, query: dict[str, Any]) -> list[str]:
        return [head.conversation_id async for page in walk(self.backend, **query) for head in page]

    def _commit(self, wanted: Change) -> None:
        name = wanted.conversation_id
        expected = self.oracle.commit(wanted)
        receipt, outcome = self._outcome(wanted)
        assert expected == outcome, wanted
        if receipt:
            snapshot = self._run(self.backend.read(name, Window(), None))
            assert receipt.head == (snapshot.head if snapshot else None)
            if snapshot and not wanted.delete:
                there = {each.entry_id: each for each in snapshot.entries}
                # A rewriting change that was overtaken can be at the head's revision with entries gone again.
                assert tuple(there[e.entry_id] for e in wanted.append if e.entry_id in there) == receipt.appended
        self.past.append(wanted)
        for each in {name, self._name(0), self._name(1)}:
            self.oracle.compare(each, self._run(self.backend.read(each, Window(), None)))
        if isinstance(self.backend, FindingEntries) and "find_entry" in self.backend.capabilities:
            searched = f"{self.prefix}e0"
            holders = [name for name, each in self.oracle.kept.items() if any(e["id"] == searched for e in each["log"])]
            assert tuple(sorted(holders)) == self._run(self.backend.find_entry(searched))

    def _outcome(self, wanted: Change) -> tuple[Receipt | None, str]:
        try:
            receipt = self._run(self.backend.commit(wanted))
        except StoreError as error:
            return None, error.code
        return receipt, "applied" if receipt.applied else "repeated"

    def _name(self, which: int) -> str:
        return f"{self.prefix}c{which}"

    def _owner(self, owner: str | None) -> str | None:
        return owner and f"{self.prefix}{owner}"

    def _drafted(self, which: int, entries: list[Any], *, stamped: bool) -> list[NewEntry]:
        there = self.oracle.kept.get(self._name(which), {"log": []})["log"]
        stamps = {each["id"]: each["stamp"] for each in there}
        drafted = []
        for number, body, guard in entries:
            name = f"{self.prefix}e{number}"
            stamp = {"now": stamps.get(name), "old": 999}.get(guard) if stamped else None
            drafted.append(entry(name, body, expected_stamp=stamp))
        return drafted

    def _revision(self, which: int, guard: str | None) -> str | None:
        if guard is None:
            return None
        there = self.oracle.kept.get(self._name(which))
        return cast(str, there["revision"]) if there and guard == "now" else new_id()

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)
