"""Reading a source in Spark tasks: exact ranges, decoded where they are read.

The ranges of a reading are cut into slices of at most ``SLICE`` positions, in order within
each part. One job reads as many slices as there are tasks at once, and its records come
back in the order of the slices; then the next job. So records of a part come in order, what is
on its way is bounded by the slices of one job, and a task that is lost or run twice reads the
same records again: nothing but its answer counts. One consumer per Python worker is kept
between jobs (``connectors.kafka.fetch``).

Tests: tests/dataflow/test_read.py; on a cluster: tests/coordinator/source/test_cluster.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.dataflow.spark_errors import carried, spark_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from reclock.dataflow.session import Spark
    from reclock.remap.batch import Range

    Read = Callable[[Sequence[Range]], Iterator[pa.RecordBatch]]

SLICE: Final = 50_000


def read_in_tasks(
    spark: Spark, read: Read, ranges: Sequence[Range], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the records of ``ranges``, each slice of them read by a task."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - imports pyspark

    slices = slices_of(ranges)
    for begin in range(0, len(slices), spark.parallelism):
        some = slices[begin : begin + spark.parallelism]
        with spark_errors():
            numbers = spark.bulk.range(0, len(some), 1, len(some))
            task = _Task(read, tuple(some), schema)
            found = numbers.mapInArrow(task, from_arrow_schema(schema)).toArrow()
        yield from found.cast(schema).to_batches()


def slices_of(ranges: Sequence[Range]) -> list[Range]:
    """Return ranges of at most ``SLICE`` positions, in order within each part.

    The first slices of all parts come first, so that tasks read different parts.

    >>> from reclock.remap.batch import Range
    >>> from reclock.time.timestamp import Timestamp
    >>> [(r.part, r.start, r.stop) for r in slices_of([Range(0, 0, 60_000, Timestamp(0))])]
    [(0, 0, 50000), (0, 50000, 60000)]
    """
    cut = [
        (start, r._replace(start=start, stop=min(start + SLICE, r.stop)))
        for r in ranges
        for start in range(r.start, r.stop, SLICE)
    ]
    begins = {r.part: r.start for r in ranges}
    cut.sort(key=lambda pair: pair[0] - begins[pair[1].part])
    return [piece for _, piece in cut]


@dataclass(frozen=True)
class _Task:
    """What a task runs: it gets the number of its slice."""

    read: Read
    slices: tuple[Range, ...]
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the records of every slice whose number is given."""
        with carried():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for made in self.read([self.slices[number]]):
                        yield pa.RecordBatch.from_arrays(made.columns, schema=self.schema)
