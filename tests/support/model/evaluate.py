"""The reference evaluator: a plan over plain Python rows, as slow and simple as it can be.

A relation is a ``Counter`` from row to multiplicity. Every operator is the definition,
computed from scratch, so that the planner, the rewrites and the incremental operators can
all be compared with it. An expression that fails raises ``EvaluationError`` with its
SQLSTATE; results then have no rows, only that error.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cmp_to_key
from typing import TYPE_CHECKING

from model.evaluate_aggregate import aggregate
from model.evaluate_scalar import EvaluationError, evaluate_scalar, normal
from model.evaluate_window import window_values
from reclock.sql.plan.relation import (
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    JoinKind,
    Negate,
    Project,
    QueryPlan,
    Reduce,
    SortKey,
    Threshold,
    TopK,
    Union,
    Window,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.sql.plan.node import Node
    from reclock.sql.plan.relation import AggregateCall

Row = tuple[object, ...]
Rows = Counter[Row]


def evaluate(node: Node, tables: Mapping[str, Rows]) -> Rows:
    """Return the rows of ``node`` when the relations named in it hold ``tables``."""
    return _Evaluator(tables).rows(node)


def answer(plan: QueryPlan, tables: Mapping[str, Rows]) -> list[Row]:
    """Return the rows of a query in the order it asks for."""
    rows = list(evaluate(plan.root, tables).elements())
    return [row[: plan.visible] for row in ordered(rows, plan.order)]


def _order_within(call: AggregateCall) -> tuple[SortKey, ...]:
    """Return the order of a call's rows; distinct values without one are in their own."""
    if not call.distinct:
        return call.order
    return (*call.order, *(SortKey(column) for column in call.arguments))


def ordered(rows: list[Row], order: tuple[SortKey, ...]) -> list[Row]:
    """Sort by ``order``, ties by all columns ascending with NULLs last."""

    def compare(a: Row, b: Row) -> int:
        return _compare_rows(a, b, order)

    return sorted(rows, key=cmp_to_key(compare))


def _compare(a: object, b: object) -> int:
    if a == b:
        return 0
    if isinstance(a, tuple) and isinstance(b, tuple):
        for x, y in zip(a, b, strict=False):
            step = _nulls(x, y, nulls_first=False) if x is None or y is None else _compare(x, y)
            if step:
                return step
        return len(a) - len(b)
    return -1 if a < b else 1  # type: ignore[operator]  # SQL types compare with themselves


def _nulls(a: object, b: object, *, nulls_first: bool) -> int:
    if a is None and b is None:
        return 0
    return (-1 if nulls_first else 1) * (1 if a is None else -1)


def _compare_rows(a: Row, b: Row, order: tuple[SortKey, ...]) -> int:
    for key in order:
        x, y = a[key.column], b[key.column]
        if x is None or y is None:
            step = _nulls(x, y, nulls_first=key.nulls_first)
        else:
            step = _compare(x, y) * (-1 if key.descending else 1)
        if step:
            return step
    for x, y in zip(a, b, strict=True):
        step = _nulls(x, y, nulls_first=False) if x is None or y is None else _compare(x, y)
        if step:
            return step
    return 0


