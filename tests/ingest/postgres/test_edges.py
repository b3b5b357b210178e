"""Values at the edges of every type: what PostgreSQL has is what is here, copied and streamed."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from engines.model_engine import ModelEngine
from engines.task_engine import TaskEngine

pytestmark = pytest.mark.postgres

TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'so so');
CREATE DOMAIN small AS INT; CREATE DOMAIN smaller AS small CHECK (VALUE < 100);
CREATE DOMAIN felt AS mood; CREATE DOMAIN many AS INT[]; CREATE DOMAIN cents AS NUMERIC(5,2);
CREATE DOMAIN moment AS TIMESTAMPTZ;
"""
SAME = {
    "smallint": ["-32768", "32767"],
    "int": ["-2147483648", "2147483647"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "real": ["1.17549435e-38", "1e-45", "3.4028235e38", "NaN", "Infinity", "-Infinity", "-0"],
    "float8": ["5e-324", "1.7976931348623157e308", "NaN", "-Infinity", "0.1", "1e22", "-0"],
    "numeric": ["0", "-0.000000001", "99999999999999999999999999999.999999999", "1e28"],
    "numeric(38,0)": ["99999999999999999999999999999999999999", "-1"],
    "numeric(38,38)": ["0.99999999999999999999999999999999999999", "-1e-38"],
    "numeric(2,-3)": ["99000"],
    "numeric(3,5)": ["0.00999"],
    "numeric(1000,0)": ["5"],
    "boolean": ["t", "f"],
    "text": ["", "\\N", "a\tb\nc\\", "é😀", "NULL", '"'],
    "varchar(3)": ["", "abc", "é😀 "],
    "char(5)": ["", "a", " b", "héé"],
    "bytea": ["", "\\x00", "\\xdeadbeef"],
    "date": ["0001-01-01", "9999-12-31", "1582-10-10", "1969-12-31"],
    "timestamp": ["0001-01-01 00:00", "9999-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999"],
    "timestamptz": ["0001-01-01 00:00+00", "9999-12-31 23:59:59.999999+00", "2024-03-10 2:30-08"],
    "moment": ["2024-03-10 02:30:00-08"],
    "json": ['{"a":1,"a":2}', " [1, 2 ] ", "null", '"é"', "12345678901234567890123", "1.10", '""'],
    "jsonb": ['{"b": {"a": []}}', "null", "12345678901234567890123", "-0", "[]"],
    "smaller": ["7", "-2147483648"],
    "many": ["{1,NULL}"],
    "cents": ["1.25", "-999.99"],
    "smallint[]": ["{}", "{NULL}", "{-32768,32767}"],
    "int[]": ["{}", "{NULL}", "{-2147483648,NULL,2147483647}"],
    "bigint[]": ["{-9223372036854775808}"],
    "real[]": ["{1e-45,NaN}"],
    "float8[]": ["{NaN,Infinity,5e-324,NULL}"],
    "boolean[]": ["{t,f,NULL}"],
    "text[]": ["{}", '{"",NULL,"NULL","a,b","\\"q\\"","{}"," ","\\\\"}'],
    "varchar(3)[]": ["{abc}"],
    "char(3)[]": ['{"a",NULL}'],
    "bytea[]": ['{"\\\\x00",NULL}'],
    "date[]": ["{0001-01-01,9999-12-31}"],
    "timestamp[]": ['{"9999-12-31 23:59:59.999999"}'],
    "timestamptz[]": ['{"2024-01-01 00:00:00+02"}'],
    "numeric(5,2)[]": ["{1.5,NULL,-999.99}"],
    "numeric[]": ["{0.000000001}"],
}
TEXTS = {
    "time": ["00:00:00", "24:00:00", "12:34:56.123456"],
    "timetz": ["00:00:00+15", "24:00:00-15:59"],
    "interval": [
        "178000000 years", "-178000000 years", "1 mon -1 day 00:00:00.000001", "0",
        "2562047788:00:54.775807", "-1 year 2 mons",
    ],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "mood": ["sad", "so so"],
    "felt": ["so so"],
    "mood[]": ['{sad,"so so",NULL}'],
    "smaller[]": ["{1,2}"],
    "uuid[]": ["{ffffffff-ffff-ffff-ffff-ffffffffffff}"],
    "time[]": ["{24:00:00}"],
    "name": ["n"],
    "oid": ["4294967295"],
    "inet": ["10.0.0.1", "10.0.0.0/8", "::1"],
    "cidr": ["10.0.0.0/8"],
    "macaddr": ["08:00:2b:01:02:03"],
    "money": ["-92233720368547758.08"],
    "bit(3)": ["101"],
    "varbit": ["", "1"],
    "point": ["(1,2)"],
    "int4range": ["[1,5)", "empty", "(,)"],
    "tsvector": ["'a' 'b':2"],
    "pg_lsn": ["FFFFFFFF/FFFFFFFF"],
    "xid8": ["18446744073709551615"],
}  # fmt: skip
"""Types that are text here, and intervals: both are written as text to be compared."""

KINDS = [*SAME, *TEXTS]
COLUMNS = ", ".join(f"c{n} {kind}" for n, kind in enumerate(KINDS))


def filled(upstream, table):
    """Make each row have the next value of each type, and NULL where there is none."""
    values = SAME | TEXTS
    for row in range(max(map(len, values.values()))):
        given = [some[row] if row < len(some) else None for some in values.values()]
        with upstream.session.cursor() as cursor:
            marks = ", ".join(["%s"] * len(given))
            cursor.execute(f"INSERT INTO {table} VALUES ({row}, {marks})", given)


def alike(one, other):
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, memoryview):
        one = bytes(one)
    is_number = isinstance(one, Decimal | int | float) and not isinstance(one, bool)
    return (is_number or type(one) is type(other) or one is None) and one == other


