"""A crash at every step of every kind of statement: before or after, never between.

For each failpoint and each operation: run into the failpoint, drop the database as a dead
process would, open the directory again, and compare with what a database has that never
failed: it equals the state before the operation, or the state after it. Which one is known
for each failpoint. Then the operation is repeated, if it was lost, and all goes on.

The same without a restart: the database that failed is used on.
"""

from __future__ import annotations

import pytest

from children import Child
from reclock.errors import Error
from reclock.failpoints import EXIT_STATUS
from reclock.testing.failpoints import FailpointRaised, armed

SETUP = (
    "CREATE TABLE t (k INT PRIMARY KEY, a INT)",
    "CREATE MATERIALIZED VIEW v AS SELECT a % 2 AS odd, count(*) AS n FROM t GROUP BY a % 2",
    "CREATE VIEW q AS SELECT a % 3 AS r, count(*) AS n FROM t GROUP BY a % 3",
    "CREATE INDEX kept ON q (r)",
    "CREATE VIEW plain AS SELECT odd, sum(n) AS s FROM v GROUP BY odd",
    "CREATE INDEX over ON plain (s)",
    "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
)
QUESTIONS = (
    "SELECT * FROM t ORDER BY k",
    "SELECT * FROM v ORDER BY odd",
    "SELECT * FROM q ORDER BY r",
    "SELECT * FROM plain ORDER BY odd",
    "SHOW OBJECTS",
    "SHOW INDEXES",
)


def insert(db):
    db.execute("INSERT INTO t VALUES (4, 4)")


def large_insert(db):
    db.insert("t", [(n, n) for n in range(10, 9_000)])


def update(db):
    db.execute("UPDATE t SET a = a + 1 WHERE k < 3")


def delete(db):
    db.execute("DELETE FROM t WHERE k = 1")


def create_table(db):
    db.execute("CREATE TABLE other (a INT)")


def create_view(db):
    db.execute("CREATE VIEW w AS SELECT a FROM t")


def create_materialized_view(db):
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT sum(n) AS s FROM v")


def replace_materialized_view(db):
    db.execute(
        "CREATE OR REPLACE MATERIALIZED VIEW v AS "
        "SELECT a % 2 AS odd, max(k)::bigint AS n FROM t GROUP BY a % 2"
    )


def create_index(db):
    db.execute("CREATE INDEX i ON t (a)")


def create_index_of_view(db):
    db.execute("CREATE INDEX i ON q (n)")


def drop_index_of_view(db):
    db.execute("DROP INDEX kept")


def drop(db):
    db.execute("DROP MATERIALIZED VIEW v CASCADE")


def drop_cascade(db):
    db.execute("DROP TABLE t CASCADE")


DURABLE = ("durable.append.before", "durable.commit.before", "durable.commit.after")
SEGMENT = ("arrangement.segment.before_rename", "arrangement.segment.after_rename")
TICK = ("tick.compute.before", "tick.land.before", "tick.publish.before", "tick.publish.after")
WRITE = ("write.append.before", "write.append.after")
DDL = ("ddl.publish.before", "ddl.publish.after")
PREPARED = ("ddl.prepare.before", "ddl.prepare.after", *DDL)
OPERATIONS = {
    insert: (*DURABLE, *WRITE),
    large_insert: (*DURABLE, *SEGMENT, *WRITE),
    update: (*DURABLE, *TICK, *WRITE),
    delete: (*TICK, *WRITE),
    create_table: (*DURABLE, *TICK, *DDL),
    create_view: (*DURABLE, *DDL),
    create_materialized_view: (*DURABLE, *TICK, *PREPARED),
    replace_materialized_view: (*DURABLE, *TICK, *PREPARED),
    create_index: (*DURABLE, *TICK, *PREPARED),
    create_index_of_view: (*DURABLE, *TICK, *PREPARED),
    drop_index_of_view: (*DURABLE, *TICK, *DDL),
    drop: (*DURABLE, *TICK, *DDL),
    drop_cascade: (*TICK, *DDL),
}
"""Each operation with the failpoints it passes: a tick comes first where it reads or hydrates."""
DONE = {"write.append.after", "ddl.publish.after"}
"""After these the operation has happened; at ``durable.commit.after`` its first append has."""


def answers(db):
    found = []
    for question in QUESTIONS:
        try:
            found.append(db.execute(question).rows)
        except Error as error:
            found.append(error.code)
    return found


@pytest.fixture(scope="module")
def expected(make_opener):
    """What an operation leads to when nothing fails."""

    class After(dict):
        def __missing__(self, operation):
            db = make_opener()()
            for statement in SETUP:
                db.execute(statement)
            if operation is not None:
                operation(db)
            self[operation] = answers(db)
            return self[operation]

    return After()