class _Evaluator:
    def __init__(self, tables: Mapping[str, Rows]) -> None:
        self._tables = tables
        self._done: dict[Node, Rows] = {}

    def rows(self, node: Node) -> Rows:
        made = self._done.get(node)
        if made is None:
            made = self._done[node] = _consolidated(self._rows(node))
        return made

    def _rows(self, node: Node) -> Rows:  # noqa: PLR0911, PLR0912  # one case per node
        match node:
            case Get():
                return self._tables[node.name]
            case Constant():
                return Counter({tuple(map(normal, row)): count for row, count in node.rows})
            case Project():
                out: Rows = Counter()
                for row, count in self.rows(node.input).items():
                    out[tuple(evaluate_scalar(s, row) for _, s in node.outputs)] += count
                return out
            case Filter():
                return Counter(
                    {
                        row: count
                        for row, count in self.rows(node.input).items()
                        if all(evaluate_scalar(p, row) is True for p in node.predicates)
                    }
                )
            case FlatMap():
                return self._flat_map(node)
            case Join():
                return self._join(node)
            case Reduce():
                return self._reduce(node)
            case Distinct():
                return Counter({row: 1 for row, n in self.rows(node.input).items() if n > 0})
            case TopK():
                return self._top(node)
            case Window():
                return self._window(node)
            case Union():
                total: Rows = Counter()
                for member in node.members:
                    for row, count in self.rows(member).items():
                        total[row] += count
                return total
            case Negate():
                return Counter({row: -count for row, count in self.rows(node.input).items()})
            case Threshold():
                return Counter({row: n for row, n in self.rows(node.input).items() if n > 0})
        message = f"no evaluation of {type(node).__name__}"
        raise NotImplementedError(message)

    def _flat_map(self, node: FlatMap) -> Rows:
        out: Rows = Counter()
        for row, count in self.rows(node.input).items():
            array = evaluate_scalar(node.array, row)
            for number, item in enumerate(array if isinstance(array, tuple) else (), 1):
                out[(*row, item, *((number,) if node.ordinality else ()))] += count
        return out

    def _join(self, node: Join) -> Rows:
        left, right = self.rows(node.left), self.rows(node.right)
        by_key = defaultdict(list)
        for row, count in right.items():
            by_key[_key(row, [(p.right, p.null_safe) for p in node.on])].append((row, count))
        out: Rows = Counter()
        hit: set[Row] = set()
        for row, count in left.items():
            key = _key(row, [(p.left, p.null_safe) for p in node.on])
            matches = [
                (other, n)
                for other, n in (by_key[key] if key is not None else ())
                if all(evaluate_scalar(p, row + other) is True for p in node.residual)
            ]
            hit.update(other for other, _ in matches)
            if node.kind is JoinKind.SEMI or node.kind is JoinKind.ANTI:
                if any(n > 0 for _, n in matches) == (node.kind is JoinKind.SEMI):
                    out[row] += count
                continue
            for other, n in matches:
                out[row + other] += count * n
            if not matches and node.kind in {JoinKind.LEFT, JoinKind.FULL}:
                out[row + (None,) * node.right.width] += count
        if node.kind is JoinKind.FULL:
            for other, n in right.items():
                if other not in hit:
                    out[(None,) * node.left.width + other] += n
        return out

    def _reduce(self, node: Reduce) -> Rows:
        groups: dict[Row, list[Row]] = defaultdict(list)
        for row in _elements(self.rows(node.input)):
            groups[tuple(row[k] for k in node.keys)].append(row)
        if not node.keys and not groups:
            groups[()] = []
        out: Rows = Counter()
        for key, rows in groups.items():
            values = tuple(
                aggregate(c, ordered(rows, _order_within(c))) for _, c in node.aggregates
            )
            out[key + values] += 1
        return out

    def _top(self, node: TopK) -> Rows:
        groups: dict[Row, list[Row]] = defaultdict(list)
        for row in _elements(self.rows(node.input)):
            groups[tuple(row[k] for k in node.group)].append(row)
        out: Rows = Counter()
        for rows in groups.values():
            end = None if node.limit is None else node.offset + node.limit
            out.update(ordered(rows, node.order)[node.offset : end])
        return out

    def _window(self, node: Window) -> Rows:
        groups: dict[Row, list[Row]] = defaultdict(list)
        for row in _elements(self.rows(node.input)):
            groups[tuple(row[k] for k in node.partition)].append(row)
        out: Rows = Counter()
        for rows in groups.values():
            sorted_rows = ordered(rows, node.order)
            columns = [window_values(c, sorted_rows, node.order) for _, c in node.calls]
            for at, row in enumerate(sorted_rows):
                out[row + tuple(values[at] for values in columns)] += 1
        return out


def _consolidated(rows: Rows) -> Rows:
    return Counter({row: count for row, count in rows.items() if count})


def _elements(rows: Rows) -> list[Row]:
    for row, count in rows.items():
        if count < 0:
            message = f"row {row!r} occurs {count} times in the input of a grouping"
            raise EvaluationError(code="XX000", message=message)
    return list(rows.elements())


def _key(row: Row, columns: list[tuple[int, bool]]) -> Row | None:
    if any(row[c] is None and not safe for c, safe in columns):
        return None
    return tuple(row[c] for c, _ in columns)
