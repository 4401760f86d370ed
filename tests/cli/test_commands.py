"""The commands: what they do, what they print for programs, and the exit codes that scripts go by."""

from __future__ import annotations

import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from convostore.cli import conversation
from convostore.cli.exits import Exit
from tests.backends.sqlite_files import lose_keys
from tests.cli.commands import AIRLINE, TOY, imported, lines_of, run, run_json, said

pytestmark = pytest.mark.usefixtures("url")


def test_import_twice_adds_nothing(url: str) -> None:
    """The first import says what it added, the second that it was there."""
    first = run_json("import", AIRLINE, TOY, "--to", url)["files"]
    assert [(12, 0, 378), (4, 0, 16)] == [(f["added"], f["alreadyThere"], f["messagesAdded"]) for f in first]
    again = run_json("import", TOY, AIRLINE, "--to", url)["files"]
    assert [(0, 4, 0), (0, 12, 0)] == [(f["added"], f["alreadyThere"], f["messagesAdded"]) for f in again]
    assert "0 conversations added with 0 messages, 12 already there" in run("import", AIRLINE).stdout


def test_import_names_what_it_could_not_read(tmp_path: Path) -> None:
    """A corrupt line is named by file and line on stderr, all else is imported, and the exit code says so."""
    (tmp_path / "bad.jsonl").write_bytes(said("a") + b"\n{oops}\n" + said("b") + b"\n")
    result = run("import", "bad.jsonl", code=Exit.DAMAGED)
    assert "bad.jsonl: 2 conversations added with 2 messages" in result.stdout
    assert "convostore: bad.jsonl: line 2: not JSON" in result.stderr
    (file,) = run_json("import", "bad.jsonl", code=Exit.DAMAGED)["files"]
    assert [(2, "corrupt")] == [(each["line"], each["kind"]) for each in file["problems"]]


def test_a_pending_line_is_no_failure() -> None:
    """A last line that is still being written is named, and the exit code is that of success."""
    (file,) = run_json("import", "-", stdin=said("a") + b'\n{"role": "us')["files"]
    assert (1, ["pending"]) == (file["added"], [each["kind"] for each in file["problems"]])


def test_a_missing_file_imports_nothing() -> None:
    """Every file is looked for before anything is imported."""
    result = run("import", TOY, "absent.json", code=Exit.NOT_FOUND)
    assert "convostore: absent.json: No such file" in result.stderr
    assert not Path("chats.db").exists()


def test_list(url: str) -> None:
    """One line of JSON a conversation, filtered, ordered and limited; people are told that there are more."""
    run("import", AIRLINE, "--context", "air", "--subject", "org-1")
    run("import", TOY, "--context", "toy", "--subject", "org-2")
    assert 16 == len(lines_of(run("list", "--json")))
    assert {"toy"} == {each["context"] for each in lines_of(run("list", "--context", "toy", "--json"))}
    assert 12 == len(lines_of(run("list", "--subject", "org-1", "--all", "--json", "-s", url)))
    ids = [each["id"] for each in lines_of(run("list", "--order", "id", "--json"))]
    assert sorted(ids) == ids
    assert [ids[0]] == [each["id"] for each in lines_of(run("list", "--order", "id", "--prefix", ids[0][:8], "--json"))]
    result = run("list", "--limit", "3")
    assert 4 == len(result.stdout.splitlines())
    assert "more than these 3" in result.stderr
    assert "" == run("list", "--context", "absent", "--json").stdout


def test_latest() -> None:
    """The conversation created last for exactly this context and subject, or exit code 3."""
    imported("first")
    second = imported("second")
    found = run_json("latest", "imported", "imported")
    assert (second, "second", 1) == (found["id"], found["title"], found["messageCount"])
    assert second in run("latest", "imported", "imported").stdout
    assert "see: convostore list" in run("latest", "imported", "nobody", code=Exit.NOT_FOUND).stderr


def test_show() -> None:
    """A conversation is shown as messages, as session messages, as chat items and as it is stored."""
    (file,) = run_json("import", AIRLINE)["files"]
    found_id = file["conversations"][0]["id"]
    shown = run_json("show", found_id)
    count = file["conversations"][0]["messages"]
    assert (count, found_id) == (len(shown["messages"]), shown["conversation"]["id"])
    assert {"system", "user", "assistant", "tool"} == {each["role"] for each in shown["messages"]}
    roles = {each["role"] for each in run_json("show", found_id, "--as", "session")["messages"]}
    assert {"system", "user", "assistant", "toolResult"} == roles
    assert {"message", "tool_call"} == {each["type"] for each in run_json("show", found_id, "--as", "chat")["items"]}
    raw = run_json("show", found_id, "--as", "raw", "--last", "2")["entries"]
    assert ([count - 1, count], {"openai_chat/1"}) == ([e["position"] for e in raw], {e["dialect"] for e in raw})
    for view in ("messages", "session", "chat", "raw"):
        assert "I'm looking to book a flight" in run("show", found_id, "--as", view).stdout
        assert 3 == len(run_json("show", found_id, "--as", view, "-n", "3").popitem()[1])
        assert [] == run_json("show", found_id, "--as", view, "-n", "0").popitem()[1]
    assert "nope" in run("show", "nope", code=Exit.NOT_FOUND).stderr


