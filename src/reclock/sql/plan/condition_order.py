"""In which order the conditions of one WHERE, HAVING or ON are tried.

As in PostgreSQL, which sorts them by what they cost: ``a / b > 0 AND b <> 0`` divides by no zero.
What cannot fail comes first, as it was written; its order changes no answer. What can fail comes
after it, the cheaper first: one for each operator, function and cast that computes something, as
PostgreSQL counts; of equal cost, as it was written. What is inside of OR, NOT and CASE stays where
it is.

Tests: tests/slt/condition_order.slt (PostgreSQL, too), tests/sql/golden/push_filters.spec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.sql.plan.scalar import Call, Cast, can_fail, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.sql.plan.scalar import Scalar

_FREE: Final = {"not", "is null", "is true", "is false"}


def in_order(conditions: Iterable[Scalar]) -> tuple[Scalar, ...]:
    """Return the conditions of one AND in the order in which they are tried."""
    return tuple(sorted(conditions, key=_cost))


def _cost(condition: Scalar) -> int:
    """Return what it costs to try a condition that can fail; 0 if it cannot."""
    if not can_fail(condition):
        return 0
    return sum(_computes(part) for part in walk(condition))


def _computes(scalar: Scalar) -> bool:
    return isinstance(scalar, Cast) or (
        isinstance(scalar, Call) and scalar.function.name not in _FREE
    )
