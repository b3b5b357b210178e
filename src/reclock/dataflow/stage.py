"""Reading a source in Spark tasks: exact ranges, decoded, arranged and written where they are read.

The ranges of a reading are cut into slices; a task reads one of them, decodes it, arranges the
records by the key that divides them among parts (``Graph.entry``), sorted by hash, and writes a
run. The driver gets references and counts: no record passes it. The run has no time yet; the
tick that binds it says which (``changes.Stamped``).

A task that is lost or runs twice reads the same records and writes the same file. Files are not
made durable: what was not bound before a crash is read again. One consumer per Python worker is
kept between jobs (``connectors.kafka.fetch``).

Tests: tests/dataflow/test_stage.py; on a cluster: tests/coordinator/source/test_cluster.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.arrangement.run import RunRef
from reclock.arrangement.segment import SegmentWriter, rows_per_batch
from reclock.dataflow import delta as deltas
from reclock.dataflow.job.reader import by_hash
from reclock.dataflow.job.watch import titled
from reclock.dataflow.spark_errors import carried, spark_errors
from reclock.time.description import Description
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from reclock.arrangement.store import Store
    from reclock.dataflow.keying import Keying
    from reclock.dataflow.session import Spark
    from reclock.remap.batch import Range

    Read = Callable[[Sequence[Range]], Iterator[pa.RecordBatch]]

SLICE: Final = 250_000
"""How many positions a task reads."""

PLACES: Final = 2
"""The part and the offset come before the columns of a record."""

SCHEMA: Final = pa.schema([("ref", pa.string()), ("bytes", pa.int64()), ("errors", pa.int64())])
DDL: Final = "ref STRING, bytes BIGINT, errors BIGINT"


@dataclass(frozen=True)
class Staged:
    """What one job has read: runs without a time, and counts."""

    runs: tuple[RunRef, ...]
    bytes: int
    errors: int

    @property
    def rows(self) -> int:
        """How many records there are."""
        return sum(run.rows for run in self.runs)


@dataclass(frozen=True)
class Stager:
    """Reads and writes one source: ``faults`` are the columns in which a fault is not NULL."""

    read: Read
    keying: Keying
    store: Store
    stem: str
    faults: tuple[int, ...]

    def staged(self, ranges: Sequence[Range]) -> tuple[RunRef | None, int, int]:
        """Read ranges into a run; return its reference, its size, and how many faults it has."""
        made, size, errors = [], 0, 0
        for batch in self.read(ranges):
            size += batch.nbytes
            errors += sum(batch.num_rows - batch.column(i).null_count for i in self.faults)
            zeros, ones = np.zeros(len(batch), np.int64), np.ones(len(batch), np.int64)
            made.append(deltas.build(batch.columns[PLACES:], zeros, ones))
        made = [delta for delta in made if delta.num_rows]
        if not made:
            return None, size, errors
        updates = by_hash(self.keying.arrange(deltas.union(made)))
        whole = Description(at(0), at(1), at(0))
        per_batch = rows_per_batch(updates.num_rows, updates.nbytes)
        with SegmentWriter(self.store, self.stem, durable=False) as writer:
            writer.add("staged", self.keying.layout, [updates], whole, batch_rows=per_batch)
            (ref,) = writer.finish()
        return ref, size, errors


def stage(spark: Spark, stager: Stager, ranges: Sequence[Range], title: str) -> Staged:
    """Read ranges in Spark tasks, a slice each."""
    slices = cut(ranges)
    with spark_errors():
        session = spark.jobs
        with titled(session.sparkContext, title):
            numbers = session.range(0, len(slices), 1, len(slices))
            found = numbers.mapInArrow(_Task(stager, tuple(slices)), DDL).toArrow().to_pydict()
    refs = tuple(RunRef.from_json(json.loads(text)) for text in found["ref"] if text is not None)
    return Staged(refs, sum(found["bytes"]), sum(found["errors"]))


def cut(ranges: Sequence[Range]) -> list[Range]:
    """Return ranges of at most ``SLICE`` positions.

    >>> from reclock.remap.batch import Range
    >>> from reclock.time.timestamp import Timestamp
    >>> [(r.start, r.stop) for r in cut([Range(0, 5, 260_000, Timestamp(0))])]
    [(5, 250005), (250005, 260000)]
    """
    return [
        r._replace(start=start, stop=min(start + SLICE, r.stop))
        for r in ranges
        for start in range(r.start, r.stop, SLICE)
    ]


@dataclass(frozen=True)
class _Task:
    """What a task runs: it gets the number of its slice."""

    stager: Stager
    slices: tuple[Range, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage every slice whose number is given."""
        with carried():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    ref, size, errors = self.stager.staged([self.slices[number]])
                    text = None if ref is None else json.dumps(ref.to_json())
                    row = {"ref": text, "bytes": size, "errors": errors}
                    yield pa.RecordBatch.from_pylist([row], SCHEMA)
