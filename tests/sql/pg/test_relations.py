from __future__ import annotations

import pytest

from reclock.sql import types as t
from reclock.sql.parse import parse_statement
from reclock.sql.pg.definition import query_text
from reclock.sql.pg.functions import BUILTINS, LOOKUPS, MACROS, OWN, RENAMED, with_needed
from reclock.sql.pg.relations import CHARS, PG_RELATIONS, VECTORS, find_relation
from reclock.sql.pg.types import type_of_storage


def test_relations_are_found_as_postgresql_finds_them() -> None:
    assert find_relation(None, "pg_class") is find_relation("pg_catalog", "pg_class") is not None
    assert find_relation("information_schema", "tables") is not None
    assert find_relation(None, "tables") is None
    assert find_relation("public", "pg_class") is None
    assert len(PG_RELATIONS) > 90


def test_a_column_that_is_special_is_so_everywhere() -> None:
    for relation in PG_RELATIONS.values():
        for name, kind in relation.columns.items():
            assert (kind.name == "char") == (name in CHARS), (relation.name, name)
            if name in VECTORS:
                assert isinstance(kind.type, t.Array)


def test_what_is_stored_comes_back_as_the_type_it_was() -> None:
    kinds = {kind for relation in PG_RELATIONS.values() for kind in relation.columns.values()}
    for kind in kinds:
        shown = kind.type
        if kind.name in {"char", "char[]"}:
            shown = t.TEXT if kind.name == "char" else t.Array(t.TEXT)
        assert type_of_storage(kind.storage) == shown
    assert type_of_storage("STRUCT(a INTEGER)") is None


def test_macros_need_what_there_is() -> None:
    for macro in MACROS.values():
        assert macro.lookups <= LOOKUPS.keys()
        assert macro.calls <= MACROS.keys()
    assert not (BUILTINS | RENAMED.keys()) & MACROS.keys()
    assert MACROS.keys() >= OWN
    order = [macro.name for macro in with_needed(frozenset({"pg_has_role"}))]
    assert order == ["role_in", "pg_has_role"]


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("CREATE VIEW v AS SELECT 1 AS a", "SELECT 1 AS a"),
        ("CREATE OR REPLACE VIEW v (x) AS\n  SELECT 1;", "SELECT 1"),
        (
            "CREATE MATERIALIZED VIEW m WITH (RETAIN HISTORY = '1h') AS SELECT a AS b FROM t",
            "SELECT a AS b FROM t",
        ),
        ('CREATE VIEW "AS" AS WITH x AS (SELECT 1) TABLE x', "WITH x AS (SELECT 1) TABLE x"),
    ],
)
def test_the_query_of_a_view(sql: str, text: str) -> None:
    assert query_text(sql) == text
    parse_statement(text)
