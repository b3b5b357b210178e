"""RECLOCK USING: the user's bindings, and no others, say which record is at which time."""

from __future__ import annotations

import json
from contextlib import suppress
from time import monotonic, sleep

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conditions import assert_facts_agree
from engines.model_engine import ModelEngine
from engines.task_engine import LoopEngine, TaskModel
from reclock.engine.place import segments_of
from reclock.errors import Error, Unreadable
from reclock.ingest import supplied_intake as supplied
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.testing.kafka_upstream import Record

KEPT = "RETAIN HISTORY FOR '1 h'"
GIVEN = "(timestamp BIGINT, partition INT, offset BIGINT)"


class Bound:
    """A topic, and a source of it that rows of a table bind."""

    def __init__(self, opener, partitions=2):
        self.opener = opener
        self.kafka = opener.kafka
        self.topic = self.kafka.create_topic(partitions)
        self.db = opener()
        self.db.execute(f"CREATE TABLE b {GIVEN}")

    def create(self, using="b", options=KEPT, rest="FORMAT JSON", columns="(id BIGINT)", name="s"):
        self.db.execute(
            f"CREATE SOURCE {name} {columns} FROM KAFKA BROKER 'b:1' TOPIC '{self.topic}' {rest} "
            f"RECLOCK USING {using} WITH ({options})"
        )

    def send(self, partition, *ids, topic=None):
        values = (json.dumps(i if isinstance(i, dict) else {"id": i}).encode() for i in ids)
        self.kafka.produce(topic or self.topic, partition, *map(Record, values))

    def bind(self, *rows):
        values = ", ".join(f"({t}, {p}, {o})" for t, p, o in rows)
        self.db.execute(f"INSERT INTO b VALUES {values}")

    def tick(self, ms=1_000):
        self.opener.clock.advance(ms)
        return self.db.tick()

    def ids(self, rest=""):
        return sorted(i for (i,) in self.db.execute(f"SELECT id FROM s {rest}").rows)

    def upper(self, name="s"):
        query = f"SELECT upper FROM reclock.frontiers WHERE object = '{name}'"
        return self.db.execute(query).rows[0][0]

    def status(self, columns="state, detail"):
        assert_facts_agree(self.db)
        query = f"SELECT {columns} FROM reclock.source_status WHERE source = 's'"
        return self.db.execute(query).rows[0]

    def crash(self):
        self.db = self.opener.reopened(self.db)


@pytest.fixture(params=["driver", "tasks"])
def opener(opener, request, monkeypatch):
    """Sources are read here, or by two tasks, and ticks are jobs then."""
    if request.param == "tasks":
        monkeypatch.setattr("reclock.ingest.shares.SLICE", 2)
        opener.engine = lambda: LoopEngine(segments_of(opener.path))
    return opener


@pytest.fixture
def bound(opener):
    return Bound(opener)


def test_records_are_at_the_times_that_the_rows_say(bound):
    bound.create()
    bound.send(0, 1, 2, 3)
    bound.send(1, 11, 12)
    bound.bind((10, 0, 2), (20, 0, 2), (20, 1, 1), (30, 0, 3))
    bound.tick()
    assert bound.upper() == 30  # that of a later row is complete when there is one after it
    assert [bound.ids(f"AS OF {t}") for t in (9, 10, 19, 20, 29)] == [
        [], [1, 2], [1, 2], [1, 2, 11], [1, 2, 11],
    ]  # fmt: skip
    bound.bind((31, 0, 3))
    bound.tick()
    assert bound.ids() == [1, 2, 3, 11]
    assert bound.db.execute("SELECT * FROM s").timestamp == 30
    assert bound.db.execute("SELECT * FROM reclock.translate('s', 20)").rows == [("0", 2), ("1", 1)]
    assert bound.db.execute("SELECT * FROM reclock.translate('s', '0:2')").rows == [(30,)]
    assert bound.db.check() == []


