"""Ticks go first: other work of the process lets them pass.

Threads of one process share one interpreter, which changes hands every few milliseconds: a tick
that runs while a merge does waits for it at each of a thousand small steps, and takes twice as
long. So a tick announces itself (``going_first``), and a merge waits between its blocks
(``let_pass``) until no tick is running. So do pictures and metrics before they are made (``wait``).

It waits a bounded time: ticks without a pause slow merges down and do not stop them, so
there are never more runs than merges, one block per ``PATIENCE``, can keep up with.

What has days to be done in does not even use all the time that ticks leave: ``Unhurried`` rests
after each piece of work several times as long as the piece took, until it is told to hurry.

Tests: tests/arrangement/test_precedence.py.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from time import thread_time
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PATIENCE: Final = 0.2
"""For how many seconds one block of a merge, or one picture, lets ticks pass."""

Item = TypeVar("Item")


class Precedence:
    """Who goes first, and who lets them; one for each interpreter."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._first = 0

    @contextmanager
    def going_first(self) -> Iterator[None]:
        """Have the others wait until the block ends."""
        with self._changed:
            self._first += 1
        try:
            yield
        finally:
            with self._changed:
                self._first -= 1
                self._changed.notify_all()

    def wait(self) -> None:
        """Wait for running ticks, for a while."""
        with self._changed:
            self._changed.wait_for(lambda: not self._first, PATIENCE)

    def let_pass(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield ``items``; before each is made, wait for running ticks, for a while."""
        source = iter(items)
        while True:
            self.wait()
            try:
                item = next(source)
            except StopIteration:
                return
            yield item


PRECEDENCE: Final = Precedence()
"""That of this process."""


REST: Final = 9
"""How many times as long as it worked who is not in a hurry rests."""


class Unhurried:
    """Work of one thread in small pieces, with rests, which lets others go first."""

    def __init__(self, precedence: Precedence = PRECEDENCE) -> None:
        self._precedence = precedence
        self._hurried = threading.Event()

    def hurry(self) -> None:
        """Rest no more."""
        self._hurried.set()

    def pieces(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield ``items``; after each, and what was done with it, let others pass and rest."""
        begun = thread_time()
        for item in self._precedence.let_pass(items):
            yield item
            self._hurried.wait(REST * (thread_time() - begun))
            begun = thread_time()
