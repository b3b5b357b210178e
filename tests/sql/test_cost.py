"""Which views keep up with their changes, and how those that do not are refused."""

from __future__ import annotations

import pytest

from reclock.errors import NotSupported
from reclock.sql.cost import check_cost, costs
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from reclock.sql.plan.relation import walk
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite
from strategies.queries import FuzzCatalog

KEEP_UP = [
    "select * from t join u on t.a = u.a and t.b < u.c",
    "select * from t full join u on t.a = u.a",
    "select * from t where a not in (select a from u)",
    "select * from t where exists (select from u)",
    "select * from t where a > (select avg(a) from t)",
    "select a, (select c from u) from t",
    "select *, (select count(*) from u) from t",
    "select * from t where b > (select max(c) from u where u.a = t.a)",
    "select * from t cross join lateral (select * from u where u.a = t.a order by c limit 1) x",
    "select a from t where a in (select a from u) or b = 1",
    "select * from t, (values (1), (2)) w(x)",
    "select * from t, generate_series(1, 3) g",
    "select * from t, (select a from u order by a limit 10) x",
    "select count(*), sum(distinct a), min(b) from t",
    "select a, string_agg(s, ',') from t group by a",
    "select lag(b) over (partition by a order by b) from t",
    "select array_agg(a) from (select a from t order by a limit 3) x",
    "select rank() over (order by n) from (select count(*) n from t) x",
    "select lag(x) over (order by x) from (values (1), (2)) w(x)",
    "select * from t order by a limit 100",
    "select * from t order by a",
    "select * from (select *, row_number() over (order by a) r from t) x where r <= 5",
]
LAG_BEHIND = [
    ("select * from t, u", "a join of t and u has no condition"),
    ("select * from t, u where t.a < u.a", "no equality in its condition"),
    ("select * from t left join u on t.a < u.a", "no equality in its condition"),
    ("select * from t where exists (select from u where u.c > t.b)", "no equality"),
    ("select * from t where a > all (select c from u)", "a query over t and u has no condition"),
    ("select string_agg(s, ',') from t where a > 1", "string_agg over all of t is recomputed"),
    ("select count(*), percentile_cont(0.5) within group (order by a) from t", "percentile_cont"),
    ("select array_agg(distinct a) from t", "array_agg over all of t"),
    ("select lag(a) over (order by a) from t", "lag over all of t has no PARTITION BY"),
    ("select count(*) over () from t join u on t.a = u.a", "count over all of a query over t, u"),
    ("select * from t order by a limit 90 offset 20", "the first 110 rows of all of t"),
    ("select * from t order by a offset 3", "all but the first 3 rows of all of t"),
    ("select x from t, unnest(array[a, b]) x where x > any (select c from u)", "no equality"),
]


def planned(text):
    query = plan_query(parse_query(text), FuzzCatalog(), maintained=True)
    return rewrite(query.relation, RewriteContext())


@pytest.mark.parametrize("text", KEEP_UP)
def test_what_keeps_up_is_accepted(text):
    check_cost(planned(text), allowed=False)


@pytest.mark.parametrize(("text", "reason"), LAG_BEHIND)
def test_what_reads_everything_at_every_change_is_refused_with_the_way_out(text, reason):
    plan = planned(text)
    with pytest.raises(NotSupported) as raised:
        check_cost(plan, allowed=False, position=7)
    error = raised.value
    assert error.code == "0A000"
    assert reason in error.message
    assert error.position == 7
    assert "WITH (allow_full_recompute = true)" in error.hint
    assert not error.hint.startswith("or ")
    check_cost(plan, allowed=True)


def test_every_node_has_a_cost_and_shared_parts_are_looked_at_once():
    step = "select x.a, y.a b from ({0}) x join ({0}) y on x.a = y.a"
    text = "select a, c from u"
    for _ in range(25):  # 2²⁵ paths
        text = f"with w as ({text}) {step.format('select * from w')}"
    plan = planned(text)
    assert set(costs(plan)) == set(walk(plan))
