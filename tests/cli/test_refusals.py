"""Damage, conflicts and mistakes: what the commands refuse, the words they use, and what they leave untouched."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from convostore import opening
from convostore.cli.application import app
from convostore.cli.exits import Exit
from convostore.cli.wording import in_words
from convostore.contracts.backend import Change, Damage
from convostore.errors import CorruptDataError
from tests.backends.sqlite_files import raw
from tests.cli.commands import TOY, imported, lines_of, run, run_json, said

pytestmark = pytest.mark.usefixtures("url")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not what `convostore export` writes, or its beginning is lost: it is empty"),
        (b'{"convo', "or its beginning is lost"),
        (b'{"convostore":"native/1","wri', "line 1: cut off before its end. Nothing was written"),
        (b"\xff\x00garbage\n" * 50, "transcripts come in with: convostore import FILE"),
        (said("a transcript"), "transcripts come in with: convostore import FILE"),
        (None, "restore what is sound of it with --salvage"),
    ],
)
def test_a_damaged_file_makes_no_store(data: bytes | None, words: str) -> None:
    """What is empty, cut off, garbage or damaged at its end is damage, told in one line; no store comes into being."""
    run("import", TOY)
    whole = run("export").stdout_bytes
    Path("bad").write_bytes(whole[:-10] if data is None else data)
    result = run("restore", "bad", "--to", "sqlite:///new.db", code=Exit.DAMAGED)
    assert (1, True) == (result.stderr.count("\n"), words in result.stderr)
    assert "report mode" not in result.stderr
    run("restore", "-", "--to", "sqlite:///new.db", code=Exit.DAMAGED, stdin=Path("bad").read_bytes())
    assert [] == list(Path().glob("new.db*"))


@pytest.mark.parametrize("target", ["memory://", "sqlite://", "sqlite:///:memory:"])
def test_a_target_that_keeps_nothing(target: str) -> None:
    """Copy, import and restore refuse to write where all would be gone when they end."""
    run("import", TOY)
    run("export", "-o", "all.native")
    for command in (
        ("copy", "sqlite:///chats.db", target),
        ("import", TOY, "--to", target),
        ("restore", "all.native", "--to", target),
    ):
        result = run(*command, code=Exit.USAGE)
        assert ("", True) == (result.stdout, f"{target!r} is in memory and would be gone" in result.stderr)


def test_copy_from_nowhere_speaks_of_its_source() -> None:
    """Copy has no --store, so it does not advise to check it."""
    told = run("copy", "sqlite:///absent.db", "sqlite:///other.db", code=Exit.NOT_FOUND).stderr
    assert ("or check SOURCE\n", False) == (told[-16:], "--store" in told)


def test_a_file_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, a missing file, one below a file and one without the right to read it are exit code 3, with what next."""
    Path("folder").mkdir()
    Path("file").write_bytes(b"")
    opened = Path.open

    def forbidding(self: Path, *arguments: Any, **more: Any) -> Any:
        if self.name == "secret":
            raise PermissionError(13, "Permission denied", "secret")
        return opened(self, *arguments, **more)

    monkeypatch.setattr(Path, "open", forbidding)
    for name, words in (
        (".", ".: this is a folder; name a file in it"),
        ("folder", "folder: this is a folder; name a file in it"),
        ("absent", "absent: No such file or directory; check the name"),
        ("file/x", "file/x: Not a directory; name a file that can be read"),
        ("secret", "secret: Permission denied; name a file that can be read"),
    ):
        for command in ("import", "restore"):
            assert f"convostore: {words}\n" == run(command, name, code=Exit.NOT_FOUND).stderr
    assert not Path("chats.db").exists()


def test_list_names_a_damaged_conversation() -> None:
    """A damaged head is named on stderr in the command's words, the others are listed, and the exit code says so."""
    sound = imported("sound")
    broken = imported("broken")
    raw("chats.db", "UPDATE conversations SET subject_id = 'changed' WHERE conversation_id = ?", broken)
    for options in ((), ("--json",), ("--order", "created"), ("--all",)):
        result = run("list", *options, code=Exit.DAMAGED)
        assert (True, False) == (sound in result.stdout, broken in result.stdout)
        assert (
            f"convostore: left out: conversation {broken!r}: its head is not what was written;"
            f" see what is sound of it with: convostore salvage {broken}\n" == result.stderr
        )
    assert [sound] == [each["id"] for each in lines_of(run("list", "--json", code=Exit.DAMAGED))]
    assert "broken" in run("salvage", broken, code=Exit.DAMAGED).stdout


