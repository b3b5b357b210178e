"""Whatever a query over the catalog says, it reads the catalog and nothing else."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.model_engine import ModelEngine
from reclock.errors import Error, StatementError
from reclock.session.database import Database
from reclock.sql.parse import parse_statements
from reclock.sql.pg.functions import BUILTINS, MACROS, RENAMED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    made = Database(tmp_path_factory.mktemp("pg") / "state", ModelEngine(), background=False)
    made.execute("CREATE TABLE t (id BIGINT PRIMARY KEY); CREATE USER joe PASSWORD 'geheim'")
    with made:
        yield made


ATTEMPTS = [
    "SELECT * FROM pg_class, read_csv('{file}')",
    "SELECT * FROM pg_class, read_text('{file}')",
    "SELECT * FROM pg_class, '{file}'",
    'SELECT * FROM pg_class, "{file}"',
    'SELECT * FROM pg_catalog."{file}"',
    "SELECT * FROM pg_class WHERE relname = (SELECT content FROM read_text('{file}'))",
    "SELECT pg_catalog.read_text('{file}')",
    "SELECT pg_catalog.getenv('HOME'), oid FROM pg_class",
    "SELECT getenv('HOME') FROM pg_class",
    "SELECT getvariable('x') FROM pg_class",
    "SELECT * FROM duckdb_settings(), pg_class",
    "SELECT * FROM pg_class, duckdb_secrets()",
    "SELECT * FROM pg_class JOIN duckdb_tables() d ON true",
    "SELECT current_setting('home_directory') FROM pg_class",
    "SELECT * FROM pragma_table_info('pg_class'), pg_class",
    "SELECT * FROM pg_class, lookup.privilege",
    "SELECT * FROM lookup.privilege, pg_class",
    "SELECT * FROM pgc.pg_class, pg_class",
    "SELECT fn.class_in('t') FROM pg_class",
    "SELECT class_in('t') FROM pg_class",
    "SELECT fn.repeat(9) FROM (SELECT 'x' AS fn) q, pg_class",
    "SELECT (relname).hash() FROM pg_class",
    "SELECT c.relname.upper() FROM pg_class c",
    "SELECT main.upper(relname) FROM pg_class",
    "WITH duckdb_tables AS (SELECT * FROM duckdb_tables) SELECT * FROM duckdb_tables, pg_class",
    "WITH a AS (SELECT * FROM sqlite_master), sqlite_master AS (SELECT 1) SELECT * FROM a, pg_am",
    "SELECT * FROM pg_am WHERE EXISTS (WITH given AS (SELECT * FROM given) SELECT 1 FROM given)",
    "SELECT * FROM ROWS FROM (read_text('{file}')) x, pg_class",
    "SELECT * FROM pg_catalog.sqlite_master",
    "SELECT * FROM information_schema.duckdb_tables",
    "SELECT query('SELECT 1') FROM pg_class",
    "SELECT * FROM pg_class, query('SELECT 1')",
    "SELECT * FROM pg_class, query_table('pg_class')",
    "SELECT * INTO pg_class2 FROM pg_class",
    "SELECT * FROM pg_class FOR UPDATE",
    "SELECT * FROM pg_class; ATTACH '{file}' AS x",
    "SELECT * FROM pg_class; INSTALL httpfs",
    "SELECT * FROM pg_class; LOAD httpfs",
    "SELECT * FROM pg_class; PRAGMA version",
    "COPY (SELECT * FROM pg_class) TO '{file}'",
    "COPY pg_class TO '{file}'",
    "WITH x AS (INSERT INTO pg_class VALUES (1) RETURNING 1) SELECT * FROM x, pg_class",
    "INSERT INTO pg_catalog.pg_class VALUES (1)",
    "UPDATE pg_catalog.pg_class SET relname = 'x'",
    "DELETE FROM pg_catalog.pg_class",
    "DROP TABLE pg_catalog.pg_class",
    "CREATE TABLE pg_catalog.x (a INT)",
    "SELECT * FROM pg_class, t",
    "SELECT count(*) FROM t WHERE id IN (SELECT oid FROM pg_class)",
]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_nothing_else_is_reached(db: Database, attempt: str, tmp_path: Path) -> None:
    file = tmp_path / "file.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(Error) as caught:
        db.execute(attempt.replace("{file}", str(file)))
    assert isinstance(caught.value, StatementError | Error)
    assert caught.value.code not in {"XX000", "58000"}
    assert file.read_text() == "a,b\n1,2\n"


def test_every_function_of_duckdb_but_those_listed_is_refused(db: Database) -> None:
    import duckdb  # noqa: PLC0415

    connection = duckdb.connect(":memory:")
    names = connection.sql("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()
    connection.close()
    allowed = BUILTINS | RENAMED.keys() | MACROS.keys() | {"current_setting", "version"}
    special = {"cast", "case", "exists", "if", "extract", "overlay", "position", "any", "all"}
    tried = 0
    telling = re.compile("read|file|sql|duckdb|pragma|env|query|glob|load|secret|scan|var|version")
    for place, (name,) in enumerate(sorted(names)):
        if place % 10 and not telling.search(name):
            continue
        if not name.isidentifier() or name in allowed or name in special:
            continue
        if name.startswith(("current_", "session_", "pg_")) or name == "user":
            continue
        with pytest.raises(Error):
            parse_statements(f"SELECT {name}(1) FROM pg_catalog.pg_class")
        tried += 1
    assert tried > 50


WORDS = re.findall(r"\S+", """
SELECT relname , oid :: regclass FROM pg_class c LEFT JOIN pg_index i ON indrelid = c . oid
AND indkey [ 0 ] = ANY ( ARRAY [ 1 ] ) WHERE relkind IN ( 'r' , '' ) AND pg_catalog .
pg_get_indexdef ( i . indexrelid , 0 , true ) IS NOT NULL OR 't' :: text = format ( '%I' , relname )
GROUP BY 1 UNION ALL VALUES * ( SELECT count ( * ) FROM unnest ( indkey ) WITH ORDINALITY u ( k ) )
CASE WHEN END LIMIT 3 $1 OPERATOR ( pg_catalog . ~ ) COLLATE current_user generate_series ( 1 , 2 )
information_schema . _pg_expandarray ( indkey ) AS x has_table_privilege
""")  # fmt: skip


@settings(max_examples=60)
@given(data=st.data())
def test_no_text_is_a_bug(db: Database, data: st.DataObject) -> None:
    words = WORDS[:52]
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(words) - 1))
        new = data.draw(st.lists(st.sampled_from(WORDS), max_size=3))
        words[place : place + data.draw(st.integers(0, 3))] = new
    with suppress(Error):
        db.execute(" ".join(words))


def test_passwords_are_nowhere(db: Database) -> None:
    with db.session("joe") as session:
        for relation in ("pg_authid", "pg_roles", "pg_user"):
            found = session.execute(f"SELECT * FROM {relation}")
            assert "SCRAM" not in str(found.rows)
            assert "geheim" not in str(found.rows)
