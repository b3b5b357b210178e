"""System relations: what they show, how they are queried, what is refused."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path

import pytest

from reclock.catalog.system_relation import SCHEMA
from reclock.engine.tick_log import KEPT, PHASES
from reclock.errors import Error, NotSupported
from reclock.ids import HolderId, ObjectId
from reclock.session.session import Session
from reclock.system import RELATIONS
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Timestamp

DOCUMENT = Path(__file__).parents[2] / "docs" / "system-relations.md"
NAMES = [name.removeprefix(f"{SCHEMA}.") for name in RELATIONS]

CONTRACT = {
    "objects": "id, name, kind, timeline, sql",
    "frontiers": "object, since, upper, lag_ms",
    "bindings": "source, timestamp, partition, offset",
    "timelines": "timeline, read_ts, write_ts",
    "arrangement_sizes": "object, operator, records, pending, bytes, runs",
    "source_status": "source, state, rows, bytes, errors, upstream, bound, lag_ms, detail",
    "source_transactions": "source, number, transaction, state, rows, counted",
    "dead_letters": "source, number, timestamp, partition, offset, key, value, code, reason",
    "sink_status": "sink, state, frontier, messages, bytes, in_flight, lag_ms, detail",
    "expirations": "object, expiration, reason, dropped",
    "ticks": "timestamp, phase, millis, rows, place, driver_rows, tasks, shuffled_bytes",
    "errors": "object, timestamp, code, message, detail",
    "holds": "object, holder, since",
    "settings": "name, value, description",
}
"""What programs of others rely on."""

MORE = {
    "objects": ", owner",
    "sink_status": ", retries, last_error",
    "source_status": ", skipped, lag_bytes",
    "expirations": ", remaining_ms, pending",
}
"""What we have besides, behind it."""


@pytest.fixture
def shop(db, opener):
    """A database with an object of every kind and a failing view, at a known time."""
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT)")
    db.execute("CREATE VIEW v AS SELECT a FROM t")
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a")
    db.execute("CREATE MATERIALIZED VIEW bad AS SELECT 10 / a AS q FROM t")
    db.execute("CREATE INDEX i ON m (n)")
    db.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 2)")
    opener.clock.set(10_000)
    db.tick()
    return db


def test_the_columns_are_those_of_the_contract(db):
    assert CONTRACT.keys() == set(NAMES)
    for name, promised in CONTRACT.items():
        columns = promised + MORE.get(name, "")
        result = db.execute(f"SELECT * FROM reclock.{name}")
        assert ", ".join(result.columns) == columns
        shown = db.execute(f"SHOW COLUMNS FROM reclock.{name}").rows
        assert [row[0] for row in shown] == columns.split(", ")


def test_objects(shop):
    rows = shop.execute("SELECT name, kind, timeline FROM reclock.objects ORDER BY id").rows
    at = "EpochMilliseconds"
    assert rows == [
        ("t", "table", at),
        ("v", "view", at),
        ("m", "materialized view", at),
        ("bad", "materialized view", at),
        ("i", "index", at),
    ]
    assert shop.execute("SELECT sql FROM reclock.objects WHERE name = 'v'").rows == [
        ("CREATE VIEW v AS SELECT a FROM t",)
    ]
    shop.execute("CREATE VIEW one AS SELECT 1 AS x; DROP MATERIALIZED VIEW bad")
    rows = shop.execute("SELECT name, timeline FROM reclock.objects").rows
    assert ("one", None) in rows
    assert "bad" not in dict(rows)


def test_frontiers_are_where_objects_can_be_read(shop, opener):
    rows = shop.execute("SELECT * FROM reclock.frontiers ORDER BY object").rows
    assert [row[0] for row in rows] == ["bad", "i", "m", "t"]
    assert {row[2:] for row in rows} == {(10_001, 0)}
    assert all(0 < since <= 10_000 for _, since, _, _ in rows)
    opener.clock.advance(2_500)
    assert shop.execute("SELECT DISTINCT lag_ms FROM reclock.frontiers").rows == [(2_500,)]
    opener.clock.set(200_000)
    shop.tick()
    assert shop.execute("SELECT DISTINCT since, upper FROM reclock.frontiers").rows == [
        (140_001, 200_001)
    ], "the window is a minute"


def test_times_without_a_clock_have_no_lag(db):
    db.execute("CREATE TABLE u (a INT) WITH (timeline = 'game'); INSERT INTO u VALUES (1)")
    ((name, _, upper, lag),) = db.execute("SELECT * FROM reclock.frontiers").rows
    assert (name, lag) == ("u", None)
    result = db.execute("SELECT a, upper FROM u, reclock.frontiers WHERE object = 'u'")
    assert result.timestamp < result.rows[0][1]
    assert result.rows[0][1] > upper, "the read ran a tick"


def test_timelines_show_the_oracle(shop):
    result = shop.execute("INSERT INTO t VALUES (9, 9)")
    ((name, read_ts, write_ts),) = shop.execute("SELECT * FROM reclock.timelines").rows
    assert (name, read_ts, write_ts) == ("EpochMilliseconds", result.timestamp, result.timestamp)
    assert shop.execute("SELECT * FROM t").timestamp == read_ts


def test_errors_of_views_come_and_go(shop, opener):
    assert shop.execute("SELECT * FROM reclock.errors").rows == []
    shop.execute("INSERT INTO t VALUES (4, 0), (5, 0)")
    opener.clock.advance(1_000)
    shop.tick()
    ((name, at, code, message, _),) = shop.execute("SELECT * FROM reclock.errors").rows
    assert (name, at, code, message) == ("bad", 11_000, "22012", "division by zero")
    with pytest.raises(Error) as caught:
        shop.execute("SELECT * FROM bad")
    assert (caught.value.code, caught.value.message) == (code, message)
    shop.execute("DELETE FROM t WHERE a = 0")
    opener.clock.advance(1_000)
    shop.tick()
    assert shop.execute("SELECT * FROM reclock.errors").rows == []


def test_errors_are_those_of_the_time_of_the_read(shop):
    """Beside a table, errors are as of the table's time: also of a write just made."""
    shop.execute("INSERT INTO t VALUES (4, 0)")
    result = shop.execute(
        "SELECT e.timestamp, (SELECT count(*) FROM t WHERE a = 0) FROM reclock.errors e"
    )
    assert result.rows == [(result.timestamp, 1)]
    shop.execute("DELETE FROM t WHERE a = 0")
    assert shop.execute("SELECT t.k FROM t, reclock.errors").rows == []


