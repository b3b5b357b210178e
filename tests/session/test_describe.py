"""What a prepared statement takes and gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reclock.errors import Error
from reclock.sql import types as t
from reclock.sql.parse import parse_statements
from reclock.sql.types import parse_simple

if TYPE_CHECKING:
    from reclock.session.database import Database

TABLE = "CREATE TABLE t (id BIGINT, name TEXT, price NUMERIC(12,2), at TIMESTAMP, tags TEXT[])"


@pytest.fixture
def made(db: Database) -> Database:
    db.execute(TABLE)
    return db


@pytest.mark.parametrize(
    ("sql", "parameters", "columns"),
    [
        ("SELECT id FROM t WHERE id = $1", "bigint", "bigint"),
        ("SELECT name FROM t WHERE at < $2 AND name LIKE $1", "text, timestamp", "text"),
        ("SELECT $1", "text", "text"),
        ("SELECT $1::int + 1 AS n, $2::json", "integer, json", "integer, json"),
        ("SELECT id FROM t LIMIT $1 OFFSET $2", "bigint, bigint", "bigint"),
        ("SELECT id FROM t WHERE id IN ($1, $2)", "bigint, bigint", "bigint"),
        ("SELECT id FROM t WHERE id = ANY($1)", "bigint[]", "bigint"),
        ("SELECT coalesce(name, $1) FROM t", "text", "text"),
        ("SELECT id FROM t AS OF $1", "bigint", "bigint"),
        ("INSERT INTO t (price, at) VALUES ($1, $2)", "numeric(12,2), timestamp", None),
        ("UPDATE t SET name = $1 WHERE id = $2", "text, bigint", None),
        ("DELETE FROM t WHERE price > $1", "numeric(12,2)", None),
        ("CREATE TABLE other (a INT)", "", None),
        ("SHOW TABLES", "", "text"),
        ("EXPLAIN SELECT 1", "", "text"),
        ("SUBSCRIBE t", "", "bigint, bigint, bigint, text, numeric(12,2), timestamp, text[]"),
        ("BEGIN", "", None),
    ],
)  # fmt: skip
def test_what_it_takes_and_gives(
    made: Database, sql: str, parameters: str, columns: str | None
) -> None:
    (parsed,) = parse_statements(sql)
    found = made.session().describe(parsed)
    assert ", ".join(map(str, found.parameters)) == parameters
    shown = None if found.schema is None else ", ".join(str(c.type) for c in found.schema)
    assert shown == columns


def test_declared_types_are_kept(made: Database) -> None:
    (parsed,) = parse_statements("SELECT $1, id + $2 FROM t")
    found = made.session().describe(parsed, [t.DATE, parse_simple("smallint")])
    assert found.parameters == (t.DATE, t.SMALLINT)
    assert found.schema is not None
    assert [c.type for c in found.schema] == [t.DATE, t.BIGINT]


def test_what_is_wrong_is_said_before_it_runs(made: Database) -> None:
    (parsed,) = parse_statements("SELECT nothing FROM t WHERE id = $1")
    with pytest.raises(Error) as caught:
        made.session().describe(parsed)
    assert caught.value.code == "42703"


def test_describing_changes_nothing(made: Database) -> None:
    (parsed,) = parse_statements("INSERT INTO t (id) VALUES ($1)")
    made.session().describe(parsed)
    assert made.execute("SELECT count(*) FROM t").rows == [(0,)]
