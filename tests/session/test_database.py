"""The handle that users hold: one owner, many threads, use after errors, closing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reclock
from reclock.errors import ConstraintViolation, Error, InvalidSyntax, StateInUse, StorageError


def test_a_second_open_is_refused(db, opener):
    with pytest.raises(StateInUse) as caught:
        opener()
    assert "open in this process already" in caught.value.message
    db.execute("CREATE TABLE t (a INT)")


def test_importing_reclock_starts_nothing():
    script = "import sys, reclock; assert not {'pyspark', 'pyarrow', 'sqlglot'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert callable(reclock.open)


def test_a_closed_database_says_so(db, opener):
    with db:
        db.execute("CREATE TABLE t (a INT)")
    db.close()
    for use in (lambda: db.execute("SELECT 1"), db.tick, lambda: db.insert("t", [])):
        with pytest.raises(StorageError, match="closed"):
            use()
    assert opener().execute("SHOW TABLES").rows == [("t",)]


def test_only_queries_are_dataframes(db):
    with pytest.raises(InvalidSyntax):
        db.dataframe("CREATE TABLE t (a INT)")


def test_threads_write_and_read_at_once(db):
    """Every reader sees sums that are right, and what its own thread wrote before."""
    db.execute("CREATE TABLE t (who INT, n INT, PRIMARY KEY (who, n))")
    db.execute(
        "CREATE MATERIALIZED VIEW v AS SELECT who, count(*) AS c, max(n) AS m FROM t GROUP BY who"
    )
    wrong = []

    def work(who):
        last = 0
        for n in range(1, 6):
            written = db.execute("INSERT INTO t VALUES ($1, $2)", (who, n)).timestamp
            answer = db.execute("SELECT who, c, m FROM v")
            seen = {w: (c, m) for w, c, m in answer.rows}
            if seen.get(who) != (n, n) or any(c != m for c, m in seen.values()):
                wrong.append((who, n, seen))
            if answer.timestamp < max(last, written):
                wrong.append((answer.timestamp, last, written))
            last = answer.timestamp

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert wrong == []
    assert db.execute("SELECT count(*) FROM t").rows == [(20,)]


def test_of_many_threads_one_gets_the_key(db):
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, who INT)")
    barrier = threading.Barrier(4)

    def work(who):
        barrier.wait()
        try:
            db.execute("INSERT INTO t VALUES (1, $1)", (who,))
        except ConstraintViolation:
            return None
        return who

    with ThreadPoolExecutor(4) as pool:
        winners = [who for who in pool.map(work, range(4)) if who is not None]
    assert db.execute("SELECT who FROM t").rows == [(winners[0],)]
    assert len(winners) == 1


ACTIONS = st.one_of(
    st.tuples(st.just("insert"), st.lists(st.integers(0, 3), min_size=1, max_size=3)),
    st.tuples(st.just("delete"), st.integers(0, 3)),
    st.tuples(st.just("update"), st.integers(0, 3)),
    st.tuples(st.just("create"), st.integers(0, 2)),
    st.tuples(st.just("drop"), st.integers(0, 2)),
    st.tuples(st.sampled_from(["tick", "crash", "close", "wait"]), st.none()),
    st.tuples(st.just("clock"), st.integers(-3_000, 5_000)),
)


@given(actions=st.lists(ACTIONS, max_size=15))
@settings(max_examples=20)
def test_a_random_walk_equals_a_counter(make_opener, actions):
    """Views come and go, writes, crashes, clock jumps: every answer is the model's."""
    opener = make_opener()
    db = opener()
    db.execute("CREATE TABLE t (a INT)")
    rows: Counter[int] = Counter()
    views: set[int] = set()
    for action, argument in actions:
        match action:
            case "insert":
                db.insert("t", [(a,) for a in argument])
                rows.update(argument)
            case "delete":
                db.execute("DELETE FROM t WHERE a = $1", (argument,))
                del rows[argument]
            case "update":
                db.execute("UPDATE t SET a = a + 1 WHERE a = $1", (argument,))
                rows[argument + 1] += rows.pop(argument, 0)
            case "create":
                query = f"SELECT a, count(*) AS n FROM t GROUP BY a HAVING count(*) > {argument}"
                db.execute(f"CREATE MATERIALIZED VIEW IF NOT EXISTS v{argument} AS {query}")
                views.add(argument)
            case "drop":
                db.execute(f"DROP MATERIALIZED VIEW IF EXISTS v{argument}")
                views.discard(argument)
            case "tick":
                db.tick()
            case "crash":
                db = opener.reopened(db)
            case "close":
                db.close()
                db = opener()
            case "wait":
                db._core.merger.wait()
            case "clock":
                opener.clock.set(max(0, opener.clock.now_ms() + argument))
        assert Counter(a for (a,) in db.execute("SELECT a FROM t").rows) == +rows
        for view in views:
            found = dict(db.execute(f"SELECT a, n FROM v{view}").rows)
            assert found == {a: n for a, n in rows.items() if n > view}
    with pytest.raises(Error):
        db.execute("SELECT * FROM nothing")
