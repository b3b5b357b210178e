"""Answers the requests of a wave with as few Spark jobs as possible.

All expressions over one delta are columns of one projection, which gets the columns they use and
gives what they compute, nothing else; the deltas of a wave, if they are small, are stacked into one
wide table (each with columns of its own, NULL elsewhere) and evaluated by one job. Values never
raise and errors are columns next to them (``sql.plan.spark_text``), so no row can fail the job.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.dataflow.evaluate import Evaluated, GroupRequest, RowRequest, answered, computed
from reclock.dataflow.types import arrow_type, arrow_types
from reclock.spark.group_text import group_text
from reclock.spark.interval_reader import register_reader
from reclock.sql.plan.scalar import ColumnRef, can_fail, walk
from reclock.sql.plan.spark_text import compile_scalars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from reclock.dataflow.evaluate import Answer, Request
    from reclock.spark.exchange import Exchange
    from reclock.sql.plan.scalar import Scalar

LEVELS: Final = 16
"""After so many stages columns that are no longer needed are left out."""

STACKED_ROWS: Final = 5_000
"""Deltas with more rows in all are evaluated by a job each: stacking copies columns."""


@dataclass(frozen=True)
class Bundle:
    """All expressions asked for over one delta."""

    rows: pa.RecordBatch
    scalars: tuple[Scalar, ...]

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The columns that the expressions use."""
        return columns_of(self.scalars)

    @property
    def kind(self) -> tuple[object, ...]:
        """What its plan depends on."""
        types = self.rows.schema.types
        return (tuple((i, types[i]) for i in self.used), self.scalars)


class SparkEvaluator:
    """``Evaluator`` by Spark SQL over an exchange."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def evaluate(self, requests: Sequence[Request]) -> list[Answer]:
        """Return one answer per request."""
        answers: dict[int, Answer] = {}
        by_source: dict[int, list[tuple[int, RowRequest]]] = {}
        for at, request in enumerate(requests):
            if isinstance(request, GroupRequest):
                answers[at] = self._group(request)
            else:
                by_source.setdefault(request.source, []).append((at, request))
        asked = list(by_source.values())
        bundles = [
            Bundle(group[0][1].rows, computed(s for _, r in group for s in r.scalars))
            for group in asked
        ]
        for group, bundle, found in zip(asked, bundles, self._rows(bundles), strict=True):
            for at, request in group:
                answers[at] = answered(request, bundle.scalars, found)
        return [answers[at] for at in range(len(requests))]

    def _rows(self, bundles: list[Bundle]) -> list[Evaluated]:
        if sum(bundle.rows.num_rows for bundle in bundles) <= STACKED_ROWS:
            return self._stacked(bundles)
        return [found for bundle in bundles for found in self._stacked([bundle])]

    def _stacked(self, bundles: list[Bundle]) -> list[Evaluated]:
        """Evaluate several bundles in one job, one below the other."""
        if not any(bundle.scalars for bundle in bundles):
            return [Evaluated((), ()) for _ in bundles]
        kind = tuple(bundle.kind for bundle in bundles)
        table = _stack(bundles)
        result = self._exchange.run(kind, table, lambda frame: projection(frame, bundles))
        found, start = [], 0
        column = iter(result.columns)
        for bundle in bundles:
            part = [
                (next(column), next(column) if can_fail(scalar) else None)
                for scalar in bundle.scalars
            ]
            stop = start + bundle.rows.num_rows
            values = tuple(
                whole(value.slice(start, stop - start), arrow_type(scalar.type))
                for (value, _), scalar in zip(part, bundle.scalars, strict=True)
            )
            errors = tuple(
                None if e is None else whole(e.slice(start, stop - start), pa.string())
                for _, e in part
            )
            found.append(Evaluated(values, errors))
            start = stop
        return found

    def _group(self, request: GroupRequest) -> pa.RecordBatch:
        node = request.node
        kind = ("group", node.fingerprint, node.schema.names)
        text = group_text(node)

        def query(frame: DataFrame) -> DataFrame:
            return frame.sparkSession.sql(text, rows=frame)

        found = self._exchange.run(kind, pa.Table.from_batches([request.rows]), query)
        types = [pa.int64(), *arrow_types(node.schema), pa.string()]
        columns = [whole(c, kind) for c, kind in zip(found.columns, types, strict=True)]
        return pa.RecordBatch.from_arrays(columns, found.schema.names)


def names_of(nth: int, width: int) -> list[str]:
    """Return the names of the columns of a bundle in the table of all bundles."""
    return [f"b{nth}c{i}" for i in range(width)]


def _stack(bundles: list[Bundle]) -> pa.Table:
    """Return all rows, those of each bundle in its own columns, and ``b`` for whose they are."""
    size = sum(bundle.rows.num_rows for bundle in bundles)
    arrays: list[pa.Array] = []
    names: list[str] = []
    owner: list[int] = []
    for nth, bundle in enumerate(bundles):
        before, count = len(owner), bundle.rows.num_rows
        owner += [nth] * count
        of_rows = names_of(nth, bundle.rows.num_columns - 2)
        for i in bundle.used:
            column = bundle.rows.column(i)
            names.append(of_rows[i])
            above = pa.nulls(before, column.type)
            below = pa.nulls(size - before - count, column.type)
            arrays.append(pa.concat_arrays([above, column, below]))
    return pa.Table.from_arrays([pa.array(owner, pa.int32()), *arrays], ["b", *names])


def projection(frame: DataFrame, bundles: Sequence[Bundle], kept: Sequence[str] = ()) -> DataFrame:
    """Return the projection that computes values and errors of all bundles.

    The columns of a bundle are ``names_of`` it; those ``kept`` come out first.
    """
    outputs: list[str] = list(kept)
    for nth, bundle in enumerate(bundles):
        names = names_of(nth, bundle.rows.num_columns - 2)
        texts = compile_scalars(bundle.scalars, names, prefix=f"b{nth}s")
        written = [text for stage in texts.stages for _, text in stage]
        register_reader(frame.sparkSession, [*written, *texts.values, *texts.errors])
        before = frame.columns if len(texts.stages) > LEVELS else []
        for at, (stage, still) in enumerate(zip(texts.stages, texts.kept, strict=True)):
            if at and at % LEVELS == 0:
                frame = frame.select(*before, *still)
            frame = frame.selectExpr("*", *(f"{text} AS {name}" for name, text in stage))
        found = zip(bundle.scalars, texts.values, texts.errors, strict=True)
        for i, (scalar, value, error) in enumerate(found):
            outputs.append(f"{value} AS b{nth}v{i}")
            if can_fail(scalar):
                outputs.append(f"{error or 'CAST(NULL AS STRING)'} AS b{nth}e{i}")
    return frame.selectExpr(*outputs)


def columns_of(scalars: Sequence[Scalar]) -> tuple[int, ...]:
    """Return the columns that expressions use, in order."""
    parts = (part for scalar in scalars for part in walk(scalar))
    return tuple(sorted({part.index for part in parts if isinstance(part, ColumnRef)}))


def whole(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Return a column as one array of a type that Spark may have widened."""
    whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return whole if whole.type == kind else whole.cast(kind)
