"""The runs a process has open: memory maps and parsed tables, a bounded number of them.

A Spark worker runs thousands of tasks over the same shards. Opening a run costs a system
call, a checksum of its table, and for a run first touched a checksum of its batches; the
cache pays that once. What is evicted is forgotten, not closed: whoever still reads a run
keeps its map alive. A map keeps the space of a file that was removed, so whoever removes
segments calls ``forget``.

A copy in a remote store's local cache may be damaged by a crash of the machine. A run that
does not check out is fetched again before it is called corrupt.

Thread-safe. Tests: tests/arrangement/test_cache.py.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa

from reclock.arrangement.run import Run

if TYPE_CHECKING:
    from collections.abc import Collection

    from reclock.arrangement.layout import Layout
    from reclock.arrangement.run import RunRef
    from reclock.arrangement.store import Store

K = TypeVar("K")
V = TypeVar("V")

DEFAULT_RUNS: Final = 4096


class RunCache:
    """Open runs by store, reference and layout; the least recently used give way."""

    def __init__(self, capacity: int = DEFAULT_RUNS) -> None:
        self._capacity = capacity
        self._runs: OrderedDict[tuple[Store, RunRef], Run] = OrderedDict()
        self._maps: OrderedDict[tuple[Store, str], pa.Buffer] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._runs)

    def open(self, store: Store, ref: RunRef, layout: Layout) -> Run:
        """Return the run that ``ref`` names."""
        key = (store, ref)
        with self._lock:
            run = self._runs.get(key)
            if run is not None and run.layout == layout:
                self._runs.move_to_end(key)
                return run
        run = Run(
            ref,
            layout,
            read=lambda: self._bytes(store, ref),
            reread=lambda: self._bytes(store, ref) if self._forget(store, ref) else None,
        )
        with self._lock:
            self._runs[key] = run
            _trim(self._runs, self._capacity)
        return run

    def forget(self, store: Store, segments: Collection[str]) -> None:
        """Let go of segments that were removed."""
        gone = set(segments)
        with self._lock:
            for name in gone:
                self._maps.pop((store, name), None)
            for key in [key for key in self._runs if key[0] == store and key[1].segment in gone]:
                del self._runs[key]

    def _bytes(self, store: Store, ref: RunRef) -> pa.Buffer:
        """Return the bytes of a run, fewer than it should have if its file is cut off."""
        if ref.segment is None:
            return pa.py_buffer(ref.inline or b"")
        key = (store, ref.segment)
        with self._lock:
            mapped = self._maps.get(key)
        if mapped is None:
            mapped = store.map(ref.segment)
        with self._lock:
            self._maps[key] = mapped
            self._maps.move_to_end(key)
            _trim(self._maps, self._capacity)
        start = min(ref.offset, len(mapped))
        return mapped.slice(start, min(ref.length, len(mapped) - start))

    def _forget(self, store: Store, ref: RunRef) -> bool:
        """Drop a map and its local copy; return whether another try makes sense."""
        if ref.segment is None:
            return False
        with self._lock:
            self._maps.pop((store, ref.segment), None)
        return store.refresh(ref.segment)


def _trim(items: OrderedDict[K, V], capacity: int) -> None:
    while len(items) > capacity:
        items.popitem(last=False)


@cache
def process_cache() -> RunCache:
    """Return the cache that this process shares among its tasks."""
    return RunCache()