def test_settings_are_those_of_the_system(shop):
    query = "SELECT value FROM reclock.settings WHERE name = 'statement_timeout'"
    shop.execute("SET statement_timeout = '1s'")
    assert shop.execute(query).rows == [("60s",)]
    shop.execute("ALTER SYSTEM SET statement_timeout = '2 s'")
    assert shop.execute(query).rows == [("2s",)]
    other = Session(shop._core)
    assert other.execute("SHOW ALL").rows == other.execute("SELECT * FROM reclock.settings").rows


def test_holds_name_the_object_the_holder_and_the_time(shop, opener):
    m = next(i.id for i in shop._core.world.catalog.items.values() if i.name == "m")
    hold = shop._core.hold(HolderId("subscribe/4"), [m, ObjectId("u1")], Timestamp(10_000))
    query = "SELECT * FROM reclock.holds WHERE holder = 'subscribe/4' ORDER BY object"
    assert shop.execute(query).rows == [("m", "subscribe/4", 10_000), ("t", "subscribe/4", 10_000)]
    opener.clock.set(500_000)
    shop.tick()
    sinces = dict(shop.execute("SELECT object, since FROM reclock.frontiers").rows)
    assert sinces == {"m": 10_000, "t": 10_000, "bad": 440_001, "i": 440_001}
    hold.release()
    assert shop.execute(query).rows == []


def test_ticks_have_their_phases_and_rows(shop, opener):
    shop.execute("INSERT INTO t VALUES (7, 7), (8, 7)")
    opener.clock.set(20_000)
    shop.tick()
    rows = shop.execute(
        "SELECT phase, millis, rows FROM reclock.ticks WHERE timestamp = 20000"
    ).rows
    assert {phase for phase, _, _ in rows} == set(PHASES)
    assert len(rows) == len(PHASES)
    millis = {phase: taken for phase, taken, _ in rows}
    count = {phase: n for phase, _, n in rows}
    assert count["gather"] == 2
    # t +2, m +1, i +1, bad +1 (one row twice): the model engine keeps nothing else
    assert count["compute"] == count["write"] == count["publish"] == count["total"] == 5
    assert all(taken >= 0 for taken in millis.values())
    total = millis.pop("total")
    assert total == pytest.approx(sum(millis.values()), rel=1e-6)


def test_only_the_last_ticks_are_kept_and_idle_ones_count(db, opener):
    db.execute("CREATE TABLE t (a INT)")
    for _ in range(KEPT + 10):
        opener.clock.advance(1_000)
        db.tick()
    query = (
        "SELECT count(*), count(DISTINCT timestamp), max(timestamp), sum(rows) FROM reclock.ticks"
    )
    assert db.execute(query).rows == [(KEPT * 5, KEPT, opener.clock.now_ms(), 0)]


