"""A family: sibling runs with disjoint ranges of ``kh``, read as if they were one run.

Definition. Siblings are runs of one interval of times. Tasks of a Spark job write them, each
for its own range of key hashes. If no two of their ranges overlap, their batches in the order of
their hashes are those of one sorted run. ``joined`` finds such siblings among the runs of a
shard; those that do overlap, such as updates that wait for their time, stay runs of their own.

So a hash is searched in one table of batches, however many parts there are, and touches the
batches of one run; a merge has one source, not one for each part.

Cost: to join n siblings, their tables; no batch is touched.

Tests: tests/arrangement/test_family.py.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from reclock.arrangement.hashes import Hashes
    from reclock.arrangement.layout import Int64s
    from reclock.arrangement.run import Run
    from reclock.time.antichain import Antichain
    from reclock.time.description import Description
    from reclock.time.timestamp import Timestamp


class Sorted(Protocol):
    """Batches that follow one another in the order of their hashes: a run, or a family."""

    first: Int64s
    last: Int64s
    sizes: Int64s

    @property
    def rows(self) -> int:
        """How many updates there are."""
        ...

    @property
    def batch_count(self) -> int:
        """How many batches there are."""
        ...

    def batch(self, index: int) -> pa.RecordBatch:
        """Return a batch."""
        ...

    def ahead(self, indices: Sequence[int]) -> Iterator[int]:
        """Yield the numbers of batches that will be asked for; some may be read meanwhile."""
        ...

    def hashes(self, index: int) -> Hashes:
        """Return the key hashes of a batch."""
        ...

    def of_hash(self, kh: int) -> Iterator[tuple[pa.RecordBatch, int, int]]:
        """Yield where the updates of one hash are."""
        ...

    def is_read(self, kh: int) -> bool:
        """Return whether all that may have updates of one hash has been touched."""
        ...

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield all batches."""
        ...


class Family:
    """Runs with rows, in the order of their hashes, no two of which overlap."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = tuple(runs)
        self.first: Int64s = np.concatenate([run.first for run in runs])
        self.last: Int64s = np.concatenate([run.last for run in runs])
        self.sizes: Int64s = np.concatenate([run.sizes for run in runs])
        self._ends = np.cumsum([run.batch_count for run in runs]).tolist()

    @property
    def rows(self) -> int:
        """How many updates there are."""
        return sum(run.rows for run in self.runs)

    @property
    def batch_count(self) -> int:
        """How many batches there are."""
        return int(self._ends[-1])

    def batch(self, index: int) -> pa.RecordBatch:
        """Return a batch."""
        run, place = self._place(index)
        return run.batch(place)

    def ahead(self, indices: Sequence[int]) -> Iterator[int]:
        """Yield the numbers of batches that will be asked for, in their order."""
        start = 0
        for run, end in zip(self.runs, self._ends, strict=True):
            here = [index - start for index in indices if start <= index < end]
            yield from (start + index for index in run.ahead(here))
            start = end

    def hashes(self, index: int) -> Hashes:
        """Return the key hashes of a batch."""
        run, place = self._place(index)
        return run.hashes(place)

    def of_hash(self, kh: int) -> Iterator[tuple[pa.RecordBatch, int, int]]:
        """Yield where the updates of one hash are: all in one run."""
        run = self._having(kh)
        return iter(()) if run is None else run.of_hash(kh)

    def is_read(self, kh: int) -> bool:
        """Return whether all batches that may have updates of one hash have been touched."""
        run = self._having(kh)
        return run is None or run.is_read(kh)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return (batch for run in self.runs for batch in run)

    @cached_property
    def _begins(self) -> list[int]:
        return [int(run.first[0]) for run in self.runs]

    def _having(self, kh: int) -> Run | None:
        """Return the one run that may have updates of a hash."""
        index = bisect_right(self._begins, kh) - 1
        return None if index < 0 else self.runs[index]

    def _place(self, index: int) -> tuple[Run, int]:
        nth = bisect_right(self._ends, index)
        return self.runs[nth], index - (self._ends[nth - 1] if nth else 0)


def joined(runs: Sequence[Run]) -> tuple[Sorted, ...]:
    """Return what is to be read of runs: each of them, or the families that they are."""
    found: list[Sorted] = []
    for some in families(runs):
        there = by_range(some) if len(some) > 1 else None
        found += some if there is None else [Family(there)]
    return tuple(found)


def families(runs: Sequence[Run]) -> list[list[Run]]:
    """Return runs with their siblings."""
    found: list[list[Run]] = []
    for run in runs:
        if found and is_sibling(found[-1][0].ref.description, run.ref.description):
            found[-1].append(run)
        else:
            found.append([run])
    return found


def by_range(siblings: Sequence[Run]) -> list[Run] | None:
    """Return siblings that have rows in the order of their hashes; None if some overlap."""
    there = sorted((run for run in siblings if run.rows), key=lambda run: int(run.first[0]))
    if not there or any(one.last[-1] >= next_.first[0] for one, next_ in pairwise(there)):
        return None
    return there


def is_sibling(one: Description[Timestamp], other: Description[Timestamp]) -> bool:
    """Return whether two runs that lie side by side hold parts of the same interval."""
    return _same(one.lower, other.lower) and _same(one.upper, other.upper)


def _same(one: Antichain[Timestamp], other: Antichain[Timestamp]) -> bool:
    return one is other or one == other
