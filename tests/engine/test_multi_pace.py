"""Views over objects of different paces: right at every time, as far as all of them are."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.local_engine import LocalEngine
from engines.model_engine import ModelEngine
from reclock.errors import DependentObjects, Error, ExpressionFailed, Unreadable
from reclock.testing.failpoints import armed
from reclock.testing.kafka_upstream import Record

KEPT = "RETAIN HISTORY FOR '1 h'"
QUERY = "SELECT t.id, x FROM t LEFT JOIN cdc ON t.id = cdc.id"


class Sender:
    """Two sources that bring their times, and a table, all of one timeline."""

    def __init__(self, opener, timeline="timeline = 'x'"):
        self.opener = opener
        self.db = opener()
        self.at = {}
        for name in ("cdc", "other"):
            self.at[name] = opener.kafka.create_topic(1), 0
            self.db.execute(
                f"CREATE SOURCE {name} (id BIGINT, x TEXT) FROM KAFKA BROKER 'b:1' TOPIC "
                f"'{self.at[name][0]}' FORMAT JSON ENVELOPE MATERIALIZE WITH ({timeline}, {KEPT})"
            )
        given = f"{timeline}, " if "epoch" not in timeline else ""
        self.db.execute(f"CREATE TABLE t (id BIGINT) WITH ({given}{KEPT})")

    def send(self, upper, *updates, name="cdc"):
        """State everything up to an upper."""
        topic, lower = self.at[name]
        rows = [{"data": {"id": i, "x": x}, "time": t, "diff": d} for i, x, t, d in updates]
        counts = [{"time": t, "count": n} for t, n in Counter(u[2] for u in updates).items()]
        said = {"progress": {"lower": [lower], "upper": [upper], "counts": counts}}
        records = [Record(json.dumps(m).encode()) for m in ({"array": rows}, said)]
        self.opener.kafka.produce(topic, 0, *records)
        self.at[name] = topic, upper

    def rows(self, query):
        return sorted(self.db.execute(query).rows, key=repr)

    def upper(self, name):
        query = f"SELECT upper FROM reclock.frontiers WHERE object = '{name}'"
        return self.db.execute(query).rows[0][0]

    def crash(self):
        self.db = self.opener.reopened(self.db)


@pytest.fixture
def sender(opener):
    return Sender(opener)


def test_a_view_follows_the_one_that_is_last(sender):
    sender.send(100, (1, "a", 50, 1))
    sender.db.tick()
    sender.db.execute(f"CREATE MATERIALIZED VIEW v WITH ({KEPT}) AS {QUERY}")
    sender.db.execute("CREATE INDEX v_id ON v (id)")
    first = sender.db.execute("INSERT INTO t VALUES (1), (2)").timestamp
    assert first == 100
    sender.db.tick()
    assert sender.upper("t") > 100
    assert sender.upper("v") == 100
    sender.send(200, (2, "b", 150, 1))
    sender.db.tick()
    assert sender.upper("cdc") == 200
    assert sender.upper("v") <= sender.upper("t")
    sender.db.execute("INSERT INTO t VALUES (3)")
    sender.send(300)
    sender.db.tick()
    sender.db.tick()
    assert sender.rows(f"SELECT * FROM v AS OF {first}") == [(1, "a"), (2, None)]
    assert sender.rows("SELECT * FROM v") == [(1, "a"), (2, "b"), (3, None)]
    assert sender.rows("SELECT * FROM v WHERE id = 3") == [(3, None)]
    assert sender.rows(f"SELECT * FROM v EXCEPT ALL {QUERY}") == []
    assert sender.db.check() == []
    sender.crash()
    sender.send(400, (3, "c", 350, 1))
    sender.db.tick()
    sender.db.tick()
    assert sender.rows("SELECT * FROM v WHERE id = 3") == [(3, "c")]
    assert sender.db.check() == []


def test_errors_of_what_is_read_are_errors(sender):
    sender.send(100, (0, "a", 50, 1))
    sender.db.execute("CREATE MATERIALIZED VIEW broken AS SELECT id, 1 / id AS q FROM cdc")
    sender.db.tick()
    query = "SELECT t.id FROM t JOIN broken ON t.id = broken.id"
    sender.db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    for _ in range(2):
        with pytest.raises(Error) as caught:
            sender.rows("SELECT * FROM v AS OF 99")
        assert caught.value.code == "22012"
        sender.crash()
    sender.send(200, (0, "a", 150, -1))
    sender.db.tick()
    sender.db.tick()
    assert sender.rows("SELECT * FROM v") == []


def test_what_is_further_behind_than_the_others_remember_is_refused(opener):
    opener.clock.set(1_763_280_000_000)
    sender = Sender(opener, "epoch_ms_timeline = true")
    sender.send(1_000)
    sender.db.tick()
    with pytest.raises(Unreadable) as caught:
        sender.db.execute(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
    assert "cdc is readable in" in caught.value.detail
    assert len(sender.rows("SELECT * FROM reclock.objects")) == 3
    sender.send(1_763_280_001_000, (1, "a", 1_763_279_000_000, 1))
    sender.db.tick()
    sender.db.execute(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
    sender.db.execute("INSERT INTO t VALUES (1)")
    sender.send(1_763_280_009_000)
    opener.clock.advance(2_000)
    sender.db.tick()
    assert sender.rows("SELECT * FROM v") == [(1, "a")]


EARLY = {
    "two": "SELECT a.id, b.x FROM cdc a JOIN other b ON a.id = b.id",
    "a table": QUERY,
    "three": "SELECT count(*) AS n, max(a.x) AS x FROM cdc a JOIN other b ON a.id = b.id "
    "JOIN t ON a.id = t.id",
}


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("engine", [ModelEngine, LocalEngine])
@pytest.mark.parametrize("kind", EARLY)
def test_a_view_made_before_there_is_any_time_waits(opener, kind, engine, dies):
    opener.engine = engine
    sender = Sender(opener)
    query = EARLY[kind]
    sender.db.execute(f"CREATE MATERIALIZED VIEW v WITH ({KEPT}) AS {query}")
    sender.db.tick()
    with pytest.raises(Unreadable, match="not complete"):
        sender.rows("SELECT * FROM v")
    sender.db.execute(f"CREATE MATERIALIZED VIEW w WITH ({KEPT}) AS {query}")
    sender.db.execute("CREATE MATERIALIZED VIEW over AS SELECT count(*) AS n FROM v")
    sender.db.execute("CREATE INDEX i ON v (x)")
    if dies:
        sender.crash()
    sender.send(10, (1, "a", 3, 1), (1, "b", 5, 1))  # one of them has begun
    for _ in range(2):
        sender.db.tick()
    if dies:
        sender.crash()
    sender.send(8, (1, "z", 2, 1), (2, "y", 4, 1), name="other")
    for _ in range(2):
        sender.db.tick()
    sender.db.execute("INSERT INTO t VALUES (1), (2)")
    for name in ("cdc", "other"):
        sender.send(90, (1, "c", 60, 1), name=name)
    for _ in range(2):
        sender.db.tick()
    if dies:
        sender.crash()
    last = sender.upper("v")
    assert last >= 60
    for time in range(1, last):
        rows = sender.rows(f"{query} AS OF {time}")
        assert sender.rows(f"SELECT * FROM v AS OF {time}") == rows, time
        assert sender.rows(f"SELECT * FROM w AS OF {time}") == rows, time
    assert sender.rows("SELECT n FROM over") == [(len(sender.rows("SELECT * FROM v")),)]
    assert sender.db.check() == []


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("engine", [ModelEngine, LocalEngine])
def test_one_that_waits_begins_where_the_others_can_still_be_read(opener, engine, dies):
    """The view has the table from the first time on that this is kept of, and never before."""
    now = 1_763_280_000_000
    opener.engine = engine
    opener.clock.set(now)
    sender = Sender(opener, "epoch_ms_timeline = true")
    sender.db.execute("CREATE TABLE u (id BIGINT)")
    query = QUERY.replace("FROM t", "FROM u").replace("t.id", "u.id")
    for n in range(3):
        sender.db.execute(f"INSERT INTO u VALUES ({n})")
        opener.clock.advance(5_000)
        sender.db.tick()
    sender.db.execute(f"CREATE MATERIALIZED VIEW v WITH ({KEPT}) AS {query}")
    made = now + 15_000
    for n in range(3, 6):
        opener.clock.advance(5_000)
        sender.db.execute(f"INSERT INTO u VALUES ({n})")
        sender.db.tick()
        if dies:
            sender.crash()
    sender.send(now, (1, "a", now - 10, 1))
    sender.db.tick()  # complete, but before what the table has kept for the view
    assert sender.upper("v") == 0
    sender.send(made + 10_000, (1, "b", made + 7_000, 1))
    for _ in range(2):
        sender.db.tick()
    if dies:
        sender.crash()
    last = sender.upper("v") - 1
    assert last == made + 9_999
    expected = {
        made - 10_001: [(0, None)],
        made + 4_000: [(0, None), (1, "a"), (2, None)],
        made + 6_000: [(0, None), (1, "a"), (2, None), (3, None)],
        last: [(0, None), (1, "a"), (1, "b"), (2, None), (3, None)],
    }
    for time, rows in expected.items():
        assert sender.rows(f"SELECT * FROM v AS OF {time}") == rows, time
    for time in (2, now):
        with pytest.raises(Error):
            sender.rows(f"SELECT * FROM v AS OF {time}")
    assert sender.db.check() == []


def test_what_a_view_reads_is_held_for_it_and_no_longer(sender):
    sender.send(100)
    sender.db.tick()
    sender.db.execute("CREATE TABLE u (id BIGINT) WITH (timeline = 'x')")
    query = "SELECT u.id FROM u JOIN cdc ON u.id = cdc.id"
    sender.db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    holds = "SELECT count(*) FROM reclock.holds WHERE holder LIKE 'views/%'"
    assert sender.rows(holds) == [(2,)]
    with pytest.raises(DependentObjects):
        sender.db.execute("DROP TABLE u")
    for _ in range(3):
        sender.db.execute("INSERT INTO u VALUES (1)")
        sender.db.tick()
    sender.crash()
    sender.send(90_000, (1, "a", 5_000, 1))
    for _ in range(2):
        sender.db.tick()
    assert sender.rows("SELECT count(*) FROM v") == [(3,)]
    sender.db.execute("DROP MATERIALIZED VIEW v")
    assert sender.rows(holds) == [(0,)]
    assert sender.db.check() == []


def test_a_subscription_follows_several(sender):
    sender.send(100, (1, "a", 50, 1))
    sender.db.execute("INSERT INTO t VALUES (1)")
    sender.db.tick()
    sender.send(200)
    sender.db.tick()
    with sender.db.subscribe(f"SUBSCRIBE ({QUERY})", timeout=0) as changes:
        assert [u.row for u in changes] == [(1, "a")]
        sender.send(300, (1, "a", 250, -1))
        sender.db.tick()
        sender.db.tick()
        found = sorted((u.timestamp, u.diff, u.row) for u in changes)
    assert found == [(250, -1, (1, "a")), (250, 1, (1, None))]


MANY = (
    "SELECT a.id, b.x, count(*) AS n FROM cdc a JOIN other b ON a.id = b.id JOIN t ON a.id = t.id "
)
MANY += "GROUP BY a.id, b.x"


BROKEN = "SELECT q, t.id FROM broken JOIN t ON q = t.id"


@pytest.mark.parametrize(
    ("engine", "known", "query"),
    [
        (LocalEngine, "", MANY), (LocalEngine, QUERY, MANY), (LocalEngine, MANY, MANY),
        (LocalEngine, "", BROKEN), (LocalEngine, MANY, BROKEN), (ModelEngine, QUERY, BROKEN),
    ],
)  # fmt: skip
def test_a_view_made_late_follows_all_that_it_reads(opener, engine, known, query):
    opener.engine = engine
    sender = Sender(opener)
    sender.db.execute("CREATE MATERIALIZED VIEW broken AS SELECT 1 / id AS q FROM other")
    session = sender.db.session()
    for name in sender.at:
        sender.send(10, (1, "a", 5, 1), name=name)
    sender.db.tick()
    if known:
        sender.db.execute(f"CREATE MATERIALIZED VIEW known WITH ({KEPT}) AS {known}")
    session.execute("INSERT INTO t VALUES (1), (1)")
    sender.db.tick()

    def go_on(upper):
        sender.send(upper, (1, "b", upper - 3, 1), (1, "a", upper - 2, -1))
        sender.send(upper, (1, "a", upper - 4, 1), (0, "z", upper - 2, 1), name="other")
        session.execute("INSERT INTO t VALUES (1), (0)")
        for _ in range(2):
            sender.db.tick()
        sender.send(upper + 5, (0, "z", upper, -1), name="other")
        sender.db.tick()

    points = {"ddl.prepare.before": lambda: go_on(20), "ddl.prepare.after": lambda: go_on(40)}
    with armed(points):
        sender.db.execute(f"CREATE MATERIALIZED VIEW v WITH ({KEPT}) AS {query}")
    go_on(60)
    item = sender.db._core.world.catalog.find(("v",))
    since = int(sender.db._core.world.of(item).sinces[item.id].element())
    assert since < 20
    last = sender.upper("v") - 1
    assert last >= 59

    def compare(times):
        for time in times:
            asked = outcome(sender, f"{query} AS OF {time}")
            assert outcome(sender, f"SELECT * FROM v AS OF {time}") == asked, time
        assert sender.db.check() == []

    compare(range(since, last + 1))
    sender.crash()
    compare([since, last])


def outcome(sender, sql):
    try:
        return sender.rows(sql)
    except ExpressionFailed as error:
        return error.code


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(["cdc", "other", "write", "tick", "crash"]), max_size=16),
    st.booleans(),
)
def test_a_view_is_its_query_at_every_time(make_opener, actions, early):
    sender = Sender(make_opener())
    query = (
        "SELECT a.id, count(*) AS n FROM cdc a JOIN other b ON a.id = b.id JOIN t ON a.id = t.id "
    )
    query += "GROUP BY a.id"
    for name in () if early else ("cdc", "other"):
        sender.send(3, name=name)
    sender.db.tick()
    sender.db.execute(f"CREATE MATERIALIZED VIEW v WITH ({KEPT}) AS {query}")
    begun = max(0, (sender.upper("v") or 0) - 1)
    for n, action in enumerate([*actions, "cdc", "other", "tick", "tick"]):
        if action in sender.at:
            upper = sender.at[action][1]
            sender.send(upper + 1 + n % 3, (n % 2, "a", upper, 1), name=action)
        elif action == "write":
            sender.db.execute("INSERT INTO t VALUES (1)")
        elif action == "crash":
            sender.crash()
        else:
            sender.db.tick()
    for time in range(begun, sender.upper("v") or 0):
        assert sender.rows(f"SELECT * FROM v AS OF {time}") == sender.rows(f"{query} AS OF {time}")
    assert sender.db.check() == []


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("what", ["cdc", "v"])
@pytest.mark.parametrize("timeline", ["timeline = 'x'", "epoch_ms_timeline = true"])
def test_a_sink_of_what_has_no_time_yet_waits_too(opener, timeline, what, dies):
    opener.clock.set(100_000)
    sender = Sender(opener, timeline)
    sender.db.execute(f"CREATE MATERIALIZED VIEW v WITH ({KEPT}) AS {QUERY}")
    sender.db.execute("INSERT INTO t VALUES (1)")
    where = "KAFKA BROKER 'b:1' TOPIC 'out' FORMAT JSON ENVELOPE MATERIALIZE"
    sender.db.execute(f"CREATE SINK k FROM {what} INTO {where} WITH (reuse_topic = true)")
    sender.db.tick()
    if dies:
        sender.crash()
    sender.send(100_005, (1, "a", 3, 1))
    for _ in range(3):
        opener.clock.advance(10)
        sender.db.tick()
    if dies:
        sender.crash()
    sender.send(100_200, (1, "b", 100_100, 1))
    for _ in range(3):
        opener.clock.advance(100)
        sender.db.tick()
    sender.db.execute(
        f"CREATE SOURCE back (id BIGINT, x TEXT) FROM {where} WITH ({timeline}, {KEPT})"
    )
    for _ in range(6):
        opener.clock.advance(1_000)
        sender.db.tick()
    upper = sender.upper("back")  # that nothing changes is said now and then
    assert 100_005 <= upper <= sender.upper(what) == 100_200
    for time in range(100_001, upper, 7):
        rows = sender.rows(f"SELECT * FROM {what} AS OF {time}")
        assert sender.rows(f"SELECT * FROM back AS OF {time}") == rows, time
    assert sender.db.check() == []
