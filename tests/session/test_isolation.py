"""Transactions that read and write at the same time: as if one came after the other, or 40001.

The checker runs random transactions of several sessions in a random order of their statements, and
looks for an order of those that committed in which every statement was told what it was told. In
the middle the process may die at a failpoint: what was open is lost, a COMMIT that was under way
happened or not, and sessions that had not begun go on with what is there.
"""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.errors import SerializationFailure
from reclock.session.transaction import transaction
from reclock.testing.failpoints import FailpointRaised, armed


@pytest.fixture
def db(db):
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT NOT NULL)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t")
    db.execute("INSERT INTO t VALUES (1, 10), (2, 10)")
    return db


@pytest.fixture
def two(db):
    with db.session() as one, db.session() as other:
        one.execute("BEGIN")
        other.execute("BEGIN")
        yield one, other


def test_a_lost_update_is_refused(db, two):
    one, other = two
    for session in two:
        assert session.execute("SELECT a FROM t WHERE k = 1").rows == [(10,)]
    one.execute("UPDATE t SET a = 11 WHERE k = 1")
    other.execute("UPDATE t SET a = 12 WHERE k = 1")
    one.execute("COMMIT")
    with pytest.raises(SerializationFailure) as caught:
        other.execute("COMMIT")
    assert caught.value.code == "40001"
    assert other.transaction is None
    assert db.execute("SELECT a FROM t WHERE k = 1").rows == [(11,)]


def test_updates_that_only_add_both_happen(db, two):
    one, other = two
    for session in two:
        session.execute("UPDATE t SET a = a + 1 WHERE k = 1")
    one.execute("COMMIT")
    other.execute("COMMIT")
    assert db.execute("SELECT a FROM t WHERE k = 1").rows == [(12,)]
    assert db.execute("SELECT s FROM v").rows == [(22,)]


def test_write_skew_is_refused(db, two):
    one, other = two
    for session in two:
        assert session.execute("SELECT a FROM t ORDER BY k").rows == [(10,), (10,)]
    one.execute("UPDATE t SET a = 0 WHERE k = 1")
    other.execute("UPDATE t SET a = 0 WHERE k = 2")
    one.execute("COMMIT")
    with pytest.raises(SerializationFailure):
        other.execute("COMMIT")


def test_what_others_did_to_other_rows_is_no_conflict(db, two):
    one, other = two
    assert one.execute("SELECT a FROM t WHERE k = 1").rows == [(10,)]
    one.execute("UPDATE t SET a = 1 WHERE k = 1")
    other.execute("SELECT a FROM t WHERE k = 2; UPDATE t SET a = 2 WHERE k = 2; COMMIT")
    one.execute("COMMIT")
    assert db.execute("SELECT a FROM t ORDER BY k").rows == [(1,), (2,)]


def test_a_phantom_is_refused(db, two):
    one, other = two
    assert one.execute("SELECT k FROM t WHERE a > 10").rows == []
    one.execute("INSERT INTO t VALUES (5, 0)")
    other.execute("INSERT INTO t VALUES (6, 100); COMMIT")
    with pytest.raises(SerializationFailure):
        one.execute("COMMIT")


def test_a_read_of_a_kept_view_counts(db, two):
    one, _ = two
    assert one.execute("SELECT s FROM v").rows == [(20,)]
    db.execute("UPDATE t SET a = 0")
    one.execute("INSERT INTO t VALUES (5, 0)")
    with pytest.raises(SerializationFailure):
        one.execute("COMMIT")


def test_a_read_that_was_rolled_back_counts(db, two):
    one, _ = two
    one.execute("SAVEPOINT s; SELECT a FROM t WHERE k = 1; ROLLBACK TO s")
    db.execute("UPDATE t SET a = 0 WHERE k = 1")
    one.execute("INSERT INTO t VALUES (5, 0)")
    with pytest.raises(SerializationFailure):
        one.execute("COMMIT")


def test_a_dropped_table_is_a_conflict(db, two):
    one, _ = two
    one.execute("SELECT * FROM t; CREATE TABLE copy (a INT); INSERT INTO copy SELECT a FROM t")
    db.execute("DROP TABLE t CASCADE")
    with pytest.raises(SerializationFailure):
        one.execute("COMMIT")


def test_of_very_many_reads_only_the_objects_are_known(db, two, monkeypatch):
    monkeypatch.setattr(transaction, "MOST_READS", 3)
    one, other = two
    for _ in range(4):
        one.execute("SELECT a FROM t WHERE k = 1")
        other.execute("SELECT a FROM t WHERE k = 1")
    one.execute("INSERT INTO t VALUES (5, 0); COMMIT")
    other.execute("INSERT INTO t VALUES (6, 0)")
    with pytest.raises(SerializationFailure):
        other.execute("COMMIT")


