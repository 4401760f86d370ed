"""Every Python example in the README and the docs runs, top to bottom, page by page."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.contracts_page import page

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def _blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", [page for page in PAGES if _blocks(page)], ids=lambda page: page.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run in order, in one namespace and an empty folder."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}

    async def run() -> None:
        for number, block in enumerate(_blocks(page), 1):
            code = compile(block, f"{page.name}, example {number}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, namespace)
            if inspect.isawaitable(result):
                await result

    asyncio.run(run())


def test_pages_link_to_what_is_there() -> None:
    """Every relative link in the README and the docs leads to a file."""
    missing = [
        f"{page.name} -> {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert [] == missing


def test_only_the_tests_and_the_root_import_the_root() -> None:
    """No module inside the package imports the package root, which would make floors a circle."""
    guilty = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "src" / "convostore").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import) and any(alias.name == "convostore" for alias in node.names)
    ]
    assert [] == guilty


def test_the_contracts_page_is_current() -> None:
    """docs/contracts.md says what the contracts' docstrings and the suites say; `make docs` writes it anew."""
    assert page() == (ROOT / "docs" / "contracts.md").read_text()
