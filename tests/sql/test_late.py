"""Plans that are made once for all values: which there are, and that they are right."""

from __future__ import annotations

from decimal import Decimal

import pytest

from reclock.sql.parse import parse_query
from reclock.sql.plan.bind import bound, plan_late
from reclock.sql.plan.build import plan_query
from reclock.sql.plan.build.parameter import Typed
from reclock.sql.plan.late import Late, Undecided
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite_query
from reclock.sql.types import BIGINT, BOOLEAN, SMALLINT, TEXT, Numeric
from strategies.queries import FuzzCatalog

CATALOG = FuzzCatalog()
ANY = [
    ("SELECT * FROM t WHERE a = $1", [Typed(1, SMALLINT)], [Typed(7, SMALLINT)]),
    ("SELECT b FROM t WHERE a = $1 AND s = $2", [Typed(1, SMALLINT), Typed("x", TEXT)],
     [Typed(2, SMALLINT), Typed("", TEXT)]),
    ("SELECT a + $1 FROM t WHERE b > $2", [Typed(1, BIGINT), Typed(2, BIGINT)],
     [Typed(3, BIGINT), Typed(4, BIGINT)]),
    ("SELECT $1, a FROM t ORDER BY a LIMIT 2", [Typed("x", TEXT)], [Typed("y", TEXT)]),
    ("SELECT sum($1), a FROM t GROUP BY a", [Typed(1, BIGINT)], [Typed(2, BIGINT)]),
]  # fmt: skip
NONE = [
    ("SELECT * FROM t LIMIT $1", [Typed(1, BIGINT)]),
    ("SELECT * FROM t WHERE $1", [Typed(True, BOOLEAN)]),
    ("SELECT * FROM t WHERE $1 IS TRUE AND a = $2", [Typed(False, BOOLEAN), Typed(1, SMALLINT)]),
    ("SELECT * FROM t WHERE $1 = $2", [Typed(1, BIGINT), Typed(1, BIGINT)]),
    ("SELECT * FROM t WHERE a = $1 AND a = $1", [Typed(1, SMALLINT)]),
    ("SELECT * FROM t WHERE CASE WHEN $1 = 1 THEN a = 1 ELSE a = 2 END", [Typed(1, BIGINT)]),
    ("SELECT * FROM (VALUES ($1)) w(x)", [Typed(1, BIGINT)]),
    ("SELECT * FROM t WHERE s LIKE $1", [Typed("x%", TEXT)]),
    ("SELECT * FROM t WHERE s = $1::varchar(2)", [Typed("x", TEXT)]),
    ("SELECT * FROM t WHERE a = -$1", [Typed(1, SMALLINT)]),
    ("SELECT * FROM t WHERE a * 1.0 = $1", [Typed(Decimal("1.5"), Numeric(3, 2))]),
]


def made(query, values):
    plan = plan_query(query, CATALOG, parameters=tuple(values))
    return rewrite_query(plan, RewriteContext(outer_joins=True))


def late(text, values):
    query = parse_query(text)
    given = [value.literal() for value in values]
    return plan_late(query, given, made(query, values), lambda p: made(query, p))


@pytest.mark.parametrize(("text", "values", "others"), ANY, ids=range(len(ANY)))
def test_a_plan_for_all_values_is_that_of_each(text, values, others):
    plan = late(text, values)
    assert plan is not None
    for some in (values, others):
        assert bound(plan, [v.value for v in some]) == made(parse_query(text), some)


@pytest.mark.parametrize(("text", "values"), NONE, ids=range(len(NONE)))
def test_what_depends_on_a_value_is_no_such_plan(text, values):
    assert late(text, values) is None


def test_nothing_can_be_known_of_a_late_value():
    one, other = Late(0), Late(1)
    assert one == one  # noqa: PLR0124 - that is the question
    assert repr(one) == "$1"
    for look in (
        lambda: one == other, lambda: one == 1, lambda: one != None, lambda: bool(one),  # noqa: E711
        lambda: str(one), lambda: None in [one],
    ):  # fmt: skip
        with pytest.raises(Undecided):
            look()
    for look in (
        lambda: one < 1,
        lambda: one + 1,
        lambda: -one,
        lambda: int(one),
        lambda: len(one),
    ):
        with pytest.raises(TypeError):
            look()
