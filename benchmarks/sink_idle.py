"""What years of idling leave in the consistency topic of a sink, on a real broker.

The sink's own state machine and producer, over the topic that reclock makes, with nothing to
write: a clock of its own moves one second a tick, a million times by default, which is eleven
days. Records come at most every ten seconds, each with a frontier and the positions of four
partitions. ``RECLOCK_BENCH_IDLE_TICKS`` sets another number.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Measure, seconds
from reclock.connectors.kafka.options import Connection
from reclock.coordinator.sink.exporter import IDLE_MS
from reclock.sinks.admin import KafkaAdmin
from reclock.sinks.connect import connect
from reclock.sinks.encode.json_format import JsonFormat
from reclock.sinks.encode.upsert import UpsertEncoder
from reclock.sinks.export import Exporter, Plan
from reclock.sinks.producer import Target
from reclock.sinks.topics import prepared
from reclock.sql import types as t
from reclock.sql.schema import Column
from reclock.testing.kafka import running_kafka
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from reclock.time.frontier import Frontier

TICKS = int(os.environ.get("RECLOCK_BENCH_IDLE_TICKS", "1000000"))


def size_of(directory: Path, topic: str) -> int:
    """Return the bytes of a topic's records on the broker's disk."""
    return sum(f.stat().st_size for f in directory.rglob(f"{topic}-0/*.log"))


def nothing(_lower: Frontier, _upper: Frontier) -> Iterable[pa.RecordBatch]:
    """Return no changes."""
    return ()


def positions(frontier: Frontier) -> dict[str, Any]:
    """Return where a source of four partitions may stand."""
    return {"orders": {str(part): int(frontier.element()) for part in range(4)}}


def run() -> Iterator[Measure]:
    """Measure the size of the topic after half of the ticks, and after all."""
    with running_kafka() as kafka:
        connection = Connection.of(kafka.address, {})
        prepared(KafkaAdmin(connection), "idle", "idle-consistency", keyed=True, partitions=1)
        target = Target("idle", "idle", "idle-consistency", "idle")
        encoder = UpsertEncoder(JsonFormat((Column("id", t.BIGINT),), (0,)), (0,))
        plan = Plan(target, encoder, nothing, positions, idle_ms=IDLE_MS)
        exporter = Exporter.resume(plan, connect(connection, target), at(0))

        def idle(first: int, last: int) -> None:
            for tick in range(first, last):
                exporter.advance(at(tick * 1_000), tick * 1_000)

        taken = seconds(lambda: idle(1, TICKS // 2))
        half = size_of(kafka.directory, target.consistency)
        taken += seconds(lambda: idle(TICKS // 2, TICKS))
        whole = size_of(kafka.directory, target.consistency)
        exporter.close()
        records = kafka.cluster().watermarks(target.consistency, [0])[0].high
    yield Measure(
        f"consistency topic after {TICKS:,} idle ticks",
        f"{whole / 1e6:.1f} MB (after half: {half / 1e6:.1f} MB), {records:,} offsets, "
        f"{taken:.0f} s",
        "≤ 20 MB",
        whole <= 20e6,
    )
