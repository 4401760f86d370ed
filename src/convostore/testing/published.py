"""The published suites: what `python -m convostore.testing` runs, and what the contracts' clause ids are compared with.

A new suite is added here; its class says what its subject is and which contracts it tests.
"""

from __future__ import annotations

from convostore.testing.backend_suite import BackendSuite
from convostore.testing.conversation_suite import ConversationSuite
from convostore.testing.crossing_suite import CrossingSuite
from convostore.testing.full_storage_adapter_suite import FullStorageAdapterSuite
from convostore.testing.session_suite import SessionSuite
from convostore.testing.suite import Suite

__all__ = ["SUITES"]

SUITES: tuple[type[Suite], ...] = (
    BackendSuite,
    ConversationSuite,
    SessionSuite,
    FullStorageAdapterSuite,
    CrossingSuite,
)
