"""Offers of a source that brings its times: what closes, and what of it is still to be seen.

``Closing`` is an offer that can be published, with what is remembered of its times. Some of its
updates may be in files that are still closed (``staged_times``): then it is ``Unseen``, and has all
that is needed to look at them (``dataflow.closing``), and to make an offer of it afterwards
(``statements.Statements.seen``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from reclock.ingest.waiting import Offer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from reclock.ingest.cdcv2.closed_times import News
    from reclock.ingest.cdcv2.staged_times import StagedTimes

    Int64s = NDArray[np.int64]

_NOTHING: Final = (np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class Closing(Offer):
    """An offer, and what is remembered of it."""

    news: News
    pieces: frozenset[StagedTimes] = frozenset()
    """What waited in files."""


@dataclass(frozen=True)
class Unseen(Closing):
    """An offer of which some updates are in files: whether it can be published is to be seen."""

    lower: int = 0
    end: int = 0
    concerned: tuple[StagedTimes, ...] = ()
    """The pieces that have updates of its times."""
    others: tuple[Sequence[pa.Array], pa.Array, Int64s] | None = None
    """Updates in memory: the columns of rows, diffs and times."""
    bounds: Mapping[int, int] = field(default_factory=dict)
    """How many updates each of its times has at most."""
    counts: Mapping[int, int] = field(default_factory=dict)
    """How many are stated, of those that have some."""
    remembered: tuple[int, ...] = ()
    """The times whose hashes are needed."""
    gone: tuple[pa.RecordBatch, ...] = ()
    come: tuple[pa.RecordBatch, ...] = ()

    @property
    def rows(self) -> int:
        """How many updates are looked at, about."""
        return sum(self.bounds.values())


def summed(numbers: Iterable[tuple[Int64s, Int64s]]) -> tuple[Int64s, Int64s]:
    """Return times, each once and in order, and the sums of their numbers."""
    times, counts = (np.concatenate(some) for some in zip(*numbers, _NOTHING, strict=True))
    found, where = np.unique(times, return_inverse=True)
    sums = np.zeros(len(found), np.int64)
    np.add.at(sums, where, counts)
    return found, sums
