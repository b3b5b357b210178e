"""Window functions in plain Python, over the sorted rows of one partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.evaluate_aggregate import apply_aggregate

if TYPE_CHECKING:
    from reclock.sql.plan.node import SortKey
    from reclock.sql.plan.order import WindowCall

Row = tuple[object, ...]


def window_values(call: WindowCall, rows: list[Row], order: tuple[SortKey, ...]) -> list[object]:
    """Return the value of ``call`` for each of ``rows``."""
    keys = [tuple(row[k.column] for k in order) for row in rows]
    starts = [keys.index(k) for k in keys]
    ends = [len(keys) - 1 - keys[::-1].index(k) for k in keys]
    return [_value(call, rows, at, starts, ends) for at in range(len(rows))]


def _value(  # noqa: PLR0911  # one per case
    call: WindowCall, rows: list[Row], at: int, starts: list[int], ends: list[int]
) -> object:
    count = len(rows)
    match call.function.name:
        case "row_number":
            return at + 1
        case "rank":
            return starts[at] + 1
        case "dense_rank":
            return len({starts[i] for i in range(at + 1)})
        case "percent_rank":
            return 0.0 if count == 1 else starts[at] / (count - 1)
        case "cume_dist":
            return (ends[at] + 1) / count
        case "ntile":
            return _tile(int(str(rows[at][call.arguments[0]])), at, count)
        case "lag" | "lead":
            return _neighbour(call, rows, at)
    return _framed(call, rows, at, starts, ends)


def _tile(buckets: int, at: int, count: int) -> int:
    size, larger = divmod(count, buckets)
    edge = larger * (size + 1)
    return at // (size + 1) + 1 if at < edge else larger + (at - edge) // max(size, 1) + 1


def _neighbour(call: WindowCall, rows: list[Row], at: int) -> object:
    arguments = [rows[at][a] for a in call.arguments]
    offset = 1 if len(arguments) < 2 else int(str(arguments[1]))
    there = at - offset if call.function.name == "lag" else at + offset
    if 0 <= there < len(rows):
        return rows[there][call.arguments[0]]
    return arguments[2] if len(arguments) > 2 else None


def _framed(
    call: WindowCall, rows: list[Row], at: int, starts: list[int], ends: list[int]
) -> object:
    first, last = 0, len(rows) - 1
    if call.frame is not None:
        peers = call.frame.unit == "range"
        first = _edge(call.frame.start, at, 0, starts[at] if peers else at)
        last = _edge(call.frame.end, at, len(rows) - 1, ends[at] if peers else at)
    inside = rows[max(first, 0) : max(last + 1, 0)]
    if call.filter is not None:
        inside = [row for row in inside if row[call.filter] is True]
    values = [tuple(row[a] for a in call.arguments) for row in inside]
    match call.function.name:
        case "first_value":
            return values[0][0] if values else None
        case "last_value":
            return values[-1][0] if values else None
        case "nth_value":
            n = int(str(rows[at][call.arguments[1]]))
            return values[n - 1][0] if n <= len(values) else None
    return apply_aggregate(call, values)


def _edge(bound: tuple[str, int | None], at: int, unbounded: int, current: int) -> int:
    kind, offset = bound
    if kind == "current row":
        return current
    if offset is None:
        return unbounded
    return at - offset if kind == "preceding" else at + offset