def test_a_tick_that_failed_is_not_counted(shop, opener):
    before = shop.execute("SELECT count(*) FROM reclock.ticks").rows
    opener.clock.advance(1_000)
    with armed({"tick.publish.before": "raise"}), pytest.raises(FailpointRaised):
        shop.tick()
    assert shop.execute("SELECT count(*) FROM reclock.ticks").rows == before


def test_bindings_of_a_source_now_and_as_of_the_past(db, opener):
    db.execute("CREATE SOURCE n FROM LOAD GENERATOR COUNTER (EVENTS PER TICK 3)")
    for _ in range(2):
        opener.clock.advance(1_000)
        db.tick()
    rows = db.execute("SELECT * FROM reclock.bindings ORDER BY timestamp").rows
    first, second = (row[1] for row in rows[-2:])
    assert rows[-2:] == [("n", first, "0", 3), ("n", second, "0", 6)]
    past = f"SELECT b.* FROM reclock.bindings b, (SELECT count(*) FROM n) c AS OF {first}"
    assert db.execute(past).rows[-1] == ("n", first, "0", 3)


# -- queries ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT f.object, o.kind FROM reclock.frontiers f JOIN reclock.objects o "
         "ON f.object = o.name WHERE o.kind = 'index'", [("i", "index")]),
        ("SELECT count(*) FROM t, reclock.objects WHERE name = 't'", [(3,)]),
        ("SELECT k FROM t WHERE k <= (SELECT count(*) FROM reclock.objects) - 3 ORDER BY k",
         [(1,), (2,)]),
        ("WITH o AS (SELECT * FROM reclock.objects) SELECT count(*) FROM o a JOIN o b USING (id)",
         [(5,)]),
        ("SELECT kind, count(*) FROM reclock.objects GROUP BY kind ORDER BY 2 DESC, 1 LIMIT 1",
         [("materialized view", 2)]),
        ("SELECT objects.name FROM reclock.objects WHERE EXISTS (SELECT 1 FROM m WHERE n = 2) "
         "ORDER BY 1", [("bad",), ("i",), ("m",), ("t",), ("v",)]),
        ("SELECT name FROM reclock.objects EXCEPT SELECT object FROM reclock.frontiers", [("v",)]),
        ("SELECT object FROM reclock.frontiers WHERE object = 'nothing'", []),
        ("SELECT count(*) FROM reclock.sink_status", [(0,)]),
        ("SELECT k, name FROM t LEFT JOIN reclock.settings ON name = 'x' ORDER BY k LIMIT 1",
         [(1, None)]),
        ("SELECT o.name FROM reclock.objects o, LATERAL (SELECT since FROM reclock.frontiers f "
         "WHERE f.object = o.name) s WHERE o.kind = 'table'", [("t",)]),
        ("SELECT name FROM public.v, reclock.objects WHERE a = 1 AND id = 'u1'", [("t",)]),
    ],
)  # fmt: skip
def test_they_are_queried_like_any_relation(shop, query, rows):
    assert shop.execute(query).rows == rows


def test_all_of_one_answer_is_of_one_moment(shop, opener):
    """The upper that is shown is the one of the world that answers: beyond the answer's time."""
    for n in range(10, 20):
        opener.clock.advance(700)
        shop.execute(f"INSERT INTO t VALUES ({n}, {n})")
        result = shop.execute(
            "SELECT a.upper, b.upper, c.read_ts, (SELECT count(*) FROM t) "
            "FROM reclock.frontiers a, reclock.frontiers b, reclock.timelines c "
            "WHERE a.object = 't' AND b.object = 'm'"
        )
        ((one, other, read_ts, count),) = result.rows
        assert one == other > result.timestamp
        assert read_ts >= result.timestamp
        assert count == n - 10 + 4


def test_the_rows_can_be_kept_in_a_table(shop):
    shop.execute("CREATE TABLE seen (name TEXT, at BIGINT)")
    shop.execute("INSERT INTO seen SELECT name, (SELECT max(read_ts) FROM reclock.timelines) "
                 "FROM reclock.objects WHERE kind = 'index'")  # fmt: skip
    assert [name for name, _ in shop.execute("SELECT * FROM seen").rows] == ["i"]
    shop.execute("UPDATE seen SET at = 0 WHERE name IN (SELECT name FROM reclock.objects)")
    assert shop.execute("SELECT * FROM seen").rows == [("i", 0)]
    shop.execute("DELETE FROM seen WHERE name NOT IN (SELECT name FROM reclock.objects) OR true")
    assert shop.execute("SELECT * FROM seen").rows == []


