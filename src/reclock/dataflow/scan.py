"""The rows of a collection at a time: on the driver, or inside Spark tasks.

A collection is an arrangement of its rows (``Arranged``). Its snapshot is read from the
runs, each row as often as it is there. ``frame`` gives it to Spark: a collection of few
rows is read here and goes along with the plan; of a larger one every task reads its own
range of key hashes, from the files, so nothing of it passes through the driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from reclock.arrangement.cache import process_cache
from reclock.arrangement.layout import diff_of
from reclock.arrangement.shard import Shard
from reclock.dataflow.local_relation import local_relation
from reclock.dataflow.spark_errors import carried
from reclock.dataflow.types import stored_ddl
from reclock.errors import NegativeCount

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from reclock.arrangement.run import RunRef
    from reclock.arrangement.store import Store
    from reclock.dataflow.keying import Keying
    from reclock.sql.types import Type
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp

LOCAL_ROWS: Final = 20_000
"""A collection of no more updates than this is read on the driver."""

_HASHES: Final = 1 << 64
_LEAST: Final = -(1 << 63)


class Arranged(NamedTuple):
    """A collection arranged by some of its columns; no shard before its first run."""

    keying: Keying
    shard: Shard | None


def names_of(width: int) -> list[str]:
    """Return the names of stored columns: ``c0, c1, …``."""
    return [f"c{i}" for i in range(width)]


def repeated(keying: Keying, updates: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of consolidated updates, where they were, each as often as it is there."""
    rows = keying.columns(updates)
    made = pa.RecordBatch.from_arrays(rows, names=names_of(len(rows)))
    diff = diff_of(updates)
    if (diff == 1).all():
        return made
    if (diff < 0).any():
        message = "a stored row is there a negative number of times"
        detail = f"a row of {len(rows)} columns occurs {diff.min()} times"
        raise NegativeCount(message, detail=detail)
    return made.take(pa.array(np.repeat(np.arange(len(diff)), diff)))


def snapshot(of: Arranged, as_of: Timestamp) -> pa.Table:
    """Return all rows of a collection at ``as_of``."""
    keying, shard = of
    names = names_of(len(keying.types))
    batches = [] if shard is None else [repeated(keying, b) for b in shard.snapshot(as_of)]
    schema = pa.schema([pa.field(n, kind) for n, kind in zip(names, keying.types, strict=True)])
    return pa.Table.from_batches(batches, schema)


def frame(
    session: SparkSession,
    of: Arranged,
    kinds: Sequence[Type],
    as_of: Timestamp,
    store: Store | None,
) -> DataFrame:
    """Return the collection at ``as_of`` as stored columns ``c0, …``.

    Without a store that tasks can open, everything is read here.
    """
    shard = of.shard
    if shard is None or store is None or shard.rows <= LOCAL_ROWS:
        return local_relation(session, snapshot(of, as_of))
    parts = session.sparkContext.defaultParallelism * 2
    refs = tuple(run.ref for run in shard.runs)
    read = ReadPart(of.keying, refs, store, shard.upper, as_of, parts)
    ddl = stored_ddl(names_of(len(kinds)), kinds)
    return session.range(0, parts, 1, parts).mapInArrow(read, ddl)


@dataclass(frozen=True)
class ReadPart:
    """What a task runs: the snapshot of its range of key hashes.

    A value that pickles by its parts: run references and the store, never open files.
    """

    keying: Keying
    refs: tuple[RunRef, ...]
    store: Store
    upper: Antichain[Timestamp] | None
    as_of: Timestamp
    parts: int

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of each part that is asked for by its number."""
        with carried():
            for batch in numbers:
                for number in batch.column(0).to_pylist():
                    yield from self.part(number)

    def part(self, number: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part; all parts together are the snapshot."""
        cache = process_cache()
        shard = Shard.open(self.keying.layout, self.refs, self.store, cache, self.upper)
        first = _LEAST + number * _HASHES // self.parts
        last = _LEAST + (number + 1) * _HASHES // self.parts - 1
        for updates in shard.snapshot_range(self.as_of, first, last):
            yield repeated(self.keying, updates)
