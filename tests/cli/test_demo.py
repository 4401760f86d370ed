"""The demo that the README's first command runs."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_demo_runs_twice(tmp_path: Path) -> None:
    """It imports, resumes in a new process, and says what it did; a second run begins anew."""
    for _ in range(2):
        demo = [sys.executable, str(EXAMPLES / "demo.py")]
        found = subprocess.run(demo, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert (0, "") == (found.returncode, found.stderr)
        for line in (
            "  taubench-gpt4o-airline-12.jsonl: 12 conversations, 378 messages",
            "  36 messages so far",
            '  waiting for get_seat_map({"flight_number": "HAT097"}), call-1',
            "  finished; open calls: 0",
            "  todos: [>] Offer seat 12A; rated 5: Very helpful!",
            '  toolResult: [{"type": "text", "text": "2 window seats"}]',
        ):
            assert line in found.stdout.splitlines()
        assert '"status": "completed", "result": ["12A", "14F"]' in found.stdout


def test_the_transcripts_are_unchanged() -> None:
    """The files are byte for byte those that their README says they are."""
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in (EXAMPLES / "transcripts").glob("*.json*")
    }
    assert DIGESTS == digests
    readme = (EXAMPLES / "transcripts" / "README.md").read_text("utf-8")
    assert all(f"`{name}`" in readme for name in digests)


DIGESTS = {
    "cookbook-toy_chat_fine_tuning-lines1-4.jsonl": "d1829a114830737c",
    "functionary-test_case.json": "d00d0ce1deb26aec",
    "taubench-gpt4o-airline-12.jsonl": "849e550684e4b4fa",
}
