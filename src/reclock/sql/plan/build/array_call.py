"""Calls that join arrays or look into them: their arguments get one type of element.

PostgreSQL's rules. What appends, joins or looks for an element takes the type that both sides have
in common (``integer[] || 2.5`` is a ``numeric[]``); what compares whole arrays (``@>``, ``&&``)
wants the same one. A quoted literal or NULL next to an array by ``||`` is an array, so that NULL
adds nothing; as the element of ``array_append`` it is an element.

Tests: tests/slt/review.slt, tests/functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.errors import WrongType
from reclock.sql.plan.coerce import common_type, convert, exact
from reclock.sql.plan.functions import undefined
from reclock.sql.plan.functions.overload import Overload
from reclock.sql.plan.scalar import Call, Literal
from reclock.sql.types import UNKNOWN, Array, Numeric

if TYPE_CHECKING:
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.types import Type

_ELEMENTS: Final = frozenset({"array_append", "array_position", "array_contains"})
_WHOLE: Final = frozenset({"array_cat", "@>", "&&"})
_SAME: Final = frozenset({"@>", "&&"})


def array_call(
    name: str, arguments: tuple[Scalar, ...], position: int | None
) -> tuple[str, tuple[Scalar, ...]]:
    """Return what a call over arrays is, and its arguments with one type of element."""
    if len(arguments) != 2:
        return name, arguments
    arguments = _exact(name, *arguments)
    left, right = types = tuple(a.type for a in arguments)
    wanted = name
    if name == "||" and (isinstance(left, Array) or isinstance(right, Array)):
        wanted = _concatenation(left, right)
    if wanted == "array_prepend":
        kind = _element(wanted, (Array(left), right))
    elif wanted in _ELEMENTS:
        kind = _element(wanted, (left, Array(right)))
    elif wanted in _WHOLE:
        kind = _element(wanted, types)
    else:
        return name, arguments
    if kind is None:
        raise undefined(name, types, position)
    if wanted == "array_prepend":
        one = _of_one(convert(arguments[0], kind))
        return "array_cat", (one, convert(arguments[1], Array(kind)))
    second = kind if wanted in _ELEMENTS else Array(kind)
    return wanted, (convert(arguments[0], Array(kind)), convert(arguments[1], second))


def _exact(name: str, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """Give texts of no type that meet arrays of numerics the digits that they have."""
    if name in _ELEMENTS and isinstance(a.type, Array):
        return a, exact((Literal(None, a.type.element), b))[1]
    left, right = exact((a, b))
    return left, right


def _concatenation(left: Type, right: Type) -> str:
    if UNKNOWN in {left, right} or (isinstance(left, Array) and isinstance(right, Array)):
        return "array_cat"
    return "array_append" if isinstance(left, Array) else "array_prepend"


def _of_one(value: Scalar) -> Scalar:
    """Return the array of one element."""
    kind = Array(value.type)
    if isinstance(value, Literal):
        return Literal((value.value,), kind)
    one = Overload("array", (value.type,), kind, "array({*})", never_null=True)
    return Call(one, (value,), kind)


def _element(name: str, types: tuple[Type, ...]) -> Type | None:
    """Return the type of element that arrays of these types get; None if there is none."""
    known = [t for t in types if t not in {UNKNOWN, Array(UNKNOWN)}]
    elements = [t.element for t in known if isinstance(t, Array)]
    if len(elements) < len(known):
        return None
    same = all(a == b or (_numeric(a) and _numeric(b)) for a in elements for b in elements)
    if name in _SAME and not same:
        return None
    try:
        return common_type(elements, name)
    except WrongType:
        return None


def _numeric(kind: Type) -> bool:
    return isinstance(kind, Numeric)
