"""Forks: every engine of this process is told before one and after it, on both sides."""

from __future__ import annotations

import os
import weakref
from typing import Protocol

__all__ = ["Forking", "watch"]


class Forking(Protocol):
    """What a process has open that must not be carried over a fork."""

    def before_fork(self) -> None:
        """Give up what the child must not have; nobody may take it again until the fork is over."""
        ...

    def after_fork_in_parent(self) -> None:
        """Go on."""
        ...

    def after_fork_in_child(self) -> None:
        """Begin anew."""
        ...


_watched: weakref.WeakSet[Forking] = weakref.WeakSet()
_forking: list[Forking] = []


def watch(subject: Forking) -> None:
    """Tell `subject` of every fork from now on, for as long as it lives."""
    _watched.add(subject)


def _before() -> None:
    _forking[:] = _watched  # held, so that those told before are those told after
    for each in _forking:
        each.before_fork()


def _in_parent() -> None:
    while _forking:
        _forking.pop().after_fork_in_parent()


def _in_child() -> None:
    # Not `_forking`: a fork made outside of Python tells nobody before.
    _forking.clear()
    for each in list(_watched):
        each.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