def test_bindings_ahead_of_the_data_hold_it_and_data_ahead_waits(bound):
    bound.create()
    bound.send(0, 1)
    bound.bind((10, 0, 1), (20, 0, 2), (20, 1, 1), (30, 0, 2))
    bound.tick()
    assert (bound.upper(), bound.ids()) == (20, [1])
    assert bound.status() == ("waiting", "time 20 needs partition 0 up to 2; it ends at 1")
    bound.send(0, 2, 3)
    bound.tick()
    assert bound.upper() == 20
    assert bound.status() == ("waiting", "time 20 needs partition 1 up to 1; it ends at 0")
    bound.crash()
    bound.send(1, 11)
    bound.tick()
    assert (bound.upper(), bound.ids()) == (30, [1, 2, 11])
    assert bound.status() == ("waiting", "no bindings are complete from time 30 on")
    bound.bind((40, 0, 3), (41, 0, 3))
    bound.tick()
    assert (bound.upper(), bound.ids()) == (41, [1, 2, 3, 11])
    assert bound.status() == ("running", None)


def test_nothing_is_read_that_no_binding_asks_for(bound):
    bound.create()
    bound.send(0, *range(100))
    bound.bind((10, 0, 3), (20, 0, 3))
    for _ in range(3):
        bound.tick()
    assert bound.status("rows") == (3,)


def test_a_restart_keeps_what_is_bound_whatever_becomes_of_the_rows(bound):
    bound.create()
    bound.send(0, 1, 2, 3)
    bound.bind((10, 0, 1), (20, 0, 2), (30, 0, 2))
    bound.tick()
    bound.db.execute("DELETE FROM b WHERE timestamp < 25")
    bound.tick()
    bound.crash()
    bound.bind((20, 0, 2), (40, 0, 3), (50, 0, 3))  # the first says again what is so
    bound.tick()
    assert [bound.ids(f"AS OF {t}") for t in (9, 10, 20, 40)] == [[], [1], [1, 2], [1, 2, 3]]


BAD = {
    "a partition goes back": (
        [(20, 0, 3), (30, 0, 2)],
        "(timestamp 20, partition 0, offset 3) is followed by "
        "(timestamp 30, partition 0, offset 2)",
    ),
    "two offsets at one time": (
        [(20, 0, 2), (20, 0, 3)],
        "(timestamp 20, partition 0, offset 2) is followed by "
        "(timestamp 20, partition 0, offset 3)",
    ),
    "behind what is bound": (
        [(20, 0, 0), (30, 0, 2)],
        "(timestamp 5, partition 0, offset 1) is followed by (timestamp 20, partition 0, offset 0)",
    ),
    "about a complete time": (
        [(7, 0, 2), (20, 0, 3)],
        "binding (timestamp 7, partition 0, offset 2) comes too late; times before {10} are "
        "complete, with (timestamp 5, partition 0, offset 1)",
    ),
    "no binding": ([(20, -1, 2)], "invalid binding (timestamp 20, partition -1, offset 2)"),
    "NULL": ([(20, "NULL", 2)], 'invalid binding in "b": (timestamp 20, partition NULL, offset 2)'),
}


@pytest.mark.parametrize("why", BAD)
def test_bad_bindings_stop_the_source_name_the_pair_and_publish_nothing(bound, why):
    rows, named = BAD[why]
    bound.create()
    bound.db.execute("CREATE TABLE other (k INT)")
    bound.send(0, 1, 2, 3)
    bound.bind((5, 0, 1), (10, 1, 0))
    bound.tick()
    bound.send(1, 11)
    bound.bind((12, 1, 1), *rows, (50, 1, 1))  # a good one beside them
    for _ in range(2):
        bound.tick()
        with pytest.raises(Error) as caught:
            bound.ids()
        assert named in f"{caught.value.message}; {caught.value.detail}"
        assert bound.ids("AS OF 9") == [1]
        assert bound.db.execute("SELECT * FROM reclock.translate('s', '1:0')").rows == [(None,)]
        assert bound.status("state") == ("failed",)
        assert bound.db.execute("INSERT INTO other VALUES (1)").tag == "INSERT 0 1"
        bound.crash()
    assert len(bound.db.execute("SELECT * FROM other").rows) == 2
    assert bound.db.check() == []


