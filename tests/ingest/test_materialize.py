"""ENVELOPE MATERIALIZE through SQL: the sender's times, in any order, through restarts."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from contextlib import suppress

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.task_engine import LoopEngine
from model.cdcv2_codec import encode
from model.cdcv2_reader import Reader
from reclock.catalog.item import Sink
from reclock.engine.place import segments_of
from reclock.errors import Error, StatementTimeout, TimelineMismatch, Unreadable
from reclock.ingest import cdcv2_intake as stated
from reclock.testing.failpoints import FailpointRaised, armed
from strategies.changes import multiset_logs
from strategies.statements import deliveries

DATA = st.fixed_dictionaries(
    {"id": st.none() | st.integers(0, 2), "x": st.none() | st.sampled_from("ab")}
)
COLUMNS = "(id BIGINT, x TEXT)"
KEPT = "RETAIN HISTORY FOR '1 h'"


def updates(*rows):
    made = [{"data": {"id": i, "x": x}, "time": t, "diff": d} for i, x, t, d in rows]
    return {"array": made}


def progress(lower, upper, *counts):
    made = [{"time": t, "count": n} for t, n in counts]
    end = [] if upper is None else [upper]
    return {"progress": {"lower": [lower], "upper": end, "counts": made}}


def test_a_time_is_there_when_all_of_it_is(feed):
    feed.create()
    with pytest.raises(Unreadable, match="not complete"):
        feed.rows("SELECT * FROM cdc")
    feed.send(updates((1, "a", 3, 1)), progress(0, 5, (3, 2)))
    feed.tick()
    assert feed.rows("SELECT * FROM cdc") == []
    assert feed.db.execute("SELECT * FROM cdc").timestamp == 2
    feed.send(updates((2, "b", 3, 1)), partition=1)
    assert feed.tick() == {"External(cdc)": 5}
    answer = feed.db.execute("SELECT id, x FROM cdc ORDER BY id")
    assert (answer.rows, answer.timestamp) == ([(1, "a"), (2, "b")], 4)
    assert feed.rows("SELECT * FROM cdc AS OF 2") == []


VIEWS = {"v": "SELECT id, x FROM cdc", "n": "SELECT count(*) AS n FROM cdc"}


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("engine", ["model", "jobs"])
def test_time_0_alone_can_be_read(opener, make_feed, early, dies, engine):
    if engine == "jobs":
        opener.engine = lambda: LoopEngine(segments_of(opener.path))
    feed = make_feed(opener)

    def make():
        for name, query in VIEWS.items():
            feed.db.execute(f"CREATE MATERIALIZED VIEW {name} WITH ({KEPT}) AS {query}")
        feed.db.execute(
            "CREATE SINK k FROM v INTO KAFKA BROKER 'b:1' TOPIC 'out' FORMAT JSON "
            "ENVELOPE MATERIALIZE WITH (reuse_topic = true)"
        )

    def again():
        if dies:
            feed.crash()

    feed.create()
    if early:
        make()
        assert feed.db.check() == []  # what a job has written describes no time either
        again()
    with pytest.raises(Unreadable, match="not complete"):
        feed.rows("SELECT * FROM cdc AS OF 0")
    feed.send(updates((1, "a", 0, 1)), progress(0, 1, (0, 1)))
    assert feed.tick()["External(cdc)"] == 1
    again()
    if not early:
        make()
    answer = feed.db.execute("SELECT * FROM cdc")
    assert (answer.rows, answer.timestamp) == ([(1, "a")], 0)
    assert feed.rows("SELECT * FROM v AS OF 0") == [(1, "a")]
    assert feed.rows("SELECT * FROM n") == [(1,)]
    assert feed.status() == (("starting" if dies and early else "running"), None)
    with feed.db.subscribe("SUBSCRIBE cdc WITH (PROGRESS)") as cdc:
        first = cdc.fetch(timeout=0)
        assert [(u.timestamp, u.diff, u.row) for u in first if u.row] == [(0, 1, (1, "a"))]
    with feed.db.subscribe("SUBSCRIBE n") as n:
        assert [(u.timestamp, u.diff, u.row) for u in n.fetch(timeout=0)] == [(0, 1, (1,))]
        feed.send(updates((2, "b", 2, 1)), progress(1, 3, (2, 1)))
        assert feed.tick()["External(cdc)"] == 3
        moved = sorted((u.timestamp, u.diff, u.row) for u in n.fetch(timeout=0))
        assert moved == [(2, -1, (1,)), (2, 1, (2,))]
    again()
    feed.tick()
    for time, rows in enumerate([[(1, "a")], [(1, "a")], [(1, "a"), (2, "b")]]):
        for name in ("cdc", "v"):
            assert feed.rows(f"SELECT * FROM {name} AS OF {time}") == rows
        assert feed.rows(f"SELECT * FROM n AS OF {time}") == [(len(rows),)]
    feed.create("back", topic="out")
    for _ in range(4):
        feed.tick(1_000)
    assert feed.rows("SELECT * FROM back") == [(1, "a"), (2, "b")]
    assert feed.rows("SELECT * FROM back AS OF 0") == [(1, "a")]
    assert feed.db.check() == []


def test_repetitions_and_later_times_change_nothing(feed):
    feed.create()
    feed.send(updates((1, "a", 3, 1)), updates((1, "a", 3, 1)), updates((1, "a", 9, -1)))
    feed.send(progress(0, 4, (3, 1)), progress(2, 4, (3, 1)), partition=1)
    feed.tick()
    assert feed.rows("SELECT * FROM cdc") == [(1, "a")]
    feed.send(updates((1, "a", 3, 1)), progress(0, 4, (3, 1)))
    feed.tick()
    assert feed.rows("SELECT * FROM cdc") == [(1, "a")]
    feed.crash()
    feed.send(progress(4, 10, (9, 1)))
    feed.tick()
    assert feed.rows("SELECT * FROM cdc") == []


@pytest.mark.placed
def test_it_goes_on_where_it_was_and_what_waits_is_durable(feed):
    feed.create()
    feed.db.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM cdc")
    feed.send(updates((1, "a", 3, 1), (2, "b", 7, 1)), progress(0, 5, (3, 1)))
    feed.tick()
    query = "SELECT records FROM reclock.arrangement_sizes WHERE operator = 'temp'"
    assert feed.rows(query) == [(3,)]  # one waits; one time that is complete, and from when on
    feed.crash()
    read = feed.status("rows")
    feed.send(progress(5, 8, (7, 1)))
    feed.tick()
    assert feed.rows("SELECT * FROM cdc") == [(1, "a"), (2, "b")]
    assert feed.rows("SELECT n FROM n AS OF 6") == [(1,)]
    assert feed.rows("SELECT n FROM n") == [(2,)]
    assert (read, feed.status("rows")) == ((0,), (1,))  # nothing was read again
    assert feed.db.check() == []


def test_the_end_is_the_end(feed):
    feed.create()
    feed.send(updates((1, "a", 3, 1)), progress(0, None, (3, 1)))
    feed.tick()
    assert feed.rows("SELECT upper FROM reclock.frontiers") == [(None,)]
    assert feed.status("state") == ("complete",)
    for _ in range(2):
        feed.send(updates((1, "a", 9, 1)))
        feed.tick()
        assert feed.rows("SELECT * FROM cdc AS OF 1000") == [(1, "a")]
        feed.crash()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("epoch_ms_timeline = false", "unsupported epoch_ms_timeline value"),
        (
            "epoch_ms_timeline = true, timeline = 'x'",
            "unexpected parameters for CREATE SOURCE: epoch_ms_timeline",
        ),
        ("timeline = 'mz_epoch_ms'", 'unacceptable timeline name "mz_epoch_ms"'),
        (
            "timestamp_interval = '1s'",
            'option "timestamp_interval" is not for ENVELOPE MATERIALIZE',
        ),
        ("on_error = 'inline'", "on_error = 'inline' is for records that are rows"),
    ],
)
def test_what_is_refused(feed, options, message):
    with pytest.raises(Error) as caught:
        feed.create(options=options)
    assert caught.value.message.startswith(message)
    assert feed.rows("SELECT * FROM reclock.objects") == []


def test_epoch_ms_timeline_is_for_sources_that_bring_their_times(feed):
    with pytest.raises(Error) as caught:
        feed.db.execute(
            f"CREATE SOURCE s {COLUMNS} FROM KAFKA BROKER 'b:1' TOPIC '{feed.topic}' FORMAT JSON "
            "WITH (epoch_ms_timeline = true)"
        )
    message = "unexpected parameters for CREATE SOURCE: epoch_ms_timeline"
    assert caught.value.message == message


def test_it_meets_itself_and_nobody_else(feed):
    other = feed.kafka.create_topic(1)
    feed.create()
    feed.create("other", topic=other)
    feed.db.execute("CREATE TABLE t (id BIGINT)")
    for topic in (feed.topic, other):
        feed.send(updates((1, "a", 3, 1)), progress(0, 5, (3, 1)), topic=topic)
    feed.tick()
    assert feed.rows("SELECT a.id FROM cdc a JOIN cdc b ON a.id = b.id") == [(1,)]
    for name in ("other", "t"):
        with pytest.raises(TimelineMismatch):
            feed.rows(f"SELECT * FROM cdc, {name}")


def test_a_name_brings_kinds_together(feed):
    feed.create(options=f"timeline = 'x', {KEPT}")
    feed.db.execute(f"CREATE TABLE t (id BIGINT) WITH (timeline = 'x', {KEPT})")
    feed.send(updates((1, "a", 3, 1)), progress(0, 1_000, (3, 1)))
    feed.tick()
    written = feed.db.execute("INSERT INTO t VALUES (1), (2)").timestamp
    assert written == 1_000  # the times of tables follow those of the source
    query = "SELECT t.id, x FROM t LEFT JOIN cdc ON t.id = cdc.id"
    with pytest.raises(Unreadable) as caught:
        feed.rows(query)
    assert "cdc (upper 1000, 1 behind)" in caught.value.detail
    assert feed.rows("SELECT * FROM t") == [(1,), (2,)]  # who does not touch it does not wait
    feed.db.execute("SET transaction_isolation = 'serializable'")
    assert feed.rows(query) == []
    feed.db.execute("SET transaction_isolation = 'strict serializable'")
    feed.send(progress(1_000, 1_002))
    feed.tick()
    assert feed.rows(query) == [(1, "a"), (2, None)]


def test_a_message_that_does_not_decode_is_an_error_of_a_time(feed):
    feed.create()
    feed.send(b'{"array": [{"data": {"id": 1}, "time": 3, "diff": 0}]}', b"garbage")
    feed.send(updates((1, "a", 3, 1)), progress(0, 5, (3, 1)))
    feed.tick()
    assert feed.status("errors") == (2,)
    with pytest.raises(Error) as caught:
        feed.rows("SELECT * FROM cdc")
    assert "offset" in caught.value.message


def test_contradictions_end_the_source_and_nobody_else(feed):
    feed.create()
    feed.db.execute("CREATE TABLE t (id BIGINT)")
    feed.send(updates((1, "a", 3, 1)), progress(0, 4, (3, 1)))
    feed.tick()
    feed.send(updates((1, "a", 5, 1), (2, "a", 5, 1)), progress(4, 6, (5, 1)))
    for _ in range(2):
        feed.tick(1_000)
        assert feed.status("state") == ("failed",)
        assert feed.rows("SELECT * FROM cdc AS OF 3") == [(1, "a")]
        with pytest.raises(Error, match="contradicts itself"):
            feed.rows("SELECT * FROM cdc")
        assert feed.rows("SELECT * FROM t") == []
        assert feed.db.check() == []
        feed.crash()


def test_lines_of_a_file(feed, tmp_path):
    path = tmp_path / "changes.json"
    lines = [progress(0, 5, (3, 1)), updates((1, "a", 3, 1))]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    feed.db.execute(
        f"CREATE SOURCE cdc {COLUMNS} FROM FILE '{path}' FORMAT JSON ENVELOPE MATERIALIZE"
    )
    feed.tick()
    assert feed.rows("SELECT * FROM cdc") == [(1, "a")]
    with path.open("a") as file:
        file.write(json.dumps(updates((1, "a", 6, -1))) + "\n")
        file.write(json.dumps(progress(5, 7, (6, 1))) + "\n")
    feed.crash()
    feed.tick()
    assert feed.rows("SELECT * FROM cdc") == []


def test_blocks_of_avro_files(feed, tmp_path):
    row = {"type": "record", "name": "row", "fields": [
        {"name": "id", "type": "long"}, {"name": "x", "type": ["null", "string"]}]}  # fmt: skip
    pair = [{"name": "time", "type": "long"}, {"name": "count", "type": "long"}]
    times = {"type": "array", "items": "long"}
    schema = {"type": "record", "name": "statement", "fields": [
        {"name": "array", "default": None, "type": ["null", {"type": "array", "items": {
            "type": "record", "name": "update", "fields": [
                {"name": "data", "type": row}, pair[0], {"name": "diff", "type": "long"}]}}]},
        {"name": "progress", "default": None, "type": ["null", {
            "type": "record", "name": "progress", "fields": [
                {"name": "lower", "type": times}, {"name": "upper", "type": times},
                {"name": "counts", "type": {"type": "array", "items": {
                    "type": "record", "name": "counted", "fields": pair}}}]}]},
    ]}  # fmt: skip
    path = tmp_path / "changes.avro"
    with path.open("w+b") as file:
        fastavro.writer(file, schema, [progress(0, 5, (3, 1)), updates((1, "a", 3, 1))])
    clause = f"AVRO USING SCHEMA '{json.dumps(schema)}'"
    feed.db.execute(
        f"CREATE SOURCE cdc {COLUMNS} FROM FILE '{path}' FORMAT {clause} ENVELOPE MATERIALIZE"
    )
    feed.tick()
    assert feed.rows("SELECT * FROM cdc") == [(1, "a")]
    with path.open("a+b") as file:  # blocks of their own
        fastavro.writer(file, schema, [updates((1, "a", 6, -1), (2, "\n", 6, 1))])
        fastavro.writer(file, schema, [progress(5, 7, (6, 2))])
    feed.crash()
    feed.tick()
    assert feed.rows("SELECT * FROM cdc") == [(2, "\n")]
    with pytest.raises(Error, match="schema registry"):
        feed.db.execute(
            f"CREATE SOURCE other {COLUMNS} FROM FILE '{path}' FORMAT AVRO "
            "USING CONFLUENT SCHEMA REGISTRY 'http://x' ENVELOPE MATERIALIZE"
        )


def collected(log, time):
    rows = Counter()
    for data, at, diff in log:
        if at <= time:
            rows[data["id"], data["x"]] += diff
    return sorted(rows.elements(), key=repr)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(
    deliveries(multiset_logs(DATA, max_size=8)),
    st.lists(st.sampled_from(["tick", "crash", "send"]), max_size=14),
    st.data(),
)
def test_any_delivery_is_the_collection_at_every_time(
    make_opener, make_feed, delivery, actions, data
):
    feed = make_feed(make_opener())
    feed.create()
    query = "SELECT id, count(*) AS n FROM cdc GROUP BY id"
    feed.db.execute(f"CREATE MATERIALIZED VIEW n WITH ({KEPT}) AS {query}")
    waiting = list(delivery.messages)
    reader = Reader()
    for action in [*actions, *["send"] * len(waiting), "tick"]:
        if action == "send" and waiting:
            message = waiting.pop(0)
            reader.receive(message)
            feed.send(encode(message).encode(), partition=data.draw(st.integers(0, 1)))
        elif action == "crash":
            feed.crash()
        elif action == "tick":
            feed.tick()
            (upper,) = feed.db.execute(
                "SELECT upper FROM reclock.frontiers WHERE object = 'cdc'"
            ).rows[0]
            stated = None if reader.upper.is_closed else int(reader.upper.element())
            assert upper == stated
            for time in range(12 if upper is None else upper):
                rows = collected(delivery.collection, time)
                assert feed.rows(f"SELECT * FROM cdc AS OF {time}") == rows
                counts = Counter(id_ for id_, _ in rows)
                assert feed.rows(f"SELECT * FROM n AS OF {time}") == sorted(
                    counts.items(), key=repr
                )
    assert feed.db.check() == []


NOW = 1_763_280_000_000
HOUR = 3_600_000
UNITS = {
    "seconds": (NOW // 1_000, "timestamps look like seconds"),
    "microseconds": (NOW * 1_000, "timestamps look like microseconds"),
    "nanoseconds": (NOW * 1_000_000, "timestamps look like nanoseconds"),
    "a zone ahead": (NOW + 2 * HOUR, "another time zone: 2:00:00 ahead"),
    "a zone behind": (NOW - 5 * HOUR, "another time zone: 5:00:00 behind"),
    "hours behind": (NOW - 3 * HOUR - 777_777, "is 3.2 hours behind the clock"),
    "far ahead": (NOW + 1_000 * HOUR, "is 41.7 days ahead of the clock"),
    "days behind": (NOW - 100 * HOUR, "is 4.2 days behind the clock"),
}


@pytest.fixture
def wall(feed):
    feed.opener.clock.set(NOW)
    feed.create(options="epoch_ms_timeline = true")
    feed.db.execute("CREATE TABLE t (id BIGINT)")
    return feed


@pytest.mark.parametrize("unit", UNITS)
def test_a_source_in_the_wrong_units_holds_up_nobody(wall, unit):
    time, suspicion = UNITS[unit]
    wall.send(updates((1, "a", time, 1)), progress(0, time + 1, (time, 1)))
    for n in range(3):
        wall.tick(1_000)
        now = NOW + 1_000 * (n + 1)
        written = wall.db.execute(f"INSERT INTO t VALUES ({n})").timestamp
        answer = wall.db.execute("SELECT count(*) FROM t")
        assert answer.rows == [(n + 1,)]
        assert written <= now + 10
        assert written <= answer.timestamp <= now + 10
        (read_ts, write_ts) = wall.db.execute(
            "SELECT read_ts, write_ts FROM reclock.timelines"
        ).rows[0]
        assert max(read_ts, write_ts) <= now + 10
        if time < NOW:
            with pytest.raises(Unreadable) as caught:
                wall.rows("SELECT * FROM cdc")
            assert f"cdc (upper {time + 1}, " in caught.value.detail
            assert "behind" in caught.value.detail
        else:  # that it says nothing of now is known, and its row is not of now
            assert wall.rows("SELECT * FROM cdc") == []
        assert suspicion in wall.status("detail")[0]
        if n == 1:
            wall.crash()
    wall.db.execute("SET transaction_isolation = 'serializable'")
    if time < NOW:
        assert wall.rows("SELECT * FROM cdc") == [(1, "a")]
        assert wall.db.execute("SELECT * FROM cdc").timestamp == time
    assert wall.db.check() == []


def test_rows_a_little_ahead_are_there_when_their_time_is(wall):
    wall.db.execute("INSERT INTO t VALUES (1)")
    wall.send(updates((1, "a", NOW + 3_000, 1)), progress(0, NOW + 9_000, (NOW + 3_000, 1)))
    wall.tick()
    query = "SELECT t.id, x FROM t JOIN cdc ON t.id = cdc.id"
    assert wall.rows(query) == []
    wall.tick(3_000)
    assert wall.rows(query) == [(1, "a")]
    assert wall.status() == ("running", None)


def test_rows_too_far_ahead_wait_and_come(wall):
    time = NOW + 60_000
    wall.send(updates((1, "a", time, 1)), progress(0, time + 1, (time, 1)))
    wall.tick()
    state, detail = wall.status()
    assert state == "waiting"
    assert "too far ahead of the clock; 1 updates wait" in detail
    wall.tick(60_000)
    assert wall.rows("SELECT * FROM cdc") == [(1, "a")]
    assert wall.status() == ("running", None)


def test_what_a_source_waits_for_is_said(feed):
    feed.create()
    feed.tick()
    assert feed.status() == ("running", None)
    feed.send(updates((1, "a", 3, 1)), progress(0, 5, (3, 2)))
    feed.tick()
    assert feed.status() == ("waiting", "time 3 lacks 1 of 2 updates; 1 updates wait")


@pytest.mark.placed
def test_more_than_fits_stalls_the_source_says_so_and_stops_nobody(feed, monkeypatch):
    monkeypatch.setattr(stated, "MOST_BYTES", 20_000)
    feed.create()
    feed.db.execute("CREATE TABLE t (id BIGINT)")
    feed.send(progress(0, 5, (3, 1_000)))
    feed.tick()
    for n in range(8):
        feed.send(updates(*((100 * n + i, "x", 3, 1) for i in range(100))))
        feed.tick(1_000)
        feed.db.execute(f"INSERT INTO t VALUES ({n})")
    state, detail = feed.status()
    assert state == "stalled"
    assert detail.startswith("time 3 lacks ")
    assert "nothing is read until these are fewer" in detail
    assert feed.status("rows")[0] < 801  # the rest waits upstream
    assert len(feed.rows("SELECT * FROM t")) == 8
    monkeypatch.undo()  # a larger machine
    feed.crash()
    feed.send(updates(*((1_000 + i, "x", 3, 1) for i in range(200))))
    feed.tick()
    assert len(feed.rows("SELECT * FROM cdc")) == 1_000
    assert feed.status() == ("running", None)


def test_a_strict_read_of_a_source_that_lags_gives_up_and_names_it(opener, make_feed):
    opener.clock.set(NOW)
    feed = make_feed(opener)
    feed.create(options="epoch_ms_timeline = true")
    feed.send(updates((1, "a", NOW - HOUR, 1)), progress(0, NOW - HOUR + 1, (NOW - HOUR, 1)))
    feed.tick(1_000)
    opener.crash(feed.db)
    feed.db = opener(background=True)
    feed.db.execute("CREATE TABLE t (id BIGINT)")
    feed.db.execute("INSERT INTO t VALUES (1)")
    feed.db.execute("SET statement_timeout = '300ms'")
    with pytest.raises(StatementTimeout) as caught:
        feed.rows("SELECT * FROM cdc")
    assert f"cdc (upper {NOW - HOUR + 1}, " in caught.value.detail
    assert " behind) to pass " in caught.value.detail
    assert feed.rows("SELECT * FROM t") == [(1,)]
    feed.db.execute("SET transaction_isolation = 'serializable'")
    assert feed.rows("SELECT * FROM cdc") == [(1, "a")]


def test_a_source_that_is_made_anew_is_not_held_to_the_times_of_the_last(feed):
    feed.create()
    feed.send(updates((1, "a", 9_000_000, 1)), progress(0, 9_000_001, (9_000_000, 1)))
    feed.tick()
    assert feed.db.execute("SELECT * FROM cdc").timestamp == 9_000_000
    feed.db.execute("DROP SOURCE cdc")
    mended = feed.kafka.create_topic(1)
    feed.create(topic=mended)
    feed.send(updates((1, "a", 9, 1)), progress(0, 10, (9, 1)), topic=mended)
    for _ in range(2):
        feed.tick()
        answer = feed.db.execute("SELECT * FROM cdc")
        assert (answer.rows, answer.timestamp) == ([(1, "a")], 9)
        feed.crash()


def test_what_a_sink_wrote_comes_back_as_it_was(feed):
    """The round trip of a relation through ENVELOPE MATERIALIZE is the identity at every time."""
    feed.opener.clock.set(NOW)
    feed.db.execute(f"CREATE TABLE t {COLUMNS} WITH ({KEPT})")
    feed.db.execute("INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, NULL)")
    feed.tick(1_000)
    feed.db.execute(
        "CREATE SINK k FROM t INTO KAFKA BROKER 'b:1' TOPIC 'out' FORMAT JSON ENVELOPE MATERIALIZE "
        "WITH (reuse_topic = true)"
    )
    begun = int(feed.tick(1_000)["EpochMilliseconds"]) - 1
    for statement in (
        "INSERT INTO t VALUES (3, 'c')",
        "DELETE FROM t WHERE id = 1",
        "UPDATE t SET x = 'd' WHERE id = 2",
    ):
        feed.db.execute(statement)
        feed.tick(1_000)
    feed.create("back", f"epoch_ms_timeline = true, {KEPT}", topic="out")
    feed.tick()
    (upper,) = feed.db.execute("SELECT upper FROM reclock.frontiers WHERE object = 'back'").rows[0]
    assert upper > begun + 2_000
    for time in range(begun, upper, 250):
        rows = feed.rows(f"SELECT * FROM t AS OF {time}")
        assert feed.rows(f"SELECT * FROM back AS OF {time}") == rows, time


POINTS = [
    "ingest.read.after", "ingest.bind.before", "tick.compute.before", "tick.publish.before",
    "tick.publish.after", "durable.commit.before", "durable.commit.after",
]  # fmt: skip


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("point", POINTS)
def test_a_tick_that_fails_anywhere_publishes_once(feed, point, dies):
    feed.create()
    feed.db.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM cdc")

    for done, lower in enumerate((0, 10, 20)):
        feed.send(updates((lower, "a", lower + 3, 1), (lower, "b", lower + 13, 1)))
        counts = [(lower + 3, 2 if lower else 1)]
        with armed({point: "raise"}), suppress(FailpointRaised):
            feed.tick()
        if dies:
            feed.crash()
        feed.send(progress(lower, lower + 10, *counts), partition=1)
        with armed({point: "raise"}), suppress(FailpointRaised):
            feed.tick()
        if dies:
            feed.crash()
        feed.tick()
        assert feed.rows("SELECT n FROM n") == [(2 * done + 1,)]
    assert feed.rows("SELECT id, x FROM cdc AS OF 12") == [(0, "a")]
    assert feed.rows("SELECT id, x FROM cdc AS OF 13") == [(0, "a"), (0, "b"), (10, "a")]
    assert feed.db.check() == []


@pytest.mark.kafka
def test_the_round_trip_through_a_real_broker_is_the_identity_at_every_time(real):
    """A sink and a source of CDCv2 that share nothing but a topic of three partitions."""
    db = real.open()
    topic = f"cdc-{uuid.uuid4().hex[:8]}"
    where = f"KAFKA BROKER '{real.kafka.address}' TOPIC '{topic}' FORMAT JSON ENVELOPE MATERIALIZE"
    db.execute(f"CREATE TABLE t {COLUMNS} WITH ({KEPT})")
    db.execute("INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, NULL)")
    db.execute(f"CREATE SINK k FROM t INTO {where} WITH (reuse_topic = true, partitions = 3)")
    begun = int(db._core.world.catalog.of_kind(Sink)[0].as_of)
    for statement in (
        "INSERT INTO t VALUES (3, 'c'), (4, 'd')",
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO t VALUES (1, 'e')",
    ):
        db.execute(statement)
        real.tick(db)
    db = real.reopened(db)
    db.execute(f"CREATE SOURCE back {COLUMNS} FROM {where} WITH (epoch_ms_timeline = true, {KEPT})")
    query = "SELECT upper FROM reclock.frontiers WHERE object = '{}'"

    def caught_up():
        real.tick(db)
        return (db.execute(query.format("back")).rows[0][0] or 0) > begun + 2_000

    real.eventually(caught_up)
    upper = db.execute(query.format("back")).rows[0][0]
    logs = [real.change_log(db, name, begun, upper) for name in ("t", "back")]
    assert logs[0] == logs[1]
    assert sum(logs[0].values()) == 4
