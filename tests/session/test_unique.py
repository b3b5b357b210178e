"""UNIQUE: PostgreSQL's answers, random writes, transactions, loads, crashes, restarts."""

from __future__ import annotations

import json
from contextlib import suppress

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.catalog.item import UNIQUE, Index
from reclock.errors import ConstraintViolation, Error
from reclock.failpoints import FailpointRaised, armed
from reclock.session import copy_in
from reclock.sql.parse import parse_statements
from reclock.testing.postgres import running_postgres

STATEMENTS = (
    "CREATE TABLE t (id int PRIMARY KEY, a int UNIQUE, b text, c int, UNIQUE (b, c))",
    "INSERT INTO t VALUES (1, 1, 'x', 1), (2, NULL, 'x', 2), (3, NULL, 'x', NULL), "
    "(4, 4, 'x', NULL)",
    "INSERT INTO t VALUES (5, 1, 'y', 1)",
    "INSERT INTO t VALUES (5, 5, 'x', 1)",
    "INSERT INTO t VALUES (5, 5, 'y', 1), (6, 5, 'y', 2)",
    "INSERT INTO t VALUES (1, 9, 'y', 1)",
    "UPDATE t SET a = 4 WHERE id = 1",
    "SELECT id, a FROM t ORDER BY id",
    "INSERT INTO t VALUES (7, 4, 'z', 1) ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES (7, 4, 'z', 1) ON CONFLICT (a) DO NOTHING",
    "INSERT INTO t VALUES (7, 4, 'z', 1) ON CONFLICT (id) DO NOTHING",
    "INSERT INTO t VALUES (7, 4, 'z', 1) ON CONFLICT (a) DO UPDATE SET b = excluded.b "
    "RETURNING id, b",
    "INSERT INTO t VALUES (7, 4, 'z', 1) ON CONFLICT ON CONSTRAINT t_a_key DO UPDATE SET c = 9",
    "INSERT INTO t VALUES (7, 8, 'z', 9) ON CONFLICT (c, b) DO UPDATE SET a = excluded.a "
    "RETURNING *",
    "INSERT INTO t VALUES (1, 8, 'q', 9) ON CONFLICT (a) DO UPDATE SET id = 2",
    "INSERT INTO t VALUES (1, 8, 'q', 9) ON CONFLICT (a, b) DO NOTHING",
    "INSERT INTO t VALUES (1, 8, 'q', 9) ON CONFLICT (a) DO UPDATE SET id = 2, b = 'x', c = 2",
    "INSERT INTO t VALUES (30, 30, 'p', 1), (31, 30, 'p', 2), (32, 31, 'p', 2) "
    "ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES (40, 40, 'r', 1), (41, 40, 'r', 2) ON CONFLICT (a) DO UPDATE SET c = 0",
    "INSERT INTO t VALUES (50, NULL, 's', 1), (51, NULL, 's', 2) "
    "ON CONFLICT (a) DO UPDATE SET c = 0",
    "SELECT id, a, b, c FROM t ORDER BY id",
    "CREATE UNIQUE INDEX u ON t (c)",
    "CREATE UNIQUE INDEX u ON t (nope)",
    "CREATE UNIQUE INDEX u ON t USING btree (id, c)",
    "INSERT INTO t VALUES (60, 60, 's', 3) ON CONFLICT ON CONSTRAINT u DO NOTHING",
    "INSERT INTO t VALUES (60, 60, 's', 3) ON CONFLICT (id, c) DO NOTHING",
    "DROP INDEX t_a_key",
    "DROP INDEX u",
    "CREATE TABLE n (a int, b text, UNIQUE NULLS NOT DISTINCT (a, b), UNIQUE (b, a))",
    "INSERT INTO n VALUES (1, NULL), (NULL, NULL)",
    "INSERT INTO n VALUES (1, NULL)",
    "INSERT INTO n VALUES (NULL, NULL)",
    "INSERT INTO n VALUES (NULL, NULL), (2, NULL) ON CONFLICT DO NOTHING",
    "INSERT INTO n VALUES (3, NULL), (3, NULL)",
    "CREATE UNIQUE INDEX m ON n (b) NULLS NOT DISTINCT",
    "CREATE UNIQUE INDEX m ON n (b)",
    "SELECT count(*) FROM n",
    "DROP TABLE n",
    "ALTER TABLE t ADD UNIQUE (b)",
    "ALTER TABLE t ADD CONSTRAINT ids UNIQUE (id, b), ADD COLUMN d int UNIQUE",
    "INSERT INTO t VALUES (70, 70, 'v', 70, 1)",
    "INSERT INTO t VALUES (71, 71, 'v', 71, 1)",
    "ALTER TABLE t ADD COLUMN e int NOT NULL DEFAULT 4 UNIQUE",
    "ALTER TABLE t ADD CONSTRAINT ids UNIQUE (id)",
    "ALTER TABLE t ADD CONSTRAINT x UNIQUE (nope)",
    "ALTER TABLE t DROP CONSTRAINT ids",
    "ALTER TABLE t DROP CONSTRAINT ids",
    "ALTER TABLE t RENAME COLUMN a TO aa",
    "INSERT INTO t VALUES (72, 70, 'v', 72, 2)",
    "ALTER INDEX t_a_key RENAME TO others",
    "INSERT INTO t VALUES (72, 70, 'v', 72, 2)",
    "INSERT INTO t VALUES (72, 70, 'v', 72, 2) ON CONFLICT ON CONSTRAINT others DO NOTHING",
    "ALTER TABLE t DROP COLUMN aa",
    "INSERT INTO t VALUES (72, 'v', 70, 2)",
    "ALTER TABLE t DROP CONSTRAINT t_b_c_key, ADD UNIQUE (c)",
    "ALTER TABLE t DROP CONSTRAINT t_b_c_key, ADD UNIQUE (c, b)",
    "ALTER TABLE t RENAME TO tt",
    "INSERT INTO tt VALUES (73, 'v', 73, 2)",
    "INSERT INTO tt VALUES (73, 'v', 73, 1)",
    "CREATE TABLE two (a int UNIQUE, UNIQUE (a), CONSTRAINT c UNIQUE (a))",
    "INSERT INTO two VALUES (1), (1)",
    "CREATE TABLE bad (a int, UNIQUE (a, a))",
    "CREATE TABLE bad (a int, UNIQUE (b))",
    "CREATE TABLE same (a int PRIMARY KEY UNIQUE)",
    "INSERT INTO same VALUES (1), (1)",
    "CREATE TABLE s (a smallint CONSTRAINT small UNIQUE, b varchar(3) UNIQUE, d date UNIQUE)",
    "INSERT INTO s VALUES (1, 'abc', '2026-01-01'), (2, 'b', NULL)",
    "INSERT INTO s VALUES (1, 'q', NULL)",
    "INSERT INTO s VALUES (3, 'abc   ', NULL)",
    "INSERT INTO s VALUES (3, 'q', '2026-01-01')",
    "BEGIN",
    "CREATE TABLE own (a int UNIQUE)",
    "INSERT INTO own VALUES (1)",
    "INSERT INTO own VALUES (1)",
    "ROLLBACK",
    "BEGIN",
    "INSERT INTO s VALUES (7, NULL, NULL)",
    "INSERT INTO s VALUES (7, NULL, NULL) ON CONFLICT DO NOTHING",
    "CREATE UNIQUE INDEX dates ON s (d, b)",
    "DELETE FROM s WHERE a = 1",
    "INSERT INTO s VALUES (1, 'abc', '2026-01-01')",
    "COMMIT",
    "INSERT INTO s VALUES (9, 'abc', '2026-01-02')",
)
"""Run one after the other, each with the same effect in both."""