def test_a_record_that_stops_the_source_stops_it_after_what_is_complete(bound):
    bound.create(options=f"on_error = 'stop', {KEPT}")
    bound.send(0, 1, 2, {"id": "bad"}, 4)
    bound.bind((10, 0, 1), (20, 0, 2), (30, 0, 4), (40, 0, 4))
    for _ in range(3):
        bound.tick()
    assert [bound.ids(f"AS OF {t}") for t in (9, 10, 29)] == [[], [1], [1, 2]]
    with pytest.raises(Error, match="stopped at a record that cannot be decoded"):
        bound.ids("AS OF 30")
    assert bound.status("state") == ("failed",)


def test_many_times_are_bound_tick_by_tick(bound, monkeypatch):
    monkeypatch.setattr(supplied, "MOST_TIMES", 3)
    bound.create()
    bound.send(0, *range(10))
    bound.bind(*((10 * n, 0, n) for n in range(1, 11)), (110, 0, 10))
    uppers = []
    for _ in range(4):
        bound.tick()
        uppers.append(bound.upper())
    assert uppers == [40, 70, 100, 110]
    assert bound.ids() == [*range(10)]
    assert bound.ids("AS OF 45") == [0, 1, 2, 3]


def test_rows_may_change_as_long_as_they_are_not_bound(bound):
    bound.create()
    bound.send(0, 1, 2, 3)
    bound.bind((10, 0, 1), (20, 0, 3), (20, 1, 1), (30, 0, 3))
    bound.tick()
    assert bound.upper() == 20  # partition 1 has nothing yet; partition 0 was read
    bound.db.execute("DELETE FROM b WHERE timestamp = 20 AND partition = 0")
    bound.bind((20, 0, 2), (25, 0, 3))
    bound.tick()
    bound.send(1, 11)
    bound.tick()
    assert [bound.ids(f"AS OF {t}") for t in (10, 20, 25)] == [[1], [1, 2, 11], [1, 2, 3, 11]]
    assert bound.db.check() == []
    left = {n for n in bound.db._core.segments.names() if n.startswith("staged-")}
    assert left <= bound.db._core.named()


def test_records_that_are_skipped_have_the_times_that_the_rows_say(bound):
    bound.create(options=f"on_error = 'skip', {KEPT}")
    bound.send(0, 1, "a", 2, "b", 3)
    bound.send(1, "c", 11)
    bound.bind((10, 0, 2), (20, 0, 4), (20, 1, 2), (30, 0, 5), (40, 0, 5))
    bound.tick()
    assert [bound.ids(f"AS OF {t}") for t in (10, 20, 30)] == [[1], [1, 2, 11], [1, 2, 3, 11]]
    query = "SELECT number, timestamp, partition, offset FROM reclock.dead_letters"
    found = sorted(bound.db.execute(query).rows)
    assert found == [(1, 10, "0", 1), (2, 20, "0", 3), (3, 20, "1", 0)]


def test_a_relation_that_cannot_be_read_binds_nothing(bound):
    given = bound.kafka.create_topic(1)
    bound.db.execute(f"CREATE SOURCE g {GIVEN} FROM KAFKA BROKER 'b:1' TOPIC '{given}' FORMAT JSON")
    bound.create("g")
    bound.kafka.produce(given, 0, Record(b"{"))
    bound.send(0, {"timestamp": 5, "partition": 0, "offset": 1}, topic=given)
    bound.tick()
    bound.tick()
    state, detail = bound.status()
    assert state == "stalled"
    assert 'the bindings in "g" cannot be read' in detail
    with pytest.raises(Unreadable):
        bound.ids()


