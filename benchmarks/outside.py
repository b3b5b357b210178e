"""Sources that bring their times: their price, and what they cost others.

The same rows as lines of JSON, and as CDCv2 messages of five hundred updates with one time each,
in files, so that no broker takes part; both until all is durable and can be read, rounds
alternate. What a tick of a source costs, reading aside, after few and after many published
times; the same of a source with a consistency topic, in memory, of which one transaction is stuck
and another always half there; and what ticks of others, a table and a source, cost
beside one in microseconds, whose rows wait for ever.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import reclock
from benchmarks.measure import Measure
from debezium import Change, Connector
from reclock.engine.place import segments_of
from reclock.session.database import Database
from reclock.sinks.topics import NewTopic
from reclock.spark.engine import SparkEngine
from reclock.testing.kafka_log import MemoryKafka

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 300_000
PER_TIME = 500
ROUNDS = 3
NOW = 1_763_280_000_000
COLUMNS = "(id BIGINT, x TEXT)"


def statements(first: int, count: int, per_time: int, at: int) -> Iterator[str]:
    """Yield messages about ``count`` times from ``at`` on, ``per_time`` updates each."""
    for n in range(count):
        ids = range(first + n * per_time, first + (n + 1) * per_time)
        rows = (
            {"data": {"id": i, "x": f"name {i % 1000}"}, "time": at + n, "diff": 1} for i in ids
        )
        yield json.dumps({"array": list(rows)}, separators=(",", ":"))
        counts = [{"time": at + n, "count": per_time}]
        lower = 0 if at + n == 1 else at + n
        said = {"lower": [lower], "upper": [at + n + 1], "counts": counts}
        yield json.dumps({"progress": said}, separators=(",", ":"))


def load(path: Path, name: str, rest: str) -> float:
    """Return how long it takes until all rows of a file are there."""
    clock = reclock.ManualClock(NOW)
    with reclock.open(tempfile.mkdtemp(), clock=clock, background=False) as db:
        begun = time.perf_counter()
        db.execute(f"CREATE SOURCE s {COLUMNS} FROM FILE '{path / name}' FORMAT JSON {rest}")
        while True:
            clock.advance(1_000)
            db.tick()
            state = db.execute("SELECT state FROM reclock.source_status").rows[0][0]
            if state == "running":
                taken = time.perf_counter() - begun
                break
        assert db.execute("SELECT records FROM reclock.arrangement_sizes LIMIT 1").rows
    return taken


def run() -> Iterator[Measure]:
    """Measure rows a second, the cost of a tick over time, and that of a bad neighbour."""
    path = Path(tempfile.mkdtemp())
    with (path / "plain").open("w") as file:
        file.writelines(f'{{"id": {i}, "x": "n{i % 1000}"}}\n' for i in range(ROWS))
    with (path / "stated").open("w") as file:
        file.writelines(f"{m}\n" for m in statements(0, ROWS // PER_TIME, PER_TIME, 1))
    plain, stated = [], []
    for _ in range(ROUNDS):
        plain.append(load(path, "plain", ""))
        stated.append(load(path, "stated", "ENVELOPE MATERIALIZE"))
    rates = [ROWS / statistics.median(found) for found in (plain, stated)]
    yield Measure("JSON lines → durable collection", f"{rates[0] / 1e3:,.0f} k rows/s")
    share = rates[1] / rates[0]
    figure = f"{rates[1] / 1e3:,.0f} k rows/s, {share:.0%} of plain"
    yield Measure("CDCv2 → durable collection", figure, "≥ 50 % of plain", share >= 0.5)
    yield from _over_time(path)
    for order in ("strict", "complete"):
        yield from _over_transactions(path, order)
    yield from _beside(path)


def _over_time(path: Path) -> Iterator[Measure]:
    clock = reclock.ManualClock(NOW)
    changes = path / "slow"
    changes.touch()
    with reclock.open(path / "over", clock=clock, background=False) as db:
        db.execute(
            f"CREATE SOURCE s {COLUMNS} FROM FILE '{changes}' FORMAT JSON ENVELOPE MATERIALIZE"
        )
        costs, at = [], 1
        for times in (1, 1_000, 1):
            for _ in range(20):
                with changes.open("a") as file:
                    file.writelines(f"{m}\n" for m in statements(at, times, 1, at))
                at += times
                db.tick()
            costs.append(statistics.median(_ticks(db)[-20:]))
    first, _, last = costs
    yield Measure("tick of a source, 20 times published", f"{first:.2f} ms")
    figure = f"{last:.2f} ms"
    yield Measure("tick of a source, 20,000 times published", figure, "< 1.5 ×", last < 1.5 * first)


def _over_transactions(path: Path, order: str) -> Iterator[Measure]:
    """Measure a whole tick, with what waits, after few and after many released transactions."""
    kafka = MemoryKafka()
    kafka.batch_rows = 10_000
    connector = Connector(kafka.create_topic(1), ["orders"], 3)
    topic, logs = connector.topics["orders"], [(connector.metadata, 0)]
    kafka.create(NewTopic(topic, partitions=3))
    logs += [(topic, partition) for partition in range(3)]
    state = path / order
    with Database(
        state, SparkEngine(segments_of(state)), clock=reclock.ManualClock(NOW), background=False,
        clusters=lambda connection: kafka.cluster(connection.isolation),
    ) as db:  # fmt: skip
        db.execute(
            f"CREATE SOURCE s (id BIGINT PRIMARY KEY, x TEXT) FROM KAFKA BROKER 'b' TOPIC '{topic}'"
            f" FORMAT JSON ENVELOPE DEBEZIUM WITH (consistency_topic = '{connector.metadata}', "
            f"transaction_order = '{order}')"
        )
        late = connector.transaction(Change("orders", 0, "x"), Change("orders", 1, "x"))
        if order == "complete":
            late = late[:-1]  # stuck for ever
        costs, key = [], 2
        for count in (1, 1, 500, 1):
            found = []
            for _ in range(20):
                messages = []
                for _ in range(count):
                    changes = [Change("orders", key + n, "x") for n in range(4)]
                    messages += [*late, *(now := connector.transaction(*changes))[:3]]
                    late, key = now[3:], key + 4
                for message in messages:
                    kafka.produce(message.topic, message.partition, message.record)
                begun = time.process_time()  # of all threads, whoever else is busy
                db.tick()
                found.append(1_000 * (time.process_time() - begun))
                for log in logs:
                    kafka.truncate(*log, kafka.partition(*log).high)
            costs.append(statistics.median(found))
    _, first, _, last = costs
    name = f"tick of transactions, {order}"
    yield Measure(f"{name}, 40 released", f"{first:.2f} ms")
    figure = f"{last:.2f} ms"
    yield Measure(f"{name}, 10,000 released", figure, "< 1.5 ×", last < 1.5 * first)


def _ticks(db: reclock.Database) -> list[float]:
    """Return what the last ticks cost, in milliseconds, by their times."""
    found: dict[int, float] = {}
    for at, millis in db.execute("SELECT timestamp, millis FROM reclock.ticks").rows:
        found[at] = found.get(at, 0.0) + float(millis)
    return [found[at] for at in sorted(found)]


def _beside(path: Path) -> Iterator[Measure]:
    found = {}
    (path / "ahead").write_text("".join(f"{m}\n" for m in statements(0, 20, 500, NOW * 1_000)))
    for bad in (False, True, False, True):
        clock = reclock.ManualClock(NOW)
        with reclock.open(tempfile.mkdtemp(), clock=clock, background=False) as db:
            db.execute("CREATE TABLE t (id BIGINT)")
            db.execute("CREATE SOURCE n FROM LOAD GENERATOR COUNTER (EVENTS PER TICK 100)")
            if bad:
                db.execute(
                    f"CREATE SOURCE s {COLUMNS} FROM FILE '{path / 'ahead'}' FORMAT JSON "
                    "ENVELOPE MATERIALIZE WITH (epoch_ms_timeline = true)"
                )
            for n in range(200):
                db.execute(f"INSERT INTO t VALUES ({n})")
                clock.advance(1_000)
                db.tick()
            found.setdefault(bad, []).extend(_ticks(db)[-100:])
    alone, beside = (statistics.median(found[bad]) for bad in (False, True))
    share = beside / alone - 1
    yield Measure("tick of a table and a source, alone", f"{alone:.2f} ms")
    figure = f"{beside:.2f} ms, {share:+.0%}"
    yield Measure("the same, with a source in microseconds", figure, "< 10 %", share < 0.1)
