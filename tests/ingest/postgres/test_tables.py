"""Tables of every kind: names that must be quoted, partitions, generated columns, filters, values.

What reclock shows is compared with what PostgreSQL says of itself, copied and streamed.
"""

from __future__ import annotations

import threading
from decimal import Decimal

import pytest

from reclock.errors import Error, NotSupported
from reclock.ingest.postgres.copying import Copier

pytestmark = pytest.mark.postgres


def tick(db, opener):
    opener.clock.advance(1_000)
    db.tick()


def same(db, upstream, ours, theirs=None):
    expected = upstream(theirs or ours)
    assert sorted(db.execute(ours).rows, key=repr) == sorted(expected, key=repr)


def test_names_are_taken_as_they_are(upstream, opener):
    upstream('CREATE SCHEMA "My Shop"')
    upstream('CREATE TABLE "My Shop"."Order ""x"" y" ("Id" INT PRIMARY KEY, "select" TEXT)')
    upstream("CREATE TABLE orders (id INT PRIMARY KEY)")
    upstream("CREATE SCHEMA other CREATE TABLE orders (id INT PRIMARY KEY, note TEXT)")
    upstream("""INSERT INTO "My Shop"."Order ""x"" y" VALUES (1, 'it''s')""")
    upstream("INSERT INTO other.orders VALUES (1, 'o'); INSERT INTO orders VALUES (7)")
    upstream('CREATE PUBLICATION "The ""p""" FOR ALL TABLES')
    db = opener()
    with pytest.raises(Error, match='two tables with the name "orders"') as caught:
        db.execute(f"""CREATE SOURCE s {upstream.source(publication='The "p"')}""")
    assert caught.value.code == "42712"
    tables = 'FOR TABLES ("My Shop"."Order ""x"" y" AS bought, orders, other.orders AS "Others")'
    db.execute(f"""CREATE SOURCE s {upstream.source(tables, publication='The "p"')}""")
    for step in range(2):
        tick(db, opener)
        same(db, upstream, 'SELECT "Id", "select" FROM bought',
             'SELECT "Id", "select" FROM "My Shop"."Order ""x"" y"')  # fmt: skip
        same(db, upstream, 'SELECT * FROM "Others"', "SELECT * FROM other.orders")
        same(db, upstream, "SELECT * FROM orders")
        if step == 0:
            upstream("""UPDATE "My Shop"."Order ""x"" y" SET "select" = 'two', "Id" = 2""")
            upstream("INSERT INTO other.orders VALUES (2, NULL); DELETE FROM orders")


def test_a_partitioned_table_is_its_partitions(upstream, opener):
    upstream("CREATE TABLE sales (id INT, day INT, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)")
    upstream("CREATE TABLE early PARTITION OF sales FOR VALUES FROM (0) TO (10)")
    upstream("CREATE TABLE late PARTITION OF sales FOR VALUES FROM (10) TO (20)")
    upstream("INSERT INTO sales VALUES (1, 1), (2, 12)")
    upstream("CREATE PUBLICATION p FOR TABLE sales")
    upstream("CREATE PUBLICATION whole FOR TABLE sales WITH (publish_via_partition_root)")
    db = opener()
    with pytest.raises(NotSupported, match="published by its root") as caught:
        db.execute(f"CREATE SOURCE w {upstream.source(publication='whole')}")
    assert "publish_via_partition_root = false" in caught.value.hint
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    db.execute("CREATE VIEW sales AS SELECT * FROM early UNION ALL SELECT * FROM late")
    tick(db, opener)
    same(db, upstream, "SELECT * FROM sales")
    upstream("INSERT INTO sales VALUES (3, 3), (4, 14)")
    upstream("UPDATE sales SET day = 15 WHERE id = 1")  # it moves to the other partition
    tick(db, opener)
    for table in ("early", "late", "sales"):
        same(db, upstream, f"SELECT * FROM {table}")


