"""What idling leaves in the consistency topic of sinks, on a real broker.

The sinks' own state machine and producers, over the topic that reclock makes, with nothing to
write: their clock moves one second a tick, and a record comes every ten seconds, in a transaction
of its own, with a frontier and the positions of four partitions. Four sinks share the topic, so
that a million ticks, eleven days of one sink, take minutes. Nothing is waited for at the end: what
the broker has not compacted yet counts. ``RECLOCK_BENCH_IDLE_TICKS`` sets another number.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Measure, seconds
from reclock.connectors.kafka.options import Connection
from reclock.export.exporter import IDLE_MS
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

SINKS = 4
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
        prepared(KafkaAdmin(connection), "idle", "consistency", keyed=True, partitions=1)
        encoder = UpsertEncoder(JsonFormat((Column("id", t.BIGINT),), (0,)), (0,))
        exporters = []
        for name in (f"idle-{n}" for n in range(SINKS)):
            target = Target(name, "idle", "consistency", name)
            plan = Plan(target, encoder, nothing, positions, idle_ms=IDLE_MS)
            exporters.append(Exporter.resume(plan, connect(connection, target), at(0)))
        each = TICKS // SINKS

        def idle(first: int, last: int) -> None:
            def one(exporter: Exporter) -> None:
                for tick in range(first, last):
                    exporter.advance(at(tick * 1_000), tick * 1_000)

            with ThreadPoolExecutor(SINKS) as pool:
                list(pool.map(one, exporters))

        taken = seconds(lambda: idle(1, each // 2))
        half = size_of(kafka.directory, "consistency")
        taken += seconds(lambda: idle(each // 2, each))
        whole = size_of(kafka.directory, "consistency")
        for exporter in exporters:
            exporter.close()
        offsets = kafka.cluster().watermarks("consistency", [0])[0].high
    yield Measure(
        f"consistency topic after {TICKS:,} idle ticks",
        f"{whole / 1e6:.1f} MB (after half: {half / 1e6:.1f} MB), {offsets:,} offsets, "
        f"{taken:.0f} s",
        "≤ 20 MB",
        whole <= 20e6,
    )
