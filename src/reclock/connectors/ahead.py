"""An iterator that runs ahead of its user, in a thread of its own.

``ahead(items)`` yields what ``items`` yields, in order, and raises what it raises. Up to ``DEPTH``
items wait: while one is worked on, the next is being fetched. When the user stops, ``items`` is
closed in the thread that ran it, after the current item.

Tests: tests/connectors/test_ahead.py.
"""

from __future__ import annotations

import threading
from contextlib import closing
from queue import Queue
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

X = TypeVar("X")

DEPTH: Final = 1
"""How many items wait; one more is being fetched, and one is being used."""


class _End:
    """There are no more items, because of an error if there is one."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def ahead(items: Generator[X, None, None]) -> Iterator[X]:
    """Yield the items of a generator while the next one is made.

    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    queue: Queue[X | _End] = Queue(DEPTH)
    unwanted = threading.Event()

    def run() -> None:
        end = _End()
        try:
            with closing(items):
                for item in items:
                    queue.put(item)
                    if unwanted.is_set():
                        return
        except BaseException as error:
            end = _End(error)
        queue.put(end)

    thread = threading.Thread(target=run, name="reclock-ahead", daemon=True)
    thread.start()
    try:
        while not isinstance(item := queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        unwanted.set()
        while thread.is_alive() and not queue.empty():
            queue.get_nowait()
