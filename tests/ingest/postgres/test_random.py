"""Random transactions over four tables: at every time that is bound, what PostgreSQL says.

A writer commits random transactions. After each, what the tables have and where the log is are
noted. reclock ticks and restarts in between. Then every bound time t, with the log bound up to L,
must show in all tables what they had after the last transaction that ended at or before L.
"""

from __future__ import annotations

from time import sleep

import psycopg2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reclock.time.timestamp import Lsn

pytestmark = pytest.mark.postgres

BIG = {"a": "a" * 3_000, "b": "b" * 5_000, "c": "small", "d": None}
TABLES = {
    "keyed": "k, s, n",
    "paired": "a, b, body",
    "bare": "t, n",
    "named": "i, name, body",
}

KEYS = st.integers(1, 4)
TEXTS = st.sampled_from(sorted(BIG))
CHANGES = st.one_of(
    st.tuples(st.just("INSERT INTO keyed VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"),
              st.tuples(KEYS, TEXTS, st.integers(0, 3))),
    st.tuples(st.just("UPDATE keyed SET n = n + 1 WHERE k = %s"), st.tuples(KEYS)),
    st.tuples(st.just("UPDATE keyed SET s = %s WHERE k = %s"), st.tuples(TEXTS, KEYS)),
    st.tuples(st.just("UPDATE keyed SET k = %s WHERE k = %s"), st.tuples(KEYS, KEYS)),
    st.tuples(st.just("DELETE FROM keyed WHERE k = %s"), st.tuples(KEYS)),
    st.tuples(st.just("INSERT INTO paired VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"),
              st.tuples(KEYS, KEYS, TEXTS)),
    st.tuples(st.just("UPDATE paired SET a = %s WHERE b = %s"), st.tuples(KEYS, KEYS)),
    st.tuples(st.just("UPDATE paired SET body = body WHERE b = %s"), st.tuples(KEYS)),
    st.tuples(st.just("DELETE FROM paired WHERE b = %s"), st.tuples(KEYS)),
    st.tuples(st.just("INSERT INTO bare VALUES (%s, %s)"), st.tuples(TEXTS, st.integers(0, 2))),
    st.tuples(st.just("UPDATE bare SET n = n + 1 WHERE n = %s"), st.tuples(st.integers(0, 2))),
    st.tuples(st.just("DELETE FROM bare WHERE n = %s"), st.tuples(st.integers(0, 2))),
    st.tuples(st.just("INSERT INTO named VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"),
              st.tuples(KEYS, KEYS, TEXTS)),
    st.tuples(st.just("UPDATE named SET name = %s WHERE i = %s"), st.tuples(KEYS, KEYS)),
    st.tuples(st.just("UPDATE named SET i = i + 10 WHERE name = %s"), st.tuples(KEYS)),
    st.tuples(st.just("DELETE FROM named WHERE i %% 10 = %s"), st.tuples(KEYS)),
    st.tuples(st.sampled_from(["TRUNCATE keyed", "TRUNCATE bare", "TRUNCATE paired, bare",
                               "TRUNCATE named"]), st.just(())),
    st.tuples(st.sampled_from(["SAVEPOINT x", "ROLLBACK TO x", "RELEASE x"]), st.just(())),
)  # fmt: skip
TRANSACTIONS = st.tuples(st.lists(CHANGES, max_size=5), st.integers(0, 9).map(bool))
STEPS = st.lists(
    st.one_of(TRANSACTIONS, TRANSACTIONS, TRANSACTIONS, st.just("tick"), st.just("restart")),
    max_size=14,
)


def run(upstream, changes, *, commit):
    """Run a transaction; what fails is undone to a savepoint, as a program would."""
    upstream("BEGIN")
    named = False
    for sql, values in changes:
        if sql.endswith(" x"):
            if sql == "SAVEPOINT x":
                named = True
            elif not named:
                continue
            named = sql != "RELEASE x"
            upstream(sql)
            continue
        upstream("SAVEPOINT each")
        try:
            with upstream.session.cursor() as cursor:
                cursor.execute(sql, tuple(BIG.get(value, value) for value in values))
        except psycopg2.IntegrityError:
            upstream("ROLLBACK TO each")
        else:
            upstream("RELEASE each")
    upstream("COMMIT" if commit else "ROLLBACK")


def contents(upstream):
    return {t: sorted(upstream(f"SELECT {c} FROM {t}"), key=repr) for t, c in TABLES.items()}


_FIXTURES = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=25, deadline=None, suppress_health_check=_FIXTURES)
@given(before=TRANSACTIONS, steps=STEPS)
def test_every_time_is_what_the_database_was(make_upstream, make_opener, before, steps):
    upstream, opener = make_upstream(), make_opener()
    try:
        follow(upstream, opener, before, steps)
    finally:  # a server has only so many slots and sessions
        opener.close()
        opener._opened.clear()
        upstream.close()


def follow(upstream, opener, before, steps):
    """Write and tick as the steps say, and compare."""
    upstream("CREATE TABLE keyed (k INT PRIMARY KEY, s TEXT, n INT)")
    upstream("CREATE TABLE paired (a INT, b INT, body TEXT, PRIMARY KEY (a, b))")
    upstream("CREATE TABLE bare (t TEXT, n INT)")
    upstream("ALTER TABLE bare REPLICA IDENTITY FULL")
    upstream("CREATE TABLE named (i INT PRIMARY KEY, name INT NOT NULL UNIQUE, body TEXT)")
    upstream("ALTER TABLE named REPLICA IDENTITY USING INDEX named_name_key")
    for table, column in (("keyed", "s"), ("paired", "body"), ("bare", "t"), ("named", "body")):
        upstream(f"ALTER TABLE {table} ALTER {column} SET STORAGE EXTERNAL")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    upstream("INSERT INTO keyed VALUES (1, repeat('x', 3000), 0), (2, repeat('y', 3000), 0)")
    upstream("INSERT INTO paired VALUES (1, 1, repeat('z', 3000)), (2, 2, NULL)")
    upstream("INSERT INTO named VALUES (1, 2, repeat('n', 3000)), (3, 4, 'small')")
    run(upstream, before[0], commit=True)
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()} WITH (RETAIN HISTORY FOR '1 h')")
    history = [(Lsn(0), contents(upstream))]
    for step in [*steps, "tick"]:
        if step == "tick":
            opener.clock.advance(1_000)
            db.tick()
        elif step == "restart":
            db = opener.reopened(db)
        else:
            run(upstream, step[0], commit=step[1])
            ((lsn,),) = upstream("SELECT pg_current_wal_flush_lsn()::text")
            history.append((Lsn.parse(lsn), contents(upstream)))
    for _ in range(100):  # the server may not have noticed yet that the process before is gone
        opener.clock.advance(1_000)
        db.tick()
        if db.execute("SELECT state FROM reclock.source_status").rows == [("running",)]:
            break
        sleep(0.05)
    bound = db.execute('SELECT timestamp, "offset" FROM reclock.bindings WHERE "offset" > 0').rows
    assert bound
    for time, offset in bound:
        known = [state for lsn, state in history if lsn <= offset][-1]
        for table, columns in TABLES.items():
            rows = db.execute(f"SELECT {columns} FROM {table} AS OF {time}").rows
            assert sorted(rows, key=repr) == known[table], (table, time)
    final = contents(upstream)
    for table, columns in TABLES.items():
        rows = db.execute(f"SELECT {columns} FROM {table}").rows
        assert sorted(rows, key=repr) == final[table]
    assert db.execute("SELECT * FROM reclock.errors").rows == []
