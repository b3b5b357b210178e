"""BEGIN … COMMIT: reads at one time, writes at one time, and all the ways in which both end."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.errors import (
    ConstraintViolation,
    Error,
    InvalidTransactionState,
    StorageError,
    TimelineMismatch,
    UndefinedName,
    Unreadable,
)
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.time.frontier import at
from reclock.time.timeline import EPOCH_MS


@pytest.fixture
def db(db):
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT NOT NULL); CREATE TABLE u (a INT)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    db.execute("CREATE TABLE m (a INT) WITH (timeline = 'mine')")
    return db


@pytest.fixture
def one(db):
    with db.session() as session:
        yield session


def refused(session, statement, code, kind=InvalidTransactionState):
    with pytest.raises(kind) as caught:
        session.execute(statement)
    assert caught.value.code == code
    assert caught.value.hint or code == "25001"
    return caught.value


# Reads.


def test_all_reads_are_at_one_time(db, one, opener):
    db.execute("INSERT INTO t VALUES (1, 1)")
    one.execute("BEGIN")
    first = one.execute("SELECT n FROM v")
    for n in range(2, 5):
        opener.clock.advance(5_000)
        db.execute(f"INSERT INTO t VALUES ({n}, 1); INSERT INTO u VALUES ({n})")
        db.tick()
    for query, rows in (("SELECT n FROM v", [(1,)]), ("SELECT k FROM t", [(1,)]),
                        ("SELECT count(*) FROM u", [(0,)])):  # fmt: skip
        answer = one.execute(query)
        assert (answer.rows, answer.timestamp) == (rows, first.timestamp)
    assert one.execute("COMMIT").tag == "COMMIT"
    assert one.execute("SELECT n FROM v").rows == [(4,)]


def test_what_is_read_is_held_until_the_end(db, one, opener):
    """Others can read at that time too, however far everything else has gone."""
    db.execute("ALTER SYSTEM SET logical_compaction_window = '0'")
    db.execute("INSERT INTO t VALUES (1, 1)")
    one.execute("BEGIN")
    time = one.execute("SELECT n FROM v").timestamp
    held = {(row.object, row.since) for row in db._core.holds.rows()}
    assert held == {("u1", at(time)), ("u2", at(time)), ("u3", at(time))}
    for _ in range(20):
        opener.clock.advance(100_000)
        db.execute("UPDATE t SET a = a + 1")
        db.tick()
        db._core.merger.wait()
    for session in (db, one):
        assert session.execute(f"SELECT a FROM t AS OF {time}").rows == [(1,)]
    one.execute("ROLLBACK")
    assert db._core.holds.rows() == ()
    opener.clock.advance(1_000)
    db.tick()
    with pytest.raises(Unreadable):
        db.execute(f"SELECT a FROM t AS OF {time}")


def test_objects_that_others_drop_or_make_do_not_matter(db, one):
    db.insert("t", [(n, n) for n in range(5_000)])
    one.execute("BEGIN; SELECT n FROM v")
    db.execute("DROP TABLE t CASCADE; CREATE TABLE late (a INT)")
    db.tick()
    assert one.execute("SELECT count(*), max(a) FROM t").rows == [(5_000, 4_999)]
    assert one.execute("SELECT n FROM v").rows == [(5_000,)]
    with pytest.raises(UndefinedName):
        one.execute("SELECT * FROM late")
    one.execute("ROLLBACK")
    with db._core.writing():
        db._core.collect_garbage()
    assert set(db._core.segments.names()) == db._core.world.named_segments()
    assert db._core.holds.rows() == ()


def test_the_first_read_may_say_when(db, one, opener):
    times = []
    for n in range(3):
        opener.clock.advance(1_000)
        times.append(db.execute(f"INSERT INTO t VALUES ({n}, {n})").timestamp)
    db.tick()
    db.execute("CREATE MATERIALIZED VIEW late AS SELECT a FROM t")
    one.execute("BEGIN")
    assert one.execute(f"SELECT n FROM v AS OF {times[1]}").rows == [(2,)]
    assert one.execute(f"SELECT n FROM v AS OF {times[1]}").rows == [(2,)]
    assert one.execute(f"SELECT n FROM v AS OF AT LEAST {times[0]}").timestamp == times[1]
    (text,) = one.execute("EXPLAIN TIMESTAMP FOR SELECT n FROM v").rows[0]
    assert f"timestamp: {times[1]}" in text
    assert "the time of the transaction" in text
    with pytest.raises(Unreadable):
        one.execute("SELECT * FROM late")
    for later in (f"AS OF {times[2]}", f"AS OF AT LEAST {times[2]}"):
        one.execute(f"ROLLBACK; BEGIN; SELECT n FROM v AS OF {times[1]}")
        refused(one, f"SELECT n FROM v {later}", "25001")


def test_a_second_timeline_is_refused_at_once_and_both_are_named(db, one):
    for first, second in (("t", "m"), ("m", "t")):
        one.execute(f"BEGIN; SELECT * FROM {first}")
        error = refused(one, f"SELECT * FROM {second}", "0A000", TimelineMismatch)
        assert f'"{first}" is in timeline' in error.detail
        assert f'"{second}" is in timeline' in error.detail
        assert "transaction" in error.message
        one.execute("ROLLBACK")
    assert db._core.holds.rows() == ()


def test_constants_and_system_relations_decide_nothing(db, one):
    one.execute("BEGIN; SELECT 1; SELECT name FROM reclock.objects; SHOW TABLES")
    one.execute("EXPLAIN TIMESTAMP FOR SELECT * FROM m; EXPLAIN SELECT * FROM m")
    one.execute("INSERT INTO t VALUES (1, 1); SELECT 2; COMMIT")
    assert db.execute("SELECT n FROM v").rows == [(1,)]


def test_system_relations_are_of_the_transactions_world(db, one):
    one.execute("BEGIN; SELECT * FROM t")
    db.execute("CREATE TABLE late (a INT)")
    names = one.execute("SELECT name FROM reclock.objects").rows
    assert ("late",) not in names
    assert ("t",) in names


# Writes.


def test_all_writes_are_at_one_time(db, one, opener):
    one.execute("BEGIN; INSERT INTO t VALUES (1, 1)")
    db.execute("INSERT INTO u VALUES (0)")
    one.execute("INSERT INTO t VALUES (2, 2 + 2); INSERT INTO u SELECT 7")
    one.insert("u", [(8,), (9,)])
    assert db.execute("SELECT n FROM v").rows == [(0,)]
    written = one.execute("COMMIT").timestamp
    opener.clock.advance(5_000)
    db.tick()
    for time, count, total in ((written - 1, 0, 1), (written, 2, 4)):
        assert db.execute(f"SELECT n FROM v AS OF {time}").rows == [(count,)]
        assert db.execute(f"SELECT count(*) FROM u AS OF {time}").rows == [(total,)]
    assert db.execute("SELECT k, a FROM t ORDER BY k").rows == [(1, 1), (2, 4)]


def test_a_large_transaction_over_tables_shares_one_file_and_survives(db, one, opener):
    one.execute("BEGIN")
    for table in ("t", "u"):
        width = 2 if table == "t" else 1
        one.insert(table, [(n,) * width for n in range(20_000)])
    before = set(db._core.segments.names())
    assert before == set()
    one.execute("COMMIT")
    assert len(db._core.segments.names()) == 1
    again = opener.reopened(db)
    assert again.execute("SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM u)").rows == [
        (20_000, 20_000)
    ]


@pytest.mark.parametrize(
    "statements",
    [
        ("INSERT INTO t VALUES (5, 5)", "INSERT INTO t VALUES (1, 9)"),
        ("INSERT INTO t VALUES (5, 5)", "INSERT INTO t VALUES (5, 6)"),
        ("INSERT INTO u VALUES (5)", "INSERT INTO t VALUES (1, 9)", "INSERT INTO u VALUES (6)"),
    ],
)
def test_keys_are_checked_over_all_and_nothing_is_left(db, one, opener, statements):
    db.execute("INSERT INTO t VALUES (1, 1)")
    one.execute("BEGIN")
    with pytest.raises(ConstraintViolation) as caught:
        one.execute("; ".join(statements))
    assert caught.value.code == "23505"
    assert one.execute("COMMIT").tag == "ROLLBACK"
    assert one.transaction is None
    for restart in (False, True):
        again = opener.reopened(db) if restart else db
        assert again.execute("SELECT * FROM t").rows == [(1, 1)]
        assert again.execute("SELECT * FROM u").rows == []


def test_not_null_and_types_are_checked_at_once(db, one):
    for statement in ("INSERT INTO t VALUES (1, NULL)", "INSERT INTO t VALUES ('x', 1)"):
        one.execute("BEGIN; INSERT INTO t VALUES (7, 7)")
        with pytest.raises(Error):
            one.execute(statement)
        assert one.execute("COMMIT").tag == "ROLLBACK"
    assert db.execute("SELECT * FROM t").rows == []


def test_a_table_that_was_dropped_meanwhile_is_named(db, one):
    one.execute("BEGIN; INSERT INTO u VALUES (1)")
    db.execute("DROP TABLE u; CREATE TABLE u (a INT)")
    with pytest.raises(UndefinedName, match='"u" was dropped'):
        one.execute("COMMIT")
    assert db.execute("SELECT * FROM u").rows == []


def test_tables_of_two_timelines_are_refused(db, one):
    one.execute("BEGIN; INSERT INTO t VALUES (1, 1)")
    error = refused(one, "INSERT INTO m VALUES (1)", "0A000", TimelineMismatch)
    assert '"t"' in error.detail
    assert '"m"' in error.detail


@pytest.mark.parametrize("point", ["write.append.before", "durable.commit.before"])
@pytest.mark.parametrize("restart", [True, False])
def test_nothing_is_durable_before_commit_is(db, one, opener, point, restart):
    one.execute("BEGIN; INSERT INTO t VALUES (1, 1); INSERT INTO u VALUES (1)")
    with armed({point: "raise"}), pytest.raises(FailpointRaised):
        one.execute("COMMIT")
    again = opener.reopened(db) if restart else db
    assert again.execute("SELECT * FROM t").rows == again.execute("SELECT * FROM u").rows == []


def test_a_crash_after_the_commit_keeps_all_of_it(db, one, opener):
    one.execute("BEGIN; INSERT INTO t VALUES (1, 1); INSERT INTO u VALUES (1)")
    with armed({"durable.commit.after": "raise"}), pytest.raises(FailpointRaised):
        one.execute("COMMIT")
    again = opener.reopened(db)
    assert again.execute("SELECT n FROM v").rows == [(1,)]
    assert again.execute("SELECT * FROM u").rows == [(1,)]


def test_a_transaction_that_is_not_committed_leaves_nothing(db, opener):
    for end in ("ROLLBACK", "ABORT"):
        db.execute(f"BEGIN; INSERT INTO t VALUES (1, 1); {end}")
    with db.session() as session:
        session.execute("BEGIN; INSERT INTO t VALUES (1, 1)")
    db.execute("BEGIN; INSERT INTO t VALUES (1, 1)")
    assert opener.reopened(db).execute("SELECT * FROM t").rows == []


# What is refused.


@pytest.mark.parametrize(
    ("first", "statement", "code"),
    [
        ("INSERT INTO t VALUES (1, 1)", "SELECT * FROM m", "0A000"),
        ("INSERT INTO t VALUES (1, 1)", "INSERT INTO m VALUES (1)", "0A000"),
        ("SELECT * FROM t", "SET transaction_isolation = 'serializable'", "25001"),
        ("SELECT 1", "CREATE SOURCE s FROM LOAD GENERATOR COUNTER", "25001"),
        ("SELECT 1", "ALTER SYSTEM RESET ALL", "25001"),
        ("SELECT 1", "ALTER TABLE t RESET (RETAIN HISTORY)", "25001"),
        ("SELECT 1", "SUBSCRIBE TO t", "25001"),
        ("SELECT 1", "COPY (SUBSCRIBE t) TO STDOUT", "25001"),
    ],
)  # fmt: skip
def test_what_cannot_be_part_of_a_transaction_aborts_it(db, one, first, statement, code):
    one.execute(f"BEGIN; {first}")
    kind = TimelineMismatch if code == "0A000" else InvalidTransactionState
    refused(one, statement, code, kind)
    assert db._core.holds.rows() == (), "released at once"
    refused(one, "SELECT 1", "25P02")
    refused(one, "SHOW TABLES", "25P02")
    refused(one, "BEGIN", "25P02")
    with pytest.raises(InvalidTransactionState):
        one.insert("u", [(1,)])
    assert one.execute("COMMIT").tag == "ROLLBACK"
    assert one.execute("SELECT count(*) FROM t").rows == [(0,)]


def test_read_only_is(db, one):
    one.execute("BEGIN READ ONLY; SELECT * FROM t; COMMIT; BEGIN READ ONLY")
    refused(one, "INSERT INTO t VALUES (1, 1)", "25006")


def test_a_text_that_cannot_be_parsed_aborts_too(db, one):
    one.execute("BEGIN; SELECT * FROM t")
    with pytest.raises(Error):
        one.execute("SELEKT")
    refused(one, "SELECT 1", "25P02")


def test_without_a_transaction_there_is_nothing_to_commit(db, one):
    assert one.execute("COMMIT").warnings == (("25P01", "there is no transaction in progress"),)
    refused(one, "SET LOCAL statement_timeout = '1s'", "25P01")
    assert one.execute("ROLLBACK").tag == "ROLLBACK", "harmless, and often sent to make sure"


def test_a_transaction_of_nothing(db, one):
    state = db._core.world[EPOCH_MS]
    assert one.execute("BEGIN; COMMIT").timestamp is None
    assert db._core.world[EPOCH_MS] is state
    assert one.execute("START TRANSACTION; INSERT INTO u SELECT 1 WHERE false; END").tag == "COMMIT"


def test_a_closed_database_ends_all(db, one):
    one.execute("BEGIN; SELECT * FROM t")
    db.close()
    with pytest.raises(StorageError, match="closed"):
        one.execute("SELECT * FROM t")


# Settings.


def test_set_is_undone_by_a_rollback_and_set_local_ends_in_any_case(db, one):
    def timeout():
        return one.execute("SHOW statement_timeout").rows[0][0]

    one.execute("SET statement_timeout = '1s'")
    one.execute("BEGIN; SET statement_timeout = '2s'; SET LOCAL statement_timeout = '3s'")
    assert timeout() == "3s"
    one.execute("COMMIT")
    assert timeout() == "2s"
    one.execute("BEGIN; SET statement_timeout = '4s'")
    assert timeout() == "4s"
    one.execute("ROLLBACK")
    assert timeout() == "2s"


def test_the_isolation_of_one_transaction(db, one):
    db.tick()
    db.execute("INSERT INTO t VALUES (1, 1)")
    one.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
    assert one.execute("SHOW transaction_isolation").rows == [("serializable",)]
    assert one.execute("SELECT n FROM v").rows == [(0,)], "does not wait for what is pending"
    one.execute("COMMIT")
    assert one.execute("SHOW transaction_isolation").rows == [("strict serializable",)]
    assert one.execute("SELECT n FROM v").rows == [(1,)]


# All together.


@given(
    transactions=st.lists(
        st.tuples(
            st.lists(
                st.tuples(st.sampled_from("tu"), st.lists(st.integers(0, 12), max_size=3)),
                max_size=4,
            ),
            st.sampled_from(["COMMIT", "COMMIT", "ROLLBACK", "close", "crash"]),
        ),
        max_size=6,
    )
)
@settings(max_examples=25)
def test_transactions_happen_whole_or_not_at_all(make_opener, transactions):
    opener = make_opener()
    db = opener()
    db.execute("CREATE TABLE t (k INT PRIMARY KEY); CREATE TABLE u (k INT)")
    rows = {"t": [], "u": []}
    last = 0
    for writes, end in transactions:
        session = db.session()
        session.execute("BEGIN")
        failed = False
        for table, keys in writes:
            try:
                session.insert(table, [(k,) for k in keys])
            except ConstraintViolation:
                failed = True
                break
        after = {name: rows[name] + [k for t, ks in writes if t == name for k in ks]
                 for name in rows}  # fmt: skip
        assert failed == (len(set(after["t"])) < len(after["t"]))
        match end:
            case "crash":
                db = opener.reopened(db)
            case "close":
                session.close()
            case "ROLLBACK":
                session.execute(end)
            case _ if failed:
                assert session.execute("COMMIT").tag == "ROLLBACK"
            case _:
                time = session.execute("COMMIT").timestamp
                assert time is None if not writes else time > last
                last, rows = time or last, after
        for name, expected in rows.items():
            found = db.execute(f"SELECT k FROM {name} ORDER BY k").rows
            assert found == [(k,) for k in sorted(expected)]
    assert db._core.holds.rows() == ()


def test_a_session_that_is_lost_lets_go_with_the_next_tick(db):
    db.execute("CREATE TABLE lost (a INT)")
    session = db.session()
    session.execute("BEGIN; SELECT * FROM lost")
    assert db._core.holds.rows()
    del session
    gc.collect()
    db.tick()
    assert (db._core.holds.rows(), db._core._readers) == ((), [])
