"""Answers straight from the runs: scans and look-ups, on the driver, without a Spark job.

``direct`` answers a query that filters, computes columns and takes the first rows, over one
collection or constant, if Arrow can compute all of it (``local``). If the columns that
must equal a constant include all key columns of some arrangement of the collection, its
rows are looked up by that key: the cost is that of the rows found, whatever the size of
the collection. Otherwise it is scanned, if it is not large or all of it is wanted.

``pieces`` gives the rows of a large scan bit by bit. Anything else is None: for Spark, and so
is a query with an error in one of its rows, because Spark says in which.
Equality is SQL's: NaN equals NaN, NULL equals nothing.

Tests: tests/dataflow/test_direct.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from reclock.arrangement.column import canonical
from reclock.arrangement.precedence import PRECEDENCE
from reclock.arrangement.row import rows_equal
from reclock.dataflow import local
from reclock.dataflow.delta import key_hash
from reclock.dataflow.ordering import OrderBy, order_of
from reclock.dataflow.scan import Arranged, repeated, snapshot
from reclock.dataflow.types import arrow_types
from reclock.dataflow.values import from_python
from reclock.sql.plan.relation import Constant, Filter, Get, Project, TopK
from reclock.sql.plan.scalar import Call, ColumnRef, Literal, can_fail, substituted

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from reclock.dataflow.evaluate import Evaluated
    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Node, SortKey
    from reclock.sql.plan.relation import QueryPlan
    from reclock.sql.plan.scalar import Scalar
    from reclock.time.timestamp import Timestamp

FILTERED_ROWS: Final = 1_000_000
"""A collection of more updates than this is not scanned here for some of its rows, nor sorted."""

PIECE_ROWS: Final = 16_384
"""Of a collection of more updates than this so many of each run are scanned at a time."""


@dataclass(frozen=True)
class _Places:
    """The rows ``offset ≤ place < offset + limit`` in an order of all columns."""

    order: tuple[SortKey, ...]
    limit: int | None
    offset: int


@dataclass
class Shape:
    """A query as it can be answered here, gathered from the leaf up.

    ``columns``: each column of the query, as an expression over the columns of the leaf.
    ``equal``: leaf columns that must have a value. ``filters``: what else must hold, in order.
    """

    leaf: Get | Constant
    columns: tuple[Scalar, ...]
    equal: dict[int, Literal] = field(default_factory=dict)
    filters: list[Scalar] = field(default_factory=list)
    impossible: bool = False
    places: _Places | None = None

    @property
    def moves(self) -> tuple[int | Literal, ...] | None:
        """Where each column comes from, or its constant, if nothing is computed."""
        made = tuple(
            scalar.index if isinstance(scalar, ColumnRef) else scalar
            for scalar in self.columns
            if isinstance(scalar, ColumnRef | Literal)
        )
        return made if len(made) == len(self.columns) and not self.filters else None

    @property
    def can_fail(self) -> bool:
        """Whether a row could be an error."""
        return any(map(can_fail, (*self.filters, *self.columns)))


def direct(
    plan: QueryPlan, leaves: Mapping[ObjectId, Sequence[Arranged]], as_of: Timestamp
) -> pa.Table | None:
    """Return the visible columns of a query in its order, or None if it needs Spark.

    ``leaves`` has for each collection its arrangements, the first of which is always there.
    """
    shape = shape_of(plan.root)
    if shape is None:
        return None
    rows = _rows(shape, plan, leaves, as_of)
    columns = None if rows is None else _shown(rows, shape)
    if rows is None or columns is None:
        return None
    if shape.places is not None:
        columns = _placed(columns, shape.places, len(columns[0]) if columns else rows.size)
    if plan.order:
        columns = _placed(columns, _Places(plan.order, None, 0), len(columns[0]))
    names = plan.root.schema.names[: plan.visible]
    return pa.Table.from_arrays(columns[: plan.visible], names=list(names))


def pieces(
    plan: QueryPlan, leaves: Mapping[ObjectId, Sequence[Arranged]], as_of: Timestamp
) -> Generator[pa.RecordBatch, None, None] | None:
    """Return the same rows as ``direct``, scanned while they are taken; None if not by a scan.

    That is for many rows without an order: the first is there at once, and no more of them than a
    piece at any time. The runs stay open meanwhile, also those whose files are removed. Between two
    pieces it lets ticks pass.
    """
    shape = shape_of(plan.root)
    if shape is None or plan.order or shape.places is not None or shape.impossible:
        return None
    if isinstance(shape.leaf, Constant) or shape.can_fail:
        return None
    arranged = leaves[shape.leaf.item]
    rows = _size(arranged[0])
    if rows <= PIECE_ROWS or _by_key(arranged, shape) is not None:
        return None
    if _is_large(shape, plan, rows):
        return None
    return _scanned(arranged[0], shape, plan, as_of)


def _scanned(
    of: Arranged, shape: Shape, plan: QueryPlan, as_of: Timestamp
) -> Generator[pa.RecordBatch, None, None]:
    assert of.shard is not None
    names = list(plan.root.schema.names[: plan.visible])
    for updates in PRECEDENCE.let_pass(of.shard.snapshot(as_of, block_rows=PIECE_ROWS)):
        piece = repeated(of.keying, updates)
        columns = _shown(_matching(_Rows(piece.columns, piece.num_rows), shape.equal), shape)
        assert columns is not None, "what cannot fail has values"
        yield pa.RecordBatch.from_arrays(columns[: plan.visible], names=names)


def way(plan: QueryPlan, leaves: Mapping[ObjectId, Sequence[Arranged]]) -> str | None:
    """Say how ``direct`` would answer a query; None if it would not."""
    shape = shape_of(plan.root)
    if shape is None or (isinstance(shape.leaf, Constant) and not _is_multiset(shape.leaf)):
        return None
    if shape.impossible or isinstance(shape.leaf, Constant):
        return "constants"
    arranged = leaves[shape.leaf.item]
    by_key = _by_key(arranged, shape)
    if by_key is not None:
        names = ", ".join(shape.leaf.schema[column].name for column in by_key.keying.key)
        return f"look-up in {shape.leaf.name} by ({names})"
    rows = _size(arranged[0])
    if _is_large(shape, plan, rows):
        return None
    return f"scan of {shape.leaf.name}, {rows} updates"


def scanned_rows(plan: QueryPlan, leaves: Mapping[ObjectId, Sequence[Arranged]]) -> int | None:
    """Return how many updates ``direct`` would scan, none for a look-up; None if Spark would."""
    if way(plan, leaves) is None:
        return None
    shape = shape_of(plan.root)
    assert shape is not None
    if shape.impossible or isinstance(shape.leaf, Constant):
        return 0
    arranged = leaves[shape.leaf.item]
    return _size(arranged[0]) if _by_key(arranged, shape) is None else 0


def shape_of(node: Node) -> Shape | None:
    """Return a query as it can be answered here; None if it cannot."""
    if isinstance(node, Get | Constant):
        columns = [ColumnRef(i, c.type, c.nullable, c.name) for i, c in enumerate(node.schema)]
        return Shape(node, tuple(columns))
    below = shape_of(node.input) if isinstance(node, Project | Filter | TopK) else None
    if below is None:
        return None
    if isinstance(node, Project):
        return _projected(below, node)
    if below.places is None and isinstance(node, Filter):
        return _filtered(below, node.predicates)
    if below.places is None and isinstance(node, TopK) and not node.group:
        below.places = _Places(node.order, node.limit, node.offset)
        return below
    return None


def _projected(shape: Shape, node: Project) -> Shape | None:
    made = tuple(substituted(scalar, shape.columns) for _, scalar in node.outputs)
    if not all(map(local.is_local, made)):
        return None
    if shape.places is not None and made != shape.columns:
        return None  # places are by the columns as they were
    shape.columns = made
    return shape


def _filtered(shape: Shape, predicates: Sequence[Scalar]) -> Shape | None:
    for predicate in predicates:
        made = substituted(predicate, shape.columns)
        found = _equality(made)
        if found is None:
            if not local.is_local(made):
                return None
            shape.filters.append(made)
            continue
        column, literal = found
        known = shape.equal.get(column)
        if literal.value is None or (known is not None and known != literal):
            shape.impossible = True
        shape.equal[column] = literal
    return shape


def _equality(predicate: Scalar) -> tuple[int, Literal] | None:
    """Return the column and the constant of ``column = constant``."""
    if not isinstance(predicate, Call) or predicate.function.name != "=":
        return None
    one, other = predicate.arguments
    if isinstance(one, Literal):
        one, other = other, one
    if isinstance(one, ColumnRef) and isinstance(other, Literal) and one.type == other.type:
        return one.index, other
    return None


class _Rows(NamedTuple):
    """All columns of a leaf, and how many rows there are, for a leaf may have no columns."""

    columns: list[pa.Array]
    size: int

    @classmethod
    def of(cls, table: pa.Table) -> _Rows:
        return cls([_whole(column) for column in table.columns], table.num_rows)


def _is_large(shape: Shape, plan: QueryPlan, rows: int) -> bool:
    """Return whether a scan is for Spark: for some rows of many, or all in order or at once."""
    sorts = bool(plan.order) and shape.places is None
    some = bool(shape.equal) or bool(shape.filters)
    return rows > FILTERED_ROWS and (sorts or some or shape.can_fail)


def _rows(
    shape: Shape,
    plan: QueryPlan,
    leaves: Mapping[ObjectId, Sequence[Arranged]],
    as_of: Timestamp,
) -> _Rows | None:
    """Return the rows of the leaf that pass."""
    if shape.impossible:
        return _Rows([pa.array([], kind) for kind in arrow_types(shape.leaf.schema)], 0)
    if isinstance(shape.leaf, Constant):
        found = _constant(shape.leaf)
        return None if found is None else _matching(found, shape.equal)
    arranged = leaves[shape.leaf.item]
    by_key = _by_key(arranged, shape)
    if by_key is not None:
        return _matching(_looked_up(by_key, shape.equal, as_of), shape.equal)
    if _is_large(shape, plan, _size(arranged[0])):
        return None
    return _matching(_Rows.of(snapshot(arranged[0], as_of)), shape.equal)


def _shown(rows: _Rows, shape: Shape) -> list[pa.Array] | None:
    """Return the columns of a query, from those of its leaf; None if a row is an error."""
    moves = shape.moves
    if moves is not None:
        every = pa.array(np.zeros(rows.size, np.int64))
        return [_array(at).take(every) if isinstance(at, Literal) else rows.columns[at]
                for at in moves]  # fmt: skip
    if not rows.columns:
        return None
    names = [f"c{i}" for i in range(len(rows.columns))]
    batch = pa.RecordBatch.from_arrays(rows.columns, names=names)
    for condition in shape.filters:  # one after the other: a row that is out is no error
        found = local.evaluated([condition], batch)
        if _fails(found):
            return None
        batch = batch.filter(found.values[0].fill_null(False))
    found = local.evaluated(shape.columns, batch)
    return None if _fails(found) else [canonical(column) for column in found.values]


def _fails(found: Evaluated) -> bool:
    return any(error is not None and error.null_count < len(error) for error in found.errors)


def _size(of: Arranged) -> int:
    return 0 if of.shard is None else of.shard.rows


def _by_key(arranged: Sequence[Arranged], shape: Shape) -> Arranged | None:
    """Return an arrangement by columns that must all equal constants."""
    for of in arranged:
        if of.keying.key and all(column in shape.equal for column in of.keying.key):
            return of
    return None


def _looked_up(of: Arranged, equal: Mapping[int, Literal], as_of: Timestamp) -> _Rows:
    """Return the rows with this key."""
    keying, shard = of
    if shard is None:
        return _Rows([pa.array([], kind) for kind in keying.types], 0)
    key = [_array(equal[column]) for column in keying.key]
    kh = pa.array(key_hash(key, 1))
    asked = pa.RecordBatch.from_arrays([kh, *key], schema=keying.layout.key_schema)
    _, updates = shard.lookup_at(asked, as_of)
    rows = repeated(keying, updates)
    return _Rows(rows.columns, rows.num_rows)


def _array(literal: Literal) -> pa.Array:
    return canonical(from_python([literal.value], literal.type))


def _matching(rows: _Rows, equal: Mapping[int, Literal]) -> _Rows:
    """Return the rows with these values; the constants are not NULL."""
    if not rows.size or not equal:
        return rows
    every = pa.array(np.zeros(rows.size, np.int64))
    have = [canonical(rows.columns[column]) for column in equal]
    want = [_array(literal).take(every) for literal in equal.values()]
    passing = rows_equal(have, want)
    mask = pa.array(passing)
    return _Rows([column.filter(mask) for column in rows.columns], int(passing.sum()))


def _is_multiset(node: Constant) -> bool:
    return all(count >= 0 for _, count in node.rows)


def _constant(node: Constant) -> _Rows | None:
    if not _is_multiset(node):
        return None
    rows = [row for row, count in node.rows for _ in range(count)]
    kinds = [column.type for column in node.schema]
    columns = [from_python([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    return _Rows(columns, len(rows))


def _placed(columns: list[pa.Array], places: _Places, size: int) -> list[pa.Array]:
    """Return the rows in their order, those in the places asked for."""
    keys = [OrderBy(k.column, k.descending, k.nulls_first) for k in places.order]
    order = order_of(columns, keys, np.zeros(size, np.int64), np.arange(size))
    last = None if places.limit is None else places.offset + places.limit
    at = pa.array(order[places.offset : last])
    return [column.take(at) for column in columns]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
