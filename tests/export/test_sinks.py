"""Sinks through SQL: every change once, whole times in order, through crashes and failures."""

from __future__ import annotations

import json
import threading

import pytest

from reclock.connectors.kafka.cluster import Span
from reclock.errors import Error
from reclock.sinks.consistency import frontier_record
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.testing.kafka_producer import ABORTABLE, FATAL, REFUSED, RETRIABLE
from reclock.testing.kafka_upstream import Record
from reclock.time.frontier import at


class Pipe:
    """A table, a view of it, and a sink of that, over a broker in memory."""

    def __init__(self, opener):
        self.opener = opener
        self.kafka = opener.kafka
        self.db = opener()
        self.db.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
        self.db.execute("CREATE MATERIALIZED VIEW m AS SELECT k, v FROM t WHERE v > 0")

    def sink(self, rest="KEY (k) FORMAT JSON ENVELOPE UPSERT", options="reuse_topic = true"):
        self.db.execute(
            f"CREATE SINK s FROM m INTO KAFKA BROKER 'b:1' TOPIC 'out' {rest} WITH ({options})"
        )

    def tick(self, ms=1_000):
        self.opener.clock.advance(ms)
        self.db.tick()

    def crash(self):
        self.db = self.opener.reopened(self.db)

    def rows(self, query):
        return sorted(self.db.execute(query).rows)

    def messages(self, topic="out", partition=0):
        cluster = self.kafka.cluster("read_committed")
        high = cluster.watermarks(topic, [partition])[partition].high
        found = []
        for batch in cluster.fetch(topic, [Span(partition, 0, high)], ["key", "headers"]):
            for row in batch.to_pylist():
                time = {h["key"]: h["value"] for h in row["headers"] or ()}
                found.append(
                    (
                        int(time.get("reclock-timestamp", b"0")),
                        row["key"] and json.loads(row["key"]),
                        row["value"] and json.loads(row["value"]),
                    )
                )
        return found

    def contents(self):
        """What a reader of the topic has at the end."""
        held = {}
        for _, key, value in self.messages():
            held[key["k"]] = value
        return sorted((v["k"], v["v"]) for v in held.values() if v is not None)

    def check(self):
        """The log holds exactly the changes of the view, once and in order."""
        times = [time for time, _, _ in self.messages()]
        assert times == sorted(times)
        assert self.contents() == self.rows("SELECT * FROM m")
        seen = [(time, key["k"]) for time, key, _ in self.messages()]
        assert len(seen) == len(set(seen)), "a key twice at one time"


@pytest.fixture
def pipe(opener):
    return Pipe(opener)


def test_a_sink_begins_with_a_snapshot_and_follows(pipe):
    pipe.db.execute("INSERT INTO t VALUES (1, 10), (2, 20), (3, -1)")
    pipe.sink()
    pipe.tick()
    assert pipe.contents() == [(1, 10), (2, 20)]
    pipe.db.execute("UPDATE t SET v = 11 WHERE k = 1")
    pipe.db.execute("DELETE FROM t WHERE k = 2")
    pipe.tick()
    pipe.check()
    last = pipe.messages()[-2:]
    assert (None in [value for _, _, value in last]) is True
    assert pipe.rows("SELECT sink, state, messages, in_flight FROM reclock.sink_status") == [
        ("s", "running", 4, 0)
    ]


def test_without_a_snapshot_only_changes_are_written(pipe):
    pipe.db.execute("INSERT INTO t VALUES (1, 10)")
    pipe.sink(options="reuse_topic = true, snapshot = false")
    pipe.tick()
    assert pipe.messages() == []
    pipe.db.execute("INSERT INTO t VALUES (2, 20)")
    pipe.tick()
    assert [value for _, _, value in pipe.messages()] == [{"k": 2, "v": 20}]


def test_debezium_pairs_what_happened_at_one_time(pipe):
    pipe.sink("KEY (k) FORMAT JSON ENVELOPE DEBEZIUM")
    pipe.db.execute("INSERT INTO t VALUES (1, 10)")
    pipe.tick()
    pipe.db.execute("UPDATE t SET v = 11 WHERE k = 1")
    pipe.tick()
    pipe.db.execute("DELETE FROM t WHERE k = 1")
    pipe.tick()
    one, two = {"k": 1, "v": 10}, {"k": 1, "v": 11}
    assert [value for _, _, value in pipe.messages()] == [
        {"before": None, "after": one},
        {"before": one, "after": two},
        {"before": two, "after": None},
    ]


