"""What `import convostore` brings, and what it leaves alone."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import convostore


def _modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_loads_no_driver_and_no_framework() -> None:
    """The library, used as far as `open`, leaves sqlite3, the command line's and the suites' libraries out of sys.modules."""
    brought = _modules_after("import convostore; convostore.open, convostore.Message") - _modules_after(
        "import asyncio, msgspec, uuid_utils"
    )
    assert set() == {name.partition(".")[0] for name in brought} & {
        "sqlite3",
        "typer",
        "rich",
        "click",
        "pytest",
        "hypothesis",
        "psycopg",
        "redis",
        "httpx",
        "starlette",
        "pydantic",
    }


def test_importing_loads_next_to_nothing() -> None:
    """`import convostore` brings no module of its own but the root, which is what keeps it cheap."""
    own = {name for name in _modules_after("import convostore") if name.startswith("convostore")}
    assert {"convostore"} == own


def test_every_public_name_is_exported_by_hand() -> None:
    """`__all__` names exactly what type checkers see imported and what is brought on demand, sorted."""
    tree = ast.parse(Path(convostore.__file__).read_text())
    seen = {
        alias.asname or alias.name: (node.module, alias.name)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    brought = {name: tuple(home.split(":")) for name, home in convostore._HOMES.items()}
    assert {**brought, "blocking": ("convostore", "blocking")} == seen
    assert sorted(seen) == convostore.__all__


def test_every_public_name_is_there() -> None:
    """Each name in `__all__` can be had, and an unknown one is an AttributeError."""
    for name in convostore.__all__:
        assert getattr(convostore, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'opne'"):
        convostore.opne  # noqa: B018


def test_names_of_the_contracts_exist() -> None:
    """The errors the original contracts name are there under those names."""
    assert convostore.ConversationStoreError is convostore.StoreError
    assert convostore.SessionNotFoundError is convostore.NotFoundError
    assert issubclass(convostore.AppendUnavailable, convostore.UnavailableError)
