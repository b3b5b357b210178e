"""pg_typeof: the name of a type, known when the query is planned."""

from __future__ import annotations

import pytest

from engines.model_engine import ModelEngine
from reclock.session.database import Database


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    with Database(tmp_path_factory.mktemp("typeof") / "s", ModelEngine(), background=False) as made:
        yield made


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("1", "integer"),
        ("3000000000", "bigint"),
        ("1.5", "numeric"),
        ("'a'", "unknown"),
        ("'a'::text", "text"),
        ("NULL", "unknown"),
        ("1 < 2", "boolean"),
        ("ARRAY[1.5]", "numeric[]"),
        ("now()", "timestamp with time zone"),
        ("'2024-01-01'::timestamp", "timestamp without time zone"),
        ("'2024-01-01'::date - '2023-01-01'::date", "integer"),
        ("1::float8", "double precision"),
        ("interval '1 day'", "interval"),
    ],
)
def test_it_is_the_name_that_postgresql_gives(db, expression, kind):
    assert db.execute(f"SELECT pg_typeof({expression})").rows == [(kind,)]
