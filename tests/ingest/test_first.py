"""The first read of a source has what was there when it was created."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest

from reclock.errors import Error, StatementTimeout, Unreadable
from reclock.testing.kafka_upstream import Record


def send(opener, topic, *ids, partition=0):
    records = [Record(json.dumps({"id": n}).encode(), json.dumps(n).encode()) for n in ids]
    opener.kafka.produce(topic, partition, *records)


def create(db, topic, rest="FORMAT JSON", columns="(id BIGINT)", name="s"):
    db.execute(f"CREATE SOURCE {name} {columns} FROM KAFKA BROKER 'b' TOPIC '{topic}' {rest}")


def rows(db, query="SELECT * FROM s"):
    return sorted(db.execute(query).rows)


def first(opener, db, query="SELECT * FROM s"):
    """Return the rows of the first read that ends; the clock goes on until one does.

    Time is ours: records that the background has not read before the clock stands still would
    wait for ever.
    """
    db.execute("SET statement_timeout = '1s'")
    until = time.monotonic() + 300
    while True:
        opener.clock.advance(5_000)
        try:
            found = rows(db, query)
        except StatementTimeout:
            if time.monotonic() > until:
                raise
        else:
            db.execute("SET statement_timeout = '60s'")
            return found


@pytest.mark.parametrize("isolation", ["strict serializable", "serializable"])
@pytest.mark.parametrize("background", [False, True], ids=["ticks by reads", "background"])
def test_the_first_read_has_what_was_there(opener, isolation, background):
    topic = opener.kafka.create_topic(2)
    send(opener, topic, 1, 2)
    send(opener, topic, 3, partition=1)
    db = opener(background=background)
    db.execute(f"SET transaction_isolation = '{isolation}'")
    if background:
        opener.clock.advance(5_000)
    create(db, topic)
    db.execute("CREATE VIEW v AS SELECT id + 10 FROM s")
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) FROM s")
    if background:
        assert first(opener, db, "SELECT * FROM m") == [(3,)]
    assert rows(db, "SELECT * FROM m") == [(3,)]
    assert rows(db, "SELECT * FROM v") == [(11,), (12,), (13,)]
    assert rows(db) == [(1,), (2,), (3,)]


def test_upsert_and_what_comes_later(opener):
    topic = opener.kafka.create_topic(1)
    send(opener, topic, 1, 2, 2)
    db = opener()
    create(db, topic, "FORMAT JSON ENVELOPE UPSERT", "(id BIGINT PRIMARY KEY, x TEXT)")
    send(opener, topic, 3)
    assert [row[0] for row in rows(db)][:2] == [1, 2]


def test_files(opener, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.json").write_text('{"id": 1}\n{"id": 2}\nunfinished')
    (tmp_path / "d" / "b.json").write_text('{"id": 3}\n')
    db = opener()
    db.execute(f"CREATE SOURCE f (id BIGINT) FROM FILE '{tmp_path}/d/a.json' FORMAT JSON")
    assert rows(db, "SELECT * FROM f") == [(1,), (2,)]
    db.execute(f"CREATE SOURCE d (id BIGINT) FROM DIRECTORY '{tmp_path}/d' FORMAT JSON")
    assert rows(db, "SELECT * FROM d") == [(1,), (2,), (3,)]


def test_nothing_there_is_read_at_once(opener):
    db = opener()
    create(db, opener.kafka.create_topic(1))
    assert rows(db) == []
    topic = opener.kafka.create_topic(1)
    send(opener, topic, 1)
    create(db, topic, "FORMAT JSON WITH (start_offset = 'latest')", name="late")
    assert rows(db, "SELECT * FROM late") == []
    db.execute("CREATE SOURCE g FROM LOAD GENERATOR COUNTER")
    assert rows(db, "SELECT * FROM g") == []


@pytest.mark.parametrize("kind", ["COUNTER", "AUCTION", "BANK"])
@pytest.mark.parametrize("isolation", ["strict serializable", "serializable"])
def test_a_generator_is_readable_at_once_and_begins_with_its_first_tick(opener, kind, isolation):
    db = opener()
    db.execute(f"SET transaction_isolation = '{isolation}'")
    opener.clock.advance(7_000)  # what was before it is not generated
    db.execute(f"CREATE SOURCE g FROM LOAD GENERATOR {kind} (EVENTS PER TICK 4)")
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) FROM g")
    before = db.execute("SELECT * FROM m")
    for _ in range(2):
        opener.clock.advance(1_000)
        db.tick()
    every = rows(db, "SELECT count(*) FROM g")
    assert rows(db, "SELECT * FROM m") == every
    assert every[0][0] > before.rows[0][0]
    assert db.execute(f"SELECT * FROM m AS OF {before.timestamp}").rows == before.rows


def test_a_backlog_of_many_ticks_is_seen_whole_or_not_at_all(opener, monkeypatch):
    monkeypatch.setattr("reclock.ingest.intake.PULL_ROWS", 2)
    topic = opener.kafka.create_topic(1)
    send(opener, topic, *range(20))
    db = opener()
    create(db, topic, "FORMAT JSON WITH (max_rows_per_tick = 4)")
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) FROM s")
    for _ in range(2):
        opener.clock.advance(1_000)
        db.tick()
    ((since, upper),) = db.execute(
        "SELECT since, upper FROM reclock.frontiers WHERE object = 'm'"
    ).rows
    assert since == upper  # no time of it can be read yet
    with pytest.raises(Unreadable, match='source "s" is still loading') as caught:
        db.execute(f"SELECT * FROM m AS OF {upper - 1}")
    assert caught.value.detail == 'source "s" has bound 8 of 20 offsets'
    db = opener.reopened(db)  # which knows as much
    result = db.execute("SELECT * FROM m")
    assert result.rows == [(20,)]
    with pytest.raises(Unreadable, match='"m" was still loading then') as caught:
        db.execute(f"SELECT * FROM m AS OF {upper - 1}")
    first = int(caught.value.hint.rsplit(" ", 1)[1])
    assert db.execute(f"SELECT * FROM m AS OF {first}").rows == [(20,)]
    assert db.check() == []


def test_other_objects_are_read_meanwhile_and_writes_wait(opener, monkeypatch):
    monkeypatch.setattr("reclock.ingest.intake.PULL_ROWS", 2)
    topic = opener.kafka.create_topic(1)
    send(opener, topic, *range(9))
    db = opener()
    db.execute("CREATE TABLE t (id BIGINT)")
    create(db, topic, "FORMAT JSON WITH (max_rows_per_tick = 4)")
    db.execute("INSERT INTO t VALUES (1)")
    assert rows(db, "SELECT * FROM t") == [(1,)]
    db.execute("INSERT INTO t SELECT id FROM s")
    assert rows(db, "SELECT count(*) FROM t") == [(10,)]


def test_a_transaction_does_not_see_what_was_not_there_at_its_time(opener):
    topic = opener.kafka.create_topic(1)
    send(opener, topic, 1)
    db = opener()
    db.execute("CREATE TABLE t (id BIGINT)")
    create(db, topic)
    with db.session() as session:
        session.execute("BEGIN")
        session.execute("SELECT * FROM t")
        with pytest.raises(Unreadable, match="still loading"):
            session.execute("SELECT * FROM s")
        session.execute("ROLLBACK")
        assert session.execute("SELECT * FROM s").rows == [(1,)]


def test_a_broker_that_stops_is_named(opener):
    topic = opener.kafka.create_topic(1)
    send(opener, topic, 1)
    db = opener()
    create(db, topic)
    opener.kafka.running = False
    with pytest.raises(Unreadable) as caught:
        db.execute("SELECT * FROM s")
    assert caught.value.detail.startswith('source "s" has bound 0 of 1 offsets: ')
    opener.kafka.running = True
    assert rows(db) == [(1,)]


def test_a_source_that_fails_before_can_be_read_and_says_why(opener):
    topic = opener.kafka.create_topic(1)
    send(opener, topic, 1)
    db = opener()
    create(db, topic)
    opener.kafka.delete_topic(topic)
    opener.clock.advance(1_000)
    db.tick()
    with pytest.raises(Error) as caught:
        db.execute("SELECT * FROM s")
    assert caught.value.code == "55000"


def test_a_wait_ends_with_statement_timeout(opener):
    topic = opener.kafka.create_topic(1)
    send(opener, topic, 1, 2)
    db = opener(background=True)
    opener.kafka.running = True
    real = opener.kafka.cluster
    create(db, topic, "FORMAT JSON WITH (timestamp_interval = '1h')")
    db.execute("SET statement_timeout = '200ms'")
    begun = time.monotonic()
    with pytest.raises(StatementTimeout, match='source "s" is still loading') as caught:
        db.execute("SELECT * FROM s")
    assert time.monotonic() - begun < 30
    assert caught.value.detail == 'source "s" has bound 0 of 2 offsets'
    assert "source_status" in caught.value.hint
    del real


def test_a_first_read_while_records_come(opener):
    topic = opener.kafka.create_topic(1)
    send(opener, topic, *range(50))
    db = opener(background=True)
    opener.clock.advance(10_000)
    create(db, topic)
    send(opener, topic, 50)
    assert len(first(opener, db)) in (50, 51)
    with suppress(Error):
        db.execute("DROP SOURCE s")