def test_rate() -> None:
    """A rating is kept with its comment; one that is none is a usage error."""
    found_id = imported("hello")
    assert 5 == run_json("rate", found_id, "5", "--comment", "Very helpful!")["rating"]
    rated = run_json("rate", found_id, "4")
    assert (4, "Very helpful!") == (rated["rating"], rated["ratingComment"])
    run("rate", found_id, "6", code=Exit.USAGE)
    run("rate", "nope", "5", code=Exit.NOT_FOUND)


def test_delete_asks() -> None:
    """Nothing is deleted where nobody can be asked; with --yes it is gone."""
    found_id = imported("hello")
    assert "add --yes" in run("delete", found_id, code=Exit.USAGE).stderr
    assert {"id": found_id, "deleted": True} == run_json("delete", found_id, "--yes")
    run("delete", found_id, "--yes", code=Exit.NOT_FOUND)
    run("show", found_id, code=Exit.NOT_FOUND)


@pytest.mark.parametrize(("answer", "code"), [("y\n", Exit.OK), ("n\n", Exit.REFUSED), ("", Exit.REFUSED)])
def test_delete_takes_an_answer(monkeypatch: pytest.MonkeyPatch, answer: str, code: Exit) -> None:
    """On a terminal the answer decides, and no answer is no."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    found_id = imported("hello")
    agreed = conversation._agreed
    with monkeypatch.context() as patched:
        patched.setattr(conversation, "_agreed", lambda found: _with_stdin(patched, Terminal(answer), agreed, found))
        run("delete", found_id, code=code)
    run("show", found_id, code=Exit.NOT_FOUND if code is Exit.OK else Exit.OK)


def _with_stdin(patched: pytest.MonkeyPatch, stdin: Any, ask: Any, found: Any) -> Any:
    patched.setattr("sys.stdin", stdin)
    return ask(found)


def test_stats() -> None:
    """Counts by context, kind, role and dialect."""
    run("import", TOY)
    counted = run_json("stats")
    assert (4, 16, {"system": 3, "user": 6, "assistant": 7}) == (
        counted["conversations"],
        counted["entries"],
        counted["roles"],
    )
    assert "openai_chat/1" in run("stats").stdout


def test_verify_and_salvage_name_damage() -> None:
    """Damage gives exit code 4 with its place, and everything sound is still given."""
    found_id = imported("sound", "broken", "sound too")
    assert [] == run_json("verify")["damage"]
    assert [] == run_json("salvage", found_id)["damage"]
    _damage("chats.db", b"broken", b"br0ken")
    report = run_json("verify", code=Exit.DAMAGED)
    assert [(found_id, 2)] == [(each["conversation_id"], each["position"]) for each in report["damage"]]
    assert f"conversation {found_id!r}: entry" in run("verify", code=Exit.DAMAGED).stdout
    saved = run_json("salvage", found_id, code=Exit.DAMAGED)
    assert (["sound", "sound too"], 1) == ([each["content"] for each in saved["messages"]], len(saved["damage"]))
    for command in (("show", found_id), ("export", "-o", "x")):
        told = run(*command, code=Exit.DAMAGED).stderr
        assert f"convostore: conversation {found_id!r} has 1 damaged record(s): entry" in told
        assert f"with: convostore salvage {found_id}, or write it to a file with: convostore export --salvage" in told
        assert "salvage()" not in told
    assert not list(Path().glob("x*"))
    exported = run_json("export", "-o", "x", "--salvage", code=Exit.DAMAGED)
    assert (2, 1) == (exported["entries"], len(exported["damage"]))
    assert "damaged in the source" in run("copy", "sqlite:///chats.db", "sqlite:///y.db", code=Exit.REFUSED).stderr


def test_verify_names_damage_of_the_storage_itself() -> None:
    """An index that lost its keys is exit code 4 too, and is said to be no conversation's."""
    imported("hello")
    with closing(sqlite3.connect("chats.db", isolation_level=None)) as database:
        lose_keys(database, "heads_created_both")
    assert "the storage itself: row 1 missing from index heads_created_both" in run("verify", code=Exit.DAMAGED).stdout
    assert {""} == {each["conversation_id"] for each in run_json("verify", code=Exit.DAMAGED)["damage"]}


