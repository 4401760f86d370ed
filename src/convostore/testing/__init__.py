"""The published compliance suites: subclass one, give it a factory, run pytest; or ``python -m convostore.testing URL``.

`BackendSuite` holds every clause of the backend contract. Needs pytest and hypothesis: ``pip install
'convostore[testing]'``. Names are imported when first asked for, so that a process which a test starts needs neither.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convostore.testing.backend_suite import BackendSuite
    from convostore.testing.published import SUITES
    from convostore.testing.suite import Samples, Suite, clause, clauses_of

__all__ = ["SUITES", "BackendSuite", "Samples", "Suite", "clause", "clauses_of"]

_MODULES = {
    "BackendSuite": "backend_suite",
    "SUITES": "published",
    "Samples": "suite",
    "Suite": "suite",
    "clause": "suite",
    "clauses_of": "suite",
}

if "pytest" in sys.modules:
    # Plain asserts in the suites then say what was compared, as those in a test file do.
    sys.modules["pytest"].register_assert_rewrite(*(f"{__name__}.{each.name}" for each in iter_modules(__path__)))


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if missing := [each for each in ("pytest", "hypothesis") if find_spec(each) is None]:
        raise ImportError(f"the suites need {missing[0]}: pip install 'convostore[testing]'")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