CATALOG = (
    "SELECT c.relname, indisunique, indisprimary, indnullsnotdistinct FROM pg_index "
    "JOIN pg_class c ON c.oid = indexrelid JOIN pg_class r ON r.oid = indrelid "
    "WHERE r.relname IN ('tt', 's', 'two', 'z') ORDER BY 1",
    "SELECT conname, contype, conkey, pg_get_constraintdef(k.oid) FROM pg_constraint k "
    "JOIN pg_class r ON r.oid = conrelid WHERE r.relname IN ('s', 'two', 'z') "
    "AND contype IN ('u', 'p') ORDER BY 1",
    "SELECT indexname, indexdef FROM pg_indexes WHERE tablename IN ('tt', 's', 'two', 'z') "
    "ORDER BY 1",
    "SELECT constraint_name, constraint_type, nulls_distinct "
    "FROM information_schema.table_constraints WHERE table_name IN ('s', 'z') "
    "AND constraint_type IN ('UNIQUE', 'PRIMARY KEY') ORDER BY 1",
    "SELECT constraint_name, column_name, ordinal_position "
    "FROM information_schema.key_column_usage WHERE table_name IN ('tt', 's', 'z') ORDER BY 1, 3",
)


def answer(connection, sql):
    try:
        cursor = connection.execute(sql)
    except psycopg.Error as error:
        told = error.diag
        return error.sqlstate, told.message_primary, told.message_detail, told.constraint_name
    return cursor.statusmessage, cursor.fetchall() if cursor.description else []


