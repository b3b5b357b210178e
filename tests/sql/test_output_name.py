"""Outputs without an alias have PostgreSQL's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from net.paths import plan_of
from net.tables import ddl
from reclock.testing.postgres import running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.postgres

EXPRESSIONS = (
    "a", "t.a", "a + 1", "1", "'x'", "null", "true", "-a", "not true", "a is null", "a in (1, 2)",
    "count(*)", "max(a)::bigint", "(max(a))", "sum(a) + 1", "coalesce(max(a), 0)", "nullif(1, 2)",
    "greatest(1, 2)", "(1 + 2)::int", "1::bigint", "1::smallint::text", "'1'::numeric(5, 2)",
    "1.5::real", "1.5::double precision", "true::boolean", "'a'::varchar(3)", "'{1}'::int[]",
    "'{x}'::text[]", "date '2024-01-01'", "timestamp '2024-01-01'", "timestamptz '2024-01-01'",
    "interval '1 day'", "'1 day'::interval", "interval '3' hour", "'1'::bytea",
    "case when true then 1 end", "case when true then 1 else 2 end",
    "case when true then 1 else max(a) end", "case when true then 1 else max(a) end::text",
    "case when true then 1 end::text", "array[1, 2]", "(array[1, 2])[1]", "(array_agg(a))[1]",
    "exists (select 1)", "(select 1)", "(select 1 as one)", "(select max(c) from u)",
    "(select max(c)::int + 1 from u)", "((select count(*) from u))", "(select 1 union select 2)",
    "(values (1))", "extract(year from date '2024-01-01')", "substring('abc' from 2)",
    "trim('x')", "row_number() over ()", "'x' || 'y'", "'x' like 'y'",
)  # fmt: skip


@pytest.fixture(scope="module")
def connection() -> Iterator[psycopg.Connection]:
    with running_postgres() as url, psycopg.connect(url, autocommit=True) as connection:
        for statement in ddl():
            connection.execute(statement)
        yield connection


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_outputs_have_postgresqls_names(connection: psycopg.Connection, expression: str) -> None:
    by = (
        " group by a"
        if expression in {"a", "t.a", "a + 1", "-a", "a is null", "a in (1, 2)"}
        else ""
    )
    text = f"select {expression} from t{by}"
    cursor = connection.execute(f"select * from ({text}) q limit 0")
    assert cursor.description is not None
    made = plan_of(text)
    assert not isinstance(made, Exception), made
    assert [c.name for c in made.relation.schema][:1] == [cursor.description[0].name]
