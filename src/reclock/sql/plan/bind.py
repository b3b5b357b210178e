"""A plan for all values of its parameters, and that plan with some of them.

``plan_late`` plans a query with ``Late`` values. The plan is kept only if it provably does not
depend on them: nothing looked at one (``Undecided``), every mention of a parameter in the text is
in the plan, once, and with the values at hand it is the plan that these values by themselves give.
``bound`` puts values in.

Cost: ``plan_late`` plans once more; ``bound`` rebuilds the nodes that hold values.

Tests: tests/sql/test_late.py; with and without it, any statement: tests/session/test_plans.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from reclock.sql.plan.build.parameter import Typed
from reclock.sql.plan.decorrelate import scalars_of, with_scalars
from reclock.sql.plan.late import Late
from reclock.sql.plan.relation import QueryPlan, transform, walk
from reclock.sql.plan.scalar import Literal, Scalar, children, with_children
from reclock.sql.plan.scalar import walk as walk_scalar
from reclock.sql.syntax.expression import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from reclock.sql.plan.node import Node
    from reclock.sql.syntax.query import Query


def plan_late(
    query: Query,
    given: Sequence[Literal],
    plan: QueryPlan,
    plan_with: Callable[[tuple[object, ...]], QueryPlan],
) -> QueryPlan | None:
    """Return a plan for all values of the types that ``given`` have; None if there is none.

    ``plan`` is that of ``given``; none of them is NULL.
    """
    late = tuple(Typed(Late(at), literal.type) for at, literal in enumerate(given))
    try:
        made = plan_with(late)
        whole = Counter(x.index for x in _lates(made.root)) == Counter(_mentioned(query))
        same = whole and bound(made, [literal.value for literal in given]) == plan
    except Exception:
        return None
    return made if same else None


def bound(plan: QueryPlan, values: Sequence[object]) -> QueryPlan:
    """Return a plan with values in their places."""

    def change(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Literal) and isinstance(scalar.value, Late):
            return Literal(values[scalar.value.index], scalar.type)
        parts = children(scalar)
        return with_children(scalar, tuple(map(change, parts))) if parts else scalar

    def rebuilt(node: Node) -> Node:
        if not any(True for _ in _own(node)):
            return node
        return with_scalars(node, change)

    return replace(plan, root=transform(plan.root, rebuilt))


def _lates(root: Node) -> Iterator[Late]:
    for node in walk(root):
        yield from _own(node)


def _own(node: Node) -> Iterator[Late]:
    """Yield the late values that a node itself holds."""
    for scalar in scalars_of(node):
        for part in walk_scalar(scalar):
            if isinstance(part, Literal) and isinstance(part.value, Late):
                yield part.value


def _mentioned(node: Any) -> Iterator[int]:
    """Yield each mention of a parameter in a text, counted from 0."""
    if isinstance(node, Parameter):
        yield node.index - 1
    elif isinstance(node, tuple | frozenset):
        for part in node:
            yield from _mentioned(part)
    elif is_dataclass(node) and not isinstance(node, type):
        for field in fields(node):
            yield from _mentioned(getattr(node, field.name))