def test_rows_of_a_topic_bind_and_come_while_it_runs(bound):
    given = bound.kafka.create_topic(2)
    bound.db.execute(f"CREATE SOURCE g {GIVEN} FROM KAFKA BROKER 'b:1' TOPIC '{given}' FORMAT JSON")
    bound.create("g")
    bound.send(0, 1, 2, 3)
    for time in (10, 20, 30):
        row = {"timestamp": time, "partition": 0, "offset": time // 10}
        bound.send(time // 10 % 2, row, topic=given)
        bound.tick()
        bound.tick()
        if time == 10:
            bound.crash()
    assert (bound.upper(), bound.ids()) == (30, [1, 2])


def test_rows_of_a_file_bind_files_and_its_end_completes_the_source(opener, tmp_path):
    """Parts have names, offsets are bytes; what no row binds is never read."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text("1\n2\n3\n")
    (tmp_path / "data" / "y.csv").write_text("11\n12\n")
    (tmp_path / "rows.csv").write_text("7,x.csv,2\n8,y.csv,4\n9,x.csv,4\n")
    db = opener()
    db.execute(
        f"CREATE SOURCE g (timestamp BIGINT, partition TEXT, offset BIGINT) "
        f"FROM FILE '{tmp_path}/rows.csv' FORMAT CSV WITH (tail = false)"
    )
    db.execute(
        f"CREATE SOURCE s (id BIGINT) FROM DIRECTORY '{tmp_path}/data' FORMAT CSV "
        f"RECLOCK USING g WITH ({KEPT})"
    )
    for _ in range(2):
        opener.clock.advance(1_000)
        db.tick()
    query = "SELECT upper FROM reclock.frontiers WHERE object = 's'"
    for _ in range(2):
        assert db.execute(query).rows == [(None,)]
        for time, ids in {7: [1], 8: [1, 11, 12], 9: [1, 2, 11, 12], 10**6: [1, 2, 11, 12]}.items():
            assert sorted(db.execute(f"SELECT id FROM s AS OF {time}").rows) == [(i,) for i in ids]
        state = db.execute("SELECT state FROM reclock.source_status WHERE source = 's'").rows
        assert state == [("complete",)]
        assert db.check() == []
        db = opener.reopened(db)
        db.tick()


def test_the_end_of_a_sender_completes_the_source(bound):
    given = bound.kafka.create_topic(1)
    bound.db.execute(
        f"CREATE SOURCE g {GIVEN} FROM KAFKA BROKER 'b:1' TOPIC '{given}' FORMAT JSON "
        "ENVELOPE MATERIALIZE"
    )
    bound.create("g")
    bound.send(0, 1, 2)
    row = {"data": {"timestamp": 10, "partition": 0, "offset": 1}, "time": 3, "diff": 1}
    counts = [{"time": 3, "count": 1}]
    progress = {"progress": {"lower": [0], "upper": [], "counts": counts}}
    bound.send(0, {"array": [row]}, progress, topic=given)
    bound.tick()
    assert (bound.upper(), bound.ids("AS OF 10"), bound.ids("AS OF 99")) == (None, [1], [1])
    assert bound.status("state") == ("complete",)


def test_in_wall_clock_time_it_meets_tables_and_cannot_run_ahead(bound):
    now = 1_700_000_000_000
    bound.opener.clock.set(now)
    bound.create(options=f"epoch_ms_timeline = true, {KEPT}")
    bound.db.execute("CREATE TABLE t (id BIGINT)")
    bound.db.execute("INSERT INTO t VALUES (1), (2)")
    bound.send(0, 1, 2)
    bound.bind((now - 500, 0, 1), (now + 60_000, 0, 2), (now + 70_000, 0, 2))
    bound.tick()
    assert bound.db.execute("SELECT t.id FROM t JOIN s ON t.id = s.id").rows == [(1,)]
    state, detail = bound.status()
    assert state == "waiting"
    assert "are too far ahead of the clock" in detail
    (read_ts,) = bound.db.execute("SELECT read_ts FROM reclock.timelines").rows[0]
    assert read_ts <= now + 2_000
    bound.tick(60_000)
    assert len(bound.db.execute("SELECT t.id FROM t JOIN s ON t.id = s.id").rows) == 2


def test_two_topics_meet_in_a_timeline_of_their_own(bound):
    """What the option is for: records that belong together are at one time."""
    other = bound.kafka.create_topic(1)
    bound.db.execute(f"CREATE TABLE b2 {GIVEN}")
    bound.create(options=f"timeline = 'shop', {KEPT}")
    bound.db.execute(
        f"CREATE SOURCE s2 (id BIGINT) FROM KAFKA BROKER 'b:1' TOPIC '{other}' FORMAT JSON "
        f"RECLOCK USING b2 WITH (timeline = 'shop', {KEPT})"
    )
    bound.bind((5, 0, 0))
    bound.db.execute("INSERT INTO b2 VALUES (5, 0, 0)")
    bound.tick()
    bound.db.execute("CREATE MATERIALIZED VIEW v AS SELECT s.id FROM s JOIN s2 ON s.id = s2.id")
    bound.send(0, 1, 2, 3)
    bound.send(0, 3, 2, 1, topic=other)
    bound.bind((10, 0, 1), (20, 0, 2), (30, 0, 3), (40, 0, 3))
    bound.db.execute("INSERT INTO b2 VALUES (10, 0, 1), (20, 0, 2), (30, 0, 3), (40, 0, 3)")
    for _ in range(3):
        bound.tick()
    found = [sorted(bound.db.execute(f"SELECT * FROM v AS OF {t}").rows) for t in (10, 20, 30)]
    assert found == [[], [(2,)], [(1,), (2,), (3,)]]


def test_upsert_means_the_last_record_that_is_bound(bound):
    bound.create(
        columns="(id BIGINT PRIMARY KEY, x TEXT)", rest="KEY FORMAT JSON VALUE FORMAT JSON "
        "ENVELOPE UPSERT",
    )  # fmt: skip
    for n in range(4):
        bound.kafka.produce(bound.topic, 0, Record(b'{"x": "%d"}' % n, b'{"id": 7}'))
    bound.bind((10, 0, 1), (20, 0, 3), (30, 0, 4), (31, 0, 4))
    bound.tick()
    found = [bound.db.execute(f"SELECT x FROM s AS OF {t}").rows for t in (9, 10, 20, 30)]
    assert found == [[], [("0",)], [("2",)], [("3",)]]


REFUSED = {
    "no such relation": ("RECLOCK USING nothing", 'relation "nothing" does not exist'),
    "a view": ("RECLOCK USING w", '"w" cannot supply bindings: it keeps no rows'),
    "a system relation": ("RECLOCK USING reclock.bindings", "cannot supply bindings"),
    "no such column": ("RECLOCK USING u", 'column "partition" does not fit'),
    "another type": ("RECLOCK USING x", 'column "offset" does not fit'),
    "an interval": (
        "RECLOCK USING b WITH (timestamp_interval = '1s')",
        'RECLOCK USING is not for the option "timestamp_interval"',
    ),
    "records with times": (
        "ENVELOPE MATERIALIZE RECLOCK USING b",
        "RECLOCK USING is not for ENVELOPE MATERIALIZE",
    ),
    "epoch_ms_timeline = false": (
        "RECLOCK USING b WITH (epoch_ms_timeline = false)",
        "unsupported epoch_ms_timeline value",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_leaves_nothing_behind(bound, what):
    clause, message = REFUSED[what]
    bound.db.execute("CREATE VIEW w AS SELECT * FROM b")
    bound.db.execute("CREATE TABLE u (timestamp BIGINT, offset BIGINT)")
    bound.db.execute("CREATE TABLE x (timestamp BIGINT, partition INT, offset TEXT)")
    before = bound.db.execute("SHOW OBJECTS").rows
    with pytest.raises(Error) as caught:
        bound.db.execute(
            f"CREATE SOURCE s (id BIGINT) FROM KAFKA BROKER 'b:1' TOPIC '{bound.topic}' "
            f"FORMAT JSON {clause}"
        )
    assert message in caught.value.message
    assert caught.value.hint
    assert bound.db.execute("SHOW OBJECTS").rows == before


def test_a_relation_that_binds_a_source_goes_with_it_only(bound):
    bound.create()
    with pytest.raises(Error, match="other objects depend on it"):
        bound.db.execute("DROP TABLE b")
    bound.crash()
    with pytest.raises(Error, match="other objects depend on it"):
        bound.db.execute("DROP TABLE b")
    bound.db.execute("DROP TABLE b CASCADE")
    assert bound.db.execute("SHOW OBJECTS").rows == []


POINTS = [
    "ingest.read.after", "ingest.bind.before", "tick.compute.before", "tick.publish.before",
    "tick.publish.after", "durable.commit.before", "durable.commit.after",
]  # fmt: skip


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("point", POINTS)
def test_a_tick_that_fails_anywhere_publishes_once(bound, point, dies):
    bound.create()
    bound.db.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM s")
    bound.send(0, 1, 2, 3)
    bound.bind((10, 0, 2), (20, 0, 3), (30, 0, 3))
    bound.db.execute("SELECT * FROM b")  # so that the tick that fails is that of the source
    with armed({point: "raise"}), suppress(FailpointRaised):
        bound.tick(0)
    if dies:
        bound.crash()
    bound.tick()
    bound.tick()
    assert [bound.ids(f"AS OF {t}") for t in (9, 10, 20)] == [[], [1, 2], [1, 2, 3]]
    assert bound.db.execute("SELECT n FROM n").rows == [(3,)]
    assert bound.db.check() == []


def test_in_the_background_it_moves_by_itself(bound):
    bound.create()
    bound.opener.crash(bound.db)
    bound.db = bound.opener(background=True)
    bound.db.execute("ALTER SYSTEM SET timestamp_interval = '20ms'")
    bound.send(0, 1, 2)
    bound.bind((10, 0, 1), (20, 0, 2), (30, 0, 2))
    deadline = monotonic() + 30
    while bound.upper() != 30 or bound.ids() != [1, 2]:  # the oracle follows
        assert monotonic() < deadline
        sleep(0.01)


STEP = st.one_of(
    st.tuples(st.just("send"), st.integers(0, 1), st.integers(1, 3)),
    st.tuples(st.just("bind"), st.integers(1, 3), st.tuples(*[st.integers(0, 2)] * 2)),
    st.sampled_from([("tick",), ("tick",), ("crash",), ("forget",)]),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(STEP, min_size=3, max_size=14), engine=st.sampled_from([ModelEngine, TaskModel])
)
def test_it_equals_the_definition_at_every_time(make_opener, steps, engine):
    """reclocked(t) has every record whose position is not at or beyond R(t), and no other."""
    made = make_opener()
    made.engine = engine
    bound = Bound(made)
    bound.create()
    sent = {0: [], 1: []}
    rows: list[tuple[int, int, int]] = []
    time, offsets = 0, [0, 0]
    for step in [*steps, ("tick",), ("crash",), ("tick",)]:
        match step:
            case ("send", partition, count):
                made = [partition * 100 + len(sent[partition]) + n for n in range(count)]
                bound.send(partition, *made)
                sent[partition] += made
            case ("bind", later, moves):
                time += later
                offsets = [a + b for a, b in zip(offsets, moves, strict=True)]
                rows += [(time, p, o) for p, o in enumerate(offsets)]
                bound.bind(*rows[-2:])
            case ("forget",):
                bound.db.execute(f"DELETE FROM b WHERE timestamp < {bound.upper() or 0}")
            case ("crash",):
                bound.crash()
            case _:
                bound.tick()

    def at(t: int) -> dict[int, int]:
        return {p: max((o for s, q, o in rows if q == p and s <= t), default=0) for p in sent}

    lacking = [t for t, p, o in rows if o > len(sent[p])]
    upper = min([time, *lacking])
    if upper == 0:
        with pytest.raises(Unreadable):
            bound.ids()
        return
    assert bound.upper() == upper
    for t in range(upper):
        wanted = sorted(i for p, to in at(t).items() for i in sent[p][:to])
        assert bound.ids(f"AS OF {t}") == wanted, t
    bound.opener.crash(bound.db)
