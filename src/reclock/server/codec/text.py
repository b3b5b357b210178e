"""Values as text: what PostgreSQL's output functions write, and its input functions read.

``write`` takes a value as Arrow gives it (``pa.Array.to_pylist``) and ``read`` gives one as
Python has it, for a parameter. Times are in UTC, the only zone there is; dates are ISO.

Tests: tests/server/codec/test_values.py.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from reclock.coordinator.copy_text import in_array, in_record, text_of
from reclock.sql import types as t
from reclock.sql.plan.coerce import read_literal
from reclock.sql.plan.interval import parse_interval

if TYPE_CHECKING:
    from reclock.sql.types import Type


def write(value: Any, kind: Type) -> str:
    """Return a value, not NULL, as text.

    >>> write(14, t.MONTHS), write([[1], [None]], t.Array(t.Array(t.BIGINT)))
    ('1 year 2 mons', '{{1},{NULL}}')
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
    if kind == t.MONTHS:
        return _months(value)
    return text_of(value, kind)


def _element(value: Any, kind: Type) -> str:
    if value is None:
        return "NULL"
    text = write(value, kind)
    return text if isinstance(kind, t.Array) else in_array(text)


def _months(months: int) -> str:
    """Return an interval of months.

    >>> _months(-14), _months(1), _months(0)
    ('-1 years -2 mons', '1 mon', '00:00:00')
    """
    years, rest = divmod(abs(months), 12)
    sign = -1 if months < 0 else 1
    parts = [(years * sign, "year"), (rest * sign, "mon")]
    shown = [f"{n} {unit}{'' if n == 1 else 's'}" for n, unit in parts if n]
    return " ".join(shown) or "00:00:00"


def read(text: str, kind: Type) -> tuple[Any, Type]:
    """Return the value that a text means, and its type: of an interval, which one it is.

    >>> read("{1,NULL}", t.Array(t.BIGINT)), read("2 years", t.INTERVAL)
    (((1, None), Array(element=Simple(name='bigint'))), (24, Simple(name='interval year to month')))
    """
    if kind == t.INTERVAL:
        return parse_interval(text)
    value = read_literal(text, kind)
    if isinstance(kind, t.Numeric):
        value = Decimal(text.strip())  # with the digits that it has, not with those of a column
    return value, kind