def test_the_consistency_topic_has_times_and_a_frontier(pipe):
    pipe.sink()
    pipe.db.execute("INSERT INTO t VALUES (1, 10)")
    pipe.tick()
    records = [(key, value) for _, key, value in pipe.messages("out-consistency")]
    ends = [value for key, value in records if key.get("status") == "END"]
    assert [end["event_count"] for end in ends] == [1]
    frontiers = [value["frontier"][0] for key, value in records if "sink" in key]
    assert frontiers == sorted(frontiers)
    assert frontiers[-1] == pipe.rows("SELECT frontier FROM reclock.sink_status")[0][0]


POINTS = [
    "sink.begin.before", "sink.produce.after", "sink.progress.before", "sink.commit.before",
    "sink.commit.after", "sink.hold.before", "tick.publish.before", "tick.publish.after",
    "durable.commit.before", "durable.commit.after",
]  # fmt: skip


@pytest.mark.parametrize("window", ["1ms", "1s"])
@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("point", POINTS)
def test_nothing_is_lost_or_written_twice(pipe, point, restart, window):
    pipe.db.execute(f"ALTER SYSTEM SET logical_compaction_window = '{window}'")
    pipe.db.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
    pipe.sink()
    pipe.tick()
    pipe.db.execute("UPDATE t SET v = v + 1")
    pipe.db.execute("INSERT INTO t VALUES (3, 30)")
    pipe.opener.clock.advance(1_000)
    with armed({point: "raise"}):
        try:
            pipe.db.tick()
        except FailpointRaised:
            assert not point.startswith("sink"), "a sink that fails holds nobody up"
    if restart:
        pipe.crash()
    for n in range(4):
        pipe.db.execute(f"INSERT INTO t VALUES ({10 + n}, 1)")
        pipe.tick()
    pipe.check()
    assert pipe.db.check() == []


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("error", [RETRIABLE, ABORTABLE, FATAL])
@pytest.mark.parametrize("step", ["init", "begin", "produce", "commit"])
def test_failures_of_the_broker_are_survived(pipe, step, error, done):
    if (step, error, done) == ("commit", ABORTABLE, True):
        done = False  # an error that asks for an abort says that nothing is committed
    pipe.sink()
    pipe.db.execute("INSERT INTO t VALUES (1, 10)")
    pipe.opener.outlets.faults.fail(step, error, done=done)
    pipe.tick()
    pipe.db.execute("UPDATE t SET v = 11")
    for _ in range(3):
        pipe.tick()
    pipe.check()


def test_a_refused_sink_stops_and_says_what_to_do(pipe):
    pipe.sink()
    pipe.db.execute("INSERT INTO t VALUES (1, 10)")
    pipe.opener.outlets.faults.fail("commit", REFUSED)
    pipe.tick()
    ((state, detail),) = pipe.rows("SELECT state, detail FROM reclock.sink_status")
    assert state == "failed"
    assert detail
    assert pipe.rows("SELECT * FROM m") == [(1, 10)]


def test_a_zombie_is_fenced_and_stops(pipe):
    pipe.sink()
    pipe.db.execute("INSERT INTO t VALUES (1, 10)")
    pipe.tick()
    exporter = next(iter(pipe.db._core.exporters._exporters.values()))
    other = exporter._outlet.open().fence()
    pipe.db.execute("INSERT INTO t VALUES (2, 20)")
    pipe.tick()
    ((state, detail),) = pipe.rows("SELECT state, detail FROM reclock.sink_status")
    assert state == "failed"
    assert detail
    assert other.progress() is not None


def status(pipe):
    columns = "state, detail, retries, last_error"
    (row,) = pipe.rows(f"SELECT {columns} FROM reclock.sink_status")
    return dict(zip(columns.split(", "), row, strict=True))