@pytest.mark.parametrize("restart", [True, False], ids=["crash", "go on"])
@pytest.mark.parametrize(
    ("operation", "point"),
    [(operation, point) for operation, points in OPERATIONS.items() for point in points],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_an_operation_happens_whole_or_not_at_all(make_opener, expected, operation, point, restart):
    opener = make_opener()
    db = opener()
    for statement in SETUP:
        db.execute(statement)
    with armed({point: "raise"}), pytest.raises(FailpointRaised):
        operation(db)
    if restart:
        db = opener.reopened(db)
    got = answers(db)
    if point in DONE:
        assert got == expected[operation]
    elif point == "durable.commit.after":
        assert got in (expected[None], expected[operation])
    else:
        assert got == expected[None]
    if got != expected[operation]:
        operation(db)
        assert answers(db) == expected[operation]
    opener.clock.advance(1_000)
    db.tick()
    again = opener.reopened(db)
    assert answers(again) == expected[operation]
    again._core.collect_garbage()
    assert set(again._core.segments.names()) == again._core.world.named_segments()


@pytest.mark.parametrize("restart", [True, False], ids=["crash", "go on"])
@pytest.mark.parametrize("point", [*DURABLE, *SEGMENT, *TICK])
def test_a_tick_that_fails_is_run_again(make_opener, expected, point, restart):
    opener = make_opener()
    db = opener()
    for statement in SETUP:
        db.execute(statement)
    large_insert(db)
    with armed({point: "raise"}), pytest.raises(FailpointRaised):
        db.tick()
    if restart:
        db = opener.reopened(db)
    assert answers(db) == expected[large_insert]
    upper = db.tick()["EpochMilliseconds"]
    opener.clock.advance(1_000)
    assert db.tick()["EpochMilliseconds"] > upper


KILLED = """
from reclock import ManualClock
from reclock.session.database import Database
from engines.model_engine import ModelEngine

db = Database(path, ModelEngine(), clock=ManualClock(1_000), background=False)
db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
from reclock.testing.failpoints import arm
arm(point, "exit")
db.execute("INSERT INTO t VALUES (2)")
"""


@pytest.mark.parametrize(
    ("point", "rows"), [("durable.commit.before", [(1,)]), ("durable.commit.after", [(1,), (2,)])]
)
def test_a_killed_process_leaves_all_or_nothing_and_no_lock(opener, point, rows):
    assert Child(KILLED, path=opener.path, point=point).ended() == EXIT_STATUS
    assert opener().execute("SELECT a FROM t ORDER BY a").rows == rows


LIVED = """
from reclock import ManualClock
from reclock.session.database import Database
from reclock.engine.place import segments_of
from reclock.testing.failpoints import arm
from engines.model_engine import ModelEngine
from engines.task_engine import LoopEngine

clock = ManualClock(1_000)
engine = LoopEngine(segments_of(path)) if execution == "loop" else ModelEngine()
db = Database(path, engine, clock=clock, background=False)
db.execute("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
for n in range(60):
    if n == 20:
        arm(point, "exit")
    db.insert("t", [(n * 1_000 + k,) for k in range(1 + n * 50 % 1_000)])
    if n % 10 == 5:
        db.execute(f"CREATE INDEX i{n} ON t (a)")
    clock.advance(1_000)
    db.tick()
    db._core.merger.wait()
    result = db.execute("SELECT n FROM v")
    pipe.send((int(result.timestamp), result.rows[0][0]))
"""


@pytest.mark.parametrize(
    "point",
    [
        "tick.compute.before", "tick.publish.before", "tick.publish.after",
        "ddl.publish.before", "ddl.publish.after",
        "durable.append.before", "durable.commit.before", "durable.commit.after",
        "arrangement.segment.before_rename", "arrangement.segment.after_rename",
    ],
)  # fmt: skip
def test_a_killed_process_gives_the_same_answers_for_the_past(opener, point, pytestconfig):
    execution = pytestconfig.getoption("--execution")
    if execution == "spark":
        pytest.skip("the process that dies would start a Spark of its own")
    child = Child(LIVED, path=opener.path, point=point, execution=execution)
    told = child.said()
    assert child.ended() == EXIT_STATUS
    db = opener()
    assert db.check() == []
    (since,) = db.execute("SELECT since FROM reclock.frontiers WHERE object = 'v'").rows[0]
    kept = [(time, count) for time, count in told if time >= since]
    assert kept
    for time, count in kept:
        assert db.execute(f"SELECT n FROM v AS OF {time}").rows == [(count,)]
    assert db.execute("SELECT n FROM v").rows == db.execute("SELECT count(*) FROM t").rows
