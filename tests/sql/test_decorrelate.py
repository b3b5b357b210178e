from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from model.evaluate import answer
from model.evaluate_scalar import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.sql.plan.relation import QueryPlan

Row = tuple[object, ...]
TABLES = {
    "t": Counter({(1, 2, "x"): 2, (2, None, "y"): 1, (None, 3, None): 1}),
    "u": Counter({(1, 5): 1, (1, 6): 1, (None, 7): 1, (3, None): 1}),
    "v": Counter({(1, 1): 1, (2, 9): 1}),
}


def run(plan: Callable[[str], QueryPlan], text: str) -> list[Row]:
    return answer(plan(text), TABLES)


def test_not_in_over_null_is_never_true(plan: Callable[[str], QueryPlan]) -> None:
    assert run(plan, "select a from t where a not in (select a from u)") == []
    text = "select a from t where a not in (select a from u where a is not null)"
    assert run(plan, text) == [(2,)]
    assert run(plan, "select 1 where null::int not in (select a from t where false)") == [(1,)]


def test_a_scalar_subquery_of_two_rows_is_an_error_only_where_used(
    plan: Callable[[str], QueryPlan],
) -> None:
    with pytest.raises(EvaluationError) as refused:
        run(plan, "select (select c from u where u.a = t.a) from t")
    assert refused.value.code == "21000"
    lazy = "select case when a = 2 then (select c from u where u.a = t.a) end from t"
    assert run(plan, lazy) == [(None,)] * 4


def test_an_empty_group_counts_zero(plan: Callable[[str], QueryPlan]) -> None:
    text = "select a, (select count(*) from u where u.a = t.a) from t order by 1"
    assert run(plan, text) == [(1, 2), (1, 2), (2, 0), (None, 0)]


def test_lateral_top_one(plan: Callable[[str], QueryPlan]) -> None:
    text = (
        "select t.a, x.c from t left join lateral "
        "(select c from u where u.a = t.a order by c desc limit 1) x on true"
    )
    assert Counter(run(plan, text)) == Counter({(1, 6): 2, (2, None): 1, (None, None): 1})


def test_a_correlated_common_table(plan: Callable[[str], QueryPlan]) -> None:
    text = (
        "select a, (with w as (select c from u where u.a = t.a) "
        "select count(*) from w where exists (select 1 from w)) from t where a = 1"
    )
    assert run(plan, text) == [(1, 2), (1, 2)]
