"""Parameters: values with a type, and types that planning finds out."""

from __future__ import annotations

from decimal import Decimal

import pytest

from reclock.sql import types as t
from reclock.sql.parse import parse_statements
from reclock.sql.plan.build.parameter import Placeholder, Typed, literal_of
from reclock.sql.plan.coerce import convert
from reclock.sql.plan.scalar import Literal


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Typed(5, t.SMALLINT), Literal(5, t.SMALLINT)),
        (Typed(None, t.DATE), Literal(None, t.DATE)),
        (Typed("x", t.UNKNOWN), Literal("x", t.UNKNOWN)),
        (Typed(Decimal("1.50"), t.Numeric()), Literal(Decimal("1.50"), t.Numeric(3, 2))),
        (Typed(("a", None), t.Array(t.TEXT)), Literal(("a", None), t.Array(t.TEXT))),
    ],
)
def test_values_with_a_type(given: Typed, expected: Literal) -> None:
    assert literal_of(given) == expected


def test_the_first_type_that_is_wanted_counts() -> None:
    placeholder = Placeholder()
    literal = literal_of(placeholder)
    assert convert(literal, t.BIGINT) == Literal(None, t.BIGINT)
    assert convert(literal, t.TEXT) == Literal(None, t.TEXT)
    assert placeholder.type == t.BIGINT
    assert literal_of(placeholder) == Literal(None, t.BIGINT)


@pytest.mark.parametrize(
    ("sql", "count"),
    [("SELECT 1", 0), ("SELECT $1,$2+$3", 3), ("SELECT $7", 7), ("SELECT '$9', a$2", 0)],
)
def test_how_many_there_are(sql: str, count: int) -> None:
    (parsed,) = parse_statements(sql)
    assert parsed.parameters == count
