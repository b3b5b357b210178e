"""The same statements in a real PostgreSQL: its catalog says the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from engines.model_engine import ModelEngine
from reclock.server.pg_catalog.types import KINDS
from reclock.session.database import Database
from reclock.testing.postgres import running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.postgres

MADE = """
CREATE TABLE t (
    id BIGINT PRIMARY KEY, name TEXT NOT NULL DEFAULT 'it''s', price NUMERIC(12,2),
    code VARCHAR(10), at TIMESTAMPTZ, ts TIMESTAMP, d DATE, tags TEXT[], data JSON, f REAL,
    g DOUBLE PRECISION, s SMALLINT, n INT DEFAULT 5, ok BOOLEAN DEFAULT true, raw BYTEA,
    iv INTERVAL);
CREATE TABLE pair (a INT, b TEXT, c DOUBLE PRECISION, PRIMARY KEY (b, a));
CREATE TABLE "Odd one" (a INT, "B c" DATE);
CREATE INDEX t_name ON t (name, id)
"""
OURS = "= 'public'::regnamespace"
TYPES = ", ".join(map(str, KINDS))
QUERIES = {
    "types": "SELECT oid, typname, typlen, typcategory, typelem, typarray, typdelim, typbyval,"
    " typalign, typstorage, typcollation, typispreferred, typtype, typisdefined,"
    f" format_type(oid, -1) FROM pg_type WHERE oid IN ({TYPES}) ORDER BY oid",
    "classes": "SELECT relname, relkind, relnatts, relchecks, relhasindex, relhasrules,"
    " relhastriggers, relpersistence, relreplident, relispartition, relispopulated, reltuples"
    f" FROM pg_class WHERE relnamespace {OURS} AND relkind = 'r' ORDER BY 1",
    "attributes": "SELECT c.relname, a.attname, attnum, atttypid::regtype::text, atttypmod, attlen,"
    " attnotnull, atthasdef, attndims, attbyval, attalign, attstorage, attcollation, attidentity,"
    " attgenerated, attisdropped, attislocal, attinhcount, format_type(atttypid, atttypmod)"
    f" FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid WHERE c.relnamespace {OURS}"
    " AND attnum > 0 ORDER BY 1, 3",
    "indexes": "SELECT indexrelid::regclass::text, indrelid::regclass::text, indnatts, indnkeyatts,"
    " indisunique, indisprimary, indisexclusion, indimmediate, indisclustered, indisvalid,"
    " indisready, indislive, indkey::text, indcollation::text, indoption::text,"
    " pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 1, true) FROM pg_index"
    f" WHERE indrelid IN (SELECT oid FROM pg_class WHERE relnamespace {OURS}) ORDER BY 1",
    "constraints": "SELECT conname, contype, condeferrable, condeferred, convalidated,"
    " conrelid::regclass::text, conindid::regclass::text, conkey, conkey::text,"
    " pg_get_constraintdef(oid), conislocal, coninhcount, connoinherit FROM pg_constraint"
    f" WHERE contype = 'p' AND connamespace {OURS} ORDER BY 1",
    "defaults": "SELECT adnum, pg_get_expr(adbin, adrelid) FROM pg_attrdef ORDER BY 1",
    "tables": "SELECT table_schema, table_name, table_type, is_insertable_into"
    " FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 2",
    "columns": "SELECT table_name, column_name, ordinal_position, column_default, is_nullable,"
    " data_type, character_maximum_length, character_octet_length, numeric_precision,"
    " numeric_precision_radix, numeric_scale, datetime_precision, udt_schema, udt_name,"
    " is_identity, is_generated, is_updatable FROM information_schema.columns"
    " WHERE table_schema = 'public' ORDER BY 1, 3",
    "table_constraints": "SELECT constraint_name, table_name, is_deferrable, initially_deferred,"
    " enforced FROM information_schema.table_constraints WHERE table_schema = 'public'"
    " AND constraint_type = 'PRIMARY KEY' ORDER BY 1",
    "key_column_usage": "SELECT constraint_name, table_name, column_name, ordinal_position,"
    " position_in_unique_constraint FROM information_schema.key_column_usage"
    " WHERE table_schema = 'public' ORDER BY 1, 4",
    "pg_tables": "SELECT schemaname, tablename, tablespace, hasindexes, hasrules, hastriggers"
    " FROM pg_tables WHERE schemaname = 'public' ORDER BY 2",
    "pg_indexes": "SELECT * FROM pg_indexes WHERE schemaname = 'public' ORDER BY 3",
    "names": """SELECT 't'::regclass::text, '"t"'::regclass::text, 'public.t'::regclass::text,
      '"Odd one"'::regclass::text, 'pg_catalog.pg_class'::regclass::text, 'int8'::regtype::text,
      'public'::regnamespace::text, 'text[]'::regtype::text, '_int4'::regtype::text,
      'timestamptz'::regtype, to_regclass('nothing'), 'T'::regclass""",
    "functions": "SELECT quote_ident('a b'), quote_ident('ab'), quote_literal('it''s'),"
    " array_upper(ARRAY[1, 2], 1), array_length(ARRAY[1, 2], 1), current_schemas(true),"
    " parse_ident('a.b'), format('%I.%s %L %%', 'A', 'b', 'c'), obj_description('t'::regclass),"
    " pg_table_is_visible('t'::regclass), array_to_string(ARRAY['a', 'b'], ','),"
    " array_remove(ARRAY[1, 2, 1], 1), 'x' <> ALL ('{a,b}'), 'a' = ANY ('{a,b}'),"
    " pg_encoding_to_char(6), (CASE WHEN true THEN 1 END)::int, '1'::text::int, 'x'::varchar",
    "arrays": "SELECT i, k, x, n FROM (SELECT generate_subscripts(conkey, 1) AS i,"
    " unnest(conkey) AS k, conkey FROM pg_constraint WHERE conname = 'pair_pkey') c,"
    " LATERAL unnest(c.conkey) WITH ORDINALITY AS u(x, n) ORDER BY 1, 4",
    "several arrays": "SELECT relname, u.* FROM pg_index i JOIN pg_class c ON c.oid = indexrelid,"
    " unnest(i.indkey, i.indoption) WITH ORDINALITY u(k, o, n)"
    " WHERE relname IN ('t_name', 't_pkey') ORDER BY 1, 4",
    "upper case": "SELECT TABLE_NAME, Column_Name FROM INFORMATION_SCHEMA.COLUMNS"
    " WHERE TABLE_SCHEMA = 'public' ORDER BY TABLE_NAME, ORDINAL_POSITION",
    "vectors": "SELECT indkey[0], indkey[1], (SELECT attname FROM pg_attribute"
    " WHERE attrelid = indrelid AND attnum = indkey[1]) FROM pg_index"
    " WHERE indexrelid = 't_name'::regclass",
    "aggregates": "SELECT min(relname), count(DISTINCT relkind), bool_or(relhasindex),"
    " sum(relnatts), string_agg(relname, ',' ORDER BY relname DESC) FILTER (WHERE relkind = 'r')"
    f" FROM pg_class WHERE relnamespace {OURS}",
    "outputs": "SELECT relkind, 1 + 1, 'x', relname::text, count(*), max(oid)::int8 IS NULL,"
    " CASE WHEN true THEN 1 END, coalesce(NULL, 'a'), EXISTS (SELECT 1), ARRAY[1],"
    " (SELECT nspname FROM pg_namespace WHERE oid = 11), NULL"
    " FROM pg_class WHERE relname = 't' GROUP BY 1, 4",
    "order": "SELECT relname FROM (VALUES ('b'), (NULL), ('a')) v(relname), pg_am"
    " WHERE amname = 'btree' ORDER BY relname DESC",
}  # fmt: skip


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[psycopg.Connection[Any], Database]]:
    ours = Database(tmp_path_factory.mktemp("pg") / "state", ModelEngine(), background=False)
    with ours, running_postgres() as url, psycopg.connect(url, autocommit=True) as theirs:
        theirs.execute(MADE)
        ours.execute(MADE)
        yield theirs, ours


@pytest.mark.parametrize("name", QUERIES)
def test_the_catalogs_agree(name: str, both: tuple[psycopg.Connection[Any], Database]) -> None:
    theirs, ours = both
    cursor = theirs.execute(QUERIES[name])  # type: ignore[call-overload]
    expected = [tuple(row) for row in cursor.fetchall()]
    found = ours.execute(QUERIES[name])
    assert found.rows == expected
    assert list(found.columns) == [column.name for column in cursor.description]
