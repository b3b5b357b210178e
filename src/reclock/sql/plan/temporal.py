"""Predicates on ``mz_now()``: the times at which a row passes, as a union of spans.

Definition. A temporal predicate is made by AND, OR and NOT of comparisons of ``mz_now()``
with an expression of the row (``<``, ``<=``, ``=``, ``>=``, ``>``) and of predicates without
``mz_now()``. For one row it is true at a set of times; ``spans_of`` gives that set as a union::

    span  =  { t : conditions, max(lowers) ≤ t < min(uppers) }

``mz_now() <= x`` is ``t < x + 1`` and so on: times are whole milliseconds. NOT goes down to
the comparisons; what is unknown there (a bound that is NULL) is not true, and no row passes
by it. Everything else that one could do with ``mz_now()`` would make rows change at every
millisecond, and is refused where a plan is to be maintained (``check_temporal``).

A query that is answered once has one time: ``at_time`` puts it in the place of ``mz_now()``.

Every rewrite that holds for a filter with a constant holds at each time by itself, so temporal
predicates are pushed and lowered like others. Tests: tests/sql/test_temporal.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.errors import InvalidDefinition, NotSupported
from reclock.sql.plan.decorrelate import scalars_of, with_scalars
from reclock.sql.plan.functions import find_function
from reclock.sql.plan.relation import Filter, Join, transform, walk
from reclock.sql.plan.scalar import And, Call, Literal, Or, Scalar
from reclock.sql.plan.scalar import transform as transform_scalar
from reclock.sql.plan.scalar import walk as walk_scalar
from reclock.sql.types import BIGINT, BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.sql.plan.node import Node

MOST_SPANS: Final = 32
"""A predicate of more spans than this is refused: each is evaluated for every row."""

FORM: Final = "WHERE mz_now() <= event_ts + INTERVAL '30 days'"

_NAME: Final = "mz_now"
_MIRROR: Final = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<"}
_OPPOSITE: Final = {"<": ">=", "<=": ">", ">=": "<", ">": "<="}
_SAME: Final = {"is not distinct from": "="}
_UNEQUAL: Final = frozenset({"<>", "is distinct from"})


@dataclass(frozen=True, slots=True)
class Bound:
    """A time given by an expression of the row, or the millisecond after it."""

    scalar: Scalar
    after: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """The times from the greatest of ``lowers`` to before the least of ``uppers``.

    If some bound is NULL, or some condition is not true, there are none.
    """

    conditions: tuple[Scalar, ...] = ()
    lowers: tuple[Bound, ...] = ()
    uppers: tuple[Bound, ...] = ()

    def __and__(self, other: Span) -> Span:
        """Return the times that are in both."""
        return Span(
            (*self.conditions, *(c for c in other.conditions if c not in self.conditions)),
            (*self.lowers, *(b for b in other.lowers if b not in self.lowers)),
            (*self.uppers, *(b for b in other.uppers if b not in self.uppers)),
        )


def is_now(scalar: Scalar) -> bool:
    """Return whether ``scalar`` is ``mz_now()`` itself."""
    return isinstance(scalar, Call) and scalar.function.name == _NAME


def reads_now(scalar: Scalar) -> bool:
    """Return whether ``mz_now()`` is somewhere in ``scalar``."""
    return any(map(is_now, walk_scalar(scalar)))


def is_temporal(node: Node) -> bool:
    """Return whether a node by itself, not its inputs, depends on ``mz_now()``."""
    return any(map(reads_now, scalars_of(node)))


def spans_of(predicates: Sequence[Scalar]) -> tuple[Span, ...]:
    """Return the spans in which all ``predicates`` are true; they may overlap."""
    return _all([_spans(predicate, wanted=True) for predicate in predicates])


def check_temporal(root: Node) -> None:
    """Refuse a plan to be maintained in which ``mz_now()`` stands where rows cannot follow it."""
    for node in walk(root):
        if isinstance(node, Filter | Join):
            predicates = node.predicates if isinstance(node, Filter) else node.residual
            spans_of([p for p in predicates if reads_now(p)])
        elif is_temporal(node):
            clause = "a computed column"
            raise misplaced(clause)


def misplaced(clause: str, position: int | None = None) -> InvalidDefinition:
    """Return the error for ``mz_now()`` in a clause that cannot have it."""
    message = f"mz_now() is not allowed in {clause} of a maintained view"
    detail = "rows would change at every millisecond; a filter changes them only at its bounds"
    hint = f"compare it in WHERE, as in {FORM}; docs/temporal-filters.md has more"
    return InvalidDefinition(message, detail=detail, hint=hint, position=position)


def at_time(root: Node, time: int) -> Node:
    """Return the plan of what ``root`` gives at ``time``."""
    now = Literal(time, BIGINT)

    def change(scalar: Scalar) -> Scalar:
        return transform_scalar(scalar, lambda s: now if is_now(s) else s)

    if not any(map(is_temporal, walk(root))):
        return root
    return transform(root, lambda node: with_scalars(node, change))


def _spans(scalar: Scalar, *, wanted: bool) -> tuple[Span, ...]:
    """Return the spans in which ``scalar`` is true, or false, as wanted."""
    if not reads_now(scalar):
        return (Span((scalar if wanted else _not(scalar),)),)
    match scalar:
        case And() | Or():
            parts = [_spans(operand, wanted=wanted) for operand in scalar.operands]
            if isinstance(scalar, And) is wanted:
                return _all(parts)
            return _checked(tuple(span for part in parts for span in part))
        case Call() if scalar.function.name == "not":
            return _spans(scalar.arguments[0], wanted=not wanted)
        case Call():
            return (_compared(scalar, wanted=wanted),)
    raise _refused(scalar)


def _all(parts: Sequence[tuple[Span, ...]]) -> tuple[Span, ...]:
    found: tuple[Span, ...] = (Span(),)
    for part in parts:
        found = _checked(tuple(one & other for one in found for other in part))
    return found


def _checked(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    found = tuple(dict.fromkeys(spans))
    if len(found) > MOST_SPANS:
        message = f"a temporal filter of more than {MOST_SPANS} spans of time is not supported"
        hint = "write fewer ORs, or a UNION ALL of views whose times do not overlap"
        raise NotSupported(message, hint=hint)
    return found


def _compared(scalar: Call, *, wanted: bool) -> Span:
    """Return the span of a comparison with ``mz_now()``."""
    name = _SAME.get(scalar.function.name, scalar.function.name)
    if name in _UNEQUAL or (name == "=" and not wanted):
        message = "mz_now() <> … is not supported in a maintained view"
        hint = f"write what is before or after, with < or >, as in {FORM}"
        raise NotSupported(message, hint=hint)
    if name not in _MIRROR or len(scalar.arguments) != 2:
        raise _refused(scalar)
    one, other = scalar.arguments
    if not is_now(one):
        one, other, name = other, one, _MIRROR[name]
    if not is_now(one) or reads_now(other):
        raise _refused(scalar)
    match name if wanted else _OPPOSITE[name]:
        case "<":
            return Span(uppers=(Bound(other),))
        case "<=":
            return Span(uppers=(Bound(other, after=True),))
        case ">":
            return Span(lowers=(Bound(other, after=True),))
        case ">=":
            return Span(lowers=(Bound(other),))
    return Span(lowers=(Bound(other),), uppers=(Bound(other, after=True),))


def _not(scalar: Scalar) -> Scalar:
    return Call(find_function("not", (BOOLEAN,)), (scalar,), BOOLEAN)


def _refused(scalar: Scalar) -> NotSupported:
    message = f"mz_now() is used in {scalar}, which a maintained view cannot follow"
    detail = "it must stand alone on one side of <, <=, =, >= or >, joined by AND, OR and NOT"
    hint = f"move what is computed to the other side, as in {FORM}"
    return NotSupported(message, detail=detail, hint=hint)
