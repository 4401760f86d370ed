"""Writes docs/contracts.md from the contracts' own docstrings: ``python -m tests.docs.contracts_page > docs/contracts.md``."""

from __future__ import annotations

import re
from importlib import import_module

from convostore.testing.published import SUITES
from convostore.testing.suite import clauses_of

_TITLES = {
    "convostore.contracts.backend": "The backend (B) and its errors (E)",
    "convostore.contracts.conversation_store": "The conversation store (C)",
    "convostore.contracts.session_store": "The session store (S)",
    "convostore.contracts.storage_adapter": "The storage adapter (A)",
    "convostore.contracts.crossing": "What crosses from store to store (X)",
}
_INTRODUCTION = """# The contracts, clause by clause

Each promise has an id. It stands in the docstring of its contract's module, the published suites test it under that id,
and this page is made from both (`make docs`). `python -m convostore.testing URL` prints the same table for a live store.
"""


def page() -> str:
    """Return the page."""
    sections = [_INTRODUCTION]
    for module, title in _TITLES.items():
        text = import_module(module).__doc__ or ""
        introduction, _, block = text.partition("\nClauses:\n")
        sections.append(f"## {title}\n\n{_unwrapped(introduction)}\n")
        tests = _tests(module)
        for clause, promise in _clauses(block):
            names = tests.get(clause, [])
            count = f"{len(names)} test{'s' if len(names) != 1 else ''}"
            sections.append(f"* **{clause}** {promise} *({count})*")
        closing = block.rpartition("\n\n")[2] if not block.rpartition("\n\n")[2].startswith("    ") else ""
        sections.append(f"\n{_unwrapped(closing)}\n" if closing.strip() else "")
    return "\n".join(sections).rstrip() + "\n"


def _clauses(block: str) -> list[tuple[str, str]]:
    found = re.findall(r"^    ([A-Z]\d+): (.*?)(?=^    [A-Z]\d+: |^\S|\Z)", block, re.MULTILINE | re.DOTALL)
    return [(clause, _unwrapped(promise)) for clause, promise in found]


def _unwrapped(text: str) -> str:
    return re.sub(r"\s*\n\s*(?!\n)", " ", text.strip()).replace("``", "`")


def _tests(module: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for suite in SUITES:
        if module in suite.contracts:
            for clause, names in clauses_of(suite).items():
                found.setdefault(clause, []).extend(names)
    return found


if __name__ == "__main__":
    print(page(), end="")
