"""Values from outside as literals: parameters of a statement, rows given from Python."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from reclock.errors import WrongType
from reclock.sql import types as t
from reclock.sql.plan.coerce import number_literal
from reclock.sql.plan.scalar import Literal


def literal_of(value: object) -> Literal:  # noqa: PLR0911 - one per type
    """Return ``value`` as a literal; text has no type until its surroundings want one."""
    match value:
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
            return Literal(value, t.INTERVAL)
    message = f"a parameter of Python type {type(value).__name__} is not supported"
    raise WrongType(message)
