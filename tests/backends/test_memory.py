"""The memory backend keeps every clause of the backend contract."""

from collections.abc import Callable

import pytest

from convostore.backends.memory import MemoryBackend
from convostore.testing.backend_suite import BackendSuite


class TestMemoryBackend(BackendSuite):
    """Every test on a store of its own; another process has another store."""

    @pytest.fixture
    def factory(self) -> Callable[[], MemoryBackend]:
        return MemoryBackend

    @pytest.fixture
    def process_factory(self) -> Callable[[], MemoryBackend]:
        return MemoryBackend
