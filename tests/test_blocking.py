"""The blocking facade: one thread behind it, whatever happens in front of it."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from pathlib import Path

import pytest

import convostore
from convostore import blocking, opening
from convostore.blocking import BlockingChat, BlockingSessions, BlockingStore
from convostore.stores.chat import Chat
from convostore.stores.conversations import Conversations
from convostore.stores.sessions import Sessions


@pytest.mark.parametrize("url", ["memory://", "sqlite:///b.db"])
def test_closing_ends_every_call(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls under way in other threads when the store is closed return or raise ClosedError; none waits for ever."""
    monkeypatch.chdir(tmp_path)
    for _ in range(10):
        store = blocking.open(url)
        conversation = store.create_conversation("context", "subject")
        ended: list[str] = []

        def work(store: BlockingStore = store, id: str = conversation.id, ended: list[str] = ended) -> None:
            try:
                while True:
                    store.append_messages(id, [convostore.Message(role="user", content="x")])
                    store.load_messages(id)
            except convostore.ClosedError:
                ended.append("closed")

        threads = [threading.Thread(target=work, daemon=True) for _ in range(6)]
        for thread in threads:
            thread.start()
        store.load_messages(conversation.id)
        store.close()
        for thread in threads:
            thread.join(timeout=20)
        assert ["closed"] * 6 == ended


def test_a_closed_store_says_so() -> None:
    """After close every call raises ClosedError, and closing again is no error."""
    store = blocking.open("memory://")
    store.close()
    store.close()
    with pytest.raises(convostore.ClosedError):
        store.find_by_id("c")
    with pytest.raises(convostore.ClosedError):
        list(store.chat.iterate_conversations())


def test_a_store_that_is_forgotten_takes_its_thread_along() -> None:
    """Stores that nobody closes leave no thread behind once nobody holds them."""

    def portals() -> int:
        return sum(each.name == "convostore-portal" for each in threading.enumerate())

    before = portals()
    for _ in range(20):
        blocking.open("memory://").latest_or_create("context", "subject")
    gc.collect()
    deadline = time.monotonic() + 20
    while portals() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert before == portals()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_while_another_thread_calls(tmp_path: Path) -> None:
    """A child forked while another thread holds the portal's lock opens its own loop and goes on."""
    with blocking.open(tmp_path / "s.db") as store:
        conversation = store.create_conversation("context", "subject")
        with store._portal._lock:
            child = os.fork()
            if child == 0:
                try:
                    store.append_messages(conversation.id, [convostore.Message(role="user", content="child")])
                except BaseException:  # noqa: BLE001  whatever it is, the child must not go on as a test run
                    os._exit(1)
                os._exit(0)
        deadline = time.monotonic() + 30
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        if ended[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert (child, 0) == ended
        assert ["child"] == [each.content for each in store.load_messages(conversation.id)]


def test_a_call_from_its_own_thread_is_refused() -> None:
    """A clock that asks the store it belongs to would wait for itself; it gets an error instead."""
    stores: list[BlockingStore] = []

    def clock() -> int:
        stores[0].find_by_id("c")
        return 0

    with blocking.open("memory://", clock=clock) as store:
        stores.append(store)
        with pytest.raises(convostore.InvalidInput, match="its own thread"):
            store.create_conversation("context", "subject")


@pytest.mark.parametrize(
    ("facade", "store"),
    [
        (BlockingStore, Conversations),
        (BlockingSessions, Sessions),
        (BlockingChat, Chat),
        (BlockingStore, opening.Store),
    ],
)
def test_every_method_is_there(facade: type, store: type) -> None:
    """Every public name of a store has its counterpart without await; only `close` has another name."""
    public = {name for name in dir(store) if not name.startswith("_")} - {"aclose"}
    assert set() == public - set(dir(facade))
