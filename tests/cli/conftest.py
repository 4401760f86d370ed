"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store in the working directory, which the environment names; nothing is in it yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONVOSTORE_URL", "sqlite:///chats.db")
    return "sqlite:///chats.db"