def told(db, sql):
    try:
        result = db.execute(sql)
    except Error as error:
        constraint = getattr(error, "constraint", None)
        return error.code, error.message, error.detail, constraint
    return result.tag, result.rows


@pytest.mark.postgres
def test_everything_is_as_in_postgresql(db):
    with running_postgres() as address, psycopg.connect(address, autocommit=True) as other:
        for sql in STATEMENTS:
            theirs, ours = answer(other, sql), told(db, sql)
            if theirs[0] != "23505" or str(theirs[1]).startswith("could not create"):
                theirs, ours = theirs[:2], ours[:2]  # of several keys any may be named
            assert ours == theirs, sql
        last = "CREATE TABLE z (a int, b int, UNIQUE NULLS NOT DISTINCT (b, a))"
        other.execute(last)
        db.execute(last)
        for sql in CATALOG:
            assert db.session().execute(sql).rows == other.execute(sql).fetchall(), sql


VALUES = st.one_of(st.none(), st.integers(0, 4))
WRITES = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "update", "delete", "ignore", "tick"]),
        st.integers(0, 9),
        VALUES,
        VALUES,
    ),
    min_size=5,
    max_size=25,
)


def allowed(rows, distinct):
    """Return whether rows (id, a, b) may be there together."""
    ids = [row[0] for row in rows]
    pairs = [row[1:] for row in rows if not distinct or None not in row[1:]]
    return len(set(ids)) == len(ids) and len(set(pairs)) == len(pairs)


@pytest.mark.parametrize("distinct", [True, False])
@given(WRITES)
@settings(max_examples=15, deadline=None)
def test_rows_are_refused_exactly_if_they_may_not_be_there(make_opener, distinct, writes):
    db = make_opener()()
    nulls = "DISTINCT" if distinct else "NOT DISTINCT"
    db.execute(f"CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, UNIQUE NULLS {nulls} (a, b))")
    rows: set[tuple[int, int | None, int | None]] = set()
    for what, key, a, b in writes:
        new = (key, a, b)
        after, ignored = set(rows), False
        shown = ", ".join("NULL" if v is None else str(v) for v in new)
        match what:
            case "tick":
                db.tick()
                continue
            case "insert" | "ignore":
                sql = f"INSERT INTO t VALUES ({shown})"
                refused = new in rows or not allowed([*rows, new], distinct)
                after, ignored = rows | {new}, what == "ignore"
                sql += " ON CONFLICT DO NOTHING" * ignored
                refused, after = (
                    (False, rows if refused else after) if ignored else (refused, after)
                )
            case "update":
                sql = f"UPDATE t SET a = {shown.split(', ')[1]} WHERE id = {key}"
                after = {(k, a if k == key else x, y) for k, x, y in rows}
                refused = not allowed(sorted(after, key=str), distinct)
            case "delete":
                sql, refused = f"DELETE FROM t WHERE id = {key}", False
                after = {row for row in rows if row[0] != key}
        if refused:
            with pytest.raises(ConstraintViolation) as caught:
                db.execute(sql)
            assert caught.value.code == "23505"
        else:
            db.execute(sql)
            rows = set(after)
        assert set(db.execute("SELECT * FROM t").rows) == rows
    db.close()


