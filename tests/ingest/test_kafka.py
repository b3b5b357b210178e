"""Sources over Kafka, on the real broker and on the log in memory, with the real engine."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal

import fastavro
import pytest

import reclock
from reclock.errors import Error, SourceUnavailable
from reclock.ingest import intake as intakes
from reclock.testing.kafka import PASSWORD, USER
from reclock.testing.kafka_upstream import Record

STATUS = "SELECT state, rows, errors, detail FROM reclock.source_status WHERE source = '{}'"
KEYED = "KEY FORMAT TEXT VALUE FORMAT JSON"
PLACES = "FORMAT JSON INCLUDE PARTITION AS p, OFFSET AS o"


def rows(db, query):
    return sorted(db.execute(query).rows, key=repr)


def bounds(db, *names):
    found = {
        row[0]: row[1:] for row in rows(db, "SELECT object, since, upper FROM reclock.frontiers")
    }
    return max(found[n][0] for n in names), min(found[n][1] for n in names)


class Producer(threading.Thread):
    """Writes numbered records to partitions at random until it is stopped."""

    def __init__(self, lab, topic, partitions, pause=0.005):
        super().__init__()
        self.lab, self.topic, self.partitions, self.pause = lab, topic, partitions, pause
        self.count = 0
        self.reached = set()
        self.stopped = threading.Event()

    def run(self):
        while not self.stopped.wait(self.pause):
            some = [{"id": self.count + n, "x": f"é{n}"} for n in range(5)]
            chosen = random.randrange(self.partitions)
            self.lab.send(self.topic, chosen, *some)
            self.reached.add(chosen)
            self.count += len(some)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.join()


# -- agreement ---------------------------------------------------------------------------------


def test_views_made_at_any_time_agree_at_every_time_under_load(lab):
    topic = lab.kafka.create_topic(16)
    db = lab.open(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '20ms'")
    db.execute("ALTER SYSTEM SET logical_compaction_window = '10 min'")
    lab.source(db, topic, PLACES)
    seen = set()

    def binds(count):
        """Whether so many times have been bound since the source is there."""
        seen.update(at for (at,) in db.execute("SELECT timestamp FROM reclock.bindings").rows)
        return len(seen) > count

    with Producer(lab, topic, 16) as producer:
        for count, name in enumerate("abc", 1):
            db.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT * FROM s")
            sums = "SELECT p, count(*) AS n, sum(id) AS ids FROM s GROUP BY p"
            db.execute(f"CREATE MATERIALIZED VIEW {name}_by AS {sums}")
            lab.eventually(lambda: binds(6 * count))  # noqa: B023 - called at once
        lab.kafka.add_partitions(topic, 18)
        producer.partitions = 18
        places = 'SELECT partition, "offset" FROM reclock.bindings'
        lab.eventually(
            lambda: {"16", "17"} <= {part for part, end in db.execute(places).rows if end > 0}
        )
    lab.caught_up(db, producer.count)
    times = set()
    for one, other in ("sa", "sb", "sc", "ab", "bc", ("a_by", "b_by"), ("b_by", "c_by")):
        since, upper = bounds(db, one, other)
        log = lab.change_log(db, one, since, upper)
        assert log == lab.change_log(db, other, since, upper), (one, other)
        times |= {at for at, _ in log}
    assert len(times) > 10, "not many times were looked at"
    log = lab.change_log(db, "s", *bounds(db, "s"))
    ids = [row[0] for (_, row), diff in log.items() for _ in range(diff)]
    assert sorted(ids) == list(range(producer.count)), "each record once"
    assert {row[2] for _, row in log} == producer.reached >= {16, 17}
    for at in random.Random(1).sample(range(since, upper), 5):
        read = [Counter(db.execute(f"SELECT * FROM {n} AS OF {at}").rows) for n in ("s", "a", "c")]
        assert read[0] == read[1] == read[2]
    assert db.check() == []


def test_a_first_read_has_what_was_there_and_bad_records_are_passed(lab):
    topic = lab.kafka.create_topic(2)
    lab.send(topic, 0, {"id": 1}, (b"k", b"nope"), {"id": 2})
    lab.send(topic, 1, {"id": 3})
    db = lab.open()
    lab.source(db, topic)
    with pytest.raises(Error) as caught:  # all is there, the bad one too
        db.execute("SELECT id FROM s")
    assert caught.value.code == "22P04"
    db.execute("ALTER SOURCE s SET (on_error = 'skip')")
    assert sorted(db.execute("SELECT id FROM s").rows) == [(1,), (2,), (3,)]
    lab.send(topic, 1, b"nor this", {"id": 4})
    lab.caught_up(db, 6)
    assert len(db.execute("SELECT id FROM s").rows) == 4
    db = lab.reopened(db)
    found = 'SELECT number, partition, "offset", key, value FROM reclock.dead_letters'
    assert sorted(db.execute(found).rows) == [
        (1, "0", 1, b"k", b"nope"), (2, "1", 1, None, b"nor this"),
    ]  # fmt: skip
    assert db.check() == []


def test_many_views_cost_the_broker_one_reading(lab):
    class Counting:
        fetched = 0

        def __init__(self, cluster):
            self._cluster = cluster

        def __getattr__(self, name):
            return getattr(self._cluster, name)

        def fetch(self, *spans):
            for batch in self._cluster.fetch(*spans):
                Counting.fetched += batch.num_rows
                yield batch

    lab.wrap = Counting
    topic = lab.kafka.create_topic(4)
    db = lab.open()
    lab.source(db, topic)
    for n in range(16):
        db.execute(f"CREATE MATERIALIZED VIEW v{n} AS SELECT id, count(*) FROM s GROUP BY id")
        lab.send(topic, n % 4, *({"id": n} for _ in range(25)))
        lab.tick(db)
    assert Counting.fetched == 400
    assert rows(db, STATUS.format("s")) == [("running", 400, 0, None)]
    assert rows(db, "SELECT * FROM v0") == rows(db, "SELECT * FROM v15")
    assert len(rows(db, "SELECT * FROM v0")) == 16


# -- a broker that does not answer -------------------------------------------------------------


@pytest.mark.kafka
def test_a_broker_that_stops_stalls_its_sources_and_nobody_else(real):
    topic = real.kafka.create_topic(2)
    db = real.open(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '50ms'")
    real.source(db, topic)
    db.execute("CREATE SOURCE c FROM LOAD GENERATOR COUNTER")
    guarded(real, db, topic, "g", PASSWORD)
    db.execute("CREATE TABLE t (a INT)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM s")
    real.send(topic, 0, *({"id": n} for n in range(10)))
    real.caught_up(db, 10)
    real.kafka.stop()
    try:
        real.eventually(lambda: rows(db, STATUS.format("s"))[0][0] == "stalled")
        real.eventually(lambda: real.kafka.address in rows(db, STATUS.format("s"))[0][3])
        real.eventually(lambda: rows(db, STATUS.format("g"))[0][0] == "stalled")
        assert PASSWORD not in repr(rows(db, "SELECT * FROM reclock.source_status"))
        took = []
        for n in range(20):
            began = time.monotonic()
            db.execute(f"INSERT INTO t VALUES ({n})")
            assert len(rows(db, "SELECT a FROM t")) == n + 1
            assert rows(db, "SELECT n FROM v") == [(10,)]
            took.append(time.monotonic() - began)
        assert sorted(took)[10] < 5, took
        assert max(took) < 8, "nobody waits for the broker, who is given 10 s to answer"
        before = rows(db, "SELECT * FROM c")
        real.eventually(lambda: len(rows(db, "SELECT * FROM c")) > len(before))
        with pytest.raises(SourceUnavailable):
            real.source(db, topic, name="other")
        began = time.monotonic()
        db.close()
        assert time.monotonic() - began < 9
        began = time.monotonic()
        db = real.open(background=True)
        assert time.monotonic() - began < 9, "opening must not wait for the broker"
        assert rows(db, "SELECT n FROM v") == [(10,)]
    finally:
        real.kafka.start()
    real.send(topic, 1, *({"id": n} for n in range(10, 20)))
    real.caught_up(db, 20)
    real.eventually(lambda: rows(db, STATUS.format("s"))[0][0] == "running")
    assert rows(db, "SELECT id FROM s") == sorted(((n,) for n in range(20)), key=repr)
    db.close()
    real.eventually(lambda: not real.threads())


def test_a_source_is_dropped_while_it_is_read(lab):
    topic = lab.kafka.create_topic(4)
    for partition in range(4):
        lab.send(topic, partition, *({"id": n, "x": "x" * 100} for n in range(150)))
    db = lab.open(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '20ms'")
    for n in range(6):
        lab.source(db, topic, name=f"s{n}")
        if n % 2:
            time.sleep(0.05)
        db.execute(f"DROP SOURCE s{n}")
    lab.source(db, topic)
    lab.caught_up(db, 600)
    db.close()
    lab.eventually(lambda: not lab.threads())
    db = lab.open()
    assert [c.collection for c in db._store.collections("remap/")] == [
        f"remap/{i}" for i in db._core.world.catalog.items
    ], "bindings of dropped sources are dropped"


def test_a_slow_consumer_keeps_times_apart_and_staging_bounded(lab, monkeypatch):
    topic = lab.kafka.create_topic(2)
    db = lab.open(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '20ms'")
    lab.source(db, topic, f"{PLACES} WITH (max_rows_per_tick = 10)")
    (intake,) = db._core.intakes._intakes.values()
    staged = []
    add = intake._staging.add
    monkeypatch.setattr(
        intake._staging, "add", lambda chunk: (add(chunk), staged.append(intake._staging.rows))
    )
    with Producer(lab, topic, 2, pause=0.001) as producer:
        time.sleep(0.8)
    lab.caught_up(db, producer.count)
    assert 10 < max(staged) < 3 * 10, "twice what a tick takes, and one pull"
    since, upper = bounds(db, "s")
    log = lab.change_log(db, "s", since, upper)
    assert sorted(row[0] for _, row in log) == list(range(producer.count))
    times = Counter(at for at, _ in log)
    assert max(times.values()) <= 10
    assert len(times) >= producer.count / 10


# -- what happens to topics --------------------------------------------------------------------


def test_transactions_compaction_and_new_partitions(lab):
    topic, compacted = lab.kafka.create_topic(2), lab.kafka.create_topic(1, compacted=True)
    db = lab.open()
    lab.source(db, topic)
    lab.source(db, compacted, name="k", rest=f"{KEYED} INCLUDE KEY WITH (on_error = 'inline')")
    aborted, committed = lab.kafka.begin(), lab.kafka.begin()
    aborted.produce(topic, 0, *(Record(b'{"id": 1}') for _ in range(10)))
    lab.send(topic, 0, {"id": 2})
    committed.produce(topic, 1, *(Record(b'{"id": 3}') for _ in range(3)))
    lab.send(compacted, 0, *((b"k%d" % (n % 2), {"id": n}) for n in range(20)))
    lab.kafka.compact(compacted)
    lab.tick(db)
    assert rows(db, "SELECT id FROM s") == [], "an open transaction holds back what follows"
    aborted.abort()
    committed.commit()
    lab.caught_up(db, 12 + 4)
    assert rows(db, "SELECT id FROM s") == [(2,), (3,), (3,), (3,)]
    lab.source(db, topic, "FORMAT JSON WITH (isolation_level = 'read_uncommitted')", "dirty")
    lab.caught_up(db, 12 + 4, "dirty")
    assert rows(db, "SELECT id FROM dirty") == [(1,)] * 10 + [(2,), (3,), (3,), (3,)]
    kept = [row for row in rows(db, "SELECT id, key FROM k") if row[1] != "begins a new segment"]
    assert kept == [(18, "k0"), (19, "k1")]
    lab.kafka.add_partitions(topic, 4)
    lab.send(topic, 3, {"id": 4})
    lab.caught_up(db, 17)
    db = lab.reopened(db)
    lab.send(topic, 2, {"id": 5})
    lab.caught_up(db, 18)
    assert rows(db, "SELECT id FROM s")[-2:] == [(4,), (5,)]


@pytest.mark.parametrize("damage", ["delete", "recreate", "truncate"])
def test_a_topic_that_is_not_the_same_any_more_is_a_lasting_error(lab, damage):
    topic, other = lab.kafka.create_topic(2), lab.kafka.create_topic(1)
    db = lab.open()
    lab.source(db, topic)
    lab.source(db, other, name="o")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM s")
    lab.send(topic, 1, {"id": 1}, {"id": 2})
    lab.caught_up(db, 2)
    since = db.execute("SELECT * FROM s").timestamp
    db.execute("ALTER SOURCE s SET (RETAIN HISTORY FOR '1h')")
    db.close()
    lab.send(topic, 1, *({"id": n} for n in range(3, 9)))
    if damage == "truncate":
        lab.kafka.truncate(topic, 1, 5)
    elif damage == "delete":
        lab.kafka.delete_topic(topic)
    else:
        lab.kafka.recreate_topic(topic, 2)
    lab.send(other, 0, {"id": 7})
    for _ in range(2):
        db = lab.open()
        lab.caught_up(db, 1, "o")
        for name in ("s", "v"):
            with pytest.raises(Error) as caught:
                db.execute(f"SELECT * FROM {name}")
            assert caught.value.code == "55000"
            if damage == "truncate":
                assert "partition 1 begins at offset 5, 2 is the next to read" in str(caught.value)
            else:
                assert "deleted" in caught.value.message
        assert rows(db, STATUS.format("s"))[0][0] == "failed"
        with db.subscribe(f"SUBSCRIBE TO s AS OF {since}", timeout=60) as following:
            assert {next(following).row[0] for _ in range(2)} == {1, 2}
            with pytest.raises(Error, match="topic"):
                next(following)
        assert rows(db, "SELECT id FROM o") == [(7,)]
        assert rows(db, "SELECT bound FROM reclock.source_status WHERE source = 's'") == [(2,)]
        db.close()


# -- records -----------------------------------------------------------------------------------


def test_every_part_of_a_record_comes_through(lab):
    topic = lab.kafka.create_topic(2)
    at = 1_700_000_000_123
    large = "ü" * 480_000
    headers = (("h", b"1"), ("h", None), ("é", b""))
    lab.kafka.produce(
        topic, 1,
        Record('{"id": 1, "x": "🙂"}'.encode(), b"k", at, headers),
        Record(json.dumps({"id": 2, "x": large}, ensure_ascii=False).encode(), None, at),
        Record(b"{}", b"", at),
    )  # fmt: skip
    db = lab.open()
    lab.source(db, topic, "FORMAT JSON INCLUDE KEY, PARTITION AS p, OFFSET, TIMESTAMP, HEADERS")
    lab.caught_up(db, 3)
    when = datetime.fromtimestamp(at / 1_000, UTC)
    first, second, third = rows(db, "SELECT * FROM s")
    assert first[:6] == (1, "🙂", b"k", 1, 0, when)
    assert [tuple(h) for h in first[6]] == list(headers)
    assert second == (2, large, None, 1, 1, when, None)
    assert third == (None, None, b"", 1, 2, when, None)


AVRO = {
    "type": "record", "name": "r", "fields": [
        {"name": "i", "type": "long"}, {"name": "t", "type": ["null", "string"]},
    ],
}  # fmt: skip


def avro(**row):
    written = io.BytesIO()
    fastavro.schemaless_writer(written, AVRO, row)
    return written.getvalue()


FORMATS = {
    "avro": (
        "(i SMALLINT NOT NULL, t TEXT)",
        f"FORMAT AVRO USING SCHEMA '{json.dumps(AVRO)}'",
        [avro(i=1, t="é🙂"), avro(i=-2, t=None)],
        [b"", b"nope", avro(i=40_000, t="a"), avro(i=1, t="a")[:-1], avro(i=1, t="a") + b"x", None],
        [(1, "é🙂"), (-2, None)],
    ),
    "json": (
        "(i SMALLINT NOT NULL, n NUMERIC(6, 2), t TEXT, a INT[])",
        "FORMAT JSON",
        [b'{"i": 1, "n": 1234.5, "t": "\xc3\xa9", "a": [1, null], "more": {}}', b'{"i": -2}'],
        [
            b"", b"nope", b"[1]", b'{"i": 40000}', b'{"i": "x"}', b'{"i": 1, "n": 99999}',
            b'{"n": 1}', b'{"i": 1, "t": "\xff"}', b'{"i": 1, "a": [99999999999]}', b"null", None,
            b'{"i": 1} x', b'{"i": 1e400}', b"{" * 3_000,
        ],
        [(1, Decimal("1234.50"), "é", [1, None]), (-2, None, None, None)],
    ),
    "csv": (
        "(i SMALLINT NOT NULL, t TEXT)",
        "FORMAT CSV",
        [b'1,"a,b"', "2,é🙂".encode()],
        [b"1", b"1,2,3", b"x,y", b"40000,a", b'1,"open', b"\xff\xfe,1", None],
        [(1, "a,b"), (2, "é🙂")],
    ),
    "text": ("(t TEXT)", "FORMAT TEXT", ["é🙂".encode(), b"", None], [b"\xff", b"a\x80"],
             [("é🙂",), ("",), (None,)]),
    "bytes": ("(b BYTEA)", "FORMAT BYTES", [b"\xff\x00", b"", None], [],
              [(b"\xff\x00",), (b"",), (None,)]),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
def test_records_that_do_not_decode_are_told_and_stop_nobody(lab, kind):
    columns, form, good, bad, expected = FORMATS[kind]
    topic = lab.kafka.create_topic(2)
    records = [(n, value) for n, value in enumerate([*good, *bad])]
    random.Random(0).shuffle(records)
    for _, value in records:
        lab.send(topic, 1, value)
    db = lab.open()
    lab.source(db, topic, f"{form} INCLUDE OFFSET AS o WITH (on_error = 'inline')", columns=columns)
    lab.source(db, topic, form, name="r", columns=columns)
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, count(error) AS bad FROM s")
    lab.caught_up(db, len(records))
    found = {row[-2]: row for row in rows(db, "SELECT * FROM s")}
    assert sorted(found) == list(range(len(records)))
    for offset, (n, _) in enumerate(records):
        if n < len(good):
            assert found[offset] == (*expected[n], offset, None)
        else:
            assert f'source "s", partition 1, offset {offset}' in found[offset][-1]
    assert rows(db, "SELECT * FROM v") == [(len(records), len(bad))]
    told = rows(db, "SELECT message FROM reclock.errors WHERE object = 'r'")
    assert len(told) == len(bad)
    assert rows(db, "SELECT errors FROM reclock.source_status WHERE source = 'r'") == [(len(bad),)]
    if bad:
        with pytest.raises(Error, match='source "r", partition 1, offset'):
            db.execute("SELECT * FROM r")


# -- envelopes ---------------------------------------------------------------------------------


def test_upsert_over_a_compacted_topic_through_restarts(lab, monkeypatch):
    monkeypatch.setattr(intakes, "PULL_ROWS", 7)
    topic = lab.kafka.create_topic(1, compacted=True)
    lab.send(topic, 0, *((n % 5, {"x": f"first {n}"}) for n in range(30)), (4, None))
    lab.kafka.compact(topic)
    lab.send(topic, 0, (0, {"x": "after"}))
    db = lab.open()
    columns = "(id BIGINT PRIMARY KEY, x TEXT)"
    lab.source(db, topic, "FORMAT JSON ENVELOPE UPSERT", columns=columns)
    end = sum(mark.high for mark in lab.kafka.cluster().watermarks(topic, [0]).values())
    real = end > 32  # a record began a new segment, with a key that is no number
    if real:
        lab.caught_up(db, end)
        with pytest.raises(Error) as caught:
            db.execute("SELECT * FROM s")
        assert caught.value.code == "23502"
        db.execute("DROP SOURCE s")
        lab.source(db, topic, f"{KEYED} ENVELOPE UPSERT", columns="(id TEXT PRIMARY KEY, x TEXT)")
    lab.caught_up(db, end)
    bound = {row[1] for row in rows(db, "SELECT * FROM reclock.bindings") if row[3]}
    assert len(bound) == 1, "the snapshot is bound at one time"

    def held():
        return {int(k): x for k, x in rows(db, "SELECT id, x FROM s") if str(k).isdigit()}

    if real:
        with pytest.raises(Error):
            db.execute("SELECT * FROM s")
        lab.send(topic, 0, (b"begins a new segment", None))
        lab.caught_up(db, end + 1)
    assert held() == {0: "after", 1: "first 26", 2: "first 27", 3: "first 28"}
    db = lab.reopened(db)
    lab.send(topic, 0, (1, None), (4, {"x": "back"}), (2, b"nope"))
    lab.caught_up(db, end + 3 + real)
    with pytest.raises(Error):
        db.execute("SELECT * FROM s")
    db = lab.reopened(db)
    lab.send(topic, 0, (2, {"x": "mended"}))
    lab.caught_up(db, end + 4 + real)
    assert held() == {0: "after", 2: "mended", 3: "first 28", 4: "back"}
    assert db.check() == []


def test_debezium_through_restarts(lab):
    topic = lab.kafka.create_topic(1)
    db = lab.open()
    columns = "(id BIGINT PRIMARY KEY, x TEXT)"
    lab.source(db, topic, "FORMAT JSON ENVELOPE DEBEZIUM", columns=columns)

    def change(key, op, before, after, at):
        value = {"op": op, "before": before, "after": after,
                 "source": {"file": "f", "pos": at, "row": 0}}  # fmt: skip
        lab.send(topic, 0, ({"id": key}, {"payload": value}))

    a, b, c = ({"id": 1, "x": x} for x in "abc")
    change(1, "c", None, a, 1)
    change(2, "c", None, {"id": 2, "x": "other"}, 2)
    change(1, "u", a, b, 3)
    lab.caught_up(db, 3)
    assert rows(db, "SELECT * FROM s") == [(1, "b"), (2, "other")]
    db = lab.reopened(db)
    change(1, "c", None, a, 1)  # the connector restarted, and sends again
    change(1, "u", a, b, 3)
    change(1, "u", b, c, 4)
    change(2, "d", {"id": 2, "x": "other"}, None, 5)
    lab.send(topic, 0, ({"id": 2}, None))
    lab.caught_up(db, 8)
    assert rows(db, "SELECT * FROM s") == [(1, "c")]
    assert db.check() == []


def test_debezium_repetitions_are_known_whatever_is_included(lab):
    topic = lab.kafka.create_topic(1)
    db = lab.open()
    columns = "(id BIGINT PRIMARY KEY, x TEXT)"
    included = "FORMAT JSON INCLUDE OFFSET AS o, TIMESTAMP AS at ENVELOPE DEBEZIUM"
    lab.source(db, topic, included, columns=columns)
    first, second = (
        ({"id": 1}, {"op": "u", "before": None, "after": {"id": 1, "x": x},
                     "source": {"file": "f", "pos": 7, "row": 0}})
        for x in "ab"
    )  # fmt: skip
    lab.send(topic, 0, first, second)
    lab.caught_up(db, 2)
    lab.send(topic, 0, first, second, first)  # the connector restarted, more than once
    lab.caught_up(db, 5)
    assert rows(db, "SELECT id, x, o FROM s") == [(1, "b", 1)]


# -- what else a source is ---------------------------------------------------------------------


def test_a_source_is_indexed_followed_and_kept_like_any_other(lab):
    topic = lab.kafka.create_topic(2)
    db = lab.open()
    lab.source(db, topic, PLACES)
    with db.subscribe("SUBSCRIBE TO s WITH (PROGRESS)") as following:
        lab.send(topic, 0, *({"id": n, "x": str(n % 3)} for n in range(9)))
        lab.caught_up(db, 9)
        db.execute("CREATE INDEX ON s (x)")
        db.execute("ALTER SOURCE s SET (RETAIN HISTORY FOR '2s')")
        lab.send(topic, 1, {"id": 9, "x": "1"})
        lab.caught_up(db, 10)
        assert rows(db, "SELECT id FROM s WHERE x = '1'") == [(1,), (4,), (7,), (9,)]
        told = [u for _ in range(50) for u in following.fetch(timeout=0)]
        assert sorted(u.row[0] for u in told if not u.progressed) == list(range(10))
    lab.tick(db, 5)
    since, upper = bounds(db, "s")
    assert upper - since <= 2_001
    with pytest.raises(Error):
        db.execute(f"SELECT * FROM s AS OF {since - 1}")
    db = lab.reopened(db)
    assert rows(db, "SELECT id FROM s WHERE x = '2'") == [(2,), (5,), (8,)]


def test_bindings_can_be_asked_for_the_past(lab):
    topic = lab.kafka.create_topic(2)
    db = lab.open()
    lab.source(db, topic)
    seen = {}
    for n in range(4):
        lab.send(topic, n % 2, {"id": n})
        lab.caught_up(db, n + 1)
        result = db.execute("SELECT * FROM reclock.bindings")
        seen[int(result.timestamp)] = sorted(result.rows)
        assert len(rows(db, "SELECT * FROM s")) == n + 1
    lab.tick(db, 3)
    for at, found in seen.items():
        assert rows(db, f"SELECT * FROM reclock.bindings AS OF {at}") == sorted(found, key=repr)
        read = len(rows(db, f"SELECT * FROM s AS OF {at}"))
        ends = {partition: offset for _, _, partition, offset in found}
        assert read == sum(max(o for _, _, p, o in found if p == q) for q in ends)


@pytest.mark.spark
@pytest.mark.slow(seconds=15)
def test_a_source_in_spark(real, spark):
    topic = real.kafka.create_topic(4)
    for partition in range(4):
        real.send(topic, partition, *({"id": n, "x": str(n % 3)} for n in range(100)))
    with reclock.open(real.path, background=False, clock=real.clock) as db:
        real.source(db, topic, PLACES)
        db.execute("CREATE TABLE t (x TEXT, y INT); INSERT INTO t VALUES ('1', 10)")
        joined = "SELECT s.id, t.y FROM s JOIN t ON s.x = t.x WHERE s.id > 50"
        db.execute(f"CREATE MATERIALIZED VIEW v AS {joined}")
        real.caught_up(db, 400)
        frame = db.dataframe("SELECT id, o FROM s WHERE p = 2")
        assert sorted(map(tuple, frame.collect())) == [(n, n) for n in range(100)]
        except_all = f"{joined} EXCEPT ALL SELECT * FROM v"
        assert db.execute(except_all).rows == []
        assert len(rows(db, "SELECT * FROM v")) == 4 * len(
            [n for n in range(51, 100) if n % 3 == 1]
        )


@pytest.mark.kafka
@pytest.mark.slow(seconds=45)
def test_a_broker_that_is_killed_again_and_again(real):
    topic = real.kafka.create_topic(8)
    db = real.open(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '50ms'")
    real.source(db, topic)
    partitions, sent = 8, 0
    for n in range(6):
        for _ in range(60):
            partition = random.randrange(partitions)
            real.send(topic, partition, *({"id": sent + i} for i in range(5)))
            sent += 5
        if n % 2:
            real.kafka.stop()
        else:
            os.kill(int((real.kafka.directory / "broker").read_text().split()[0]), signal.SIGKILL)
        time.sleep(random.random() * 3)
        real.kafka.start()
        if n == 3:
            partitions = 10
            real.kafka.add_partitions(topic, partitions)
        real.caught_up(db, sent)
        assert rows(db, STATUS.format("s"))[0][0] == "running"
    assert rows(db, "SELECT id FROM s") == sorted(((n,) for n in range(sent)), key=repr)


def test_a_timeline_of_its_own_moves_when_there_are_records(lab):
    topic = lab.kafka.create_topic(1)
    db = lab.open(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '20ms'")
    lab.source(db, topic, "FORMAT JSON WITH (timeline = 'own')")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM s")
    for n in range(3):
        lab.send(topic, 0, {"id": n})
        lab.eventually(lambda n=n: rows(db, "SELECT n FROM v") == [(n + 1,)])
    times = sorted({row[1] for row in rows(db, "SELECT * FROM reclock.bindings") if row[3]})
    assert len(times) == 3
    upper = bounds(db, "v")[1]
    time.sleep(0.3)
    assert bounds(db, "v")[1] == upper, "nothing moves without records"


# -- secrets -----------------------------------------------------------------------------------


def guarded(real, db, topic, name, password):
    """Create a source that is let in by a password."""
    db.execute(
        f"CREATE SOURCE {name} (id BIGINT) FROM KAFKA BROKER '{real.kafka.guarded}' "
        f"TOPIC '{topic}' FORMAT JSON WITH (kafka.security.protocol = 'SASL_PLAINTEXT', "
        f"kafka.sasl.mechanism = 'PLAIN', kafka.sasl.username = '{USER}', "
        f"kafka.sasl.password = '{password}')"
    )


@pytest.mark.kafka
def test_a_password_is_seen_nowhere(real, capfd, caplog):
    topic = real.kafka.create_topic(1)
    real.send(topic, 0, {"id": 1})
    shown = []
    db = real.open()
    guarded(real, db, topic, "s", PASSWORD)
    with pytest.raises(SourceUnavailable) as caught:
        guarded(real, db, topic, "x", "swordfish")
    assert caught.value.code == "28000"
    shown.append(
        f"{caught.value} {caught.value!r} {caught.value.__dict__} {caught.value.__cause__}"
    )
    db = real.reopened(db)
    real.caught_up(db, 1)
    assert rows(db, "SELECT * FROM s") == [(1,)], "the password is known after a restart"
    queries = [
        "SHOW CREATE SOURCE s", "SHOW OBJECTS", "SELECT * FROM reclock.objects", STATUS.format("s"),
        "SELECT * FROM reclock.errors", "EXPLAIN SELECT * FROM s",
    ]  # fmt: skip
    shown += [repr(rows(db, query)) for query in queries]
    core = db._core
    (intake,) = core.intakes._intakes.values()
    shown += [
        repr(x) for x in (core.world, core.world.catalog.items, vars(intake), intake.connected)
    ]
    shown += [caplog.text, *capfd.readouterr()]
    text = "\n".join(shown)
    assert PASSWORD not in text
    assert "swordfish" not in text
    assert USER in text
