"""``row_number() OVER (PARTITION BY g ORDER BY o) <= k`` needs only the first k of a group.

A top-k below the window keeps the cost at the head of a sorted arrangement, instead of renumbering
whole groups. (``DISTINCT ON`` is planned as a top-1 from the start.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.sql.plan.relation import Filter, TopK, Window, transform
from reclock.sql.plan.scalar import Call, Cast, ColumnRef, Literal

if TYPE_CHECKING:
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar

_NUMBERING = {"row_number", "rank", "dense_rank"}
_MIRROR = {">": "<", ">=": "<=", "=": "=", "<": ">", "<=": ">="}


def top_k(node: Node) -> Node:
    """Put a top-k below windows whose row number is bounded."""
    return transform(node, lambda n: _filter(n) if isinstance(n, Filter) else n)


def _filter(node: Filter) -> Node:
    window = node.input
    if not isinstance(window, Window) or isinstance(window.input, TopK):
        return node
    if not all(c.function.name in _NUMBERING for _, c in window.calls):
        return node
    numbers = {
        window.input.width + at
        for at, (_, c) in enumerate(window.calls)
        if c.function.name == "row_number"
    }
    bounds = [b for p in node.predicates if (b := _bound(p, numbers)) is not None]
    if not bounds:
        return node
    top = TopK(window.input, window.partition, window.order, max(min(bounds), 0))
    return replace(node, input=replace(window, input=top))


def _plain(scalar: Scalar) -> Scalar:
    return scalar.operand if isinstance(scalar, Cast) else scalar


def _bound(predicate: Scalar, numbers: set[int]) -> int | None:
    """Return k if ``predicate`` says that a row number is at most k."""
    if not isinstance(predicate, Call) or predicate.function.name not in _MIRROR:
        return None
    symbol, (a, b) = predicate.function.name, predicate.arguments
    a, b = _plain(a), _plain(b)
    if isinstance(a, Literal):
        a, b, symbol = b, a, _MIRROR[symbol]
    if not isinstance(a, ColumnRef) or a.index not in numbers:
        return None
    if not isinstance(b, Literal) or not isinstance(b.value, int):
        return None
    return {"<=": b.value, "=": b.value, "<": b.value - 1}.get(symbol)
