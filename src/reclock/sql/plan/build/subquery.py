"""Subqueries in expressions: each becomes columns of the block, then a scalar over them.

Scalar: the value and how many rows there were; more than one is an error (21000), raised
only where the value is used. EXISTS: whether there is a row. ``x op ANY (q)``: true if some
row compares true, else NULL if some comparison is NULL, else false; ALL is the negation of
the negated ANY. NULLs are exact: ``NOT IN`` over a NULL is never true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import WrongType
from reclock.sql.plan.build.functions import call
from reclock.sql.plan.coerce import convert, exact, meeting_type
from reclock.sql.plan.decorrelate import apply
from reclock.sql.plan.functions import find_aggregate
from reclock.sql.plan.relation import (
    AggregateCall,
    Distinct,
    Filter,
    JoinKind,
    Project,
    Reduce,
    column,
    keep,
)
from reclock.sql.plan.scalar import FALSE, TRUE, And, Case, ColumnRef, Literal, OuterRef, Scalar
from reclock.sql.types import BIGINT, BOOLEAN

if TYPE_CHECKING:
    from reclock.sql.plan.build.block import Block, Planner
    from reclock.sql.plan.node import Node
    from reclock.sql.syntax.expression import QuantifiedQuery
    from reclock.sql.syntax.query import Query

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_COUNT = find_aggregate("count", ())


def _count() -> AggregateCall:
    return AggregateCall(_COUNT, (), BIGINT)


def _count_of(index: int, node: Node) -> AggregateCall:
    return AggregateCall(find_aggregate("count", (node.schema[index].type,)), (index,), BIGINT)


def scalar_value(planner: Planner, block: Block, query: Query) -> Scalar:
    """Plan ``(SELECT …)`` used as a value."""
    inner = planner.subquery(query, block)
    if inner.width != 1:
        message = "subquery must return only one column"
        raise WrongType(message, code="42601", hint=f"it has {inner.width}: select one of them")
    at = block.node.width
    if frozenset() in inner.unique_keys:
        block.node = apply(block.node, inner, JoinKind.LEFT)
        return column(block.node, at)
    kind = inner.schema[0].type
    any_row = AggregateCall(find_aggregate("any_row", (kind,)), (0,), kind)
    grouped = Reduce(inner, (), (("value", any_row), ("rows", _count())))
    block.node = apply(block.node, grouped, JoinKind.LEFT)
    value, rows = column(block.node, at), column(block.node, at + 1)
    return call("single_row", (value, rows))


def row_values(planner: Planner, block: Block, query: Query, width: int) -> list[Scalar]:
    """Plan ``(SELECT a, b …)`` used as a row of values; without a row they are NULL."""
    inner = planner.subquery(query, block)
    if inner.width != width:
        message = "number of columns does not match number of values"
        raise WrongType(message, code="42601", hint=f"select {width} columns, not {inner.width}")
    at = block.node.width
    if frozenset() in inner.unique_keys:
        block.node = apply(block.node, inner, JoinKind.LEFT)
        return [column(block.node, at + i) for i in range(width)]
    calls = [
        (c.name, AggregateCall(find_aggregate("any_row", (c.type,)), (i,), c.type))
        for i, c in enumerate(inner.schema)
    ]
    grouped = Reduce(inner, (), (*calls, ("rows", _count())))
    block.node = apply(block.node, grouped, JoinKind.LEFT)
    rows = column(block.node, at + width)
    return [call("single_row", (column(block.node, at + i), rows)) for i in range(width)]


def exists_value(planner: Planner, block: Block, query: Query) -> Scalar:
    """Plan ``EXISTS (SELECT …)`` as a value."""
    inner = keep(planner.subquery(query, block), ())
    counted = Reduce(inner, (), (("rows", _count()),))
    at = block.node.width
    block.node = apply(block.node, counted, JoinKind.LEFT)
    return call(">", (column(block.node, at), Literal(0, BIGINT)))


def exists_filter(planner: Planner, block: Block, query: Query, *, negated: bool) -> None:
    """Keep the rows of the block for which there is (or is not) a row of ``query``."""
    inner = planner.subquery(query, block)
    block.node = apply(block.node, inner, JoinKind.ANTI if negated else JoinKind.SEMI)


def in_filter(
    planner: Planner, block: Block, operands: tuple[Scalar, ...], e: QuantifiedQuery
) -> None:
    """Keep the rows for which ``operands op ANY (query)`` is true."""
    inner, refs = _operands(planner, block, operands, e.query)
    tests = tuple(call(e.symbol, (ref, column(inner, i))) for i, ref in enumerate(refs))
    block.node = apply(block.node, Filter(inner, tests), JoinKind.SEMI)


def _operands(
    planner: Planner, block: Block, operands: tuple[Scalar, ...], query: Query
) -> tuple[Node, tuple[OuterRef, ...]]:
    """Return the subquery and the operands as columns of the outer row, in common types."""
    inner = planner.subquery(query, block)
    if inner.width != len(operands):
        message = f"subquery has {inner.width} columns, but {len(operands)} are compared"
        hint = "select as many columns as there are on the left, (a, b) IN (…) for two"
        raise WrongType(message, code="42601", hint=hint)
    told = [exact((o, column(inner, i)))[0] for i, o in enumerate(operands)]
    kinds = [meeting_type(o.type, c.type, "IN") for o, c in zip(told, inner.schema, strict=True)]
    if any(c.type != k for c, k in zip(inner.schema, kinds, strict=True)):
        inner = Project(
            inner,
            tuple(
                (c.name, convert(column(inner, i), kinds[i])) for i, c in enumerate(inner.schema)
            ),
        )
    converted = [convert(o, k) for o, k in zip(told, kinds, strict=True)]
    refs = []
    for scalar in converted:
        index = _as_column(block, scalar)
        of = block.node.schema[index]
        refs.append(OuterRef(1, index, of.type, of.nullable, of.name))
    return inner, tuple(refs)


def _as_column(block: Block, scalar: Scalar) -> int:
    """Return a column of the block that holds ``scalar``, adding one if there is none."""
    if isinstance(scalar, ColumnRef):
        return scalar.index
    node = block.node
    kept = tuple((c.name, column(node, i)) for i, c in enumerate(node.schema))
    block.node = Project(node, (*kept, ("operand", scalar)))
    return node.width


def quantified_value(
    planner: Planner, block: Block, operands: tuple[Scalar, ...], e: QuantifiedQuery
) -> Scalar:
    """Plan ``operands op ANY | ALL (query)`` as a three-valued value."""
    symbol = _OPPOSITE[e.symbol] if e.every else e.symbol
    if e.symbol not in _OPPOSITE or (len(operands) > 1 and symbol != "="):
        message = f"{e.symbol} {'ALL' if e.every else 'ANY'} (subquery) is not supported here"
        raise WrongType(message, code="0A000")
    inner, refs = _operands(planner, block, operands, e.query)
    if symbol == "=" and len(operands) == 1:
        value = _in_value(block, inner, refs[0])
    else:
        value = _any_value(block, inner, refs, symbol)
    return call("not", (value,)) if e.every else value


def _in_value(block: Block, inner: Node, ref: OuterRef) -> Scalar:
    """``x IN (q)`` by an equality join for matches and one count for NULLs."""
    at = block.node.width
    matches = Filter(inner, (call("=", (ref, column(inner, 0))),))
    found = Project(Distinct(keep(matches, ())), (("found", TRUE),))
    block.node = apply(block.node, found, JoinKind.LEFT)
    counts = Reduce(inner, (), (("rows", _count()), ("present", _count_of(0, inner))))
    block.node = apply(block.node, counts, JoinKind.LEFT)
    hit, rows, present = (column(block.node, at + i) for i in range(3))
    x = column(block.node, ref.index)
    none = Literal(None, BOOLEAN)
    return Case(
        (
            (call("is true", (hit,)), TRUE),
            (call("=", (rows, Literal(0, BIGINT))), FALSE),
            (call("is null", (x,)), none),
            (call("<", (present, rows)), none),
        ),
        FALSE,
    )


def _any_value(block: Block, inner: Node, refs: tuple[OuterRef, ...], symbol: str) -> Scalar:
    """Return the general form: compare every row, and fold the comparisons."""
    tests = tuple(call(symbol, (ref, column(inner, i))) for i, ref in enumerate(refs))
    test = tests[0] if len(tests) == 1 else And(tests)
    compared = Project(inner, (("test", test),))
    either = AggregateCall(find_aggregate("bool_or", (BOOLEAN,)), (0,), BOOLEAN)
    calls = (("some", either), ("rows", _count()), ("present", _count_of(0, compared)))
    at = block.node.width
    block.node = apply(block.node, Reduce(compared, (), calls), JoinKind.LEFT)
    some, rows, present = (column(block.node, at + i) for i in range(3))
    return Case(
        ((call("is true", (some,)), TRUE), (call("<", (present, rows)), Literal(None, BOOLEAN))),
        FALSE,
    )