def test_two_sessions_cannot_both_add_one(db):
    db.execute("CREATE TABLE t (a INT UNIQUE)")
    db.execute("INSERT INTO t VALUES (8), (9); UPDATE t SET a = 17 - a")
    one, two = db.session(), db.session()
    one.execute("BEGIN; INSERT INTO t VALUES (1)")
    two.execute("BEGIN; INSERT INTO t VALUES (1)")
    one.execute("COMMIT")
    with pytest.raises(ConstraintViolation) as caught:
        two.execute("COMMIT")
    assert caught.value.code == "23505"
    one.execute("BEGIN; CREATE UNIQUE INDEX again ON t (a)")
    db.execute("INSERT INTO t VALUES (2)")
    one.execute("COMMIT")
    db.execute("CREATE TABLE u (a INT, b INT); INSERT INTO u VALUES (1, 1)")
    one.execute("BEGIN; CREATE UNIQUE INDEX u_a ON u (a)")
    db.execute("INSERT INTO u VALUES (1, 2)")
    with pytest.raises(ConstraintViolation):
        one.execute("COMMIT")
    assert db.execute("SHOW INDEXES ON u").rows == []
    one.execute("BEGIN; DELETE FROM u WHERE b = 2; CREATE UNIQUE INDEX u_a ON u (a); SAVEPOINT s")
    with pytest.raises(ConstraintViolation):
        one.execute("INSERT INTO u VALUES (5, 1), (5, 2)")
    one.execute("ROLLBACK TO s; INSERT INTO u VALUES (5, 1); COMMIT")
    assert sorted(db.execute("SELECT * FROM u").rows) == [(1, 1), (5, 1)]
    assert db.check() == []


@pytest.mark.parametrize("again", [False, True])
def test_it_is_so_after_a_restart_and_after_ticks(db, opener, again):
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT UNIQUE)")
    db.insert("t", [(n, n) for n in range(3_000)])
    db.tick()
    db.execute("INSERT INTO t VALUES (3000, 3000)")
    db = opener.reopened(db) if again else db
    for a in (17, 3_000):
        with pytest.raises(ConstraintViolation) as caught:
            db.execute(f"INSERT INTO t VALUES (5000, {a})")
        assert caught.value.detail == f"Key (a)=({a}) already exists."
    assert db.execute("SELECT id FROM t WHERE a = 17").rows == [(17,)]
    shown = db.execute("SHOW CREATE TABLE t").rows[0][1]
    db.execute("ALTER TABLE t ADD COLUMN c INT")
    altered = db.execute("SHOW CREATE TABLE t").rows[0][1]
    assert "UNIQUE" in shown
    assert "CONSTRAINT t_a_key UNIQUE (a)" in altered
    db.execute("DROP TABLE t")
    db.execute(altered)
    with pytest.raises(ConstraintViolation):
        db.execute("INSERT INTO t VALUES (1, 1), (2, 1)")


