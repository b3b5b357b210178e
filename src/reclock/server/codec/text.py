"""Values as text: what PostgreSQL's output functions write, and its input functions read.

``write`` takes a value as Arrow gives it (``pa.Array.to_pylist``) and ``read`` gives one as
Python has it, for a parameter. Moments are in the session's zone (``sql.zone``); dates are ISO.

Tests: tests/server/codec/test_values.py.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from reclock.interval import Interval
from reclock.rows.copy_text import in_array, in_record, text_of
from reclock.sql import types as t
from reclock.sql.plan.coerce import read_literal

if TYPE_CHECKING:
    from reclock.sql.types import Type


def write(value: Any, kind: Type) -> str:
    """Return a value, not NULL, as text.

    >>> write({"months": 14, "days": 0, "micros": 0}, t.INTERVAL)
    '1 year 2 mons'
    >>> write([[1], [None]], t.Array(t.Array(t.BIGINT)))
    '{{1},{NULL}}'
    """
    match kind:
        case t.Array(element):
            return "{" + ",".join(_element(v, element) for v in value) + "}"
        case t.Record(fields):
            texts = (
                "" if value[name] is None else in_record(write(value[name], inside))
                for name, inside in fields
            )
            return "(" + ",".join(texts) + ")"
    if kind == t.JSON:
        return str(value)
    if kind == t.INTERVAL:
        return str(Interval(value["months"], value["days"], value["micros"]))
    return text_of(value, kind)


def _element(value: Any, kind: Type) -> str:
    if value is None:
        return "NULL"
    text = write(value, kind)
    return text if isinstance(kind, t.Array) else in_array(text)


def read(text: str, kind: Type) -> Any:
    """Return the value that a text means.

    >>> read("{1,NULL}", t.Array(t.BIGINT)), read("2 years", t.INTERVAL)
    ((1, None), Interval(months=24, days=0, microseconds=0))
    """
    value = read_literal(text, kind)
    if isinstance(kind, t.Numeric):
        value = Decimal(text.strip())  # with the digits that it has, not with those of a column
    return value
