"""The protocol of sources that have read updates which they may not publish yet.

Two kinds of source keep updates until they are whole: those with times of their own
(``statements``), and those whose rows come in transactions (``transactions``). What waits has a
durable copy, the collection TEMP, as of the last time that was published.

An ``Offer`` is what a tick can publish now. Making it changes nothing; ``settle`` does, when it
is durable. A restarted process that begins with the durable copy, and reads on where it was made,
makes the same offers (P2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from reclock.dataflow import delta as deltas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from reclock.dataflow.changes import Stamped
    from reclock.durable.keyed import Json
    from reclock.time.timestamp import Timestamp


Where: TypeAlias = "Callable[[int], str]"
"""Says for the number of a statement, among those that came with it, where it is from."""


@dataclass(frozen=True)
class Offer:
    """What can be published: all times before ``upper``; ``complete`` if there are no others.

    ``closed`` is a delta of what the graph takes in; ``waiting`` one of statements, as of the last
    time before ``upper``.
    """

    upper: Timestamp
    complete: bool
    closed: pa.RecordBatch | None
    waiting: pa.RecordBatch | None
    fresh: int
    """How many of the parts that came since the last offer it knows."""
    runs: tuple[Stamped, ...] = field(default=(), kw_only=True)
    """What is published by reference: tasks have read it (``staged_rows``)."""
    held: Mapping[int, Json] | None = field(default=None, kw_only=True)
    """What waits in files then."""


class Files(Protocol):
    """What waits in files."""

    spent: list[str]
    """Files of which nothing waits any more."""


class Waiting(Protocol):
    """What waits, of one source."""

    upper: Timestamp
    size: int
    """Of all that waits, in bytes."""

    @property
    def staged(self) -> Files:
        """What waits in files."""
        ...

    @property
    def backlog(self) -> int:
        """How many rows wait in files though there is something to publish."""
        ...

    def add(self, rows: pa.RecordBatch, where: Where | None = None) -> None:
        """Take statements in; ``where`` each is from, is said of those that cannot be true."""
        ...

    def offer(self, limit: int | None, most: int) -> Offer | None:
        """Return what can be published of the times before ``limit``; None if there is none."""
        ...

    def settle(self, upper: Timestamp, offer: Offer | None) -> None:
        """Forget what is published before ``upper``; an offer that is durable was that."""
        ...

    def taken_in(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Return of the columns of statements those that the graph takes in."""
        ...

    @property
    def waiting(self) -> int:
        """How many rows wait."""
        ...

    @property
    def stated(self) -> int:
        """Up to where times are known to be stated."""
        ...

    @property
    def latest(self) -> int | None:
        """The last time that is spoken of; None if none is."""
        ...

    @property
    def faults(self) -> list[tuple[str, str]]:
        """The code and the text of every record that does not decode, and is not published yet."""
        ...

    def waiting_for(self) -> str | None:
        """Say, for a person, what the next time lacks; None if nothing is open."""
        ...


def changed(
    gone: Iterable[pa.RecordBatch], come: Iterable[pa.RecordBatch], time: int
) -> pa.RecordBatch | None:
    """Return how the durable copy of what waits changes at a time."""
    made = []
    for some, diff in ((gone, -1), (come, 1)):
        for rows in some:
            if rows.num_rows:
                times = np.full(rows.num_rows, time, np.int64)
                diffs = np.full(rows.num_rows, diff, np.int64)
                made.append(deltas.build(rows.columns, times, diffs))
    return deltas.union(made) if made else None


def faults_of(columns: Iterable[tuple[pa.Array, pa.Array]]) -> list[tuple[str, str]]:
    """Return the faults among codes and messages, in their order."""
    return [
        fault
        for codes, messages in columns
        if codes.null_count < len(codes)
        for fault in zip(codes.to_pylist(), messages.to_pylist(), strict=True)
        if fault[0] is not None
    ]


def concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch | None:
    """Return all rows as one batch; None if there are none."""
    if not batches:
        return None
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
