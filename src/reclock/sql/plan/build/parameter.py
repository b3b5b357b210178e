"""Values from outside as literals: parameters of a statement, rows given from Python.

A value is a Python value, whose type is the one that SQL would give it, or ``Typed``: then it is
that type's. A statement whose values are not known yet is planned with ``Placeholder``s, which
find out which types it wants of them.

Tests: tests/sql/test_parameters.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from reclock.errors import WrongType
from reclock.interval import Interval
from reclock.sql import types as t
from reclock.sql.plan.coerce import number_literal
from reclock.sql.plan.scalar import Literal, Unbound

if TYPE_CHECKING:
    from reclock.sql.types import Type


@dataclass(frozen=True, slots=True)
class Typed:
    """A value of a type, or NULL; the type of text may be ``unknown``."""

    value: object
    type: Type

    def literal(self) -> Literal:
        """Return the value as a literal: a number has the digits that it has."""
        value, kind = self.value, self.type
        if isinstance(kind, t.Numeric) and isinstance(value, Decimal) and value.is_finite():
            return Literal(value, number_literal(f"{value.copy_abs():f}").type)
        return Literal(value, kind)


@dataclass(slots=True)
class Placeholder:
    """A parameter that has no value yet; ``type`` is unknown until planning has found it."""

    type: Type = t.UNKNOWN

    def literal(self) -> Literal:
        """Return what stands for it in a plan."""
        known = self.type != t.UNKNOWN
        return Literal(None, self.type) if known else Unbound(None, t.UNKNOWN, self.decide)

    def decide(self, kind: Type) -> None:
        """Take the first type that is wanted."""
        if self.type == t.UNKNOWN:
            self.type = kind


def literal_of(value: object) -> Literal:  # noqa: PLR0911 - one per type
    """Return ``value`` as a literal; text has no type until its surroundings want one."""
    match value:
        case Typed() | Placeholder():
            return value.literal()
        case None:
            return Literal(None, t.UNKNOWN)
        case bool():
            return Literal(value, t.BOOLEAN)
        case int() | Decimal():
            size = f"{value.copy_abs():f}" if isinstance(value, Decimal) else str(abs(value))
            positive = number_literal(size)
            return Literal(value, positive.type)
        case float():
            return Literal(value, t.DOUBLE)
        case str():
            return Literal(value, t.UNKNOWN)
        case bytes():
            return Literal(value, t.BYTEA)
        case datetime():
            if value.tzinfo is None:
                return Literal(value, t.TIMESTAMP)
            return Literal(value.astimezone(UTC), t.TIMESTAMPTZ)
        case date():
            return Literal(value, t.DATE)
        case timedelta():
            return Literal(Interval.of(value), t.INTERVAL)
        case Interval():
            return Literal(value, t.INTERVAL)
    message = f"a parameter of Python type {type(value).__name__} is not supported"
    raise WrongType(message)
