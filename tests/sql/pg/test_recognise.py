from __future__ import annotations

import pytest

from reclock.errors import NotSupported
from reclock.sql.parse import parse_statement
from reclock.sql.parse.dialect import tokenize
from reclock.sql.pg.recognise import PARTS, WORDS, mentions_catalog
from reclock.sql.statement import CatalogQuery, SelectStatement

OVER_IT = [
    "SELECT 1 FROM pg_class",
    "SELECT 1 FROM pg_catalog.pg_class",
    'SELECT 1 FROM "pg_catalog"."pg_class"',
    "SELECT 1 FROM information_schema.tables",
    "SELECT 1 FROM INFORMATION_SCHEMA.TABLES, Pg_Class",
    "WITH x AS (SELECT * FROM pg_class) SELECT * FROM x",
    "WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT a FROM x) SELECT a FROM x, pg_type",
    "SELECT pg_catalog.pg_backend_pid()",
    "SELECT pg_catalog.version(), pg_is_in_recovery()",
    "SELECT 't'::regclass",
    "SELECT CAST('t' AS pg_catalog.regclass)",
    "SELECT has_table_privilege('t', 'SELECT')",
    "SELECT format_type(20, -1), current_schemas(true)",
    "SELECT 1 OPERATOR(pg_catalog.+) 1",
    "(SELECT relname FROM pg_class) UNION SELECT 'x'",
    "SELECT * FROM pg_get_keywords()",
]
OTHERS = [
    "SELECT 1",
    "SELECT version(), current_schema(), current_setting('timezone')",
    "SELECT * FROM t WHERE name = 'pg_class'",
    "SELECT pg_class FROM t",
    'SELECT * FROM "PG_CLASS"',
    "SELECT * FROM reclock.objects",
    "SELECT pg_catalog.version(), pg_catalog.current_schema(), pg_catalog.upper('a')",
    "SELECT * FROM public.pg_class",
    "WITH pg_class AS (SELECT 1 AS a) SELECT * FROM pg_class",
    "SELECT quote_ident(name) FROM t",
    "SELECT * FROM t AS OF 12",
]


@pytest.mark.parametrize("text", OVER_IT)
def test_queries_over_the_catalog(text: str) -> None:
    assert isinstance(parse_statement(text), CatalogQuery)


@pytest.mark.parametrize("text", OTHERS)
def test_other_queries(text: str) -> None:
    assert isinstance(parse_statement(text), SelectStatement)


def test_what_no_word_of_the_catalog_is_in_is_not_looked_at() -> None:
    for text in ("SELECT id FROM t WHERE name = 'pg_class'", "SELECT region FROM t"):
        assert not mentions_catalog(text, tokenize(text))
    text = "SELECT id FROM PG_Class"
    assert mentions_catalog(text, tokenize(text))
    assert all(any(part in word for part in PARTS) for word in WORDS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM pg_class, t",
        "SELECT * FROM t WHERE id IN (SELECT oid FROM pg_class)",
        "SELECT relname FROM pg_class UNION SELECT name FROM t",
        "SELECT * FROM pg_class, reclock.objects",
    ],
)
def test_half_of_one_is_refused(text: str) -> None:
    with pytest.raises(NotSupported, match="at once"):
        parse_statement(text)
