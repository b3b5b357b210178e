"""Window functions as Spark SQL text with PostgreSQL's meaning, that never fails.

Functions of the row's place (row_number, lag, ntile, first_value, …) see the partition in
the order of the window, ties in the order of all columns, so that their values are a
function of the rows alone. Functions of peers (rank, cume_dist, RANGE frames) see the
order as it is written. Without ORDER BY all rows are peers.

Spark wants the offset of ``lag``, the number of ``ntile`` and of ``nth_value`` as literals,
plans have them in columns: ``constants_of`` finds the columns whose value is known.

Tests: tests/spark/test_batch.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reclock.spark.aggregate_text import framed_error, framed_text
from reclock.spark.columns import Columns, order_text, total_order
from reclock.sql.plan.functions.aggregate import AGGREGATES, WINDOWS
from reclock.sql.plan.node import PlanError
from reclock.sql.plan.relation import (
    Constant,
    Distinct,
    Filter,
    Frame,
    Join,
    JoinKind,
    Project,
    Threshold,
    TopK,
    Window,
)
from reclock.sql.plan.scalar import ColumnRef, Literal
from reclock.sql.plan.spark_literal import literal_text, quote_string
from reclock.sql.types import INTEGER, Array

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.sql.plan.node import Node, SortKey
    from reclock.sql.plan.order import WindowCall

_OF_PEERS: Final = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
_PICKS: Final = frozenset({"first_value", "last_value", "nth_value"})
_ONLY_WINDOW: Final = frozenset(w.name for w in WINDOWS)
_AT_LEAST_ONE: Final = {
    "ntile": (0, "22014|argument of ntile must be greater than zero"),
    "nth_value": (1, "22016|argument of nth_value must be greater than zero"),
}

_ARRAY: Final = next(a for a in AGGREGATES if a.name == "array_agg")
_WHOLE: Final = Frame("rows", ("preceding", None), ("following", None))
_TO_HERE: Final = Frame("rows", ("preceding", None), ("current row", None))
_FROM_HERE: Final = Frame("rows", ("current row", None), ("following", None))


def constants_of(node: Node) -> dict[int, object]:
    """Return the columns of ``node`` that have one known value in all rows."""
    match node:
        case Project():
            below = constants_of(node.input)
            found = {}
            for at, (_, scalar) in enumerate(node.outputs):
                if isinstance(scalar, Literal):
                    found[at] = scalar.value
                elif isinstance(scalar, ColumnRef) and scalar.index in below:
                    found[at] = below[scalar.index]
            return found
        case Constant() if node.rows:
            first = node.rows[0][0]
            same = range(len(first))
            return {i: first[i] for i in same if all(row[i] == first[i] for row, _ in node.rows)}
        case Filter() | Distinct() | Threshold() | TopK() | Window():
            return constants_of(node.input)
        case Join() if node.kind is JoinKind.INNER:
            right = constants_of(node.right)
            return constants_of(node.left) | {node.left.width + i: v for i, v in right.items()}
    return {}


def window_text(
    call: WindowCall,
    columns: Columns,
    partition: Sequence[str],
    order: Sequence[SortKey],
    constants: Mapping[int, object],
) -> str:
    """Return text for the value of ``call`` over ``partition``, a list of texts."""
    name = call.function.name
    if name not in _ONLY_WINDOW:
        return framed_text(call, columns, order, _framed(call, columns, partition, order))
    if window_error(call, columns, partition, order, constants) is not None:
        return f"CAST(NULL AS {call.type.spark_name})"
    arguments = [columns[a] for a in call.arguments]
    for at in _literals(name, len(arguments)):
        arguments[at] = _literal(call, at, constants)
    if name in _PICKS:
        return _picked(call, arguments, columns, partition, order)
    by = order_text(order, columns) if name in _OF_PEERS else total_order(order, columns)
    text = f"{name}({', '.join(arguments)}) {_over(partition, by, None)}"
    return f"CAST({text} AS {call.type.spark_name})"


def window_error(
    call: WindowCall,
    columns: Columns,
    partition: Sequence[str],
    order: Sequence[SortKey],
    constants: Mapping[int, object],
) -> str | None:
    """Return text for the error of ``call``, NULL if it has a value; None if it always has."""
    name = call.function.name
    if name in _AT_LEAST_ONE:
        at, error = _AT_LEAST_ONE[name]
        number = constants.get(call.arguments[at])
        return quote_string(error) if isinstance(number, int) and number < 1 else None
    if name in _ONLY_WINDOW:
        return None
    return framed_error(call, columns, _framed(call, columns, partition, order))


def _framed(
    call: WindowCall, columns: Columns, partition: Sequence[str], order: Sequence[SortKey]
) -> str:
    frame = call.frame or _WHOLE
    by = total_order(order, columns) if frame.unit == "rows" else order_text(order, columns)
    return _over(partition, by, frame)


def _literals(name: str, count: int) -> range:
    """Return which arguments Spark wants as literals."""
    if name == "ntile":
        return range(1)
    return range(1, min(count, 2)) if name in {"lag", "lead", "nth_value"} else range(0)


def _literal(call: WindowCall, at: int, constants: Mapping[int, object]) -> str:
    column = call.arguments[at]
    if column not in constants:
        message = f"Window: argument {at} of {call} is not a constant"
        raise PlanError(message)
    return literal_text(constants[column], INTEGER)


def _picked(
    call: WindowCall,
    arguments: list[str],
    columns: Columns,
    partition: Sequence[str],
    order: Sequence[SortKey],
) -> str:
    """Return the value of one row of the frame.

    A RANGE frame begins and ends with all peers of a row, and among peers the order of all
    columns decides; but its window may not be ordered by them, or peers would be no peers.
    So the row is picked from a frame of rows that begins or ends with the same row.
    """
    name, frame, total = call.function.name, call.frame or _WHOLE, total_order(order, columns)
    picked = f"{name}({', '.join(arguments)})"
    if frame.unit == "rows":
        return f"{picked} {_over(partition, total, frame)}"
    peers = [*partition, *(columns[key.column] for key in order)]
    if name == "first_value":
        within = peers if frame.start[0] == "current row" else partition
        return f"{picked} {_over(within, total, _TO_HERE)}"
    if name == "last_value":
        within = peers if frame.end[0] == "current row" else partition
        return f"{picked} {_over(within, total, _FROM_HERE)}"
    if frame.start[0] != "current row":
        inside = f"count(1) {_over(partition, order_text(order, columns), frame)}"
        nth = f"{picked} {_over(partition, total, _WHOLE)}"
        return f"CASE WHEN {inside} >= {arguments[1]} THEN {nth} END"
    if frame.end[0] == "current row":
        return f"{picked} {_over(peers, total, _WHOLE)}"
    every = replace(call, function=_ARRAY, arguments=call.arguments[:1], type=Array(call.type))
    over = _over(partition, order_text(order, columns), frame)
    return f"get({framed_text(every, columns, order, over)}, {arguments[1]} - 1)"


def _over(partition: Sequence[str], order: str, frame: Frame | None) -> str:
    by = f"PARTITION BY {', '.join(partition)} " if partition else ""
    sort = f"ORDER BY {order or 'true'}"
    if frame is None:
        return f"OVER ({by}{sort})"
    edges = f"{_edge(frame.start)} AND {_edge(frame.end)}"
    return f"OVER ({by}{sort} {frame.unit.upper()} BETWEEN {edges})"


def _edge(bound: tuple[str, int | None]) -> str:
    kind, offset = bound
    if kind == "current row":
        return "CURRENT ROW"
    return f"{'UNBOUNDED' if offset is None else offset} {kind.upper()}"