def test_what_is_not_published_is_not_there(upstream, opener):
    upstream("CREATE TABLE made (id INT PRIMARY KEY, n INT, twice INT GENERATED ALWAYS AS (n * 2) "
             "STORED, secret TEXT)")  # fmt: skip
    upstream("CREATE TABLE few (id INT PRIMARY KEY, n INT)")
    upstream("INSERT INTO made (id, n, secret) VALUES (1, 5, 'x')")
    upstream("INSERT INTO few VALUES (1, 1), (2, 100), (3, 200)")
    upstream("CREATE PUBLICATION p FOR TABLE made")
    upstream("CREATE PUBLICATION q FOR TABLE made (id, n), few WHERE (id > 1)")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source('FOR TABLES (made)')}")
    tables = "FOR TABLES (made AS short, few)"
    db.execute(f"CREATE SOURCE t {upstream.source(tables, publication='q')}")
    for step in range(2):
        tick(db, opener)
        same(db, upstream, "SELECT * FROM made", "SELECT id, n, secret FROM made")
        same(db, upstream, "SELECT * FROM short", "SELECT id, n FROM made")
        same(db, upstream, "SELECT * FROM few", "SELECT * FROM few WHERE id > 1")
        if step == 0:
            upstream("UPDATE made SET n = 6; INSERT INTO made (id, n) VALUES (2, 7)")
            upstream("INSERT INTO few VALUES (0, 0), (4, 4); UPDATE few SET n = n + 1")
            upstream("UPDATE few SET id = 50 WHERE id = 1; UPDATE few SET id = -2 WHERE id = 2")


def test_truncation_takes_the_tables_that_refer(upstream, opener):
    upstream("CREATE TABLE parent (id INT PRIMARY KEY)")
    upstream("CREATE TABLE child (id INT PRIMARY KEY, of INT REFERENCES parent)")
    upstream("CREATE TABLE apart (id INT PRIMARY KEY)")
    upstream("INSERT INTO parent VALUES (1); INSERT INTO child VALUES (1, 1), (2, 1)")
    upstream("INSERT INTO apart VALUES (1)")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()} WITH (RETAIN HISTORY FOR '1 h')")
    db.execute(
        "CREATE MATERIALIZED VIEW pairs AS SELECT c.id FROM child c JOIN parent p ON c.of = p.id"
    )
    tick(db, opener)
    assert len(db.execute("SELECT * FROM pairs").rows) == 2
    upstream("BEGIN; INSERT INTO parent VALUES (2); TRUNCATE parent, apart CASCADE; "
             "INSERT INTO parent VALUES (3); INSERT INTO child VALUES (9, 3); COMMIT")  # fmt: skip
    tick(db, opener)
    for table in ("parent", "child", "apart"):
        same(db, upstream, f"SELECT * FROM {table}")
    assert db.execute("SELECT * FROM pairs").rows == [(9,)]
    assert db.execute("SELECT count(*) FROM child AS OF 2000").rows == [(2,)]


