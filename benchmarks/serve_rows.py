"""The server: a million rows to one client, by every way of reading, and what they take of memory.

The server is a process of its own, so is each client (psycopg). The same rows are read from a
PostgreSQL in the same run, by the same client, in turns. Memory is the most that the server has
of its own (``RssAnon``: pages of mapped files are the system's to take back) while rows are sent,
beyond what it had before: of a tenth of the rows, then of all of them.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import sql

import reclock
from benchmarks.measure import Measure, seconds
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.testing.postgres import running_postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROWS = 1_000_000
SOME = ROWS // 10
TIMES = 3
FLAT = 32.0
"""So many megabytes more than for a tenth of the rows are noise: an allocator gives back late."""

COLUMNS = "id, customer, amount"
SPARK = "id + 1 AS id, customer, amount"

SPAWNED = multiprocessing.get_context("spawn")


def _serve(home: str, said: Any, stop: Any) -> None:
    """Serve a million rows, and a tenth of them, until told to stop."""
    with reclock.open(Path(home) / "state") as db:
        for name, count in (("items", ROWS), ("some", SOME)):
            db.execute(f"CREATE TABLE {name} (id BIGINT, customer BIGINT, amount BIGINT)")
            ids = np.arange(count)
            db.insert(name, pa.table({"id": ids, "customer": ids % 1_000, "amount": ids % 97}))
        with serving(db, Options(port=0, trusts_local=True)) as server:
            said.put(server.port)
            stop.wait()


@contextmanager
def _served() -> Iterator[tuple[str, int]]:
    """Give the address of a server and the number of its process."""
    said, stop = SPAWNED.Queue(), SPAWNED.Event()
    with tempfile.TemporaryDirectory() as home:
        process = SPAWNED.Process(target=_serve, args=(home, said, stop))
        process.start()
        try:
            port = said.get(timeout=120)
            assert process.pid is not None
            yield f"host=127.0.0.1 port={port} user=me dbname=reclock", process.pid
        finally:
            stop.set()
            process.join(60)
            process.kill()


def _stream(where: str, table: str, columns: str) -> int:
    with psycopg.connect(where, autocommit=True) as client, client.cursor() as cursor:
        query = sql.SQL(f"SELECT {columns} FROM {table}")  # type: ignore[arg-type] # of constants
        return sum(1 for _ in cursor.stream(query))


def _fetch(where: str, table: str, columns: str) -> int:
    with psycopg.connect(where) as client, client.cursor("rows") as cursor:
        cursor.itersize = 10_000
        cursor.execute(f"SELECT {columns} FROM {table}")  # type: ignore[arg-type] # of constants
        return sum(1 for _ in cursor)


def _copy(where: str, table: str, columns: str) -> int:
    query = sql.SQL(f"COPY (SELECT {columns} FROM {table}) TO STDOUT")  # type: ignore[arg-type]
    with psycopg.connect(where, autocommit=True) as client, client.cursor().copy(query) as copy:
        return sum(bytes(data).count(b"\n") for data in copy)


WAYS = {"stream": _stream, "cursor": _fetch, "COPY": _copy}


def _client(way: str, where: str, table: str, columns: str, results: Any) -> None:
    counted: list[int] = []
    taken = seconds(lambda: counted.append(WAYS[way](where, table, columns)))
    results.put((taken, counted[0]))


def _read(way: str, where: str, table: str = "items", columns: str = COLUMNS) -> float:
    """Read a table in a process of its own; return how long it took."""
    results = SPAWNED.Queue()
    process = SPAWNED.Process(target=_client, args=(way, where, table, columns, results))
    process.start()
    taken, counted = results.get()
    process.join()
    assert counted == (ROWS if table == "items" else SOME)
    return float(taken)


def _own_memory(process: int) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1_024
    raise AssertionError


def memory_growth(process: int, work: Callable[[], object]) -> float:
    """Return how many megabytes more than before a process has at most, during ``work``."""
    over = threading.Event()
    before = _own_memory(process)
    most = [before]

    def watch() -> None:
        while not over.wait(0.005):
            most[0] = max(most[0], _own_memory(process))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        over.set()
        watcher.join()
    return most[0] - before


def run() -> Iterator[Measure]:
    with _served() as (ours, process), running_postgres() as theirs:
        with psycopg.connect(theirs, autocommit=True) as client:
            client.execute("CREATE TABLE items (id BIGINT, customer BIGINT, amount BIGINT)")
            rows = f"generate_series(0, {ROWS - 1}) AS n"
            client.execute(f"INSERT INTO items SELECT n, n % 1000, n % 97 FROM {rows}")  # type: ignore[arg-type]
        for way in WAYS:
            yield _compared(way, ours, theirs)
        for way in ("stream", "cursor"):
            yield _flat(process, way, ours, COLUMNS)
        begun = time.perf_counter()
        _read("stream", ours, "some", SPARK)
        yield Measure(
            "the first rows from Spark, its start too", f"{time.perf_counter() - begun:.1f} s"
        )
        taken = _read("stream", ours, "items", SPARK)
        yield Measure(f"{ROWS:,} rows from Spark", f"{taken:.1f} s")
        yield _flat(process, "stream", ours, SPARK)


def _compared(way: str, ours: str, theirs: str) -> Measure:
    taken = [(_read(way, ours), _read(way, theirs)) for _ in range(TIMES)]
    mine, other = (statistics.median(some) for some in zip(*taken, strict=True))
    share = other / mine
    figure = f"{mine:.2f} s, PostgreSQL {other:.2f} s: {share:.0%}"
    required = way == "stream"
    name = f"{ROWS:,} rows to psycopg by {way}"
    return Measure(name, figure, "≥ 50 %" if required else "", share >= 0.5 if required else None)


def _flat(process: int, way: str, where: str, columns: str) -> Measure:
    _read(way, where, "some", columns)
    few = memory_growth(process, lambda: _read(way, where, "some", columns))
    many = memory_growth(process, lambda: _read(way, where, "items", columns))
    what = "what Spark computes" if columns == SPARK else "a scan"
    figure = f"{SOME:,} rows {few:.0f} MB, {ROWS:,} rows {many:.0f} MB"
    name = f"memory for {what} by {way}"
    return Measure(name, figure, f"≤ {FLAT:.0f} MB more", many <= max(few, 0.0) + FLAT)
