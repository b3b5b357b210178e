"""Reading that fails in the middle, at any moment and for any reason, and goes on."""

from __future__ import annotations

import gc
import json
import random
import time

import pytest

from conditions import assert_facts_agree
from reclock.errors import Error, PositionsLost, SourceUnavailable
from reclock.failpoints import NAMES, FailpointRaised, arm, disarm
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.kafka_upstream import Record

UPSERT = {"columns": "(id BIGINT PRIMARY KEY, x TEXT)", "rest": "FORMAT JSON ENVELOPE UPSERT"}


class Troubled:
    """A cluster in trouble: what ``trouble`` has to say is raised, or left out."""

    def __init__(self, cluster, trouble):
        self._cluster, self._trouble = cluster, trouble

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    def describe(self, topic):
        self._trouble("describe")
        return self._cluster.describe(topic)

    def watermarks(self, topic, partitions):
        left_out = self._trouble("watermarks") or ()
        return self._cluster.watermarks(topic, [p for p in partitions if p not in left_out])

    def fetch(self, *given):
        self._trouble("fetch")
        for batch in self._cluster.fetch(*given):
            yield batch
            self._trouble("batch")


@pytest.fixture
def upstream():
    return MemoryKafka()


def rows(db, query):
    return sorted(db.execute(query).rows, key=repr)


def state(db):
    assert_facts_agree(db)
    return db.execute("SELECT state FROM reclock.source_status").rows[0][0]


@pytest.mark.parametrize("given", [{}, UPSERT], ids=["none", "upsert"])
@pytest.mark.parametrize("seed", range(3))
def test_reading_that_fails_now_and_then_reads_everything_once(lab, monkeypatch, given, seed):
    chance = random.Random(seed)

    def trouble(what):
        if chance.random() < 0.3:
            message = "not now"
            lost = [PositionsLost] if what in ("fetch", "batch") else []
            raise chance.choice([SourceUnavailable, OSError, *lost])(message)

    monkeypatch.setattr("reclock.ingest.intake.PULL_ROWS", 4)
    topic = lab.kafka.create_topic(3)
    lab.send(topic, 0, *((n, {"id": n, "x": str(n)}) for n in range(20)))
    db = lab.open()
    lab.wrap = lambda cluster: Troubled(cluster, trouble)
    while "s" not in [row[0] for row in db.execute("SHOW SOURCES").rows]:
        try:
            lab.source(db, topic, **given)
        except (Error, OSError):
            continue
    for n in range(20, 60):
        lab.send(topic, n % 3, (n, {"id": n, "x": str(n)}))
        lab.tick(db)
        assert state(db) != "failed"
    lab.caught_up(db, 60)
    assert rows(db, "SELECT * FROM s") == sorted(((n, str(n)) for n in range(60)), key=repr)
    assert db.check() == []


def test_a_partition_without_a_leader(lab):
    missing = {1}
    lab.wrap = lambda cluster: Troubled(
        cluster, lambda what: missing if what == "watermarks" else None
    )
    topic = lab.kafka.create_topic(2)
    lab.send(topic, 0, {"id": 0})
    db = lab.open()
    with pytest.raises(SourceUnavailable, match="no leader"):
        lab.source(db, topic)
    missing.clear()
    lab.source(db, topic)
    lab.caught_up(db, 1)
    missing.add(1)
    lab.send(topic, 0, {"id": 1})
    lab.tick(db)
    assert state(db) == "stalled"
    assert rows(db, "SELECT id FROM s") == [(0,)]
    lab.kafka.add_partitions(topic, 3)
    missing.clear()
    missing.add(2)
    lab.send(topic, 2, {"id": 2})
    lab.caught_up(db, 2)
    assert state(db) == "running", "a partition that is not born yet is nobody's business"
    missing.clear()
    lab.caught_up(db, 3)
    assert rows(db, "SELECT id FROM s") == [(0,), (1,), (2,)]


def test_positions_that_seem_lost_are_asked_for_again(lab):
    lies = ["once"]

    def trouble(what):
        if what == "fetch" and lies:
            lies.pop()
            message = "no longer has offsets"
            raise PositionsLost(message)

    lab.wrap = lambda cluster: Troubled(cluster, trouble)
    topic = lab.kafka.create_topic(1)
    db = lab.open()
    lab.source(db, topic)
    lab.send(topic, 0, *({"id": n} for n in range(5)))
    lab.tick(db)
    assert state(db) == "stalled"
    lab.caught_up(db, 5)
    lab.send(topic, 0, *({"id": n} for n in range(5)))
    lies.append("it is true now")
    lab.kafka.truncate(topic, 0, 8)
    lab.tick(db, 2)
    assert state(db) == "failed"
    with pytest.raises(Error, match="begins at offset 8, 5 is the next to read"):
        db.execute("SELECT * FROM s")


