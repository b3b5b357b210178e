"""Sources through SQL: records come in, get times, survive restarts, and fail out loud."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from socket import socket

import pytest

from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.connectors.kafka.client import KafkaCluster
from reclock.errors import Corrupt, Error, SourceUnavailable
from reclock.session import definition as define
from reclock.session.database import Database
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.testing.kafka_upstream import Record
from reclock.time.position import KafkaPosition
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Timestamp


class Feed:
    """A database over a broker in memory, and a topic."""

    def __init__(self, opener, partitions=2):
        self.opener = opener
        self.kafka = opener.kafka
        self.topic = self.kafka.create_topic(partitions)
        self.db = opener()

    def create(self, name="s", columns="(id BIGINT, x TEXT)", rest="FORMAT JSON", topic=None):
        self.db.execute(
            f"CREATE SOURCE {name} {columns} FROM KAFKA BROKER 'b:1' "
            f"TOPIC '{topic or self.topic}' {rest}"
        )

    def send(self, *values, partition=0, topic=None):
        records = [Record(*_pair(value)) for value in values]
        self.kafka.produce(topic or self.topic, partition, *records)

    def tick(self, ms=1_000):
        self.opener.clock.advance(ms)
        return self.db.tick()

    def rows(self, query):
        return sorted(self.db.execute(query).rows, key=repr)

    def code(self, query):
        with pytest.raises(Error) as caught:
            self.db.execute(query)
        return caught.value.code

    def crash(self):
        self.db = self.opener.reopened(self.db)


def _pair(value):
    key = None
    if isinstance(value, tuple):
        key, value = value
    return _bytes(value), _bytes(key)


def _bytes(value):
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


@pytest.fixture
def feed(opener):
    return Feed(opener)


STATUS = "SELECT state, rows, errors, upstream, bound, lag_ms FROM reclock.source_status"


def test_records_become_rows_at_the_next_tick(feed):
    feed.create()
    feed.send({"id": 1, "x": "a"}, {"id": 2})
    feed.send({"id": 3, "x": "é", "more": 1}, partition=1)
    assert feed.rows("SELECT * FROM s") == []
    feed.tick()
    assert feed.rows("SELECT * FROM s") == [(1, "a"), (2, None), (3, "é")]
    assert feed.rows(STATUS) == [("running", 3, 0, 3, 3, 0)]


def test_included_columns_follow_the_declared_ones(feed):
    feed.create(rest="KEY FORMAT TEXT VALUE FORMAT JSON INCLUDE KEY, PARTITION AS p, OFFSET")
    feed.kafka.produce(feed.topic, 1, Record(b'{"id": 1}', b"k"), Record(b'{"id": 2}'))
    feed.tick()
    assert feed.rows("SELECT * FROM s") == [(1, None, "k", 1, 0), (2, None, None, 1, 1)]
    assert list(feed.db.execute("SELECT * FROM s").columns) == [
        "id",
        "x",
        "key",
        "p",
        "offset",
    ]


def test_two_views_agree_at_every_time_also_one_made_after_a_restart(feed):
    feed.create()
    feed.db.execute("CREATE MATERIALIZED VIEW a AS SELECT * FROM s")
    for n in range(4):
        feed.send({"id": n}, {"id": n}, partition=n % 2)
        feed.tick()
        if n == 1:
            feed.db.execute("CREATE MATERIALIZED VIEW b AS SELECT * FROM s")
    feed.crash()
    feed.db.execute("CREATE MATERIALIZED VIEW c AS SELECT * FROM s")
    feed.tick()
    upper = feed.rows("SELECT upper FROM reclock.frontiers WHERE object = 'c'")[0][0]
    since = max(r[0] for r in feed.rows("SELECT since FROM reclock.frontiers"))
    for at in range(since, upper, 250):
        for one, other in (("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("s", "c")):
            query = f"SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other} AS OF {at}"
            assert feed.rows(query) == [], (one, other, at)


def test_bindings_are_the_same_after_a_crash(feed):
    feed.create()
    for n in range(3):
        feed.send({"id": n})
        feed.tick()
    before = feed.rows("SELECT * FROM reclock.bindings")
    past = [r[1] for r in before]
    seen = {t: feed.rows(f"SELECT * FROM s AS OF {t}") for t in past if t}
    feed.send({"id": 9})
    feed.crash()
    assert feed.rows("SELECT * FROM reclock.bindings") == before
    feed.tick()
    after = feed.rows("SELECT * FROM reclock.bindings")
    assert [row for row in after if row in before] == before
    assert {t: feed.rows(f"SELECT * FROM s AS OF {t}") for t in seen} == seen
    assert (9, None) in feed.rows("SELECT * FROM s")


@pytest.mark.parametrize(
    "point",
    ["ingest.bind.before", "tick.compute.before", "tick.publish.before", "tick.publish.after",
     "durable.commit.before", "durable.commit.after"],
)  # fmt: skip
@pytest.mark.parametrize("restart", [True, False])
def test_nothing_is_lost_or_doubled_by_a_tick_that_fails(feed, point, restart):
    feed.create()
    feed.db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) FROM s")
    feed.send({"id": 1}, {"id": 2})
    feed.tick()
    feed.send({"id": 3}, partition=1)
    feed.opener.clock.advance(1_000)
    with armed({point: "raise"}), pytest.raises(FailpointRaised):
        feed.db.tick()
    if restart:
        feed.crash()
    feed.tick()
    feed.tick()
    assert feed.rows("SELECT id FROM s") == [(1,), (2,), (3,)]
    assert feed.rows("SELECT * FROM v") == [(3,)]
    assert feed.db.check() == []


def test_reading_that_fails_is_tried_again_and_shown(feed):
    feed.create()
    feed.send({"id": 1})
    feed.kafka.running = False
    feed.tick()
    feed.tick()
    (row,) = feed.rows("SELECT state, rows, detail FROM reclock.source_status")
    assert row[:2] == ("stalled", 0)
    assert row[2]
    feed.kafka.running = True
    feed.tick()
    assert feed.rows("SELECT id FROM s") == [(1,)]
    assert feed.rows("SELECT state FROM reclock.source_status") == [("running",)]


def test_a_source_that_stands_still_holds_nobody_up(feed):
    other = feed.kafka.create_topic(1)
    feed.create()
    feed.create("o", topic=other)
    feed.db.execute("CREATE TABLE t (n INT)")
    feed.kafka.delete_topic(feed.topic)
    feed.send({"id": 5}, topic=other)
    feed.db.execute("INSERT INTO t VALUES (1)")
    feed.tick()
    assert feed.rows("SELECT o.id, n FROM o, t") == [(5, 1)]


@pytest.mark.parametrize("damage", ["delete", "recreate", "truncate", "lose"])
def test_a_lasting_failure_is_told_and_stays(feed, damage):
    feed.create()
    feed.db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) FROM s")
    feed.send({"id": 1}, {"id": 2})
    feed.tick()
    match damage:
        case "delete":
            feed.kafka.delete_topic(feed.topic)
        case "recreate":
            feed.kafka.recreate_topic(feed.topic, 2)
        case "truncate":
            feed.send({"id": 3}, {"id": 4})
            feed.kafka.truncate(feed.topic, 0, 3)
        case "lose":
            feed.kafka.recreate_topic(feed.topic, 1)
    feed.tick()
    for _ in range(2):
        for relation in ("s", "v"):
            with pytest.raises(Error) as caught:
                feed.db.execute(f"SELECT * FROM {relation}")
            assert caught.value.code == "55000"
            assert 'source "s"' in caught.value.message
        assert feed.rows("SELECT state FROM reclock.source_status") == [("failed",)]
        assert ("s", "55000") in feed.rows("SELECT object, code FROM reclock.errors")
        feed.crash()
        feed.tick()
    bound = feed.rows("SELECT \"offset\" FROM reclock.bindings WHERE partition = '0'")
    assert max(bound) == (2,), "nothing may be bound after it failed"
    feed.db.execute("DROP SOURCE s CASCADE")
    assert feed.rows("SELECT * FROM reclock.bindings") == []


@pytest.mark.parametrize("point", ["tick.publish.after", "durable.commit.after"])
def test_a_lasting_failure_is_told_once_though_its_tick_was_not(feed, point):
    feed.create()
    feed.send({"id": 1})
    feed.tick()
    feed.kafka.delete_topic(feed.topic)
    feed.opener.clock.advance(1_000)
    with armed({point: "raise"}), pytest.raises(FailpointRaised):
        feed.db.tick()
    feed.tick()
    feed.tick()
    ((detail,),) = feed.rows("SELECT detail FROM reclock.errors")
    assert "drop the source" in detail
    assert "rows" not in detail
    assert feed.db.check() == []


def test_what_was_read_before_a_lasting_failure_is_bound_before_it(feed):
    feed.create(rest="FORMAT JSON WITH (timestamp_interval = '5s')")
    feed.opener.clock.set(10_100)
    feed.send({"id": 1})
    feed.tick(0)
    feed.kafka.delete_topic(feed.topic)
    for _ in range(10):
        feed.tick()
    assert feed.code("SELECT * FROM s") == "55000"
    assert feed.rows('SELECT max("offset") FROM reclock.bindings') == [(1,)]


def test_new_partitions_are_read(feed):
    feed.create()
    feed.send({"id": 1})
    feed.tick()
    feed.kafka.add_partitions(feed.topic, 3)
    feed.send({"id": 2}, partition=2)
    feed.tick()
    assert feed.rows("SELECT id FROM s") == [(1,), (2,)]
    feed.crash()
    feed.send({"id": 3}, partition=2)
    feed.tick()
    assert feed.rows("SELECT id FROM s") == [(1,), (2,), (3,)]


def test_gaps_of_transactions_and_compaction_are_normal(feed):
    feed.create()
    aborted, committed = feed.kafka.begin(), feed.kafka.begin()
    aborted.produce(feed.topic, 0, Record(b'{"id": 1}'))
    committed.produce(feed.topic, 0, Record(b'{"id": 2}'))
    feed.tick()
    assert feed.rows("SELECT id FROM s") == []
    aborted.abort()
    committed.commit()
    feed.tick()
    assert feed.rows("SELECT id FROM s") == [(2,)]
    assert feed.rows("SELECT state FROM reclock.source_status") == [("running",)]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("start_offset = 'latest'", [(3,)]),
        ("start_offset = '1,0'", [(2,), (3,)]),
        ("start_offset = 'earliest'", [(1,), (2,), (3,)]),
    ],
)
def test_where_a_source_starts_is_fixed_when_it_is_created(feed, option, expected):
    feed.send({"id": 1}, {"id": 2})
    feed.create(rest=f"FORMAT JSON WITH ({option})")
    feed.send({"id": 3})
    feed.crash()
    feed.tick()
    assert feed.rows("SELECT id FROM s") == expected


# -- records that do not decode ----------------------------------------------------------------


BAD = [b"nope", b'{"id": "x"}', b"[1]", b"\xff", None, b'{"id": 99999999999999999999}']


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_record_is_reported_where_it_is_read(feed, bad):
    feed.create(columns="(id BIGINT NOT NULL, x TEXT)")
    feed.send({"id": 1}, bad, {"id": 2})
    feed.tick()
    with pytest.raises(Error) as caught:
        feed.db.execute("SELECT * FROM s")
    assert 'source "s", partition 0, offset 1' in caught.value.message
    assert caught.value.hint
    ((name, message),) = feed.rows("SELECT object, message FROM reclock.errors")
    assert name == "s"
    assert "offset 1" in message
    assert feed.rows("SELECT errors, rows FROM reclock.source_status") == [(1, 3)]


def test_inline_shows_a_bad_record_as_a_row(feed):
    feed.create(
        columns="(id BIGINT NOT NULL, x TEXT)", rest="FORMAT JSON WITH (on_error = 'inline')"
    )
    feed.send({"id": 1}, b"nope", None)
    feed.tick()
    rows = feed.rows("SELECT * FROM s")
    assert [row[0] for row in rows] == [1, None, None]
    assert "offset 1" in rows[1][2]
    assert "no value" in rows[2][2]
    assert feed.rows("SELECT count(*) FROM s WHERE id IS NULL") == [(2,)]
    assert feed.rows("SELECT * FROM reclock.errors") == []


def test_stop_ends_the_source_before_the_bad_record(feed):
    other = feed.kafka.create_topic(1)
    feed.create(rest="FORMAT JSON WITH (on_error = 'stop')")
    feed.create("o", topic=other)
    feed.send({"id": 1})
    feed.tick()
    feed.send(b"nope")
    feed.send({"id": 7}, topic=other)
    feed.tick()
    assert feed.code("SELECT * FROM s") == "22P02"
    assert feed.rows("SELECT id FROM o") == [(7,)]
    feed.crash()
    feed.tick()
    assert feed.code("SELECT * FROM s") == "22P02"


def test_bindings_that_nobody_published_are_found(feed):
    feed.create()
    feed.send({"id": 1})
    feed.tick()
    assert feed.db.check() == []
    core = feed.db._core
    ((source, bound),) = core.world[EPOCH_MS].bindings.items()
    later = bound.remap.bound(Timestamp(9_000), KafkaPosition.frontier({0: 5, 1: 0}))
    bindings = {source: replace(bound, remap=later)}
    core._world = core.world.with_states([replace(core.world[EPOCH_MS], bindings=bindings)])
    found = [finding.message for finding in feed.db.check()]
    assert found[0] == "the bindings in memory are not those that are stored"
    assert "bound before {9001}" in found[1]


# -- upsert ------------------------------------------------------------------------------------


def upsert(feed, columns="(id BIGINT PRIMARY KEY, x TEXT)", rest="FORMAT JSON ENVELOPE UPSERT"):
    feed.create("u", columns, rest)


def test_upsert_keeps_the_last_value_of_each_key(feed):
    upsert(feed)
    feed.send((1, {"x": "a"}), ({"id": 2}, {"x": "b"}), (1, {"x": "c"}))
    feed.tick()
    assert feed.rows("SELECT * FROM u") == [(1, "c"), (2, "b")]
    feed.send((1, None), (3, None), (2, {"x": "b"}))
    feed.tick()
    assert feed.rows("SELECT * FROM u") == [(2, "b")]


def test_the_snapshot_of_an_upsert_source_appears_at_one_time(feed, monkeypatch):
    monkeypatch.setattr("reclock.ingest.intake.PULL_ROWS", 2)
    for n in range(20):
        feed.send((n % 5, {"x": str(n)}), partition=n % 2)
    upsert(feed, rest="FORMAT JSON ENVELOPE UPSERT WITH (max_rows_per_tick = 3)")
    feed.tick()
    bound = {row[1] for row in feed.rows("SELECT * FROM reclock.bindings") if row[3]}
    assert len(bound) == 1
    assert len(feed.rows("SELECT * FROM u")) == 5


def test_a_snapshot_that_is_read_in_pieces_appears_at_one_time(feed, monkeypatch):
    monkeypatch.setattr("reclock.ingest.intake.PULL_ROWS", 2)
    feed.send(*((n, {"x": str(n)}) for n in range(7)))
    upsert(feed, rest="FORMAT JSON ENVELOPE UPSERT WITH (max_rows_per_tick = 2)")
    (intake,) = feed.db._core.intakes._intakes.values()
    while intake.pull():
        feed.opener.clock.advance(1_000)
        assert not intake.is_ready or intake.frontier == intake.upstream
    feed.tick()
    assert len({row[1] for row in feed.rows("SELECT * FROM reclock.bindings") if row[3]}) == 1
    assert len(feed.rows("SELECT * FROM u")) == 7


def test_a_text_key_may_be_bare(feed):
    upsert(feed, "(k TEXT PRIMARY KEY, n INT)")
    feed.send((b"plain", {"n": 1}), (b'"quoted"', {"n": 2}), (b'{"k": "object"}', {"n": 3}))
    feed.tick()
    assert feed.rows("SELECT * FROM u") == [("object", 3), ("plain", 1), ("quoted", 2)]


def test_a_bad_value_of_a_key_is_mended_by_the_next(feed):
    upsert(feed)
    feed.send((1, b"nope"))
    feed.tick()
    assert feed.code("SELECT * FROM u") == "22P04"
    feed.crash()
    feed.send((1, {"x": "good"}))
    feed.tick()
    assert feed.rows("SELECT * FROM u") == [(1, "good")]


def test_a_record_without_a_key_is_an_error_that_stays(feed):
    upsert(feed)
    feed.send((None, {"x": "a"}), (1, {"x": "b"}))
    feed.tick()
    assert feed.code("SELECT * FROM u") == "23502"
    feed.send((1, {"x": "c"}))
    feed.tick()
    assert feed.code("SELECT * FROM u") == "23502"


# -- debezium ----------------------------------------------------------------------------------


def change(op, before=None, after=None, **source):
    return {"op": op, "before": before, "after": after, "source": source}


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("columns", ["(id BIGINT PRIMARY KEY, x TEXT)", "(id BIGINT, x TEXT)"])
def test_debezium_follows_a_table(feed, columns, wrapped):
    feed.create("d", columns, "FORMAT JSON ENVELOPE DEBEZIUM")
    one, two, three = {"id": 1, "x": "a"}, {"id": 2, "x": "b"}, {"id": 2, "x": "c"}
    changes = [
        change("r", after=one),
        change("c", after=two, file="f", pos=1, row=0),
        change("u", before=two, after=three, file="f", pos=2, row=0),
        change("d", before=one, file="f", pos=3, row=0),
        change("c", after=two, file="f", pos=1, row=0),
        change("u", before=two, after=three, file="f", pos=2, row=0),
    ]
    for each in changes:
        feed.send({"schema": {}, "payload": each} if wrapped else each)
    feed.send(None)
    feed.tick()
    assert feed.rows("SELECT * FROM d") == [(2, "c")]


def test_debezium_without_a_key_needs_the_row_before(feed):
    feed.create("d", rest="FORMAT JSON ENVELOPE DEBEZIUM")
    feed.send(change("u", after={"id": 1, "x": "a"}))
    feed.tick()
    with pytest.raises(Error) as caught:
        feed.db.execute("SELECT * FROM d")
    assert "PRIMARY KEY" in caught.value.message or "PRIMARY KEY" in str(caught.value.hint)


# -- generators, files -------------------------------------------------------------------------


def test_a_generator_moves_with_the_ticks_and_replays(feed):
    feed.db.execute("CREATE SOURCE n FROM LOAD GENERATOR COUNTER (EVENTS PER TICK 2)")
    feed.db.execute("CREATE SOURCE bids FROM LOAD GENERATOR AUCTION (SEED 7, EVENTS PER TICK 100)")
    for _ in range(3):
        feed.tick()
    assert feed.rows("SELECT * FROM n") == [(n,) for n in range(1, 7)]
    bids = feed.rows("SELECT * FROM bids")
    assert len(bids) == 3 * 92
    feed.crash()
    assert feed.rows("SELECT * FROM bids") == bids
    feed.tick()
    assert len(feed.rows("SELECT * FROM n")) == 8


def test_a_generator_in_a_timeline_of_its_own(feed):
    feed.db.execute("CREATE SOURCE n FROM LOAD GENERATOR COUNTER WITH (timeline = 'own')")
    feed.db.execute("CREATE MATERIALIZED VIEW c AS SELECT count(*) FROM n")
    feed.db.execute("CREATE TABLE t (a INT)")
    for _ in range(3):
        feed.db.tick()
    assert feed.rows("SELECT * FROM c") == [(3,)]
    assert feed.code("SELECT * FROM n, t") == "0A000"
    assert feed.code("CREATE MATERIALIZED VIEW m AS SELECT * FROM n, t") == "0A000"


def test_a_file_is_followed_line_by_line(feed, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("1,a\n2,b")
    feed.db.execute(f"CREATE SOURCE f (id BIGINT, x TEXT) FROM FILE '{path}' FORMAT CSV")
    feed.tick()
    assert feed.rows("SELECT * FROM f") == [(1, "a")]
    with path.open("a") as file:
        file.write("b\nx,y\n")
    feed.crash()
    feed.tick()
    assert feed.code("SELECT * FROM f") == "22P04"
    assert "file log.csv, offset 9" in feed.rows("SELECT message FROM reclock.errors")[0][0]
    path.write_text("")
    feed.tick()
    assert "55000" in {r[0] for r in feed.rows("SELECT code FROM reclock.errors")}


def test_new_files_of_a_directory_are_new_parts(feed, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1}\n')
    feed.db.execute(f"CREATE SOURCE f (id BIGINT) FROM DIRECTORY '{tmp_path}/in' FORMAT JSON")
    feed.tick()
    (tmp_path / "in" / "b.json").write_text('{"id": 2}\n')
    feed.tick()
    assert feed.rows("SELECT * FROM f") == [(1,), (2,)]
    assert feed.rows("SELECT DISTINCT partition FROM reclock.bindings") == [
        ("a.json",),
        ("b.json",),
    ]


# -- times -------------------------------------------------------------------------------------


def test_an_interval_of_its_own_is_a_grid_of_its_own(feed):
    feed.create(rest="FORMAT JSON WITH (timestamp_interval = '5s')")
    for n in range(12):
        feed.send({"id": n})
        feed.tick()
    times = {row[1] for row in feed.rows("SELECT * FROM reclock.bindings") if row[3]}
    assert times
    assert all(t % 5_000 == 0 for t in times)


def test_what_waits_for_a_late_tick_keeps_its_times(feed):
    feed.create()
    (intake,) = feed.db._core.intakes._intakes.values()
    for n in range(3):
        feed.opener.clock.set(10_500 + n * 1_000)
        feed.send({"id": n})
        assert intake.pull()
    feed.tick(7_000)
    times = [row[1] for row in feed.rows("SELECT * FROM reclock.bindings") if row[3]]
    assert sorted(times) == [11_000, 12_000, 13_000]
    assert feed.rows("SELECT * FROM s AS OF 12000") == [(0, None), (1, None)]


def test_a_grid_of_its_own_holds_for_what_comes_late(feed):
    feed.opener.clock.set(9_500)
    feed.create(rest="FORMAT JSON WITH (timestamp_interval = '5s')")
    feed.send({"id": 0})
    feed.tick(0)
    feed.send({"id": 1})
    for _ in range(10):
        feed.tick(700)
    times = [row[1] for row in feed.rows("SELECT * FROM reclock.bindings") if row[3]]
    assert sorted(times) == [10_000, 15_000]


def test_backlogs_are_taken_in_bounded_ticks(feed):
    feed.create(rest="FORMAT JSON WITH (max_rows_per_tick = 4)")
    feed.send(*({"id": n} for n in range(11)))
    sizes = []
    for _ in range(5):
        feed.tick()
        sizes.append(len(feed.rows("SELECT * FROM s")))
    assert sizes[-1] == 11
    assert all(later - earlier <= 4 for earlier, later in zip([0, *sizes], sizes, strict=False))


def test_bindings_are_folded_with_the_window(feed):
    feed.db.execute("ALTER SYSTEM SET logical_compaction_window = '1ms'")
    feed.create()
    for n in range(60):
        feed.send({"id": n})
        feed.tick()
    assert len(feed.rows("SELECT * FROM reclock.bindings")) <= 2 * 34
    feed.crash()
    feed.tick()
    assert feed.rows("SELECT count(*) FROM s") == [(60,)]


def test_in_the_background_threads_read_ahead(opener):
    feed = Feed.__new__(Feed)
    feed.opener, feed.kafka = opener, opener.kafka
    feed.topic = opener.kafka.create_topic(2)
    feed.db = opener(background=True)
    feed.db.execute("ALTER SYSTEM SET timestamp_interval = '20ms'")
    feed.create()
    feed.send({"id": 1}, {"id": 2})
    deadline = time.monotonic() + 20
    while feed.rows("SELECT id FROM s") != [(1,), (2,)]:
        opener.clock.advance(20)
        assert time.monotonic() < deadline
        time.sleep(0.01)


# -- definitions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE SOURCE s FROM KAFKA BROKER 'b' TOPIC 'none' FORMAT TEXT", "42P01"),
        ("CREATE SOURCE s (a INT) FROM KAFKA BROKER 'b' TOPIC '{t}'", "42601"),
        ("CREATE SOURCE s FROM KAFKA BROKER 'b' TOPIC '{t}' FORMAT JSON", "42601"),
        ("CREATE SOURCE s (a INT) FROM KAFKA BROKER 'b' TOPIC '{t}' FORMAT JSON ENVELOPE UPSERT",
         "42P16"),
        ("CREATE SOURCE s (a INT) FROM KAFKA BROKER 'b' TOPIC '{t}' FORMAT JSON INCLUDE OFFSET"
         " ENVELOPE DEBEZIUM", "42P16"),
        ("CREATE SOURCE s (a INT PRIMARY KEY, b INT) FROM KAFKA BROKER 'b' TOPIC '{t}' FORMAT JSON",
         "42P16"),
        ("CREATE SOURCE s (a INT) FROM KAFKA BROKER 'b' TOPIC '{t}' FORMAT JSON WITH (tail)",
         "42601"),
        ("CREATE SOURCE s (a INT) FROM KAFKA BROKER 'b' TOPIC '{t}' FORMAT JSON "
         "WITH (on_error = 'x')", "22023"),
        ("CREATE SOURCE s (a INT) FROM KAFKA BROKER 'b' TOPIC '{t}' FORMAT JSON "
         "WITH (kafka.group.id = 'x')", "22023"),
        ("CREATE SOURCE s (a INT) FROM KAFKA BROKER 'b' TOPIC '{t}' FORMAT JSON INCLUDE KEY AS a",
         "42701"),
        ("CREATE SOURCE s (a INT) FROM LOAD GENERATOR COUNTER", "42601"),
        ("CREATE SOURCE s FROM LOAD GENERATOR COUNTER (ACCOUNTS 3)", "22023"),
        ("CREATE SOURCE s (a INT) FROM FILE 'no/such/file' FORMAT CSV", "58P01"),
        ("CREATE SOURCE s (a INT, b INT) FROM KAFKA BROKER 'b' TOPIC '{t}' FORMAT TEXT", "42P17"),
        ("CREATE SOURCE s (a INT) FROM POSTGRES CONNECTION 'x' PUBLICATION 'y'", "42601"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_and_leaves_nothing(feed, statement, code):
    assert feed.code(statement.format(t=feed.topic)) == code
    assert feed.rows("SELECT * FROM reclock.objects") == []
    feed.crash()
    assert feed.rows("SHOW SOURCES") == []


def test_a_number_that_is_none_is_refused(feed):
    with pytest.raises(Error) as caught:
        feed.create(rest="FORMAT JSON WITH (max_rows_per_tick = '²')")
    assert caught.value.code == "22023"


def test_an_unreachable_broker_is_told_when_the_source_is_created(feed):
    feed.kafka.running = False
    with pytest.raises(SourceUnavailable):
        feed.create()
    assert feed.rows("SHOW SOURCES") == []


def test_a_wrong_broker_is_told_what_to_look_at(tmp_path):
    """CREATE SOURCE fails, and is not tried again: the hint does not say so."""
    with socket() as nobody, Database(
        tmp_path, ModelEngine(), clock=ManualClock(1_000), background=False,
        clusters=lambda connection: KafkaCluster(connection, 1.0),
    ) as db:  # fmt: skip
        nobody.bind(("127.0.0.1", 0))
        broker = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(SourceUnavailable, match=f"Kafka at {broker} does not answer") as caught:
            db.execute(
                f"CREATE SOURCE s (a INT) FROM KAFKA BROKER '{broker}' TOPIC 't' FORMAT JSON"
            )
        assert db.execute("SHOW SOURCES").rows == []
    said = "see that the address is right and that the broker runs; what exists already is tried "
    assert caught.value.hint == f"{said}again by itself"


def test_sources_are_not_written(feed):
    feed.create()
    for statement in ("INSERT INTO s VALUES (1, 'a')", "DELETE FROM s", "UPDATE s SET id = 1"):
        assert feed.code(statement) == "42809"


def test_if_not_exists_and_drop(feed):
    feed.create()
    feed.db.execute(
        "CREATE SOURCE IF NOT EXISTS s (a INT) FROM KAFKA BROKER 'b' TOPIC 'x' FORMAT CSV"
    )
    assert feed.code("DROP TABLE s") == "42809"
    feed.db.execute("CREATE INDEX i ON s (id)")
    feed.db.execute("DROP SOURCE s")
    assert feed.rows("SHOW SOURCES") == []
    feed.create()
    feed.send({"id": 1})
    feed.tick()
    assert feed.rows("SELECT id FROM s") == [(1,)]


def test_a_secret_is_shown_nowhere(feed, capfd, caplog):
    secret = "hunter2-and-more"
    feed.create(
        rest=f"FORMAT JSON WITH (kafka.sasl.password = '{secret}', kafka.sasl.username = 'me')"
    )
    feed.crash()
    feed.tick()
    queries = ["SHOW CREATE SOURCE s", "SELECT * FROM reclock.objects", "SHOW OBJECTS",
               "SELECT * FROM reclock.source_status", "EXPLAIN SELECT * FROM s"]  # fmt: skip
    shown = repr([feed.rows(query) for query in queries]) + repr(feed.db._core.world.catalog)
    shown += repr(feed.db._core.intakes.__dict__) + "".join(capfd.readouterr()) + caplog.text
    assert secret not in shown
    assert "me" in shown
    assert "***" in shown
    item = next(iter(feed.db._core.world.catalog.items.values()))
    assert dict(item.statement.options)["kafka.sasl.password"] == secret


def test_stop_keeps_what_came_before_the_bad_record(feed):
    feed.create(rest="FORMAT JSON WITH (on_error = 'stop')")
    feed.send({"id": 1}, {"id": 2}, b"nope", {"id": 3})
    feed.tick()
    assert feed.rows("SELECT id FROM s") == [(1,), (2,)]
    feed.tick()
    assert feed.code("SELECT id FROM s") == "22P02"
    assert max(feed.rows('SELECT "offset" FROM reclock.bindings')) == (2,)


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_a_pull_stages_no_more_than_a_tick_takes(feed, most):
    feed.create(rest=f"FORMAT JSON WITH (max_rows_per_tick = {most})")
    feed.send(*({"id": n} for n in range(10)))
    feed.send(*({"id": n} for n in range(10, 15)), partition=1)
    intake = next(iter(feed.db._core.intakes._intakes.values()))
    seen = 0
    for _ in range(20):
        feed.tick()
        assert intake._staging.rows <= 2 * most
        rows = len(feed.rows("SELECT id FROM s"))
        assert rows - seen <= most
        seen = rows
    assert feed.rows("SELECT id FROM s") == sorted(((n,) for n in range(15)), key=repr)


@pytest.mark.placed  # tasks stage files
def test_large_records_are_staged_by_their_size(feed, monkeypatch):
    monkeypatch.setattr("reclock.ingest.intake.PULL_BYTES", 2_000)
    monkeypatch.setattr("reclock.ingest.intake.STAGED_BYTES", 5_000)
    feed.create()
    feed.send(*({"id": n, "x": "y" * 1_000} for n in range(30)))
    intake = next(iter(feed.db._core.intakes._intakes.values()))
    while intake.pull():
        pass
    assert intake.is_full
    assert intake._staging.rows < 15
    for _ in range(8):
        feed.tick()
    assert feed.rows("SELECT count(*) FROM s") == [(30,)]


@pytest.mark.parametrize("password", ["{t}", "id", "source", "12", "", "it's", "\\n"])
@pytest.mark.parametrize("quoted", [True, False])
def test_a_password_may_be_any_text_of_the_statement(feed, password, quoted):
    password = password.format(t=feed.topic)
    text = "'" + password.replace("'", "''") + "'"
    if not quoted and password.isalnum():
        text = password
    user = f"kafka.sasl.username = '{feed.topic}'"
    feed.create(rest=f"FORMAT JSON WITH ({user}, kafka.sasl.password = {text}, delimiter = ';')")
    feed.send({"id": 1})
    feed.crash()
    feed.tick()
    assert feed.rows("SELECT id FROM s") == [(1,)]
    (item,) = feed.db._core.world.catalog.items.values()
    options = dict(item.statement.options)
    assert (options["kafka.sasl.username"], options["kafka.sasl.password"]) == (
        feed.topic, password,
    )  # fmt: skip
    assert "kafka.sasl.password = '***', delimiter" in item.sql
    assert f"TOPIC '{feed.topic}'" in item.sql


def test_a_record_that_cannot_be_read_does_not_show_its_secrets(feed, monkeypatch):
    feed.create(rest="FORMAT JSON WITH (kafka.sasl.password = 'hunter2-and-more')")
    monkeypatch.setattr(define, "define_source", lambda *_: int("none"))
    with pytest.raises(Corrupt) as caught:
        feed.crash()
    assert "hunter2" not in f"{caught.value} {caught.value.__dict__}"
    assert "topic_id" in caught.value.detail


def test_what_comes_and_goes_with_an_event_is_never_read_apart(db, opener, monkeypatch):
    monkeypatch.setattr("reclock.ingest.intake.PULL_ROWS", 2)
    db.execute("CREATE SOURCE s FROM LOAD GENERATOR COUNTER (EVENTS PER TICK 4, MAX_CARDINALITY 3)")
    for _ in range(6):
        opener.clock.advance(1_000)
        db.tick()
        ((bound,),) = db.execute('SELECT max("offset") FROM reclock.bindings').rows
        rows = db.execute("SELECT counter FROM s ORDER BY counter").rows
        assert rows == [(n + 1,) for n in range(max(0, bound - 3), bound)]
