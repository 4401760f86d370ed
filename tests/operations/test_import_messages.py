"""Importing: what a file says is in the store once, whatever it is called and however often it is imported."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from convostore.backends.memory import MemoryBackend
from convostore.contracts.backend import Change, HeadQuery, Receipt, Snapshot, Window
from convostore.errors import InvalidInput, UnavailableError
from convostore.ids import new_id
from convostore.interchange.json_slices import compact
from convostore.opening import Store
from convostore.operations import import_messages as module
from convostore.operations.import_messages import ImportReport, import_messages
from convostore.operations.verify import verify
from tests.interchange.conversations import add, content

TRANSCRIPTS = Path(__file__).parents[2] / "examples" / "transcripts"


async def take(
    backend: MemoryBackend, data: bytes, *, context: str = "imported", subject_id: str = "imported"
) -> ImportReport:
    source = io.BytesIO(data)
    return await import_messages(backend, source, context=context, subject_id=subject_id, clock=lambda: 5_000)


@pytest.mark.parametrize(
    ("name", "conversations", "roles", "tool_calls"),
    [
        ("cookbook-toy_chat_fine_tuning-lines1-4.jsonl", 4, {"system": 3, "user": 6, "assistant": 7}, 0),
        ("taubench-gpt4o-airline-12.jsonl", 12, {"system": 12, "user": 112, "assistant": 177, "tool": 77}, 77),
        ("functionary-test_case.json", 1, {"user": 5, "assistant": 10, "tool": 6}, 6),
    ],
)
async def test_real_files(name: str, conversations: int, roles: dict[str, int], tool_calls: int) -> None:
    """Real files give the counts that were counted independently, and are sound; importing again changes nothing."""
    backend = MemoryBackend()
    data = (TRANSCRIPTS / name).read_bytes()
    report = await take(backend, data)
    assert (conversations, 0, []) == (report.added, report.already_there, report.problems)
    assert sum(roles.values()) == report.messages_added == (await verify(backend)).entries
    assert () == (await verify(backend)).damage
    found: dict[str, int] = {}
    calls = 0
    for each in report.conversations:
        snapshot = await backend.read(each.conversation_id, Window())
        assert snapshot is not None
        for entry in snapshot.entries:
            assert entry.role is not None
            found[entry.role] = found.get(entry.role, 0) + 1
            calls += len(json.loads(entry.body).get("tool_calls") or ())
    assert (roles, tool_calls) == (found, calls)
    before = await content(backend)
    again = await take(backend, data)
    assert (0, conversations, 0) == (again.added, again.already_there, again.messages_added)
    assert before == await content(backend)


async def test_messages_keep_their_bytes() -> None:
    """Every message of the airline file is stored as its own JSON text."""
    backend = MemoryBackend()
    data = (TRANSCRIPTS / "taubench-gpt4o-airline-12.jsonl").read_bytes()
    report = await take(backend, data)
    bodies = []
    for each in report.conversations:
        snapshot = await backend.read(each.conversation_id, Window())
        assert snapshot is not None
        bodies += [entry.body.decode() for entry in snapshot.entries]
    text = compact(data.decode())
    at = 0
    for body in bodies:
        at = text.index(body, at) + len(body)


async def test_a_conversation_as_callers_see_it() -> None:
    """Title, metadata, context, subject and times of an import are what the stores show."""
    said = b'{"messages": [{"role": "user", "content": "  What\\n is  this? %b"}], "tools": [1e5]}' % (b"x" * 100)
    backend = MemoryBackend()
    await take(backend, said, context="support", subject_id="org-7")
    found = await Store(backend).find_latest("support", "org-7")
    assert found is not None
    assert f"What is this? {'x' * 65}…" == found.title
    assert {"tools": [100000.0]} == found.metadata
    assert 5_000 == found.created_at.timestamp() * 1000
    assert ["user"] == [each.role for each in await Store(backend).load_messages(found.id)]


async def test_equal_conversations_are_two() -> None:
    """Equal conversations of one file are that many; the same file, in another form, adds nothing."""
    one = b'{"messages": [{"role": "user", "content": "again"}]}'
    backend = MemoryBackend()
    assert 2 == (await take(backend, one + b"\n" + one)).added
    again = await take(backend, json.dumps([json.loads(one)] * 2, indent=2).encode())
    assert (0, 2) == (again.added, again.already_there)
    assert 1 == (await take(backend, one + b"\n" + one + b"\n" + one)).added
    assert 1 == (await take(backend, one, subject_id="somebody else")).added


async def test_what_was_said_since_stays() -> None:
    """Importing again leaves a conversation alone that was continued, cut or rated since."""
    said = b'[{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]'
    backend = MemoryBackend()
    (imported,) = (await take(backend, said)).conversations
    await backend.commit(Change(conversation_id=imported.conversation_id, revision=new_id(), at_ms=6_000, cut_after=1))
    before = await content(backend)
    assert (0, 1) == ((again := await take(backend, said)).added, again.already_there)
    assert before == await content(backend)


@pytest.mark.parametrize(
    "owner", [("imported", "other"), ("other", "imported"), (None, "imported"), ("imported", None)]
)
async def test_an_id_that_is_somebody_elses_is_a_conflict(owner: tuple[str | None, str | None]) -> None:
    """What stands under the derived id with another context or subject is named and not touched; the rest is imported."""
    said = [b'[{"role": "user", "content": "%d"}]' % number for number in range(3)]
    conversation_id = (await take(MemoryBackend(), said[1])).conversations[0].conversation_id
    backend = MemoryBackend()
    await add(backend, conversation_id, b"theirs", context=owner[0], subject_id=owner[1])
    before = await backend.read(conversation_id, Window())
    report = await take(backend, b"\n".join(said))
    assert (2, 0, 2) == (report.added, report.already_there, len(report.conversations))
    assert [(2, "conflict")] == [(each.line, each.kind) for each in report.problems]
    assert repr(conversation_id) in report.problems[0].what
    assert before == await backend.read(conversation_id, Window())


async def test_an_id_taken_meanwhile_is_a_conflict() -> None:
    """What comes into being under the derived id between looking and writing is a conflict too."""
    said = b'[{"role": "user", "content": "a"}]'
    blind = Blind()
    await add(blind, (await take(MemoryBackend(), said)).conversations[0].conversation_id, b"theirs")
    report = await take(blind, said)
    assert (0, ["conflict"]) == (report.added, [each.kind for each in report.problems])


class Blind(MemoryBackend):
    """A backend whose reads never find anything."""

    async def read(
        self, conversation_id: str, window: Window | None = None, documents: object = (), /
    ) -> Snapshot | None:
        return None


async def test_an_import_in_many_commits_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation too large for one commit, cut off between any two, is completed by importing again."""
    monkeypatch.setattr(module, "_BATCH_ENTRIES", 2)
    said = json.dumps([{"role": "user", "content": str(number)} for number in range(7)]).encode()
    backend = OneCommit()
    for added in (2, 2, 2):
        with pytest.raises(UnavailableError):
            await take(backend, said)
        backend.may_commit = 1
        (head,) = (await backend.scan_heads(HeadQuery())).items
        assert added == 2
        assert head.entry_count % 2 == 0
    report = await take(backend, said)
    assert (1, 1) == (report.added, report.messages_added)
    assert (0, 1) == ((again := await take(backend, said)).added, again.already_there)
    assert 7 == (await verify(backend)).entries


class OneCommit(MemoryBackend):
    """A backend that becomes unavailable after each commit until told otherwise."""

    may_commit = 1

    async def commit(self, change: Change, /) -> Receipt:
        if self.may_commit == 0:
            raise UnavailableError("gone; try again")
        self.may_commit -= 1
        return await super().commit(change)


async def test_what_the_store_refuses_is_named() -> None:
    """A conversation beyond the limits is named by line, and the others are imported."""
    lines = [b'{"messages": [{"role": "user", "content": "%d"}], "x": "%b"}' % (n, b"y" * n) for n in (1, 300_000, 2)]
    report = await take(MemoryBackend(), b"\n".join(lines))
    assert (2, [2]) == (report.added, [each.line for each in report.problems])
    assert "refused by the store" in str(report.problems[0])


async def test_a_bad_context_is_refused_first() -> None:
    """A context or subject that is no id is an error before the file is read."""
    for options in ({"context": ""}, {"subject_id": "a\nb"}):
        with pytest.raises(InvalidInput):
            await take(MemoryBackend(), b"not read", **options)