def _damage(file: str, old: bytes, new: bytes) -> None:
    for path in Path().glob(f"{file}*"):
        path.write_bytes(path.read_bytes().replace(old, new))


def test_copy() -> None:
    """A copy is complete, repeating it adds nothing, and a conflict is named and stops it before it begins."""
    run("import", TOY)
    assert (4, 16) == (
        (report := run_json("copy", "sqlite:///chats.db", "sqlite:///copy.db"))["copied"],
        report["entries"],
    )
    assert 4 == run_json("copy", "sqlite:///chats.db", "sqlite:///copy.db")["alreadyThere"]
    listed = lines_of(run("list", "--json", "--order", "created"))
    copied = lines_of(run("list", "--json", "--order", "created", "-s", "sqlite:///copy.db"))
    assert [_but_revision(each) for each in listed] == [_but_revision(each) for each in copied]
    run("rate", listed[0]["id"], "1", "-s", "sqlite:///copy.db")
    imported("new")
    report = run_json("copy", "sqlite:///chats.db", "sqlite:///copy.db", code=Exit.REFUSED)
    assert ([listed[0]["id"]], 0) == ([each["id"] for each in report["refused"]], report["copied"])
    result = run("copy", "sqlite:///chats.db", "sqlite:///copy.db", "--skip-refused", code=Exit.REFUSED)
    assert "1 conversations copied, 0 completed, 3 already there" in result.stdout


def _but_revision(wire: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wire.items() if name != "revision"}


def test_export_and_restore() -> None:
    """An export restores to the same store, also twice; a damaged one is refused whole, or restored in part."""
    run("import", AIRLINE)
    assert 378 == run_json("export", "--output", "all.native")["entries"]
    assert "there already" in run("export", "--output", "all.native", code=Exit.USAGE).stderr
    assert 12 == run_json("restore", "all.native", "--to", "sqlite:///new.db")["copied"]
    assert 12 == run_json("restore", "all.native", "--to", "sqlite:///new.db")["alreadyThere"]
    assert 12 == run_json("copy", "sqlite:///new.db", "sqlite:///chats.db")["alreadyThere"]
    stream = run("export", "--context", "imported").stdout_bytes
    assert stream.split(b"\n")[1:] == Path("all.native").read_bytes().split(b"\n")[1:]
    Path("bad.native").write_bytes(stream.replace(b"Airline", b"Airlime", 1))
    assert (
        "convostore: line 3 (conversation"
        in run("restore", "bad.native", "--to", "sqlite:///b.db", code=Exit.DAMAGED).stderr
    )
    assert (
        11
        == run_json(
            "restore",
            "-",
            "--to",
            "sqlite:///b.db",
            "--salvage",
            code=Exit.DAMAGED,
            stdin=Path("bad.native").read_bytes(),
        )["copied"]
    )
    run("export", "--json", code=Exit.USAGE)


def test_stored_text_cannot_drive_a_terminal() -> None:
    """Escape sequences, C1 controls, bidi overrides and lone surrogates come out escaped; line ends of messages stay."""
    evil = "a\x1b]0;owned\x07\x9b2J\u202eb\ud83d\r\u2028c\x7f\nd"
    found_id = imported(evil)
    run("rate", found_id, "1", "--comment", "\x1b[2J")
    for arguments in (
        ["list"],
        ["show", found_id],
        ["show", found_id, "--as", "raw"],
        ["show", found_id, "--as", "chat"],
        ["salvage", found_id],
    ):
        output = run(*arguments).stdout
        assert not set(output) & set(evil) - set("a]0;owned2Jbcd\n"), arguments
        assert "owned" in output
    assert "c\\x7f\nd" in run("show", found_id).stdout
    printed = run("show", found_id, "--json").stdout
    assert printed.isascii()
    assert evil == json.loads(printed)["messages"][0]["content"]


def test_help_teaches() -> None:
    """Every command's help has examples, each on a line of its own; the exit codes are listed."""
    overview = run("--help").stdout
    assert all(f"{int(code)} " in overview for code in (0, 1, 2, 3, 4, 5, 130))
    for name in (
        "import",
        "list",
        "latest",
        "show",
        "rate",
        "delete",
        "stats",
        "verify",
        "salvage",
        "copy",
        "export",
        "restore",
    ):
        assert f"  {name} " in overview
        text = run(name, "--help").stdout
        assert f"\n  convostore {name} " in text
        assert "\\b" not in text
    assert run("--version").stdout.startswith("convostore 0.")
