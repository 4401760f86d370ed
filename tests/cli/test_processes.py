"""The command as a process: what a shell sees when it ends in another way than by itself."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TRANSCRIPTS = Path(__file__).parents[2] / "examples" / "transcripts"
COMMAND = [sys.executable, "-m", "convostore.cli.main"]


def run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_output_that_nobody_reads(tmp_path: Path) -> None:
    """When the reader of a pipe leaves, the command ends silently with the code of a broken pipe."""
    taubench = TRANSCRIPTS / "taubench-gpt4o-airline-12.jsonl"
    assert 0 == run("import", str(taubench), "--to", "sqlite:///x.db", cwd=tmp_path).returncode
    with subprocess.Popen(
        [*COMMAND, "export", "-s", "sqlite:///x.db"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert (141, b"") == (process.wait(60), process.stderr.read())


def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C ends with its code and one line; what was committed is there."""
    with subprocess.Popen(
        [*COMMAND, "import", "-", "--to", "sqlite:///x.db"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        line = b'[{"role": "user", "content": "%d"}]' % 1
        process.stdin.write(line + b"\n")
        _wait_for(tmp_path / "x.db", process)
        process.send_signal(signal.SIGINT)
        try:
            for _ in range(1000):
                process.stdin.write(line + b"\n")
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert 130 == process.wait(60)
        errors = process.stderr.read()
        assert (1, b"convostore: interrupted") == (errors.count(b"\n"), errors[:23])
        if not process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
    assert 1 <= len(run("list", "--json", "-s", "sqlite:///x.db", cwd=tmp_path).stdout.splitlines())


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until the first conversation was committed."""
    while process.poll() is None:
        if path.exists():
            counted = run("stats", "--json", "-s", "sqlite:///x.db", cwd=path.parent)
            if counted.returncode == 0 and json.loads(counted.stdout)["conversations"]:
                return
    raise AssertionError("the import ended by itself")


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra(tmp_path: Path, missing: str) -> None:
    """Without typer or rich the command says which pip install brings them."""
    code = f"import sys; sys.modules[{missing!r}] = None; from convostore.cli.main import run; run()"
    process = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 1 == process.returncode
    assert f"the command line needs {missing}; install it with: pip install 'convostore[cli]'\n" == process.stderr


def test_a_narrow_encoding(tmp_path: Path) -> None:
    """Where stdout is ASCII, other characters come out escaped instead of an error."""
    (tmp_path / "x.json").write_text('[{"role": "user", "content": "caf\u00e9 \u2603"}]', "utf-8")
    environment = {"PYTHONIOENCODING": "ascii", "CONVOSTORE_URL": "sqlite:///x.db"}
    assert 0 == run("import", "x.json", cwd=tmp_path, **environment).returncode
    for arguments in (["list"], ["latest", "imported", "imported"]):
        found = run(*arguments, cwd=tmp_path, **environment)
        assert (0, True) == (found.returncode, "caf\\xe9" in found.stdout)
