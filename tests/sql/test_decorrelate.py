from __future__ import annotations

from collections import Counter
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING

import pytest

from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from reclock.sql.plan.decorrelate import outer_refs
from reclock.testing.evaluate import answer, evaluate
from reclock.testing.evaluate_scalar import EvaluationError
from reclock.testing.postgres import running_postgres
from reclock.testing.queries import SCHEMA, FuzzCatalog, random_query, random_tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.sql.plan.relation import QueryPlan

Row = tuple[object, ...]
SEEDS = range(60)
TABLES = {
    "t": Counter({(1, 2, "x"): 2, (2, None, "y"): 1, (None, 3, None): 1}),
    "u": Counter({(1, 5): 1, (1, 6): 1, (None, 7): 1, (3, None): 1}),
    "v": Counter({(1, 1): 1, (2, 9): 1}),
}


def normal(row: Row) -> Row:
    return tuple(
        Decimal(v).normalize() if isinstance(v, int | Decimal) and not isinstance(v, bool) else v
        for v in row
    )


@pytest.mark.postgres
def test_random_queries_answer_as_postgresql_does() -> None:
    psycopg = pytest.importorskip("psycopg")
    with running_postgres() as url, psycopg.connect(url, autocommit=True) as connection:
        for name, columns in SCHEMA.items():
            inside = ", ".join(f"{c} {k}" for c, k in columns)
            connection.execute(f"create table {name} ({inside})")
        for seed in SEEDS:
            random = Random(seed)
            tables = random_tables(random)
            text = random_query(random)
            for name, rows in tables.items():
                connection.execute(f"truncate {name}")
                marks = ", ".join("%s" for _ in SCHEMA[name])
                with connection.cursor() as cursor:
                    cursor.executemany(
                        f"insert into {name} values ({marks})", list(rows.elements())
                    )
            wanted = Counter(normal(row) for row in connection.execute(text).fetchall())
            node = plan_query(parse_query(text), FuzzCatalog()).relation
            assert not list(outer_refs(node)), (seed, text)
            got: Counter[Row] = Counter()
            for row, count in evaluate(node, tables).items():
                got[normal(row)] += count
            assert got == wanted, (seed, text, tables)


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
