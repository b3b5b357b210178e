"""The server: from connecting to the first row, look-ups from many connections.

The database serves in this process, at the default interval, with a writer that never rests;
clients are psycopg in processes of their own. What look-ups cost the ticks is read from
``reclock.ticks``, before and meanwhile. Many rows are in ``serve_rows``.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pyarrow as pa

import reclock
from benchmarks.measure import Measure, seconds
from reclock.server.background import serving
from reclock.server.server import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 1_000_000
CONNECTIONS = 10
SECONDS = 5.0
CONNECTS = 50
LOOK_UP = "SELECT * FROM items WHERE id = %s"


def _fill(db: reclock.Database) -> None:
    db.execute("CREATE TABLE items (id BIGINT PRIMARY KEY, customer BIGINT, amount BIGINT)")
    db.execute("CREATE TABLE log (n BIGINT)")
    ids = np.arange(ROWS)
    db.insert("items", pa.table({"id": ids, "customer": ids % 1_000, "amount": ids % 97}))


def _write(db: reclock.Database, stop: threading.Event) -> None:
    with db.session() as session:
        while not stop.wait(0.05):
            session.execute("INSERT INTO log VALUES (1)")


def _look_up(where: str, seed: int, results: Any) -> None:
    keys = np.random.default_rng(seed).integers(0, ROWS, 100_000).tolist()
    taken = []
    with psycopg.connect(where, autocommit=True) as client:
        client.execute("SET transaction_isolation = 'serializable'")
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            key = keys[len(taken)]
            taken.append(seconds(lambda: client.execute(LOOK_UP, (key,), prepare=True).fetchall()))  # noqa: B023
    results.put(taken)


def _tick_p99(db: reclock.Database) -> float:
    rows = db.execute("SELECT millis FROM reclock.ticks WHERE phase = 'total'").rows
    return float(np.percentile([millis for (millis,) in rows], 99))


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
                yield _many_look_ups(db, where)
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
    return Measure(name, f"p50 {median * 1e3:.1f} ms", "p50 ≤ 30 ms", median <= 0.03)


def _many_look_ups(db: reclock.Database, where: str) -> Measure:
    before = _tick_p99(db)
    spawned = multiprocessing.get_context("spawn")
    results = spawned.Queue()
    clients = [
        spawned.Process(target=_look_up, args=(where, seed, results)) for seed in range(CONNECTIONS)
    ]
    for client in clients:
        client.start()
    taken = [t for _ in clients for t in results.get()]
    for client in clients:
        client.join()
    rate, worst = len(taken) / SECONDS, float(np.percentile(taken, 99))
    ticks = f"tick p99 {before:.0f} → {_tick_p99(db):.0f} ms"
    figure = f"{rate:,.0f}/s, p99 {worst * 1e3:.1f} ms, {ticks}"
    name = f"look-ups from {CONNECTIONS} connections while ticks run"
    return Measure(name, figure, "≥ 1,000/s", rate >= 1_000)
