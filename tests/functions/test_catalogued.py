"""A call of what PostgreSQL has is not supported; of what it has not, does not exist."""

from __future__ import annotations

import psycopg
import pytest

from net.paths import plan_of
from reclock.errors import Error
from reclock.testing.postgres import running_postgres

from .catalogued import HEAD, PATH, catalogued

NOT_SUPPORTED = (
    "array_upper(l, 1)", "trunc(1.234, 2)", "log(2.0, 8.0)", "div(7.5, 2)", "to_char(1.5, '9.9')",
    "make_timestamp(2024, 1, 1, 1, 1, 1.5)", "transaction_timestamp()", "json_typeof('1'::json)",
    "jsonb_build_object('a', 1)", "jsonb_agg(i order by i)", "jsonb_agg(distinct i)",
    "jsonb_set('{}'::jsonb, '{a}', '1')", "format('%s', 1, 'x')", "unnest(l)",
    "generate_series(1, 3)", "l <@ array[1]", "regexp_match(s, 'a')", "to_jsonb(i)", "e",
    "to_jsonb(e)",
    "'{}'::jsonb #> '{a}'", "num_nulls(1, null)", "width_bucket(1, 2, 3, 4)",
)  # fmt: skip
NONSENSE = (
    "lenght(s)", "length(i)", "upper(i, s)", "i || i", "s + s", "trunc(s)", "array_upper(i, 1)",
    "array_append(l, s)", "l @> array[1.5]", "log(s, s)", "format(i)", "sum(s)",
)  # fmt: skip


@pytest.mark.postgres
def test_the_list_is_postgresqls() -> None:
    with running_postgres() as url, psycopg.connect(url) as connection:
        assert PATH.read_text().splitlines() == [HEAD.rstrip(), *catalogued(connection)]


@pytest.mark.parametrize("expression", NOT_SUPPORTED)
def test_what_postgresql_has_is_not_supported(expression: str) -> None:
    made = plan_of(f"select {expression} from e")
    assert isinstance(made, Error)
    assert made.code == "0A000", made


@pytest.mark.parametrize("expression", NONSENSE)
def test_what_postgresql_has_not_does_not_exist(expression: str) -> None:
    made = plan_of(f"select {expression} from e")
    assert isinstance(made, Error)
    assert made.code == "42883", made


@pytest.mark.postgres
def test_postgresql_agrees() -> None:
    with running_postgres() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table e (i int, l int[], s text)")
        for expression in NOT_SUPPORTED:
            connection.execute(f"select {expression} from e".encode())
        for expression in NONSENSE:
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(f"select {expression} from e".encode())
            assert caught.value.sqlstate == "42883", expression
