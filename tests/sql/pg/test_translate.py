from __future__ import annotations

import pytest

from reclock.errors import NotSupported, StatementError
from reclock.sql import types as t
from reclock.sql.parse import parse_statement
from reclock.sql.statement import CatalogQuery


def query(text: str) -> CatalogQuery:
    found = parse_statement(text)
    assert isinstance(found, CatalogQuery)
    return found


def outputs(text: str) -> str:
    """Return the outputs of a query over a relation, as DuckDB's text."""
    found = query(f"SELECT {text} FROM pg_class c").text
    return found.removeprefix("SELECT ").removesuffix(" FROM pgc.pg_class AS c")


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("c.relname AS Name", "c.relname AS name"),
        ("c.oid::regclass", 'fn.class_out(c.oid) AS "oid"'),
        ("c.oid::regclass::text AS x", "CAST(fn.class_out(c.oid) AS TEXT) AS x"),
        ("'t'::regclass", "fn.class_out(fn.class_in('t')) AS \"regclass\""),
        ("'t'::regclass::oid AS x", "CAST(fn.class_in('t') AS UINTEGER) AS x"),
        ("c.oid = 't'::regclass AS x", "c.oid = fn.class_in('t') AS x"),
        ("obj_description('t'::regclass) AS x", "fn.obj_description(fn.class_in('t')) AS x"),
        ("a.b OPERATOR(pg_catalog.~) '^x$' COLLATE pg_catalog.default AS x",
         "REGEXP_MATCHES(a.b, '^x$') AS x"),
        ("c.relname !~ 'x' AS x", "NOT REGEXP_MATCHES(c.relname, 'x') AS x"),
        ("c.relname LIKE 'a\\_b' AS x", "c.relname LIKE 'a\\_b' ESCAPE '\\' AS x"),
        ("i.indkey[0] AS x", "i.indkey[(0) + 1] AS x"),
        ("con.conkey[1] AS x", "con.conkey[1] AS x"),
        ("r = '{0}' AS x", "r = '[0]' AS x"),
        ("'{r,v}'::text[] AS x", "CAST('[r,v]' AS TEXT[]) AS x"),
        ("format('%I.%s', a, b) AS x", "concat('', fn.quote_ident(a), '.', b, '') AS x"),
        ("pg_catalog.format_type(a, b)", 'fn.format_type(a, b) AS "format_type"'),
        ("CASE WHEN a THEN b END", 'CASE WHEN a THEN b END AS "case"'),
        ("count(*)", 'count(*) AS "count"'),
        ("1 + 1", '1 + 1 AS "?column?"'),
        ("(SELECT nspname FROM pg_namespace)",
         '(SELECT nspname FROM pgc.pg_namespace AS pg_namespace) AS "nspname"'),
    ],
)  # fmt: skip
def test_texts(text: str, made: str) -> None:
    assert outputs(text) == made


def test_what_a_query_needs() -> None:
    found = query(
        "SELECT relkind AS kind, indkey, has_table_privilege(c.oid, 'SELECT'), current_user"
        " FROM pg_class c JOIN pg_index ON indrelid = c.oid, information_schema.tables"
        " WHERE c.oid = $2 AND relname = $1 AND c.oid = ANY($3::oid[]) AND $4"
    )
    assert found.relations == {
        ("pg_catalog", "pg_class"), ("pg_catalog", "pg_index"), ("information_schema", "tables"),
    }  # fmt: skip
    assert found.macros == {"has_table_privilege"}
    assert found.session == ("current_user",)
    assert found.parameters == (t.TEXT, t.OID, t.Array(t.OID), t.BOOLEAN)
    assert found.special == {"kind": "char", "indkey": "vector"}


def test_functions_in_from_are_columns_too() -> None:
    found = query("SELECT s FROM pg_class, generate_series(1, 2) s, unnest(relacl) AS u").text
    assert "GENERATE_SERIES(1, 2) AS s(s)" in found or "generate_series(1, 2) AS s(s)" in found
    assert "UNNEST(relacl) AS u(u)" in found


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x::money FROM pg_class",
        "SELECT x::array FROM pg_class",
        "SELECT 1 OPERATOR(pg_catalog.@>) 2 FROM pg_class",
        "SELECT format(relname) FROM pg_class",
        "SELECT format('%z', relname) FROM pg_class",
        "SELECT * FROM pg_class FOR UPDATE",
        "SELECT * FROM pg_class TABLESAMPLE SYSTEM (1)",
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(NotSupported):
        query(text)


def test_errors_say_where() -> None:
    with pytest.raises(StatementError) as caught:
        query("SELECT oid, nothing(1) FROM pg_class")
    assert caught.value.position == 13
