"""The command line run in this process, on a store in the working directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from convostore.cli.application import app
from convostore.cli.exits import Exit

TRANSCRIPTS = Path(__file__).parents[2] / "examples" / "transcripts"
AIRLINE = str(TRANSCRIPTS / "taubench-gpt4o-airline-12.jsonl")
TOY = str(TRANSCRIPTS / "cookbook-toy_chat_fine_tuning-lines1-4.jsonl")


def run(*arguments: str, code: Exit = Exit.OK, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(app, list(arguments), input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert code == result.exit_code, result.output
    return result


def run_json(*arguments: str, code: Exit = Exit.OK, stdin: bytes | None = None) -> Any:
    return json.loads(run(*arguments, "--json", code=code, stdin=stdin).stdout)


def lines_of(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def said(*texts: str) -> bytes:
    return json.dumps([{"role": "user", "content": text} for text in texts]).encode()


def imported(*texts: str) -> str:
    """Import a conversation and return its id."""
    (file,) = run_json("import", "-", stdin=said(*texts))["files"]
    return str(file["conversations"][0]["id"])
