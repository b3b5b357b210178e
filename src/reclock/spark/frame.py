"""A collection at a time as a DataFrame: read on the driver, or inside Spark tasks.

A collection of few rows is read here and goes along with the plan (``dataflow.scan``); of a larger
one every task reads its own range of key hashes, from the files, so nothing of it passes through
the driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.arrangement.cache import process_cache
from reclock.arrangement.shard import Shard
from reclock.dataflow.scan import names_of, repeated, snapshot
from reclock.dataflow.types import stored_ddl
from reclock.spark.errors import carried
from reclock.spark.local_relation import local_relation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from reclock.arrangement.run import RunRef
    from reclock.arrangement.store import Store
    from reclock.dataflow.keying import Keying
    from reclock.dataflow.scan import Arranged
    from reclock.sql.types import Type
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp

LOCAL_ROWS: Final = 20_000
"""A collection of no more updates than this is read on the driver."""

_HASHES: Final = 1 << 64
_LEAST: Final = -(1 << 63)


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