STATEMENTS = (
    "SELECT k, a FROM t WHERE k = {k} ORDER BY k",
    "SELECT k, a FROM t ORDER BY k",
    "SELECT s FROM v",
    "UPDATE t SET a = a + {n} WHERE k = {k}",
    "UPDATE t SET a = {n} WHERE a > 10",
    "DELETE FROM t WHERE k = {k}",
    "INSERT INTO t SELECT {k} + 10 * count(*), {n} FROM t WHERE k = {k}",
    "INSERT INTO c VALUES ({k}, {n}) ON CONFLICT (k) DO UPDATE SET n = c.n + excluded.n",
    "INSERT INTO c VALUES ({k}, {n}) ON CONFLICT (k) DO UPDATE SET n = excluded.n RETURNING n",
    "INSERT INTO c VALUES ({k}, {n}) ON CONFLICT DO NOTHING",
    "DELETE FROM c WHERE k = {k} RETURNING n",
    "UPDATE c SET n = t.a FROM t WHERE t.k = c.k AND c.k = {k} RETURNING c.n",
    "MERGE INTO c USING (SELECT k, max(a) AS a FROM t GROUP BY k) AS t ON t.k = c.k"
    " WHEN MATCHED AND t.k = {k} THEN UPDATE SET n = t.a WHEN NOT MATCHED BY SOURCE THEN DELETE",
)
_statement = st.builds(
    lambda text, k, n: text.format(k=k, n=n),
    st.sampled_from(STATEMENTS), st.integers(1, 3), st.integers(1, 20),
)  # fmt: skip
_transactions = st.lists(st.lists(_statement, min_size=1, max_size=3), min_size=2, max_size=3)


def told(session, statement):
    result = session.execute(statement)
    return (result.tag, result.rows)


@given(transactions=_transactions, data=st.data())
@settings(max_examples=15)
def test_those_that_commit_have_an_order(make_opener, transactions, data):
    db = _begun(make_opener)
    sessions = [db.session() for _ in transactions]
    heard = [[] for _ in transactions]
    left = [["BEGIN", *some, "COMMIT"] for some in transactions]
    committed = []
    while any(left):
        at = data.draw(st.sampled_from([n for n, some in enumerate(left) if some]))
        statement = left[at].pop(0)
        try:
            answer = told(sessions[at], statement)
        except SerializationFailure:
            assert statement == "COMMIT"
            continue
        heard[at].append(answer)
        if statement == "COMMIT":
            committed.append(at)
    final = _rows(db)
    for order in permutations(committed):
        if _alone(make_opener, transactions, heard, order) == final:
            break
    else:
        pytest.fail(f"no order of {committed} explains what was told")


CRASHES = ("durable.append.before", "durable.commit.before", "durable.commit.after")


@given(transactions=_transactions, data=st.data())
@settings(max_examples=15)
def test_those_that_commit_have_an_order_across_a_crash(make_opener, transactions, data):
    opener = make_opener()
    db = _begun(lambda: opener)
    sessions = [db.session() for _ in transactions]
    heard = [[] for _ in transactions]
    left = [["BEGIN", *some, "COMMIT"] for some in transactions]
    committed, doubtful = [], []
    steps = sum(map(len, left))
    crash = data.draw(st.integers(0, steps - 1), "the first step that may die")
    while any(left):
        at = data.draw(st.sampled_from([n for n, some in enumerate(left) if some]))
        statement = left[at].pop(0)
        steps -= 1
        point = data.draw(st.sampled_from(CRASHES)) if steps < crash else None
        try:
            with armed({} if point is None else {point: "raise"}):
                answer = told(sessions[at], statement)
        except SerializationFailure:
            assert statement == "COMMIT"
            continue
        except FailpointRaised:
            crash = 0  # once
            doubtful = [at] if statement == "COMMIT" else []
            db = opener.reopened(db)
            sessions = [db.session() for _ in transactions]
            left = [some if some[:1] == ["BEGIN"] else [] for some in left]
            continue
        heard[at].append(answer)
        if statement == "COMMIT":
            committed.append(at)
    final = _rows(db)
    for some in (committed, [*committed, *doubtful]):
        for order in permutations(some):
            if _alone(make_opener, transactions, heard, order) == final:
                return
    pytest.fail(f"no order of {committed}, and perhaps {doubtful}, explains what was told")


def _alone(make_opener, transactions, heard, order):
    """Return the rows after transactions one after the other; None if one is told otherwise."""
    db = _begun(make_opener)
    for at in order:
        for statement, answer in zip(transactions[at], heard[at][1:], strict=False):
            if told(db, statement) != answer:
                return None
    return _rows(db)


def _begun(make_opener):
    db = make_opener()()
    db.execute("CREATE TABLE t (k INT, a INT NOT NULL); CREATE TABLE c (k INT PRIMARY KEY, n INT)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t")
    db.execute("INSERT INTO t VALUES (1, 10), (2, 10), (3, 15); INSERT INTO c VALUES (1, 1)")
    return db


def _rows(db):
    rows = db.execute("SELECT k, a FROM t ORDER BY k, a").rows
    return rows, db.execute("SELECT k, n FROM c ORDER BY k").rows