def test_who_does_not_own_the_state_any_more_bars_nobody(pipe):
    pipe.sink()
    pipe.db.execute("INSERT INTO t VALUES (1, 10)")
    pipe.tick()
    exporter = next(iter(pipe.db._core.exporters._exporters.values()))
    pipe.opener.outlets.faults.fail("commit", FATAL)
    pipe.db.execute("INSERT INTO t VALUES (2, 20)")
    pipe.tick()
    assert status(pipe)["state"] == "stalled"
    (pipe.opener.path / "lock").unlink()
    owner = exporter._outlet.open().fence()
    pipe.tick()
    found = status(pipe)
    assert found["state"] == "failed"
    assert "is gone" in found["detail"]
    assert "hint: stop this process" in found["detail"]
    owner.send([], [frontier_record(exporter._outlet.target.sink, at(10**9), {})])


def test_progress_that_somebody_deleted_is_not_missed(pipe):
    pipe.sink()
    for n in range(4):
        pipe.db.execute(f"INSERT INTO t VALUES ({n}, 1)")
        pipe.tick()
    (end,) = pipe.kafka.cluster("read_uncommitted").watermarks("out-consistency", [0]).values()
    pipe.kafka.truncate("out-consistency", 0, end.high)
    pipe.crash()
    for n in range(4, 8):
        pipe.db.execute(f"INSERT INTO t VALUES ({n}, 1)")
        pipe.tick()
    pipe.check()
    assert len(pipe.messages()) == 8
    pipe.crash()
    pipe.tick()
    assert status(pipe)["state"] == "running"
    pipe.kafka.recreate_topic("out-consistency", 1)
    pipe.crash()
    pipe.tick()
    found = status(pipe)
    assert found["state"] == "failed"
    assert "is less than it wrote" in found["detail"]
    assert len(pipe.messages()) == 8


def test_what_went_wrong_is_told_also_when_it_is_over(pipe):
    pipe.sink()
    pipe.tick()
    assert status(pipe) == {"state": "running", "detail": None, "retries": 0, "last_error": None}
    pipe.kafka.running = False
    pipe.db.execute("INSERT INTO t VALUES (9, 1)")
    for _ in range(3):
        pipe.tick()
    found = status(pipe)
    assert (found["state"], found["retries"]) == ("stalled", 3)
    pipe.kafka.running = True
    pipe.tick()
    after = status(pipe)
    assert (after["state"], after["detail"], after["retries"]) == ("running", None, 3)
    assert after["last_error"] == found["last_error"]


def test_what_is_not_written_is_kept_over_a_restart_whatever_the_window(pipe):
    pipe.db.execute("ALTER SYSTEM SET logical_compaction_window = '1ms'")
    pipe.sink()
    pipe.tick()
    pipe.kafka.running = False
    for n in range(5):
        pipe.db.execute(f"INSERT INTO t VALUES ({n}, 1)")
        pipe.db.execute(f"UPDATE t SET v = v + 1 WHERE k = {n}")
        pipe.tick()
    pipe.crash()
    for _ in range(3):
        pipe.tick()
    pipe.kafka.running = True
    pipe.tick()
    pipe.check()
    times = {time for time, _, _ in pipe.messages()}
    assert len(times) == 10, "every change at its own time"


def test_an_idle_sink_writes_little_and_lets_history_go(pipe):
    pipe.db.execute("ALTER SYSTEM SET logical_compaction_window = '1s'")
    pipe.sink()
    for _ in range(40):
        pipe.tick()
    assert len(pipe.messages("out-consistency")) < 10
    ((since,),) = pipe.rows("SELECT since FROM reclock.frontiers WHERE object = 'm'")
    assert since > pipe.opener.clock.now_ms() - 15_000