def test_one_row_may_change_many_times_in_a_transaction(upstream, opener):
    upstream("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    upstream("CREATE TABLE whole (id INT, n INT); ALTER TABLE whole REPLICA IDENTITY FULL")
    upstream(
        "CREATE TABLE fully (id INT PRIMARY KEY, n INT); ALTER TABLE fully REPLICA IDENTITY FULL"
    )
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    for table in ("t", "whole", "fully"):
        upstream(f"INSERT INTO {table} VALUES (1, 0), (2, 0)")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    tick(db, opener)
    for table in ("t", "whole", "fully"):
        upstream(
            f"BEGIN; UPDATE {table} SET n = 1 WHERE id = 1; UPDATE {table} SET id = 3 WHERE id = 1;"
            f"UPDATE {table} SET id = 1 WHERE id = 2; UPDATE {table} SET id = 2 WHERE id = 3;"
            f"DELETE FROM {table} WHERE id = 1; INSERT INTO {table} VALUES (1, 9);"
            f"SAVEPOINT a; UPDATE {table} SET n = 99; DELETE FROM {table}; ROLLBACK TO a;"
            f"UPDATE {table} SET n = n + 1; COMMIT"
        )
    tick(db, opener)
    for table in ("t", "whole", "fully"):
        same(db, upstream, f"SELECT * FROM {table}")


VALUES = """
CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN name AS VARCHAR(20);
CREATE DOMAIN cents AS NUMERIC(12,2); CREATE TYPE pair AS (a INT, b TEXT);
CREATE TABLE odd (
  id INT PRIMARY KEY, e mood, es mood[], d name, c cents, cs NUMERIC(6,1)[], r INT4RANGE, p pair,
  m MONEY, tz TIMETZ, bits BIT(3), h POINT, f REAL[], iv INTERVAL[], u UUID[], b BYTEA[],
  day DATE[], j JSONB[], ch "char", big NUMERIC(38,10), old DATE, ts TIMESTAMPTZ
)
"""
ROW = """
('ok', '{sad,NULL}', 'Bob', 12.34, '{1.5,NULL}', '[1,5)', '(1,"a b")', '12.50', '12:00:00+02',
 '101', '(1,2)', '{NaN,Infinity,1.5}', '{1 day,02:00:00}',
 '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{"\\\\x00ff"}', '{2024-02-29}', '{"{\\"a\\": 1}"}',
 'q', 12345678901234567890.5, '0001-01-01', '9999-12-31 23:59:59.999999+00')
"""


def test_values_of_every_type_are_the_same_both_ways(upstream, opener):
    upstream(VALUES)
    upstream("CREATE TABLE odd2 (LIKE odd); ALTER TABLE odd2 REPLICA IDENTITY FULL")
    upstream(f"INSERT INTO odd VALUES (1, {ROW.strip()[1:]}")
    upstream("INSERT INTO odd (id) VALUES (2)")
    upstream("INSERT INTO odd2 SELECT * FROM odd")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    tick(db, opener)
    copied = sorted(db.execute("SELECT * FROM odd").rows, key=repr)
    assert db.execute("SELECT e, es, d, c, cs, r, p, big FROM odd WHERE id = 1").rows == [
        ("ok", "{sad,NULL}", "Bob", Decimal("12.34"), [Decimal("1.5"), None], "[1,5)",
         '(1,"a b")', Decimal("12345678901234567890.5000000000")),
    ]  # fmt: skip
    upstream("DELETE FROM odd2")  # by content
    upstream("DELETE FROM odd")
    tick(db, opener)
    assert db.execute("SELECT count(*) FROM odd2").rows == [(0,)]
    upstream(f"INSERT INTO odd VALUES (1, {ROW.strip()[1:]}")
    upstream("INSERT INTO odd (id) VALUES (2)")
    tick(db, opener)
    assert repr(sorted(db.execute("SELECT * FROM odd").rows, key=repr)) == repr(copied)
    assert db.execute("SELECT * FROM reclock.errors").rows == []


@pytest.mark.parametrize(
    ("kind", "value", "better"),
    [
        ("DATE", "'-infinity'", "'2024-01-01'"),
        ("DATE", "'0044-03-15 BC'", "'2024-01-01'"),
        ("TIMESTAMP", "'infinity'", "'2024-01-01'"),
        ("TIMESTAMPTZ", "'0044-03-15 BC'", "'2024-01-01'"),
        ("TIMESTAMP", "'12024-01-01'", "'2024-01-01'"),
        ("NUMERIC(10,2)", "'NaN'", "1.5"),
        ("NUMERIC", "'-Infinity'", "1.5"),
        ("NUMERIC", "1e-20", "1.5"),
        ("NUMERIC", "1e60", "1.5"),
        ("NUMERIC(60,30)", "1e-30", "1.5"),
        ("NUMERIC[]", "'{1,NULL,1e-20}'", "'{1,NULL}'"),
        ("NUMERIC[]", "'{NaN}'", "'{1.5}'"),
        ("INT[]", "'{{1,2},{3,4}}'", "'{1}'"),
    ],
)
def test_a_value_that_does_not_fit_is_the_error_of_its_row(upstream, opener, kind, value, better):
    upstream(f"CREATE TABLE t (id INT PRIMARY KEY, v {kind}); INSERT INTO t VALUES (1, {value})")
    upstream(f"INSERT INTO t VALUES (2, {better})")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    db.execute("CREATE TABLE own (n INT)")
    for _ in range(2):  # copied, then streamed
        tick(db, opener)
        with pytest.raises(Error, match='column "v" has a value that type') as caught:
            db.execute("SELECT * FROM t")
        assert caught.value.code == "22003"
        assert caught.value.hint.startswith("change the value in the database")
        db.execute("SELECT * FROM own")
        upstream(f"UPDATE t SET v = {better}")
        tick(db, opener)
        assert len(db.execute("SELECT * FROM t").rows) == 2
        upstream(f"UPDATE t SET v = {value} WHERE id = 2")
    upstream("DELETE FROM t WHERE id = 2")
    tick(db, opener)
    assert len(db.execute("SELECT * FROM t").rows) == 1


@pytest.mark.parametrize(
    ("before", "after"), [("NUMERIC(6,1)[]", "NUMERIC(9,3)[]"), ("cents", "NUMERIC(12,2)")]
)
def test_another_type_is_a_lasting_error(upstream, opener, before, after):
    upstream("CREATE DOMAIN cents AS NUMERIC(12,2)")
    upstream(f"CREATE TABLE t (id INT PRIMARY KEY, v {before}); INSERT INTO t VALUES (1, NULL)")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()} WITH (RETAIN HISTORY FOR '1 h')")
    tick(db, opener)
    upstream("INSERT INTO t VALUES (2, NULL)")
    tick(db, opener)
    upstream(f"ALTER TABLE t ALTER v TYPE {after}; INSERT INTO t VALUES (3, NULL)")
    tick(db, opener)
    tick(db, opener)
    with pytest.raises(Error, match=r'column "v" of table public.t has another type') as caught:
        db.execute("SELECT * FROM t")
    assert caught.value.code == "42804"
    assert db.execute("SELECT count(*) FROM t AS OF 3000").rows == [(2,)]


