"""What the contracts promise is what the suites test: the same clause ids, no more and no fewer."""

import re
from importlib import import_module

import pytest

from convostore.testing.published import SUITES
from convostore.testing.suite import Suite, clauses_of

CONTRACTS = sorted({contract for suite in SUITES for contract in suite.contracts})


def promised(contract: str) -> list[str]:
    """Return the clause ids in a module's ``Clauses:`` block, in its order."""
    text = import_module(contract).__doc__ or ""
    _, found, block = text.partition("\nClauses:\n")
    assert found, f"{contract} has no 'Clauses:' block"
    return re.findall(r"^    ([A-Z]\d+): ", block, re.MULTILINE)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_every_promise_is_tested_and_every_test_is_of_a_promise(contract: str) -> None:
    """The ids in the contract's docstring are those that its suites test under the same letters."""
    ids = promised(contract)
    suites = [suite for suite in SUITES if contract in suite.contracts]
    tested = {each for suite in suites for each in clauses_of(suite)}
    letters = {each[0] for each in ids}
    assert set(ids) == {each for each in tested if each[0] in letters}


@pytest.mark.parametrize("contract", CONTRACTS)
def test_a_promise_is_made_once(contract: str) -> None:
    """No id is given to two clauses, and the clauses of a letter come in order."""
    ids = promised(contract)
    assert len(set(ids)) == len(ids)
    for letter in {each[0] for each in ids}:
        numbers = [int(each[1:]) for each in ids if each[0] == letter]
        assert sorted(numbers) == numbers


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.__name__)
def test_a_suite_names_its_contracts_and_describes_its_tests(suite: type[Suite]) -> None:
    """Every published suite says which contracts it tests, and each of its tests says in one sentence what is true."""
    assert suite.contracts
    names = {name for names in clauses_of(suite).values() for name in names}
    silent = [name for name in sorted(names) if not (getattr(suite, name).__doc__ or "").strip().endswith(".")]
    assert [] == silent
    untagged = [name for name in dir(suite) if name.startswith("test_") and name not in names]
    assert [] == untagged
