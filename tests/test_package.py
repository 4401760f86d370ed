"""What `import convostore` brings, and what it leaves alone."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import convostore


def _modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_loads_no_driver_and_no_framework() -> None:
    """`import convostore` leaves sqlite3, the command line's and the suites' libraries out of sys.modules."""
    brought = _modules_after("import convostore") - _modules_after("import asyncio, msgspec, uuid_utils")
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


def test_every_public_name_is_exported_by_hand() -> None:
    """`__all__` names exactly what the root module imports for others, sorted."""
    tree = ast.parse(Path(convostore.__file__).read_text())
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(imported) == sorted(convostore.__all__)
    assert sorted(convostore.__all__) == convostore.__all__


def test_names_of_the_contracts_exist() -> None:
    """The errors the original contracts name are there under those names."""
    assert convostore.ConversationStoreError is convostore.StoreError
    assert convostore.SessionNotFoundError is convostore.NotFoundError
    assert issubclass(convostore.AppendUnavailable, convostore.UnavailableError)
