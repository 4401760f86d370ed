"""B11, B16 and B17: bytes come back as they went in, what is returned is the caller's own, and limits hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from convostore import limits
from convostore.contracts.backend import Backend, Change, Head, HeadQuery, Receipt, Window
from convostore.errors import InvalidInput
from convostore.testing.drafts import AT, census, change, creation, entries_of, entry, refused
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["PayloadClauses"]

_int_max = (1 << 53) - 1


class PayloadClauses(Suite):
    """What is stored is what was given."""

    @clause("B11")
    async def test_bodies_come_back_byte_for_byte(self, backend: Backend, samples: Samples) -> None:
        """Every sample body, in every place that bytes go, comes back as it was, in the receipt and in the read."""
        for number, body in enumerate(samples.bodies):
            name = samples.id(f"c{number}")
            small = body[: limits.fields_bytes_max // 2]
            receipt = await backend.commit(
                creation(name, entry("a", body), entry("b", body), fields={"f": small}, documents={"d": body})
            )
            assert [body, body] == [each.body for each in receipt.appended]
            snapshot = await backend.read(name, Window(), None)
            assert snapshot is not None
            assert [body, body] == [each.body for each in snapshot.entries]
            assert ({"f": small}, {"d": body}) == (snapshot.head.fields, snapshot.documents)
            assert all(type(each.body) is bytes for each in snapshot.entries)

    @clause("B11")
    async def test_a_replacement_is_kept_byte_for_byte(self, backend: Backend, samples: Samples) -> None:
        """Every sample body can take the place of another, the empty one too."""
        await backend.commit(creation(samples.id("c"), entry("a", b"first"), fields={"f": b""}, documents={"d": b""}))
        for body in (*samples.bodies, b""):
            await backend.commit(change(samples.id("c"), replace=(entry("a", body),), documents={"d": body}))
            snapshot = await backend.read(samples.id("c"), Window(), ("d",))
            assert snapshot is not None
            assert (body, {"d": body}) == (snapshot.entries[0].body, snapshot.documents)
            assert {"f": b""} == snapshot.head.fields

    @clause("B11")
    async def test_the_envelope_comes_back_as_it_was(self, backend: Backend, samples: Samples) -> None:
        """Kind, role, dialect and times of every permitted value, far past and future too, are kept."""
        names = ("x", "ünïcode", "a b", "\U0001f600", "y" * limits.name_bytes_max)
        times = (AT, 0, -1, -62_135_596_800_000, 253_402_300_799_999)
        entries = [
            entry(f"e{number}", kind=name, role=None if number % 2 else name, dialect=name, created_at_ms=at_ms)
            for number, (name, at_ms) in enumerate(zip(names, times, strict=True))
        ]
        await backend.commit(creation(samples.id("c"), *entries, created_at_ms=-5))
        stored = await entries_of(backend, samples.id("c"))
        assert [(e.entry_id, e.kind, e.role, e.dialect, e.created_at_ms) for e in entries] == [
            (e.entry_id, e.kind, e.role, e.dialect, e.created_at_ms) for e in stored
        ]
        read = await backend.read(samples.id("c"))
        assert read is not None
        assert (-5, AT) == (read.head.created_at_ms, read.head.updated_at_ms)

    @clause("B16")
    async def test_what_is_returned_is_the_callers_own(self, backend: Backend, samples: Samples) -> None:
        """Changing the fields and documents that a receipt, a read or a listing returned changes nothing stored."""
        wanted = creation(samples.id("c"), entry("a"), fields={"title": b"t"}, documents={"todos": b"d"})
        receipt, again = await backend.commit(wanted), await backend.commit(wanted)
        before = await census(backend, samples.prefix)
        snapshot = await backend.read(samples.id("c"), Window(), None)
        page = await backend.scan_heads(HeadQuery(prefix=samples.prefix))
        assert snapshot is not None
        for head in (receipt.head, again.head, snapshot.head, page.items[0]):
            assert head is not None
            _scribble(head.fields)
        _scribble(snapshot.documents)
        assert before == await census(backend, samples.prefix)
        page = await backend.scan_heads(HeadQuery(prefix=samples.prefix))
        assert {"title": b"t"} == page.items[0].fields
        last = await backend.commit(change(samples.id("c"), fields={"more": b"m"}))
        assert last.head is not None
        assert {"title": b"t", "more": b"m"} == last.head.fields

    @clause("B16")
    async def test_what_was_given_stays_the_callers_own(self, backend: Backend, samples: Samples) -> None:
        """Changing the fields and documents of a change behind the commit changes nothing stored, nor in the receipt."""
        fields, documents = {"title": b"t"}, {"todos": b"d"}
        receipt = await backend.commit(creation(samples.id("c"), fields=fields, documents=documents))
        before = await census(backend, samples.prefix)
        _scribble(fields)
        _scribble(documents)
        assert before == await census(backend, samples.prefix)
        assert {"title": b"t"} == before[samples.id("c")].head.fields == _head(receipt).fields

    @clause("B16")
    async def test_an_older_answer_stays_as_it_was(self, backend: Backend, samples: Samples) -> None:
        """A snapshot, a page and a receipt do not change when the conversation does."""
        receipt = await backend.commit(creation(samples.id("c"), entry("a"), fields={"n": b"1"}, documents={"n": b"1"}))
        snapshot = await backend.read(samples.id("c"), Window(), None)
        page = await backend.scan_heads(HeadQuery(prefix=samples.prefix))
        assert snapshot is not None
        later = change(samples.id("c"), entry("b"), cut_after=0, fields={"n": b"2"}, documents={"n": None})
        await backend.commit(later)
        assert (["a"], {"n": b"1"}, {"n": b"1"}) == (
            [each.entry_id for each in snapshot.entries],
            snapshot.head.fields,
            snapshot.documents,
        )
        assert {"n": b"1"} == page.items[0].fields == _head(receipt).fields

    @clause("B17")
    async def test_what_exceeds_a_limit_is_refused(self, backend: Backend, samples: Samples) -> None:
        """One byte, name, entry or document too many is InvalidInput, and nothing of the change is stored."""
        half, big = bytes(limits.change_bytes_max // 2), bytes(limits.body_bytes_max + 1)
        long = "n" * (limits.name_bytes_max + 1)
        many = tuple(f"e{number}" for number in range(limits.change_entries_max + 1))
        too_much: dict[str, dict[str, Any]] = {
            "body": {"append": (entry("x", big),)},
            "replaced body": {"replace": (entry("a", big),)},
            "document": {"documents": {"d": bytes(limits.document_bytes_max + 1)}},
            "field": {"fields": {"f": bytes(limits.fields_bytes_max + 1)}},
            "fields together": {"fields": {"f": bytes(limits.fields_bytes_max), "g": b"x"}},
            "change": {"append": (entry("x", half), entry("y", half), entry("z", b"1"))},
            "change with documents": {"append": (entry("x", half), entry("y", half)), "documents": {"d": b"1"}},
            "entries": {"remove": many},
            "documents": {"documents": {f"d{number}": b"" for number in range(limits.documents_max + 1)}},
            "kind": {"append": (entry("x", kind=long),)},
            "role": {"append": (entry("x", role=long),)},
            "dialect": {"append": (entry("x", dialect=long),)},
            "field name": {"fields": {long: b""}},
            "document name": {"documents": {long: b""}},
        }
        await backend.commit(creation(samples.id("c"), entry("a")))
        before = await census(backend, samples.prefix)
        for what, other in too_much.items():
            given = Change(conversation_id=samples.id("c"), revision=samples.id("r"), at_ms=AT, **other)
            await refused(InvalidInput, backend.commit(given), what)
        await refused(InvalidInput, backend.read(samples.id("c"), Window(entry_ids=many)), "ids in a window")
        await refused(InvalidInput, backend.read(samples.id("c"), None, [long]), "name of a document read")
        assert before == await census(backend, samples.prefix)

    @clause("B17")
    async def test_fields_are_limited_over_several_commits(self, backend: Backend, samples: Samples) -> None:
        """Fields that fit one by one and not together are refused when the sum is too big; dropping some makes room."""
        share = limits.fields_bytes_max // 4
        await backend.commit(creation(samples.id("c")))
        for name in "abc":
            await backend.commit(change(samples.id("c"), fields={name: bytes(share)}))
        await refused(InvalidInput, backend.commit(change(samples.id("c"), fields={"d": bytes(share)})))
        await backend.commit(change(samples.id("c"), fields={"a": None, "d": bytes(share)}))
        read = await backend.read(samples.id("c"))
        assert read is not None
        assert {"b", "c", "d"} == set(read.head.fields)

    @clause("B17", needs_fresh=True)
    async def test_what_a_limit_permits_is_stored(self, backend: Backend, samples: Samples) -> None:
        """The biggest body, document, name and number of documents are stored and come back."""
        body, name = b"\xff" * limits.body_bytes_max, "n" * limits.name_bytes_max
        await backend.commit(creation(samples.id("c"), entry("a", body, kind=name, role=name, dialect=name)))
        documents = {f"d{number}": b"" for number in range(limits.documents_max - 1)}
        documents[name] = bytes(limits.document_bytes_max)
        await backend.commit(change(samples.id("c"), documents=documents, fields={name: b"x"}))
        snapshot = await backend.read(samples.id("c"), Window(), None)
        assert snapshot is not None
        assert (body == snapshot.entries[0].body, documents == snapshot.documents) == (True, True)
        assert (name, name, name) == (snapshot.entries[0].kind, snapshot.entries[0].role, snapshot.entries[0].dialect)

    @clause("B17")
    async def test_many_entries_fit_one_change(self, backend: Backend, samples: Samples) -> None:
        """Ten thousand entries are one commit, read back whole, and removed by one more."""
        names = [f"e{number}" for number in range(10_000)]
        await backend.commit(creation(samples.id("c"), *(entry(name, b"") for name in names)))
        stored = await entries_of(backend, samples.id("c"))
        assert names == [each.entry_id for each in stored]
        receipt = await backend.commit(change(samples.id("c"), remove=tuple(names[1:])))
        assert 1 == _head(receipt).entry_count
        assert stored[:1] == await entries_of(backend, samples.id("c"))

    @clause("B17")
    async def test_what_is_of_the_wrong_kind_is_refused(self, backend: Backend, samples: Samples) -> None:
        """A body that is not bytes, a time that is none, a position below zero, an id given twice: InvalidInput."""
        mine = samples.id("c")
        await backend.commit(creation(mine, entry("a")))
        before = await census(backend, samples.prefix)
        wrong: list[dict[str, Any]] = [
            *({"append": (entry("x", body),)} for body in cast("list[bytes]", ["text", bytearray(b"x"), None])),
            *({"append": (entry("x", created_at_ms=at),)} for at in (1.5, None, 10**15, -(10**15), True, "0")),
            *({"at_ms": at} for at in (1.5, None, 10**15, True)),
            *({"created_at_ms": at} for at in (1.5, 10**15, "0")),
            *({"cut_after": at} for at in (-1, 1.5, True, _int_max + 1)),
            *({"documents": {"d": value}} for value in ("text", bytearray(b"x"), 7)),
            *({"fields": {"f": value}} for value in ("text", bytearray(b"x"), 7)),
            *({"fields": {name: b""}} for name in ("", "a\nb")),
            *({"documents": {name: b""}} for name in ("", "a\x00b")),
            *({"append": (entry("x", kind=name),)} for name in ("", "a\n", 7, None)),
            *({"append": (entry("x", dialect=name),)} for name in ("", "a\n", 7, None)),
            *({"append": (entry("x", role=name),)} for name in ("", "a\n", 7)),
            {"append": (entry("x"), entry("x"))},
            {"replace": (entry("a", b"1"), entry("a", b"2"))},
            {"replace": (entry("a", b"1"),), "append": (entry("a", b"1"),)},
            {"existence": "perhaps"},
        ]
        for other in wrong:
            given: dict[str, Any] = {"conversation_id": mine, "revision": samples.id("r"), "at_ms": AT, **other}
            await refused(InvalidInput, backend.commit(Change(**given)), other)
        windows: list[dict[str, Any]] = [
            *(
                {what: value}
                for what in ("after", "before", "changed_after", "limit")
                for value in (-1, 1.5, "1", True)
            ),
            {"after": None},
            {"damaged": "ignore"},
        ]
        for window in windows:
            await refused(InvalidInput, backend.read(mine, Window(**window)), window)
        await refused(InvalidInput, backend.read(mine, None, "todos"), "documents='todos'")
        assert before == await census(backend, samples.prefix)


def _scribble(values: Mapping[str, bytes]) -> None:
    """Change a mapping in place, if it lets itself be changed."""
    if isinstance(values, dict):
        values["title"] = b"scribbled"
        values["scribbled"] = b"scribbled"


def _head(receipt: Receipt) -> Head:
    assert receipt.head is not None
    return receipt.head