def test_ticks_and_readers_that_fail_in_the_background(lab):
    """Failpoints raise in whichever thread passes them, again and again, under load."""
    topic = lab.kafka.create_topic(4)
    db = lab.open(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '10ms'")
    lab.source(db, topic, "FORMAT JSON INCLUDE PARTITION AS p, OFFSET AS o")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT p, count(*) AS n FROM s GROUP BY p")
    points = [n for n in NAMES if n.startswith(("tick.", "durable.", "ingest.", "arrangement."))]
    chance = random.Random(0)
    failed = []
    sent = 0

    def fail():
        failed.append(point)
        message = f"failpoint {point} raised"
        raise FailpointRaised(message)

    for _ in range(100):
        point = chance.choice(points)
        arm(point, fail)
        for _ in range(5):
            lab.kafka.produce(topic, sent % 4, Record(b'{"id": %d}' % sent))
            sent += 1
            time.sleep(0.002)
        time.sleep(0.02)
        disarm(point)
    lab.caught_up(db, sent)
    assert failed, "no failpoint was ever passed"
    since, upper = db.execute("SELECT since, upper FROM reclock.frontiers WHERE object = 's'").rows[
        0
    ]
    log = lab.change_log(db, "s", since, upper)
    assert sorted(row[0] for _, row in log) == list(range(sent))
    bound = {
        (int(p), o): at
        for _, at, p, stop in sorted(
            db.execute("SELECT * FROM reclock.bindings").rows, reverse=True
        )
        for o in range(stop)
    }
    assert all(bound[p, o] == at for at, (_, _, p, o) in log)
    assert rows(db, "SELECT n FROM v") == [(sent // 4,)] * 4
    assert db.check() == []
    db.close()
    lab.eventually(lambda: not lab.threads())


COLUMNS = """(k INT PRIMARY KEY, a NUMERIC(38, 10), b DATE, c TIMESTAMP, d TIMESTAMPTZ, e INTERVAL,
f JSON, g BYTEA, h INT[], i BOOLEAN, j REAL, l DOUBLE PRECISION, m SMALLINT, n NUMERIC, o TEXT[])"""


def test_a_snapshot_of_every_type_keeps_the_last_of_each_key(lab, monkeypatch):
    values = {
        "a": "12345678901234567890.5", "b": "2020-01-02", "c": "2020-01-02 03:04:05.678",
        "d": "2020-01-02T03:04:05Z", "e": "1 day", "f": {"x": [1]}, "g": "AP8=", "h": [1, None],
        "i": True, "j": 1.5, "l": 2.5, "n": 1.25, "o": ["é"],
    }  # fmt: skip
    topic = lab.kafka.create_topic(1)
    rest = "FORMAT JSON INCLUDE KEY, HEADERS, TIMESTAMP AS at ENVELOPE UPSERT"
    records = [
        Record(json.dumps(values | {"m": n}).encode(), b"%d" % (n % 3), n, (("h", b"x"),))
        for n in range(30)
    ]
    lab.kafka.produce(
        topic, 0, *records, Record(b"nope", b"7"), Record(None, b"8"), Record(b"{}", b"7")
    )
    db = lab.open()
    lab.source(db, topic, rest, "whole", COLUMNS)
    monkeypatch.setattr("reclock.ingest.intake.PULL_ROWS", 1)
    lab.source(db, topic, rest, "pieces", COLUMNS)
    lab.caught_up(db, 33, "pieces")
    pieces = rows(db, "SELECT * FROM pieces")
    assert pieces == rows(db, "SELECT * FROM whole")
    assert [(row[0], row[12]) for row in pieces] == [(0, 27), (1, 28), (2, 29), (7, None)]
    assert len({repr(row[1:12]) for row in pieces[:3]}) == 1


def test_inline_errors_are_counted(lab):
    topic = lab.kafka.create_topic(1)
    db = lab.open()
    lab.source(db, topic, "FORMAT JSON INCLUDE TIMESTAMP AS at WITH (on_error = 'inline')")
    lab.kafka.produce(topic, 0, Record(b"{}", None, 2**62), Record(b"nope"), Record(b"{}", None, 5))
    lab.caught_up(db, 3)
    assert db.execute("SELECT state, errors FROM reclock.source_status").rows == [("running", 2)]
    found = rows(db, "SELECT at, error FROM s")
    assert [at is None for at, _ in found] == [True, True, False]


def test_nobody_fetches_on_for_a_reading_that_was_given_up(lab, monkeypatch):
    monkeypatch.setattr("reclock.ingest.intake.PULL_ROWS", 2)
    silent = []

    def trouble(what):
        if what == "describe" and silent:
            message = "not now"
            raise SourceUnavailable(message)
        if what == "fetch":
            silent.append("from now on")

    lab.wrap = lambda cluster: Troubled(cluster, trouble)
    topic = lab.kafka.create_topic(1)
    lab.send(topic, 0, *({"id": n} for n in range(60)))
    db = lab.open()
    lab.source(db, topic)
    gc.disable()
    try:
        for _ in range(5):
            silent.clear()
            lab.tick(db)
            assert state(db) == "stalled"
        lab.eventually(lambda: "reclock-ahead" not in lab.threads(), 5)
    finally:
        gc.enable()