def test_a_sink_waits_for_an_error_to_go(pipe):
    pipe.db.execute("CREATE MATERIALIZED VIEW e AS SELECT k, 10 / v AS v FROM t")
    pipe.db.execute(
        "CREATE SINK x FROM e INTO KAFKA BROKER 'b' TOPIC 'err' KEY (k) NOT ENFORCED "
        "FORMAT JSON ENVELOPE UPSERT WITH (reuse_topic = true)"
    )
    pipe.db.execute("INSERT INTO t VALUES (1, 5)")
    pipe.tick()
    pipe.db.execute("INSERT INTO t VALUES (2, 0)")
    pipe.tick()
    pipe.db.execute("INSERT INTO t VALUES (3, 2)")
    pipe.tick()
    assert pipe.rows("SELECT state FROM reclock.sink_status") == [("stalled",)]
    assert [value for _, _, value in pipe.messages("err")] == [{"k": 1, "v": 2}]
    pipe.db.execute("DELETE FROM t WHERE k = 2")
    pipe.tick()
    assert pipe.rows("SELECT state FROM reclock.sink_status") == [("running",)]
    assert [value for _, _, value in pipe.messages("err")] == [{"k": 1, "v": 2}, {"k": 3, "v": 5}]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE SINK s FROM m INTO KAFKA BROKER 'b' TOPIC 'o' FORMAT JSON ENVELOPE UPSERT",
         "42P17"),
        ("CREATE SINK s FROM m INTO KAFKA BROKER 'b' TOPIC 'o' KEY (v) FORMAT JSON ENVELOPE UPSERT",
         "42P17"),
        ("CREATE SINK s FROM m INTO KAFKA BROKER 'b' TOPIC 'o' KEY (z) FORMAT JSON ENVELOPE UPSERT",
         "42703"),
        ("CREATE SINK s FROM nope INTO KAFKA BROKER 'b' TOPIC 'o' KEY (k) FORMAT JSON "
         "ENVELOPE UPSERT", "42P01"),
        ("CREATE SINK m FROM m INTO KAFKA BROKER 'b' TOPIC 'o' KEY (k) FORMAT JSON ENVELOPE UPSERT",
         "42P07"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_and_leaves_nothing(pipe, statement, code):
    before = pipe.rows("SELECT name FROM reclock.objects")
    with pytest.raises(Error) as caught:
        pipe.db.execute(statement)
    assert caught.value.code == code
    assert pipe.rows("SELECT name FROM reclock.objects") == before


def test_a_topic_that_somebody_else_wrote_is_refused(pipe):
    pipe.sink()
    pipe.db.execute("INSERT INTO t VALUES (1, 10)")
    pipe.tick()
    pipe.db.execute("DROP SINK s")
    with pytest.raises(Error) as caught:
        pipe.sink()
    assert caught.value.code == "55000"
    assert pipe.rows("SHOW SINKS") == []
    before = pipe.messages()
    pipe.sink("KEY (k) FORMAT JSON ENVELOPE UPSERT ON ORPHAN USE NONCE")
    pipe.tick()
    sink = next(i for i in pipe.db._core.world.catalog.items.values() if i.kind == "sink")
    own = sink.facts["topic"]
    assert own.startswith("out-u")
    assert [value for _, _, value in pipe.messages(own)] == [{"k": 1, "v": 10}]
    assert pipe.messages() == before


def test_dropping_a_sink_lets_its_history_go(pipe):
    pipe.sink()
    pipe.kafka.running = False
    for _ in range(5):
        pipe.tick(10_000)
    assert ("m", "sink/u3") in [row[:2] for row in pipe.rows("SELECT * FROM reclock.holds")]
    with pytest.raises(Error):
        pipe.db.execute("DROP MATERIALIZED VIEW m")
    pipe.db.execute("DROP SINK s")
    assert pipe.rows("SELECT * FROM reclock.holds") == []


@pytest.fixture
def asked(pipe, monkeypatch):
    """Have others do something while the broker is asked."""
    outlets, admin = pipe.opener.outlets, pipe.opener.outlets.admin

    def during(*statements):
        left = [*statements]

        def run():
            while left:
                pipe.db.session().execute(left.pop(0))
            pipe.opener.clock.advance(1_000)
            pipe.db.tick()

        def asking(connection):
            other = threading.Thread(target=run, daemon=True)
            other.start()
            other.join(60)
            assert not other.is_alive(), "a tick waits for the broker"
            return admin(connection)

        monkeypatch.setattr(outlets, "admin", asking)

    return during


@pytest.mark.parametrize("rest", ["KEY (k) FORMAT JSON ENVELOPE UPSERT",
                                  "FORMAT JSON ENVELOPE DEBEZIUM"])  # fmt: skip
def test_ticks_go_on_while_the_broker_of_a_new_sink_is_asked(pipe, asked, rest):
    pipe.db.execute("INSERT INTO t VALUES (1, 10)")
    asked("INSERT INTO t VALUES (2, 20)", "CREATE TABLE other (a INT)")
    pipe.sink(rest)
    pipe.tick()
    values = [value for _, _, value in pipe.messages()]
    rows = [value.get("after", value) for value in values]
    assert sorted(row["k"] for row in rows) == [1, 2]
    assert pipe.db.check() == []


def test_what_a_new_sink_is_made_of_may_go_meanwhile(pipe, asked):
    pipe.db.execute("CREATE TABLE u (k BIGINT PRIMARY KEY, v BIGINT)")
    sql = "CREATE SINK s2 FROM u INTO KAFKA BROKER 'b:1' TOPIC 'two' KEY (k) FORMAT JSON "
    asked("DROP TABLE u", "CREATE TABLE u (k BIGINT PRIMARY KEY, v BIGINT)")
    with pytest.raises(Error, match="was recreated meanwhile"):
        pipe.db.execute(sql + "ENVELOPE UPSERT")
    asked("DROP TABLE u")
    with pytest.raises(Error, match="does not exist"):
        pipe.db.execute(sql + "ENVELOPE UPSERT")
    assert pipe.rows("SELECT sink FROM reclock.sink_status") == []
    assert pipe.rows("SELECT object FROM reclock.holds") == []


def test_a_sink_of_what_has_no_complete_time_waits_for_the_first(bench):
    topic = bench.kafka.create_topic(1)
    bench.run(
        f"CREATE SOURCE cdc (a BIGINT) FROM KAFKA BROKER 'b:1' TOPIC '{topic}' FORMAT JSON "
        "ENVELOPE MATERIALIZE WITH (timeline = 'shop')",
        "CREATE MATERIALIZED VIEW v AS SELECT a FROM cdc",
        "CREATE SINK s FROM v INTO KAFKA BROKER 'b:1' TOPIC 'out' FORMAT JSON "
        "ENVELOPE DEBEZIUM WITH (reuse_topic = true)",
    )
    bench.tick()
    bench.crash()
    bench.tick()
    assert (bench.status(), bench.messages()) == ("running", [])
    said = [
        b'{"array": [{"data": {"a": 0}, "time": 0, "diff": 1}, {"data": {"a": 2}, "time": 2, '
        b'"diff": 1}]}',
        b'{"progress": {"lower": [0], "upper": [4], "counts": [{"time": 0, "count": 1}, '
        b'{"time": 2, "count": 1}]}}',
    ]
    bench.kafka.produce(topic, 0, *map(Record, said))
    bench.tick(2)
    written = [(m.time, m.value) for m in bench.messages()]
    assert written == [
        (0, b'{"before":null,"after":{"a":0}}'),
        (2, b'{"before":null,"after":{"a":2}}'),
    ]
    assert bench.status("frontier") == 4
    assert bench.db.execute("SELECT a FROM v AS OF 0").rows == [(0,)]


def test_a_sink_of_a_view_over_sources_that_bring_their_times(bench):
    topics = [bench.kafka.create_topic(1) for _ in range(2)]
    for name, topic in zip("ab", topics, strict=True):
        bench.run(
            f"CREATE SOURCE {name} (x BIGINT) FROM KAFKA BROKER 'b:1' TOPIC '{topic}' FORMAT JSON "
            "ENVELOPE MATERIALIZE WITH (timeline = 'shop')"
        )

    def say(lower, upper):
        for topic in topics:
            progress = {"lower": [lower], "upper": [upper], "counts": [{"time": lower, "count": 1}]}
            update = {"data": {"x": lower}, "time": lower, "diff": 1}
            said = ({"progress": progress}, {"array": [update]})
            bench.kafka.produce(topic, 0, *(Record(json.dumps(m).encode()) for m in said))
        bench.tick(3)

    say(0, 3)
    bench.run(
        "CREATE MATERIALIZED VIEW v AS SELECT x FROM a UNION ALL SELECT x FROM b",
        "CREATE SINK s FROM v INTO KAFKA BROKER 'b:1' TOPIC 'out' FORMAT JSON "
        "ENVELOPE DEBEZIUM WITH (reuse_topic = true)",
    )
    bench.tick()
    bench.crash()
    say(3, 5)
    assert (bench.status(), bench.status("detail"), bench.status("frontier")) == (
        "running",
        None,
        5,
    )
    rows = {time: b'{"before":null,"after":{"x":%d}}' % x for time, x in ((2, 0), (3, 3))}
    assert [(m.time, m.value) for m in bench.messages()] == [
        (time, value) for time, value in rows.items() for _ in "ab"
    ]
