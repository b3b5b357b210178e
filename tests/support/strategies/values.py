"""SQL types, and Python values of them at and near their limits."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from reclock.interval import Interval
from reclock.sql import types as t

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from reclock.sql.types import Type


def _once(moment: datetime) -> datetime:
    """Return the first of two equal times on a clock that is put back."""
    return moment.replace(fold=0)


def intervals() -> SearchStrategy[Interval]:
    """Draw an interval; some are equal to others without being the same."""
    small = st.integers(-40, 40)
    few = st.builds(Interval, small, small, st.sampled_from([0, 1, -1, 86_400_000_000, -1_500_000]))
    number = st.integers(-(2**31), 2**31 - 1)
    return few | st.builds(Interval, number, number, st.integers(-(2**63) + 1, 2**63 - 1))


_SIMPLE: dict[Type, SearchStrategy[Any]] = {
    t.BOOLEAN: st.booleans(),
    t.SMALLINT: st.integers(-(2**15), 2**15 - 1),
    t.INTEGER: st.integers(-(2**31), 2**31 - 1),
    t.BIGINT: st.integers(-(2**63), 2**63 - 1),
    t.REAL: st.floats(width=32),
    t.DOUBLE: st.floats(),
    t.TEXT: st.text(),
    t.BYTEA: st.binary(max_size=20),
    t.DATE: st.dates(),
    t.TIMESTAMP: st.datetimes().map(_once),
    t.TIMESTAMPTZ: st.datetimes(timezones=st.just(UTC)).map(_once),
    t.INTERVAL: intervals(),
    t.JSON: st.sampled_from(["null", '{"a": [1, 2.50, "x"]}', "[]", '"text"', "-0.0"]),
}


@st.composite
def numerics(draw: st.DrawFn) -> t.Numeric:
    """Draw a numeric type."""
    precision = draw(st.integers(1, t.MAX_PRECISION))
    return t.Numeric(precision, draw(st.integers(0, precision)))


def kinds() -> SearchStrategy[Type]:
    """Draw a SQL type, nested ones included."""
    return st.recursive(
        st.sampled_from(list(_SIMPLE)) | numerics(),
        lambda inner: (
            inner.map(t.Array)
            | st.lists(inner, min_size=1, max_size=3).map(
                lambda parts: t.Record(tuple((f"f{i}", part) for i, part in enumerate(parts)))
            )
        ),
        max_leaves=4,
    )


def values_of(kind: Type) -> SearchStrategy[Any]:
    """Draw a value of ``kind``, sometimes NULL inside of arrays and records."""
    match kind:
        case t.Numeric():
            limit = 10**kind.precision - 1
            digits = Context(prec=t.MAX_PRECISION)
            return st.integers(-limit, limit).map(lambda n: digits.scaleb(Decimal(n), -kind.scale))
        case t.Array():
            return st.lists(st.none() | values_of(kind.element), max_size=4)
        case t.Record():
            return st.tuples(*(st.none() | values_of(part) for _, part in kind.fields))
    return _SIMPLE[kind]
