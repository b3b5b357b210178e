"""The questions of a stage, put to Spark: one job each, over all parts.

Expressions over rows are one projection without a shuffle, so each task evaluates the rows
of its part and writes the answers in their order. Groups are one query with the version as
grouping key; Spark shuffles it as it likes, and every task writes what it has, sorted by
the part it is for. Text is that of ticks (``spark_evaluator``, ``group_text``): values never
raise, errors are columns beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from reclock.arrangement.segment import SegmentWriter, rows_per_batch
from reclock.dataflow import delta as deltas
from reclock.dataflow.bulk.answers import (
    VERSION_BITS,
    about_groups,
    about_rows,
    asked_scalars,
    group_layout,
    row_layout,
)
from reclock.dataflow.bulk.exchange import Reader, by_hash
from reclock.dataflow.bulk.task import ANSWERS, DDL, references
from reclock.dataflow.group_text import group_text
from reclock.dataflow.operators.groups import snapshots
from reclock.dataflow.spark_errors import carried
from reclock.dataflow.spark_evaluator import Bundle, columns_of, names_of, projection, whole
from reclock.dataflow.steps.groups import Groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from reclock.arrangement.layout import Layout
    from reclock.dataflow.bulk.exchange import Shelf
    from reclock.dataflow.bulk.schedule import Schedule
    from reclock.dataflow.bulk.task import RunStage
    from reclock.time.description import Description
    from reclock.time.timestamp import Timestamp

BATCH_ROWS: Final = 1 << 16


def questions(session: SparkSession, stage: RunStage) -> Iterator[DataFrame]:
    """Yield the jobs whose rows are the references of the answers."""
    schedule, shelf = stage.schedule, stage.shelf
    description, stem = stage.passing, stage.stem
    graph, plan = schedule.graph, stage.plan
    parts = shelf.parts.count
    numbers = session.range(0, parts, 1, parts)
    for source in plan.asked:
        types = graph.steps[source].types
        scalars = asked_scalars(graph, plan, source)
        if not scalars:
            continue
        used, names = columns_of(scalars), names_of(0, len(types))
        schema = _schema("kh", [names[i] for i in used], tuple(types[i] for i in used))
        frame = numbers.mapInArrow(_Rows(schedule, shelf, source, used), schema)
        bundle = Bundle(deltas.empty(types), scalars)
        asked = projection(frame, [bundle], ["kh"])
        write = _Write(about_rows(source), row_layout(scalars), shelf, description, stem)
        yield asked.mapInArrow(write, DDL)
    for at in plan.grouped:
        step = graph.steps[at]
        assert isinstance(step, Groups)
        types = step.keying.types
        schema = _schema("version", [f"c{i}" for i in range(len(types))], types)
        frame = numbers.mapInArrow(_Versions(schedule, shelf, step), schema)
        asked = session.sql(group_text(step.node), rows=frame)
        write = _Write(about_groups(at), group_layout(step), shelf, description, stem, True)
        yield asked.mapInArrow(write, DDL)


def _schema(first: str, names: list[str], types: deltas.Types) -> StructType:
    fields = [pa.field(first, pa.int64()), *map(pa.field, names, types)]
    return from_arrow_schema(pa.schema(fields), prefer_timestamp_ntz=True)


@dataclass(frozen=True)
class _Rows:
    """Some columns of the rows of a step in a part, each row with the part's first hash."""

    schedule: Schedule
    shelf: Shelf
    source: int
    used: tuple[int, ...]

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with carried():
            for part in (n for batch in numbers for n in batch.column(0).to_pylist()):
                yield from self._part(part)

    def _part(self, part: int) -> Iterator[pa.RecordBatch]:
        reader = Reader(self.schedule.graph, self.shelf, part)
        given = self.schedule.given.get(self.source)
        rows = reader.kept_rows(self.source) if given is None else reader.collection(given)
        here = pa.array(np.full(rows.num_rows, reader.first))
        columns = [rows.column(i) for i in self.used]
        names = ["kh", *(f"c{i}" for i in self.used)]
        yield from _sliced(pa.RecordBatch.from_arrays([here, *columns], names))


@dataclass(frozen=True)
class _Versions:
    """The rows of the groups of a part, each with the number of its version."""

    schedule: Schedule
    shelf: Shelf
    step: Groups

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with carried():
            for part in (n for batch in numbers for n in batch.column(0).to_pylist()):
                yield from self._part(part)

    def _part(self, part: int) -> Iterator[pa.RecordBatch]:
        reader = Reader(self.schedule.graph, self.shelf, part)
        rows, trace = reader.collection(self.step.state), reader.trace(self.step.state)
        if rows.num_rows:
            tagged = snapshots(rows, trace, self.step.keying).expanded()
            version = tagged.column(0).to_numpy() + (part << VERSION_BITS)
            columns = [pa.array(version), *tagged.columns[1:-1]]
            yield from _sliced(pa.RecordBatch.from_arrays(columns, tagged.schema.names[:-1]))


@dataclass(frozen=True)
class _Write:
    """Answers to runs: ``kh`` and the values, or, if ``numbered``, version and the others."""

    question: str
    layout: Layout
    shelf: Shelf
    description: Description[Timestamp]
    stem: str
    numbered: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = [batch for batch in batches if batch.num_rows]
        if found:
            with carried():
                yield self._written(pa.Table.from_batches(found))

    def _written(self, found: pa.Table) -> pa.RecordBatch:
        kh = found.column(0).to_numpy()
        columns = list(found.columns[1:])
        if self.numbered:
            version = kh & ((1 << VERSION_BITS) - 1)
            columns.insert(0, pa.chunked_array([version]))
            kh = self.shelf.parts.firsts[kh >> VERSION_BITS]
        kinds = [field.type for field in self.layout.value]
        rows = [whole(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        ones = np.ones(len(kh), np.int64)
        updates = by_hash(self.layout.batch(kh, rows, ones, ones))
        per_batch = rows_per_batch(updates.num_rows, updates.nbytes)
        with SegmentWriter(self.shelf.store, f"{self.stem}-{self.question}") as writer:
            writer.add(
                self.question, self.layout, [updates], self.description, batch_rows=per_batch
            )
            return references([(ANSWERS, self.question, ref) for ref in writer.finish()])


def _sliced(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)
