"""B8: ids are compared exactly, on every verb; what is no id is refused on every verb."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from msgspec import UNSET

from convostore import limits
from convostore.contracts.backend import Backend, FindingEntries, HeadQuery, Window
from convostore.errors import InvalidInput
from convostore.testing.drafts import change, creation, entries_of, entry, entry_ids, refused, walk
from convostore.testing.suite import Samples, Suite, clause

__all__ = ["IdentityClauses", "hostile_ids", "refused_ids"]


def hostile_ids(prefix: str = "") -> list[str]:
    """Return ids that are all different and that something between here and a disk likes to confuse."""
    names = [
        *(
            "foo",
            "foobar",
            "Foo",
            "FOO",
            "foo ",
            "foo.",
            "foo*",
            "foo%",
            "foo_",
            "foo?",
            "foo/",
            "foo\\",
            "foo:bar",
            "foo_bar",
        ),
        *(
            "a{b}c",
            "a%7Bb%7Dc",
            "a[b]c",
            "'; DROP TABLE entry; --",
            '"quoted"',
            "$HOME",
            "../x",
            "..",
            ".",
            "con",
            "nul.txt",
        ),
        *(
            "\u00e9",
            "e\u0301",
            "\u212b",
            "\u00c5",
            "ss",
            "\u00df",
            "\u0130",
            "i\u0307",
            "\u05e9\u05dc\u05d5\u05dd",
            "\u202eabc",
        ),
        *(
            "\U0001f600",
            "\U0001f468\u200d\U0001f469\u200d\U0001f467",
            "\uffee",
            "\U0010ffff",
            "\ud7ff",
            "\ufeffbom",
            "a\u00a0b",
        ),
        *("1", "01", "1.0", "1e0", "null", "None", "true", "foo\u200b", "foo\u3000", "\u2028", "abc\u202e"),
    ]
    longest = limits.id_bytes_max - len(prefix.encode())
    names += ["x" * longest, "x" * (longest - 1), "y" * (longest % 2) + "\u00e9" * (longest // 2)]
    return [prefix + name for name in names]


def refused_ids() -> list[Any]:
    """Return what is no id."""
    return [
        *("", "a\x00b", "a\nb", "\t", "a\x7f", "a\x85", "\x9f", "\ud83d", "a\udc80"),
        *("x" * (limits.id_bytes_max + 1), "\u00e9" * (limits.id_bytes_max // 2 + 1)),
        *(b"bytes", 7, 1.5, True, ["a"]),
    ]


class IdentityClauses(Suite):
    """What is one id and what is another."""

    @clause("B8")
    async def test_conversation_ids_are_compared_exactly(self, backend: Backend, samples: Samples) -> None:
        """Conversations whose ids differ in any byte are different on every verb; what is refused is refused on every verb."""
        await _assert_kept_apart(backend, samples.prefix, hostile_ids(samples.prefix))

    @clause("B8", needs_fresh=True)
    async def test_bare_conversation_ids_are_compared_exactly(self, backend: Backend) -> None:
        """The same without a prefix before them: ``.``, ``../x`` and a leading space have nothing to hide behind."""
        await _assert_kept_apart(backend, "", [*hostile_ids(), " foo", "/etc/passwd", "-rf", "~", "C:\\x"])

    @clause("B8")
    async def test_entry_ids_are_compared_exactly(self, backend: Backend, samples: Samples) -> None:
        """Entries of one conversation whose ids differ in any byte are read, replaced and removed one by one."""
        names = hostile_ids(samples.prefix)
        bodies = {name: name.encode() for name in names}
        await backend.commit(creation(samples.id("c"), *(entry(name, body) for name, body in bodies.items())))
        assert bodies == {each.entry_id: each.body for each in await entries_of(backend, samples.id("c"))}
        for name in names:
            assert [name] == await entry_ids(backend, samples.id("c"), Window(entry_ids=(name,)))
            if isinstance(backend, FindingEntries):
                assert (samples.id("c"),) == await backend.find_entry(name)
        await backend.commit(change(samples.id("c"), replace=tuple(entry(name, b"new") for name in names[::2])))
        expected = bodies | dict.fromkeys(names[::2], b"new")
        assert expected == {each.entry_id: each.body for each in await entries_of(backend, samples.id("c"))}
        await backend.commit(change(samples.id("c"), remove=tuple(names[::3])))
        kept = [name for name in names if name not in names[::3]]
        assert kept == await entry_ids(backend, samples.id("c"))

    @clause("B8", "B10")
    async def test_contexts_and_subjects_are_compared_exactly(self, backend: Backend, samples: Samples) -> None:
        """A filter on a context or a subject lists the conversations of exactly that one."""
        names = hostile_ids(samples.prefix)
        for number, name in enumerate(names):
            await backend.commit(
                creation(
                    samples.id(f"c{number:03}"), context=name, subject_id=names[number - 1], fields={"n": name.encode()}
                )
            )
        for number, name in enumerate(names):
            by_context = await backend.scan_heads(HeadQuery(context=name))
            by_subject = await backend.scan_heads(HeadQuery(subject_id=name))
            assert [samples.id(f"c{number:03}")] == [each.conversation_id for each in by_context.items], name
            assert [samples.id(f"c{(number + 1) % len(names):03}")] == [e.conversation_id for e in by_subject.items], (
                name
            )

    @clause("B8", "B10")
    async def test_a_prefix_is_compared_exactly(self, backend: Backend, samples: Samples) -> None:
        """A prefix lists the ids that begin with it, code point by code point, in code point order, whatever is in it."""
        kept = [name for name in hostile_ids(samples.prefix) if await _accepts(backend, name)]
        prefixes = {name[: len(samples.prefix) + length] for name in kept for length in (0, 1, 3, 4, 300)}
        for prefix in sorted(prefixes):
            found = [head.conversation_id async for page in walk(backend, prefix=prefix, limit=7) for head in page]
            assert sorted(name for name in kept if name.startswith(prefix)) == found, f"prefix {prefix!r}"

    @clause("B8")
    async def test_owners_are_compared_exactly(self, backend: Backend, samples: Samples) -> None:
        """only_subject lets in exactly the owner, no spelling of it that looks alike."""
        names = hostile_ids(samples.prefix)
        await backend.commit(creation(samples.id("c"), subject_id=samples.id("foo")))
        refused = 0
        for name in names:
            try:
                await backend.commit(change(samples.id("c"), only_subject=name))
                assert name == samples.id("foo")
            except LookupError:
                refused += 1
        assert len(names) - 1 == refused

    @clause("B8")
    async def test_names_of_fields_and_documents_are_compared_exactly(self, backend: Backend, samples: Samples) -> None:
        """Fields and documents whose names differ in any byte are different."""
        names = [name for name in hostile_ids() if len(name.encode()) <= limits.name_bytes_max]
        values = {name: name.encode() for name in names}
        await backend.commit(creation(samples.id("c"), fields=values))
        for start in range(0, len(names), limits.documents_max):
            some = {name: values[name] for name in names[start : start + limits.documents_max]}
            await backend.commit(change(samples.id("c"), documents=some))
        await backend.commit(change(samples.id("c"), fields={"foo": None}, documents={"foo": None}))
        snapshot = await backend.read(samples.id("c"), None, None)
        some_of = await backend.read(samples.id("c"), None, ["Foo", "foo", "foo*"])
        assert snapshot is not None
        assert some_of is not None
        del values["foo"]
        assert (values, values) == (snapshot.head.fields, snapshot.documents)
        assert {"Foo": b"Foo", "foo*": b"foo*"} == some_of.documents

    @clause("B8", "B17")
    async def test_what_is_no_id_is_refused_on_every_verb(self, backend: Backend, samples: Samples) -> None:
        """Empty, too long, a control character, a lone surrogate, no string: InvalidInput wherever an id is given."""
        mine = samples.id("c")
        await backend.commit(creation(mine, entry("a")))
        verbs: dict[str, Callable[[Any], Coroutine[Any, Any, object]]] = {
            "conversation_id": lambda bad: backend.commit(change(bad, existence="may_create")),
            "delete": lambda bad: backend.commit(change(bad, delete=True)),
            "revision": lambda bad: backend.commit(change(mine, revision=bad)),
            "expected_revision": lambda bad: backend.commit(change(mine, expected_revision=bad)),
            "only_subject": lambda bad: backend.commit(change(mine, only_subject=bad)),
            "context": lambda bad: backend.commit(change(samples.id("x"), existence="may_create", context=bad)),
            "subject_id": lambda bad: backend.commit(change(samples.id("x"), existence="may_create", subject_id=bad)),
            "set_subject": lambda bad: backend.commit(change(mine, set_subject=bad)),
            "append": lambda bad: backend.commit(change(mine, entry("fine"), entry(bad))),
            "replace": lambda bad: backend.commit(change(mine, replace=(entry(bad),))),
            "remove": lambda bad: backend.commit(change(mine, remove=(bad,))),
            "read": lambda bad: backend.read(bad),
            "window": lambda bad: backend.read(mine, Window(entry_ids=("a", bad))),
            "document": lambda bad: backend.read(mine, None, [bad]),
            "filter context": lambda bad: backend.scan_heads(HeadQuery(context=bad)),
            "filter subject": lambda bad: backend.scan_heads(HeadQuery(subject_id=bad)),
        }
        if isinstance(backend, FindingEntries):
            verbs["find_entry"] = partial(backend.find_entry)
        for bad in refused_ids():
            for verb, call in verbs.items():
                await refused(InvalidInput, call(bad), f"{verb} with {bad!r} for an id")
            if bad != "":  # no prefix: all ids
                with pytest.raises(InvalidInput):
                    await backend.scan_heads(HeadQuery(prefix=bad))
        assert ["a"] == await entry_ids(backend, mine)
        assert await backend.read(samples.id("x")) is None

    @clause("B8")
    async def test_none_and_absent_are_not_text(self, backend: Backend, samples: Samples) -> None:
        """A conversation of context "None" or "null" is not one without a context; a role None is not the role "None"."""
        for number, context in enumerate((None, "None", "null", "0")):
            await backend.commit(
                creation(
                    samples.id(f"c{number}"), entry("a", role=context), context=context, subject_id=samples.id("me")
                )
            )
        for number, context in enumerate((None, "None", "null", "0")):
            page = await backend.scan_heads(HeadQuery(context=context, subject_id=samples.id("me")))
            assert [(samples.id(f"c{number}"), context)] == [
                (each.conversation_id, each.context) for each in page.items
            ]
            assert [context] == [each.role for each in await entries_of(backend, samples.id(f"c{number}"))]
        everything = await backend.scan_heads(HeadQuery(context=UNSET, subject_id=samples.id("me")))
        assert 4 == len(everything.items)


async def _accepts(backend: Backend, name: str) -> bool:
    """Create a conversation of this name; False if the backend refuses it, which it then must do on every verb."""
    try:
        await backend.commit(creation(name, entry("own", name.encode()), documents={"own": name.encode()}))
    except InvalidInput:
        for verb in (
            lambda: backend.read(name),
            lambda: backend.commit(change(name, entry("a"), existence="may_create")),
            lambda: backend.commit(change(name, entry("a"))),
            lambda: backend.commit(change(name, delete=True)),
        ):
            await refused(InvalidInput, verb(), name)
        return False
    return True


async def _assert_kept_apart(backend: Backend, prefix: str, names: list[str]) -> None:
    kept = [name for name in names if await _accepts(backend, name)]
    assert len(kept) * 2 > len(names), f"more than half of the ids were refused: {sorted(set(names) - set(kept))}"
    for round_number in range(2):
        for name in kept:
            snapshot = await backend.read(name, Window(), None)
            assert snapshot is not None, f"{name!r} is not there"
            assert name == snapshot.head.conversation_id
            assert ["own"] + ["more"] * round_number == [each.entry_id for each in snapshot.entries]
            assert name.encode() == snapshot.entries[0].body
            assert {"own": name.encode()} == snapshot.documents
            await backend.commit(change(name, entry("more", name.encode())))
    gone = kept[::2]
    for name in gone:
        await backend.commit(change(name, delete=True))
        assert await backend.read(name) is None
    stays = sorted(set(kept) - set(gone))
    assert stays == [head.conversation_id async for page in walk(backend, prefix=prefix, limit=9) for head in page]
