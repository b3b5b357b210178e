"""COPY FROM STDIN: a file of CSV into a table, against a PostgreSQL of the same run; its memory.

The server is a process of its own, so is the client, psycopg, which sends the file as it is, a
block at a time, first to the one and then to the other, in turns. Both make what they were told
durable before they say so: PostgreSQL runs with fsync and its usual settings. A row has two
numbers, a text, a fraction and a time. Memory is the most that a server of ours that has copied
nothing yet has of its own (``RssAnon``) while it takes a file, beyond what it had before: of a
third of the rows, which is more than it keeps at once, then of all.
"""

from __future__ import annotations

import statistics
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import sql
from pyarrow import csv

import reclock
from benchmarks.measure import Measure, seconds
from benchmarks.serve_rows import FLAT, SPAWNED, memory_growth
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.testing.postgres import running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 3_000_000
SOME = ROWS // 3
TIMES = 5
BLOCK = 1 << 16
KEYS = {"without a key": "", "with a primary key": " PRIMARY KEY"}
COLUMNS = "id BIGINT{key}, customer INT, note TEXT, amount DOUBLE PRECISION, at TIMESTAMP"
DURABLE = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "128MB"}


def _file(place: Path, count: int) -> Path:
    ids = np.arange(count)
    start = np.datetime64("2026-01-01T00:00:00", "us")
    table = pa.table({
        "id": ids,
        "customer": pa.array(ids % 1_000, pa.int32()),
        "note": [f"order {n} of customer {n % 1_000}" for n in range(count)],
        "amount": ids % 997 / 4,
        "at": start + ids.astype("timedelta64[s]"),
    })  # fmt: skip
    csv.write_csv(table, place, csv.WriteOptions(include_header=False))
    return place


def _serve(home: str, said: Any, stop: Any) -> None:
    with (
        reclock.open(Path(home) / "state") as db,
        serving(db, Options(port=0, trusts_local=True)) as server,
    ):
        said.put(server.port)
        stop.wait()


@contextmanager
def _served() -> Iterator[tuple[str, int]]:
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


def _copied(where: str, file: Path, results: Any) -> None:
    def send() -> None:
        with (
            file.open("rb") as data,
            client.cursor().copy("COPY items FROM STDIN (FORMAT csv)") as copy,
        ):
            while block := data.read(BLOCK):
                copy.write(block)

    with psycopg.connect(where, autocommit=True) as client:
        results.put(seconds(send))


def _copy(where: str, file: Path, key: str = "") -> float:
    """Copy a file into an empty table, from a process of its own; return how long it took."""
    with psycopg.connect(where, autocommit=True) as client:
        client.execute("DROP TABLE IF EXISTS items")
        client.execute(sql.SQL(f"CREATE TABLE items ({COLUMNS.format(key=key)})"))  # type: ignore[arg-type] # of constants
    results = SPAWNED.Queue()
    process = SPAWNED.Process(target=_copied, args=(where, file, results))
    process.start()
    taken = results.get()
    process.join()
    return float(taken)


def run() -> Iterator[Measure]:
    with tempfile.TemporaryDirectory() as home:
        some, whole = _file(Path(home) / "some", SOME), _file(Path(home) / "all", ROWS)
        with running_postgres(DURABLE) as theirs, _served() as (ours, _):
            for name, key in KEYS.items():
                _copy(ours, some, key)
                taken = [(_copy(ours, whole, key), _copy(theirs, whole, key)) for _ in range(TIMES)]
                mine, other = (statistics.median(each) for each in zip(*taken, strict=True))
                share = other / mine
                figure = f"{ROWS / mine:,.0f} rows/s, PostgreSQL {ROWS / other:,.0f}: {share:.0%}"
                yield Measure(f"copy: {ROWS:,} rows of CSV, {name}", figure, "≥ 60 %", share >= 0.6)
        few, many = _memory(some), _memory(whole)
        figure = f"{SOME:,} rows {few:.0f} MB, {ROWS:,} rows {many:.0f} MB"
        yield Measure("copy: memory", figure, f"≤ {FLAT:.0f} MB more", many <= few + FLAT)


def _memory(file: Path) -> float:
    """Return how many megabytes a new server takes while it copies a file: a median."""

    def once() -> float:
        with _served() as (ours, process):
            return memory_growth(process, lambda: _copy(ours, file))

    return statistics.median(once() for _ in range(3))
