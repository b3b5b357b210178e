"""The rows of a DataFrame, one batch at a time, however many there are.

``spilled`` has tasks write their rows to Arrow files of this machine, one for each task, in one
job; then they are read, in the order of the rows, and each is removed when it has been. Nothing
but the batch in hand is in memory, and Spark is done before the first row is given: who takes
them slowly keeps some files, and neither cores nor history. ``fetched`` is for tasks that run on
other machines: they give their rows as bytes, and the rows of one task at a time come here, when
they are wanted; until the last one the files that they are read from must stay.

Files are in a directory that is removed with the last batch, when the reader stops, or with the
process.

Tests: tests/spark/test_spill.py.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.spark.errors import carried, spark_errors
from reclock.spark.pool import Pool, titled
from reclock.spark.stoppable import new_tag, stoppable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from pyspark.sql import DataFrame

    from reclock.dataflow.stop import Stop

_WRITTEN: Final = pa.schema([("part", pa.int64()), ("file", pa.string())])
_PACKED: Final = pa.schema([("data", pa.binary())])


def spilled(
    frame: DataFrame, title: str, home: Path, stop: Stop | None = None
) -> Generator[pa.RecordBatch, None, None]:
    """Compute a frame now, into files below ``home``; return its rows, to be read from them."""
    scratch = Path(tempfile.mkdtemp(prefix="answer-", dir=home))
    try:
        context = frame.sparkSession.sparkContext
        with spark_errors(), titled(context, title, Pool.QUERIES), stoppable(context, stop):
            written = frame.mapInArrow(_Write(str(scratch)), "part bigint, file string").toArrow()
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    found = _read([Path(file) for file in written.sort_by("part")["file"].to_pylist()], scratch)
    next(found)  # it has begun, so that its end removes the files even if no row is read
    return found


def _read(files: list[Path], scratch: Path) -> Generator[pa.RecordBatch, None, None]:
    try:
        yield pa.record_batch({})
        for file in files:
            with pa.memory_map(str(file)) as mapped, pa.ipc.open_stream(mapped) as reader:
                yield from reader
            file.unlink()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@dataclass(frozen=True)
class _Write:
    """What a task runs: it writes its rows, and gives the name of the file, if it has any."""

    home: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - in the task

        rows = iter(batches)
        first = next(rows, None)
        context = TaskContext.get()
        if first is None or context is None:
            return
        part = context.partitionId()
        path = Path(self.home) / f"{part}-{context.taskAttemptId()}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, first.schema) as writer:
            writer.write_batch(first)
            for batch in rows:
                writer.write_batch(batch)
        yield pa.RecordBatch.from_pylist([{"part": part, "file": str(path)}], _WRITTEN)


def fetched(
    frame: DataFrame, title: str, stop: Stop | None = None
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of a frame, computed task by task while they are taken."""
    context, tag = frame.sparkSession.sparkContext, new_tag()
    with spark_errors():
        with titled(context, title, Pool.QUERIES), stoppable(context, stop, tag):
            rows = frame.mapInArrow(_packed, "data binary").toLocalIterator()
        while True:
            with stoppable(context, stop, tag):
                row = next(rows, None)
            if row is None:
                return
            with pa.ipc.open_stream(row.data) as reader:
                yield from reader


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches as bytes."""
    with carried():
        for batch in batches:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield pa.RecordBatch.from_arrays(
                [pa.array([sink.getvalue().to_pybytes()], pa.binary())], schema=_PACKED
            )