def test_views_over_them_are_as_they_are_now_and_survive(shop, opener):
    shop.execute("CREATE VIEW lagging AS SELECT object, lag_ms FROM reclock.frontiers")
    shop.execute("CREATE VIEW both AS SELECT k, name FROM t, reclock.objects WHERE kind = 'index'")
    opener.clock.advance(100)
    assert shop.execute("SELECT DISTINCT lag_ms >= 0 FROM lagging").rows == [(True,)]
    assert len(shop.execute("SELECT * FROM both").rows) == 3
    shop.execute("DROP INDEX i")
    assert shop.execute("SELECT * FROM both").rows == []
    again = opener.reopened(shop)
    assert again.execute("SELECT count(*) FROM lagging").rows == [(3,)]
    rows = dict(again.execute("SELECT name, timeline FROM reclock.objects").rows)
    assert (rows["lagging"], rows["both"]) == (None, "EpochMilliseconds")
    again.execute("DROP VIEW lagging")
    with pytest.raises(Error, match="depend"):
        again.execute("DROP TABLE t")


def test_they_join_any_timeline(db):
    db.execute("CREATE TABLE t (a INT); CREATE TABLE u (a INT) WITH (timeline = 'game')")
    for table in "tu":
        query = f"SELECT count(*) FROM {table}, reclock.objects WHERE kind = 'table'"
        assert db.execute(query).rows == [(0,)]
        assert len(db.execute(f"SELECT name FROM reclock.objects WHERE name = '{table}'").rows) == 1


def test_a_plan_names_them(db):
    ((text,),) = db.execute("EXPLAIN SELECT name FROM reclock.objects").rows
    assert "Get reclock.objects" in text


# -- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE TABLE reclock.x (a INT)", "42501"),
        ("CREATE VIEW reclock.x AS SELECT 1 AS a", "42501"),
        ("CREATE VIEW reclock.ticks AS SELECT 1 AS a", "42501"),
        ("CREATE OR REPLACE VIEW reclock.ticks AS SELECT 1 AS a", "42501"),
        ("CREATE MATERIALIZED VIEW reclock.x AS SELECT 1 AS a", "42501"),
        ("CREATE INDEX reclock.x ON t (a)", "42501"),
        ("DROP TABLE reclock.ticks", "42501"),
        ("DROP VIEW IF EXISTS reclock.ticks", "42501"),
        ("DROP MATERIALIZED VIEW t, reclock.ticks CASCADE", "42809"),
        ("DROP TABLE reclock.nothing", "42P01"),
        ("INSERT INTO reclock.ticks VALUES (1, 'total', 0, 0)", "42501"),
        ("UPDATE reclock.settings SET value = '1s'", "42501"),
        ("DELETE FROM reclock.errors", "42501"),
        ("CREATE INDEX x ON reclock.ticks (phase)", "0A000"),
        ("CREATE MATERIALIZED VIEW x AS SELECT * FROM reclock.ticks", "0A000"),
        ("CREATE MATERIALIZED VIEW x AS SELECT a FROM t WHERE EXISTS "
         "(SELECT 1 FROM reclock.ticks)", "0A000"),
        ("CREATE MATERIALIZED VIEW x AS SELECT * FROM over", "0A000"),
        ("CREATE INDEX x ON over (phase)", "0A000"),
        ("SELECT * FROM ticks", "42P01"),
        ("SELECT * FROM reclock.tick", "42P01"),
        ("SELECT * FROM other.ticks", "42P01"),
        ("SHOW CREATE TABLE reclock.ticks", "42501"),
        ("SELECT phases FROM reclock.ticks", "42703"),
    ],
)  # fmt: skip
def test_what_is_refused_has_a_hint_and_leaves_nothing(shop, statement, code):
    shop.execute("CREATE VIEW over AS SELECT phase FROM reclock.ticks")
    before = shop.execute("SELECT * FROM reclock.objects").rows
    with pytest.raises(Error) as caught:
        shop.execute(statement)
    assert caught.value.code == code
    if "nothing" not in statement:
        assert caught.value.hint
    assert shop.execute("SELECT * FROM reclock.objects").rows == before


