"""Sinks over Spark: what the model's engine arranges for a sink, Spark's does too."""

from __future__ import annotations

import pytest

from reclock import ManualClock
from reclock.connectors.kafka.cluster import Span
from reclock.engine.place import segments_of
from reclock.session.database import Database
from reclock.spark.engine import SparkEngine
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.outlets import MemoryOutlets

pytestmark = pytest.mark.spark


def test_a_key_that_repeats_and_another_relation(tmp_path, spark):
    clock, kafka = ManualClock(1_000), MemoryKafka()
    engine = SparkEngine(segments_of(tmp_path))
    with Database(
        tmp_path, engine, clock=clock, background=False, outlets=MemoryOutlets(kafka)
    ) as db:

        def values(*statements):
            for statement in statements:
                db.execute(statement)
            clock.advance(1_000)
            db.tick()
            cluster = kafka.cluster("read_committed")
            high = cluster.watermarks("out", [0])[0].high
            batches = cluster.fetch("out", [Span(0, 0, high)], [])
            return [row["value"] for batch in batches for row in batch.to_pylist()]

        began = values(
            "SET statement_timeout = '90s'",
            "CREATE TABLE t (k BIGINT, v TEXT)",
            "INSERT INTO t VALUES (1, 'b'), (1, 'a'), (2, 'x')",
            "CREATE MATERIALIZED VIEW m AS SELECT k, upper(v) AS v FROM t",
            "CREATE MATERIALIZED VIEW g AS SELECT k, max(v) AS v FROM m GROUP BY k",
            "CREATE SINK s FROM m INTO KAFKA BROKER 'b' TOPIC 'out' KEY (k) NOT ENFORCED "
            "FORMAT JSON ENVELOPE UPSERT WITH (reuse_topic = true)",
        )
        assert sorted(began) == [b'{"k":1,"v":"B"}', b'{"k":2,"v":"X"}']
        assert values("DELETE FROM t WHERE v = 'b'")[2:] == [b'{"k":1,"v":"A"}']
        assert values("INSERT INTO t VALUES (2, 'w')")[3:] == []
        assert values("ALTER SINK s SET FROM g")[3:] == []
        assert values("DELETE FROM t WHERE v = 'x'")[3:] == [b'{"k":2,"v":"W"}']
        assert db.check() == []
