"""Tasks of a real Spark read a real topic; the driver sees references, and ticks bind them."""

from __future__ import annotations

import json

import pytest

import reclock
from reclock import ManualClock
from reclock.dataflow import stage
from reclock.testing.kafka_conformance import Record

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def rows_of(n: int) -> list[Record]:
    return [
        Record(json.dumps({"id": i, "k": i % 7}).encode(), str(i % 50).encode()) for i in range(n)
    ]


def test_tasks_read_and_ticks_bind_what_they_wrote(kafka, tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "SLICE", 400)
    monkeypatch.setattr("reclock.coordinator.source.task_reader.SLICE", 400)
    jobs = []
    read = stage.stage
    monkeypatch.setattr(
        "reclock.coordinator.spark_engine.stage",
        lambda *given: jobs.append(given[3]) or read(*given),
    )
    topic = kafka.create_topic(3)
    for partition in range(3):
        kafka.produce(topic, partition, *rows_of(1_000))
    clock = ManualClock(1_000)
    where = f"FROM KAFKA BROKER '{kafka.address}' TOPIC '{topic}' FORMAT JSON"
    views = {
        "v": "SELECT k, count(*) AS n, sum(id) AS s FROM a GROUP BY k",
        "w": "SELECT count(*) AS n, sum(k * 2) AS s FROM u",
    }
    with reclock.open(tmp_path, clock=clock, background=False) as db:
        db.execute("ALTER SYSTEM SET execution = 'spark'")
        db.execute(f"CREATE SOURCE a (id BIGINT, k INT) {where}")
        places = "INCLUDE PARTITION AS p, OFFSET AS o"
        db.execute(f"CREATE SOURCE u (id BIGINT, k INT) {where} {places}")
        for name, query in views.items():
            db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for _ in range(6):
            clock.advance(1_000)
            db.tick()
        assert any(title == "reading a" for title in jobs)
        by_key = {k: [i for i in range(1_000) if i % 7 == k] for k in range(7)}
        expected = [(k, 3 * len(ids), 3 * sum(ids)) for k, ids in by_key.items()]
        assert sorted(db.execute("SELECT * FROM v").rows) == expected
        total = 3 * sum(2 * (i % 7) for i in range(1_000))
        assert db.execute("SELECT * FROM w").rows == [(3_000, total)]
        kafka.produce(topic, 0, *rows_of(500))
        clock.advance(1_000)
        db.tick()
        times = db.execute("SELECT DISTINCT timestamp FROM reclock.bindings WHERE source = 'a'")
        for time in sorted(time for (time,) in times.rows if time > 1_500):
            kept = sorted(db.execute(f"SELECT * FROM v AS OF {time}").rows)
            assert kept == sorted(db.execute(f"{views['v']} AS OF {time}").rows), time
        assert db.execute("SELECT count(*) FROM a").rows == [(3_500,)]
        assert not [n for n in db._core.segments.names() if n.startswith("staged-")]
    with reclock.open(tmp_path, clock=clock, background=False) as db:
        assert db.execute("SELECT count(*) FROM a").rows == [(3_500,)]
