"""Looking into written expressions: conjuncts, subqueries, aggregates, windows."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from reclock.sql.plan.functions import is_aggregate
from reclock.sql.syntax import expression as s
from reclock.sql.syntax.query import Query

if TYPE_CHECKING:
    from collections.abc import Iterator


def conjuncts(expression: s.Expression) -> list[s.Expression]:
    """Return the operands of AND, however nested."""
    if isinstance(expression, s.Operator) and expression.symbol == "and":
        return [c for operand in expression.operands for c in conjuncts(operand)]
    return [expression]


def parts(value: object) -> Iterator[object]:
    """Yield every expression inside ``value``, not looking into subqueries."""
    if isinstance(value, Query):
        return
    if isinstance(value, tuple):
        for item in value:
            yield from parts(item)
    elif is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in fields(value):
            yield from parts(getattr(value, field.name))


_SUBQUERIES = (s.ScalarQuery, s.ExistsQuery, s.QuantifiedQuery)


def reads_subquery(expression: s.Expression) -> bool:
    """Return whether there is a subquery in ``expression``."""
    return any(isinstance(p, _SUBQUERIES) for p in parts(expression))


def aggregates_in(value: object) -> list[s.FunctionText]:
    """Return the outermost aggregate calls in ``value``, not those used as windows."""
    found: list[s.FunctionText] = []
    _collect(value, found)
    return found


def _collect(value: object, found: list[s.FunctionText]) -> None:
    if isinstance(value, Query):
        return
    if isinstance(value, tuple):
        for item in value:
            _collect(item, found)
        return
    if isinstance(value, s.FunctionText) and value.over is None and is_aggregate(value.name):
        if value not in found:
            found.append(value)
        return
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            _collect(getattr(value, field.name), found)


def now_in(value: object) -> s.FunctionText | None:
    """Return the first call of ``mz_now()`` in ``value``."""
    calls = (p for p in parts(value) if isinstance(p, s.FunctionText))
    return next((call for call in calls if call.name == "mz_now"), None)


def groupings_in(value: object) -> list[s.FunctionText]:
    """Return the GROUPING(…) calls in ``value``."""
    return [p for p in parts(value) if isinstance(p, s.FunctionText) and p.name == "grouping"]


def windows_in(value: object) -> list[s.FunctionText]:
    """Return the window function calls in ``value``, each once."""
    calls = [p for p in parts(value) if isinstance(p, s.FunctionText) and p.over is not None]
    return list(dict.fromkeys(calls))
