"""The server: from connecting to the first row, look-ups from many connections.

The database serves in this process, with ticks ten times a second and a writer that never rests, so
that there is much for look-ups to get in the way of; clients are processes of their own
(``clients.look_up``), which begin together when all are there. What look-ups cost the ticks is read
from ``reclock.ticks``, of as many seconds without and with them. Many rows are in ``serve_rows``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psycopg
import pyarrow as pa

import reclock
from benchmarks.clients.look_up import LOOK_UP
from benchmarks.measure import Measure, seconds
from reclock.server.background import serving
from reclock.server.server import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 1_000_000
CONNECTIONS = 10
SECONDS = 5.0
CONNECTS = 50


def _fill(db: reclock.Database) -> None:
    db.execute("CREATE TABLE items (id BIGINT PRIMARY KEY, customer BIGINT, amount BIGINT)")
    db.execute("CREATE TABLE log (n BIGINT)")
    ids = np.arange(ROWS)
    db.insert("items", pa.table({"id": ids, "customer": ids % 1_000, "amount": ids % 97}))
    db.execute("ALTER SYSTEM SET timestamp_interval = '100ms'")


def _write(db: reclock.Database, stop: threading.Event) -> None:
    with db.session() as session:
        while not stop.wait(0.05):
            session.execute("INSERT INTO log VALUES (1)")


def run() -> Iterator[Measure]:
    options = Options(port=0, trusts_local=True)
    with tempfile.TemporaryDirectory() as home, reclock.open(Path(home) / "state") as db:
        _fill(db)
        with serving(db, options) as server:
            where = f"host=127.0.0.1 port={server.port} user=me dbname=reclock"
            stop = threading.Event()
            writer = threading.Thread(target=_write, args=(db, stop))
            writer.start()
            try:
                yield _first_row(where)
                yield from _look_ups(db, where)
            finally:
                stop.set()
                writer.join()


def _first_row(where: str) -> Measure:
    def first() -> None:
        with psycopg.connect(where, autocommit=True) as client:
            client.execute("SET transaction_isolation = 'serializable'")
            client.execute(LOOK_UP, (7,)).fetchone()

    first()
    median = float(np.median([seconds(first) for _ in range(CONNECTS)]))
    name = "from connecting to the first row of a look-up"
    return Measure(name, f"p50 {median * 1e3:.1f} ms", "p50 ≤ 5 ms", median <= 0.005)


def _look_ups(db: reclock.Database, where: str) -> Iterator[Measure]:
    since = _now(db)
    time.sleep(SECONDS)
    alone = _ticks(db, since)
    taken, beside = _many(db, where, "serializable")
    rate = len(taken) / SECONDS
    name = f"look-ups from {CONNECTIONS} connections while ticks run"
    yield Measure(name, f"{rate:,.0f}/s, {_spread(taken)}", "≥ 1,000/s", rate >= 1_000)
    yield Measure("a tick without them, with them", f"{_spread(alone)}; {_spread(beside)}")
    taken, beside = _many(db, where, "strict serializable")
    name = "the same, strict: they wait for the tick that has all writes"
    yield Measure(name, f"{len(taken) / SECONDS:,.0f}/s, {_spread(taken)}; tick {_spread(beside)}")


def _many(db: reclock.Database, where: str, isolation: str) -> tuple[list[float], list[float]]:
    """Return how long look-ups took from many connections, and ticks meanwhile."""
    command = [sys.executable, "-m", "benchmarks.clients.look_up"]
    command += [where, isolation, str(ROWS), str(SECONDS)]
    with ExitStack() as all_of_them:
        clients = [
            all_of_them.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(CONNECTIONS)
        ]
        for client in clients:
            assert client.stdout is not None
            assert client.stdout.readline() == "ready\n"
        since = _now(db)
        told = [client.communicate for client in clients]
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            found = [out for out, _ in pool.map(lambda tell: tell("begin\n"), told)]
        return [t for out in found for t in json.loads(out)], _ticks(db, since)


def _now(db: reclock.Database) -> int:
    return max(row[0] for row in db.execute("SELECT timestamp FROM reclock.ticks").rows)


def _ticks(db: reclock.Database, since: int) -> list[float]:
    """Return how many seconds the ticks after a time took."""
    rows = db.execute("SELECT timestamp, millis FROM reclock.ticks WHERE phase = 'total'").rows
    return [millis / 1e3 for timestamp, millis in rows if timestamp > since]


def _spread(taken: list[float]) -> str:
    median, worst = np.percentile(taken, [50, 99]) * 1e3
    return f"p50 {median:.1f} ms, p99 {worst:.1f} ms"