def compare(db, upstream, table):
    upstream("SET timezone = 'UTC'")
    for n, kind in enumerate(KINDS):
        ours = theirs = f"c{n}"
        if kind in TEXTS:
            ours, theirs = f"c{n}::text", f"CASE WHEN c{n} IS NOT NULL THEN format('%s', c{n}) END"
        order = f"FROM {table} ORDER BY id"
        expected = [value for (value,) in upstream(f"SELECT {theirs} {order}")]
        found = [value for value, _ in db.execute(f"SELECT {ours}, id {order}").rows]
        assert len(found) == len(expected)
        for one, other in zip(expected, found, strict=True):
            assert alike(one, other), (kind, one, other)


@pytest.mark.parametrize("engine", [ModelEngine, TaskEngine])
def test_values_at_the_edges_are_those_of_the_database(upstream, opener, engine):
    opener.engine = engine
    upstream(TYPES)
    upstream(f"CREATE TABLE keyed (id INT PRIMARY KEY, {COLUMNS})")
    upstream(f"CREATE TABLE bare (id INT, {COLUMNS}); ALTER TABLE bare REPLICA IDENTITY FULL")
    for table in ("keyed", "bare"):
        filled(upstream, table)
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    for _ in range(2):
        opener.clock.advance(1_000)
        db.tick()
        for table in ("keyed", "bare"):
            compare(db, upstream, table)
        upstream("UPDATE keyed SET id = id + 100; UPDATE keyed SET id = id - 100")
        upstream("CREATE TEMP TABLE IF NOT EXISTS kept AS SELECT * FROM bare")
        upstream("DELETE FROM bare; INSERT INTO bare SELECT * FROM kept")
    upstream("DELETE FROM bare; DELETE FROM keyed")  # a row that was not the same would stay
    opener.clock.advance(1_000)
    db.tick()
    for table in ("keyed", "bare"):
        assert db.execute(f"SELECT count(*) FROM {table}").rows == [(0,)]
    assert db.execute("SELECT * FROM reclock.errors").rows == []