def test_hints_know_the_schema(db):
    for name in ("ticks", "reclock.tick", "other.ticks"):
        with pytest.raises(Error) as caught:
            db.execute(f"SELECT * FROM {name}")
        assert caught.value.hint == 'perhaps you meant "reclock.ticks"'
    db.execute("CREATE TABLE ticks (a INT)")
    assert db.execute("SELECT a FROM ticks").columns == ("a",)
    assert db.execute("SELECT * FROM reclock.ticks").columns[0] == "timestamp"
    with pytest.raises(NotSupported, match="a materialized view over system relation"):
        db.execute("CREATE MATERIALIZED VIEW m AS SELECT * FROM reclock.ticks r, ticks")


@pytest.mark.parametrize(
    "what", ["reclock.ticks", "over", "(SELECT t.k FROM t, reclock.settings WHERE name = 'x')"]
)
def test_nobody_can_follow_them(shop, what):
    shop.execute("CREATE VIEW over AS SELECT phase FROM reclock.ticks")
    with pytest.raises(NotSupported, match="SUBSCRIBE over system relation") as caught:
        shop.subscribe(f"SUBSCRIBE TO {what}")
    assert caught.value.hint
    assert shop.execute("SELECT * FROM reclock.holds").rows == []


def test_there_is_one_relation_per_file():
    package = Path(__file__).parents[2] / "src" / "reclock" / "system"
    files = {path.stem for path in package.glob("*.py")} - {"__init__"}
    assert files == set(NAMES)


def test_the_document_lists_relations_and_columns():
    expected = []
    for relation in RELATIONS.values():
        expected += [f"## {relation.name}", relation.meaning]
        expected += [f"| `{c.name}` | {c.type} | {c.meaning} |" for c in relation.columns]
    # A paragraph may be on several lines.
    lines = re.sub(r"(?<=[^\n|])\n(?=[^\n|#])", " ", DOCUMENT.read_text()).splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("## reclock"))
    quiet = ("| column |", "|---|")
    actual = [line for line in lines[begin:] if line and not line.startswith(quiet)]
    assert actual == expected, "docs/system-relations.md should say:\n" + "\n".join(expected)


def test_every_order_of_asking_gives_the_same(shop):
    """The rows of a relation do not depend on which others a query reads."""
    alone = {n: sorted(shop.execute(f"SELECT count(*) FROM reclock.{n}").rows) for n in NAMES}
    for a, b in permutations(NAMES[:6], 2):
        query = f"SELECT (SELECT count(*) FROM reclock.{a}), (SELECT count(*) FROM reclock.{b})"
        ((x, y),) = shop.execute(query).rows
        assert [(x,)] == alone[a]
        assert [(y,)] == alone[b]


# -- transactions and times ------------------------------------------------------------------


def test_a_transaction_sees_the_frontiers_of_its_own_moment(shop, opener):
    session, query = Session(shop._core), "SELECT * FROM reclock.frontiers ORDER BY object"
    session.execute("BEGIN")
    first = session.execute("SELECT count(*) FROM t")
    frontiers = session.execute(query).rows
    opener.clock.advance(5_000)
    shop.execute("INSERT INTO t VALUES (50, 50)")
    shop.tick()
    again = session.execute(query).rows
    assert [row[:3] for row in again] == [row[:3] for row in frontiers]
    assert session.execute("SELECT count(*) FROM t").rows == first.rows
    holders = shop.execute("SELECT object, since FROM reclock.holds WHERE holder LIKE 'trans%'")
    assert ("t", first.timestamp) in holders.rows
    session.execute("COMMIT")
    assert session.execute("SELECT * FROM reclock.holds").rows == []
    assert session.execute(query).rows[0][2] > frontiers[0][2]


def test_errors_as_of_a_time_are_those_of_that_time(shop, opener):
    def seen(at):
        return shop.execute(f"SELECT e.timestamp, k FROM reclock.errors e, t AS OF {at}").rows

    shop.execute("INSERT INTO t VALUES (4, 0)")
    opener.clock.set(20_000)
    shop.tick()
    shop.execute("DELETE FROM t WHERE a = 0")
    opener.clock.set(30_000)
    shop.tick()
    assert seen(10_000) == []
    assert {at for at, _ in seen(20_000)} == {20_000}
    assert seen(30_000) == []
    alone = shop.execute("SELECT timestamp, code FROM reclock.errors AS OF 20000").rows
    assert alone == [(20_000, "22012")]


def test_a_timeline_that_has_just_begun_can_be_looked_at(db):
    """Between the beginning of a timeline and its first tick nothing is complete."""
    db._core.state(EPOCH_MS)
    for name in NAMES:
        db.execute(f"SELECT * FROM reclock.{name}")
    assert db.execute("SELECT * FROM reclock.timelines").rows == [("EpochMilliseconds", 0, 0)]