def test_records_say_what_an_older_version_must_not_ignore(db):
    db.execute("CREATE TABLE t (a INT UNIQUE); CREATE TABLE u (a INT); CREATE INDEX i ON u (a)")
    db.execute("CREATE UNIQUE INDEX j ON u (a)")
    versions = {i.name: i.record()["v"] for i in db._core.world.catalog.items.values()}
    assert versions == {"t": UNIQUE, "t_a_key": UNIQUE, "u": 1, "i": 1, "j": UNIQUE}
    index = db._core.world.catalog.find(("t_a_key",))
    assert isinstance(index, Index)
    assert json.loads(json.dumps(index.record()))["constraint"] is True


@pytest.mark.parametrize(
    "point", ["ddl.publish.before", "durable.commit.before", "durable.commit.after"]
)
@pytest.mark.parametrize("sql", ["CREATE UNIQUE INDEX x ON t (a)", "ALTER TABLE t ADD UNIQUE (a)"])
def test_a_crash_leaves_all_of_it_or_nothing(db, opener, point, sql):
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    db.tick()
    with suppress(FailpointRaised), armed({point: "raise"}):
        db.execute(sql)
    db = opener.reopened(db)
    there = point == "durable.commit.after"
    assert len(db.execute("SHOW INDEXES").rows) == there
    assert ("UNIQUE" in db.execute("SHOW CREATE TABLE t").rows[0][1]) == (there and "ADD" in sql)
    if there:
        with pytest.raises(ConstraintViolation):
            db.execute("INSERT INTO t VALUES (1)")
    else:
        db.execute("INSERT INTO t VALUES (1)")
    assert db.check() == []


def test_a_load_in_pieces_is_checked_too(db, monkeypatch):
    monkeypatch.setattr(copy_in, "PIECE_BYTES", 1_000)
    monkeypatch.setattr(copy_in, "_AT_ONCE", 50)
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT UNIQUE)")

    def load(rows):
        (parsed,) = parse_statements("COPY t FROM STDIN")
        copying = db.session().run(parsed)
        copying.write("".join(f"{n}\t{a}\n" for n, a in rows).encode())
        return copying.finish()

    assert load([(n, n) for n in range(500)]).tag == "COPY 500"
    for rows in ([(n, n if n != 900 else 510) for n in range(500, 1_000)],
                 [(n, n if n != 900 else 17) for n in range(500, 1_000)]):  # fmt: skip
        with pytest.raises(ConstraintViolation) as caught:
            load(rows)
        assert caught.value.detail == f"Key (a)=({dict(rows)[900]}) already exists."
    assert db.execute("SELECT count(*) FROM t").rows == [(500,)]
    assert load([(n, "\\N") for n in range(500, 1_000)]).tag == "COPY 500"


def test_only_the_owner_of_a_table_may_say_what_is_unique(db):
    db.execute("CREATE TABLE t (a INT); CREATE ROLE joe LOGIN; GRANT SELECT ON t TO joe")
    db.execute("GRANT CREATE ON DATABASE reclock TO joe")
    with db.session("joe") as joe:
        joe.execute("CREATE INDEX ON t (a)")
        with pytest.raises(Error) as refused:
            joe.execute("CREATE UNIQUE INDEX ON t (a)")
        assert refused.value.code == "42501"
        joe.execute("CREATE TABLE own (a INT); CREATE UNIQUE INDEX ON own (a)")


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE UNIQUE INDEX x ON v (a)",
        "CREATE UNIQUE INDEX x ON t (a) WHERE a > 1",
        "CREATE UNIQUE INDEX x ON t (abs(a))",
        "CREATE TABLE x (a INTERVAL UNIQUE)",
        "CREATE SOURCE s (a INT UNIQUE) FROM KAFKA BROKER 'b' TOPIC 't' FORMAT JSON",
    ],
)
def test_what_is_not_there_says_so(db, sql):
    db.execute("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    with pytest.raises(Error) as refused:
        db.execute(sql)
    assert refused.value.code == "0A000"
    assert refused.value.hint
