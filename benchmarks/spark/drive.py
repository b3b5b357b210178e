"""Workloads at one place, in this process: from the first CREATE until all of it is there.

Each has a new database; they share one Spark, whose JVM has compiled what jobs need most, and which
has run a job of that database before the clock starts. The end is the tick, or the committed
transaction of the sink, that has the last row. For each a line of JSON is printed.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import reclock
from benchmarks.spark.processes import cpu_by_kind, forget_peak, peak_mebibytes

PAUSE = 0.25
PATIENCE = 900.0
WARM = """
CREATE TABLE warm (id BIGINT, x TEXT);
CREATE MATERIALIZED VIEW warmed AS
SELECT a.x, count(*) AS n FROM warm a JOIN warm b ON a.id = b.id GROUP BY a.x;
INSERT INTO warm VALUES (1, 'a'), (2, 'b');
"""
HEAT = """
CREATE MATERIALIZED VIEW heated AS
SELECT a.x, count(*) AS n FROM warm a JOIN warm b ON a.id = b.id GROUP BY a.x
"""
HEATS, HEAT_ROWS = 6, 50_000


@dataclass(frozen=True)
class Task:
    """What is to run: statements, and how many rows each source has."""

    name: str
    sql: str
    sizes: dict[str, int]
    sinks: bool


@dataclass(frozen=True)
class Spot:
    """Where: the setting ``execution``, the master, and the processes that are its workers."""

    execution: str
    master: str
    hosts: list[int]


@dataclass(frozen=True)
class Figures:
    """What a run took."""

    name: str
    seconds: float
    cpu: dict[str, float]
    peak: float
    ticks: dict[str, int]
    driver_rows: int
    checksum: list[str] = field(default_factory=list)
    """Of the view: how many rows, and the sum of their hashes."""


class _Ticks:
    """All ticks, of which the database remembers the last ones."""

    def __init__(self, db: Any) -> None:
        self._db = db
        self._seen: dict[int, tuple[str, int, int]] = {}
        self._before = self._look()

    def _look(self) -> dict[int, tuple[str, int, int]]:
        columns = "timestamp, place, rows, driver_rows"
        found = self._db.execute(f"SELECT {columns} FROM reclock.ticks WHERE phase = 'gather'").rows
        return {timestamp: (place, rows, ours) for timestamp, place, rows, ours in found}

    def look(self) -> None:
        """Note those that are new."""
        found = self._look()
        self._seen |= {time: found[time] for time in found.keys() - self._before.keys()}

    def places(self) -> dict[str, int]:
        """Return how many ran where, of those that had something to do."""
        found: dict[str, int] = {}
        for place, rows, _ in self._seen.values():
            if rows:
                found[place] = found.get(place, 0) + 1
        return found

    def driver_rows(self) -> int:
        """Return how many rows the driver had in its memory."""
        return sum(rows for _, _, rows in self._seen.values())


def drive(spot: Spot, tasks: list[Task]) -> None:
    """Run workloads one after the other; print what each took."""
    with (
        tempfile.TemporaryDirectory() as path,
        reclock.open(Path(path) / "state", master=spot.master) as first,
    ):
        _heat(first, spot.execution)  # and Spark stays until the last one is done
        for task in tasks:
            print(json.dumps(asdict(_driven(spot, task))), flush=True)


def _driven(spot: Spot, order: Task) -> Figures:
    """Run a workload until all of it is there."""
    with (
        # A task that is cancelled may write for a moment more.
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as path,
        reclock.open(Path(path) / "state", master=spot.master) as db,
    ):
        _warm(db, spot.execution)
        gc.collect()
        forget_peak()
        ticks = _Ticks(db)
        before, begun = cpu_by_kind(spot.hosts), time.perf_counter()
        db.execute(order.sql)
        query = "SELECT source, bound FROM reclock.source_status"
        rounds = 0
        while any(bound != order.sizes[name] for name, bound in db.execute(query).rows):
            _wait(begun)
            rounds += 1
            if rounds % 20 == 0:
                ticks.look()
        if order.sinks:
            _await_sink(db, begun)
        taken, after = time.perf_counter() - begun, cpu_by_kind(spot.hosts)
        ticks.look()
        return Figures(
            order.name, taken, {kind: after[kind] - before[kind] for kind in after},
            peak_mebibytes(), ticks.places(), ticks.driver_rows(),
            [] if order.sinks else _checksum(db),
        )  # fmt: skip


def _heat(db: Any, execution: str) -> None:
    """Have jobs run as often as a pipeline's do in its first half a minute."""
    db.execute(f"ALTER SYSTEM SET execution = '{_forced(execution)}'")
    db.execute("CREATE TABLE warm (id BIGINT, x TEXT)")
    db.execute(HEAT)
    for nth in range(HEATS):
        series = f"generate_series({nth * HEAT_ROWS + 1}, {(nth + 1) * HEAT_ROWS}) AS g (i)"
        db.execute(f"INSERT INTO warm SELECT i, 'x' || i % 1000 FROM {series}")
        assert db.execute("SELECT sum(n) FROM heated").rows == [((nth + 1) * HEAT_ROWS,)]
    db.execute("DROP MATERIALIZED VIEW heated; DROP TABLE warm")


def _forced(execution: str) -> str:
    return "driver" if execution == "driver" else "spark"


def _warm(db: Any, execution: str) -> None:
    """Start Spark and its workers; leave nothing but that."""
    db.execute(f"ALTER SYSTEM SET execution = '{_forced(execution)}'")
    db.execute(WARM)
    assert db.execute("SELECT count(*) FROM warmed").rows == [(2,)]
    assert len(db.dataframe("SELECT id, x FROM warm").collect()) == 2
    db.execute("DROP MATERIALIZED VIEW warmed; DROP TABLE warm")
    db.execute(f"ALTER SYSTEM SET execution = '{execution}'")


def _wait(begun: float) -> None:
    assert time.perf_counter() < begun + PATIENCE, "it takes too long"
    time.sleep(PAUSE)


def _await_sink(db: Any, begun: float) -> None:
    bound = db.execute("SELECT timestamp FROM reclock.bindings").rows
    last = max(timestamp for (timestamp,) in bound)
    while True:
        query = "SELECT state, frontier, detail FROM reclock.sink_status"
        state, frontier, detail = db.execute(query).rows[0]
        assert state != "failed", detail
        if frontier is not None and frontier > last:
            return
        _wait(begun)


def _checksum(db: Any) -> list[str]:
    frame = db.dataframe("SELECT * FROM result")
    found = frame.selectExpr("count(*)", "sum(cast(xxhash64(*) AS DECIMAL(38, 0)))").collect()
    return [str(value) for value in found[0]]


if __name__ == "__main__":
    place, *orders = map(json.loads, sys.stdin)
    drive(Spot(**place), [Task(**order) for order in orders])