def test_progress_is_shown_while_it_copies(upstream, opener, monkeypatch):
    upstream("CREATE TABLE a (id INT PRIMARY KEY); INSERT INTO a SELECT generate_series(1, 500)")
    upstream("CREATE TABLE b (id INT PRIMARY KEY); INSERT INTO b SELECT generate_series(1, 700)")
    upstream("ANALYZE a; ANALYZE b")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    held, go_on = threading.Event(), threading.Event()
    copied_here = Copier._here

    def slowly(self, item, copy, said, about):
        for rows in copied_here(self, item, copy, said, about):
            if copy.table.name == "b":
                held.set()
                assert go_on.wait(30)
            yield rows

    monkeypatch.setattr(Copier, "_here", slowly)
    reader = threading.Thread(target=lambda: tick(db, opener))
    reader.start()
    assert held.wait(30)
    intake = db._core.intakes[db._core.world.catalog.find(("s",)).id]
    assert intake.progress == "copying table public.b, 2 of 2: 700 of about 700 rows"
    (source,) = db.facts.sources()  # as the console has it; how much log follows is not known yet
    assert (source.said, source.lag_bytes, source.is_log) == (intake.progress, None, True)
    assert db.execute("SELECT lag_bytes FROM reclock.source_status").rows == [(None,)]
    go_on.set()
    reader.join()
    assert intake.progress is None
    assert db.execute("SELECT count(*) FROM b").rows == [(700,)]