def test_list_names_a_conversation_whose_fields_cannot_be_read() -> None:
    """A head whose bytes are those that were written, but whose title is no text, is left out in the same way."""

    async def spoil() -> None:
        async with opening.open("sqlite:///chats.db") as store:
            await store.backend.commit(Change(conversation_id=found_id, revision="r", at_ms=1, fields={"title": b"{"}))

    found_id = imported("hello")
    asyncio.run(spoil())
    result = run("list", code=Exit.DAMAGED)
    assert f"left out: conversation {found_id!r}: " in result.stderr


def test_import_names_a_conversation_of_somebody_else() -> None:
    """What stands under a derived id with another subject is named and left alone, exit code 1; damage counts for more."""

    async def take_id() -> None:
        async with opening.open("sqlite:///chats.db") as store:
            await store.create_conversation("imported", "somebody else", id=found_id)

    (elsewhere,) = run_json("import", "-", "--to", "sqlite:///elsewhere.db", stdin=said("hello"))["files"]
    found_id = elsewhere["conversations"][0]["id"]
    asyncio.run(take_id())
    (file,) = run_json("import", "-", stdin=said("hello"), code=Exit.REFUSED)["files"]
    assert (0, 0, [], ["conflict"]) == (
        file["added"],
        file["alreadyThere"],
        file["conversations"],
        [each["kind"] for each in file["problems"]],
    )
    result = run("import", "-", stdin=said("hello"), code=Exit.REFUSED)
    assert f"convostore: -: line 1: conversation {found_id!r}, the id that follows from these messages" in result.stderr
    run("import", "-", stdin=said("hello") + b"\n{oops}\n" + said("x") + b"\n", code=Exit.DAMAGED)


def test_advice_is_in_the_words_of_the_command() -> None:
    """What the library would say about its calls is told as something to type."""
    imported("hello")
    assert "write sqlite:///my%3Fchats.db\n" in run("list", "-s", "my?chats.db", code=Exit.USAGE).stderr
    assert "with: convostore list\n" in run("show", "absent", code=Exit.NOT_FOUND).stderr
    assert "--prefix goes with --order id" in run("list", "--prefix", "a", code=Exit.USAGE).stderr
    everything = CorruptDataError("", [Damage("", "a page is lost")])
    assert (
        "the storage is damaged: a page is lost. Its bytes are untouched; name all damage with: convostore verify"
        == (in_words(everything))
    )
    assert "convostore salvage 'a b'," in in_words(CorruptDataError("a b", [Damage("a b", "lost")] * 9))


@pytest.mark.parametrize(
    "command",
    [
        ("list",),
        ("latest", "a", "b"),
        ("show", "x"),
        ("rate", "x", "5"),
        ("delete", "x", "--yes"),
        ("stats",),
        ("verify",),
        ("salvage", "x"),
        ("export", "-o", "y"),
        ("copy", "sqlite:///chats.db", "sqlite:///other.db"),
    ],
)
def test_no_command_makes_an_empty_store(command: tuple[str, ...]) -> None:
    """Where there is no store, every command but import and restore says so and leaves nothing behind."""
    result = run(*command, code=Exit.NOT_FOUND)
    assert "chats.db'; create one with: convostore import FILE" in result.stderr
    assert [] == list(Path().iterdir())


def test_a_store_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --store and CONVOSTORE_URL, and with what is no URL, the exit code is that of a usage error."""
    monkeypatch.delenv("CONVOSTORE_URL")
    assert "--store" in run("list", code=Exit.USAGE).stderr
    assert "sqlite:///" in run("list", "--store", "chats.db", code=Exit.USAGE).stderr
    assert "no backend answers" in run("list", "--store", "nosql://x", code=Exit.USAGE).stderr


def test_what_is_no_database_is_told() -> None:
    """A file that is no SQLite database is named, in one line."""
    Path("chats.db").write_bytes(b"not a database at all" * 100)
    result = CliRunner().invoke(app, ["list"])
    assert result.exit_code in (Exit.DAMAGED, Exit.UNAVAILABLE, Exit.REFUSED)
    assert 1 == len(result.stderr.splitlines())
