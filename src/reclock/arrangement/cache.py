"""The runs a process has open: memory maps and parsed tables, a bounded number of them.

A Spark worker runs thousands of tasks over the same shards. Opening a run costs a system call, a
checksum of its table, and for a run first touched a checksum of its batches; the cache pays that
once. An evicted run is forgotten, not closed: a reader that still uses it keeps its map alive. A
map keeps the space of a removed file, so the remover of a segment calls ``forget``.

Thread-safe. Tests: tests/arrangement/test_cache.py.
"""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa

from reclock.arrangement.file import Mapped
from reclock.arrangement.run import Run

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from reclock.arrangement.file import File
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
        self._files: OrderedDict[tuple[Store, str], File] = OrderedDict()
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
        run = Run(ref, layout, lambda: self._file(store, ref))
        with self._lock:
            self._runs[key] = run
            _trim(self._runs, self._capacity)
        return run

    def open_all(self, store: Store, refs: Sequence[RunRef], layout: Layout) -> tuple[Run, ...]:
        """Return the runs that ``refs`` name; those that are far away are opened side by side."""
        with self._lock:
            unknown = [ref for ref in refs if ref.segment and (store, ref) not in self._runs]
        if store.openers > 1 and len(unknown) > 1:
            with ThreadPoolExecutor(min(store.openers, len(unknown))) as pool:
                list(pool.map(lambda ref: self.open(store, ref, layout), unknown))
        return tuple(self.open(store, ref, layout) for ref in refs)

    def forget(self, store: Store, segments: Collection[str]) -> None:
        """Let go of segments that were removed."""
        gone = set(segments)
        with self._lock:
            for name in gone:
                self._files.pop((store, name), None)
            for key in [key for key in self._runs if key[0] == store and key[1].segment in gone]:
                del self._runs[key]

    def _file(self, store: Store, ref: RunRef) -> File:
        """Return the file that has a run."""
        if ref.segment is None:
            return Mapped(pa.py_buffer(ref.inline or b""))
        key = (store, ref.segment)
        with self._lock:
            file = self._files.get(key)
        if file is None:
            file = store.file(ref.segment)
        with self._lock:
            self._files[key] = file
            self._files.move_to_end(key)
            _trim(self._files, self._capacity)
        return file


def _trim(items: OrderedDict[K, V], capacity: int) -> None:
    while len(items) > capacity:
        items.popitem(last=False)


@cache
def process_cache() -> RunCache:
    """Return the cache that this process shares among its tasks."""
    return RunCache()
