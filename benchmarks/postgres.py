"""PostgreSQL as a source against the same client library doing nothing else, in one run.

Snapshot: one table copied by readers of ranges of pages, one per core, into records, against bare
``COPY … TO STDOUT (FORMAT binary)`` of the same ranges by as many clients (psql, which throws the
bytes away). Stream: changes of the log taken in and made columns, against a loop that reads and
decodes the same messages. Both are ratios, so that they mean something on a busy machine. Then a
database copies the table by Spark's tasks, in a process of its own: how long it takes from the
statement until the rows can be read, with Spark up, and the time of the driver's processor, of its
Python and of its JVM, which has the tasks' side of the JVM in it, too. At last it follows pgbench,
which must reach the rate that is asked for, and its lag is looked at.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from statistics import median
from time import perf_counter, sleep
from typing import TYPE_CHECKING

import reclock
from benchmarks.measure import Measure
from benchmarks.spark.processes import DRIVER, DRIVER_JVM, cpu_by_kind
from reclock.config import parse_duration
from reclock.connectors.postgres.connection import Connection
from reclock.connectors.postgres.describe import Wanted, describe
from reclock.connectors.postgres.slot import drop, exported
from reclock.connectors.postgres.snapshot import END, Copy
from reclock.connectors.postgres.stream import Stream
from reclock.ids import ObjectId
from reclock.ingest.postgres.assembly import Assembly, Relations
from reclock.ingest.postgres.define import fields_of
from reclock.remap.batch import Range
from reclock.testing.postgres import _installed, running_postgres
from reclock.time.timestamp import Lsn, Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ROWS = 1_000_000
CHANGES = 200_000
CHANGE = 1_000
TURNS = 5
"""How often both copy, in turns: the best of each counts, so that others disturb less."""

TRANSACTIONS = 1_000
REACHED = 0.98
"""pgbench sends at random moments: what it must reach of that."""

SECONDS = 20
CORES = os.cpu_count() or 1
SLOT = "benchmark"
LAG = "SELECT lag_ms FROM reclock.source_status"


def _run(session: Any, sql: str) -> Any:
    with session.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone() if cursor.description else None


def _bare_copy(connection: Connection, span: Range) -> int:
    low, high = f"({span.start},0)", f"({span.stop},0)"
    query = f"SELECT * FROM t WHERE ctid >= '{low}'::tid AND ctid < '{high}'::tid"
    given = ["-X", "-q", "-d", connection.text, "-c", f"COPY ({query}) TO STDOUT (FORMAT binary)"]
    subprocess.run([_installed() / "bin" / "psql", *given], check=True, stdout=subprocess.DEVNULL)
    return 0


def _spans(pages: int) -> list[Range]:
    cuts = [pages * n // CORES for n in range(CORES)]
    stops = [*cuts[1:], END - 1]
    return [Range("t", a, b, Timestamp(0)) for a, b in zip(cuts, stops, strict=True)]


def _seconds(work: Any, spans: list[Range]) -> float:
    begun = perf_counter()
    with ThreadPoolExecutor(len(spans)) as pool:
        list(pool.map(work, spans))
    return perf_counter() - begun


def run() -> Iterator[Measure]:
    """Measure all of it."""
    settings = {"wal_level": "logical", "shared_buffers": "256MB", "max_wal_size": "4GB"}
    with running_postgres(settings) as url:
        connection = Connection(f"host={url.split('host=')[1]} user=postgres dbname=postgres")
        session = connection.sql()
        _run(session, "CREATE TABLE t (id INT PRIMARY KEY, n BIGINT, s TEXT, at TIMESTAMPTZ)")
        _run(session, "INSERT INTO t SELECT i, i * 7, 'some words ' || i, now() "
                      f"FROM generate_series(1, {ROWS}) i")  # fmt: skip
        _run(session, "VACUUM ANALYZE t")
        _run(session, "CREATE PUBLICATION p FOR TABLE t")
        (pages,) = _run(session, "SELECT relpages FROM pg_class WHERE relname = 't'")
        described = describe(connection, "p", [Wanted(None, "t", "t")])
        table = described.tables[0][1]
        with exported(connection, SLOT) as begun:
            copy = Copy(connection, table, fields_of(table), begun.snapshot)
            spans = _spans(pages)
            _seconds(lambda span: _bare_copy(connection, span), spans)  # warm
            _seconds(lambda span: next(copy.read([span]), None), spans)  # warm
            turns = [
                (
                    _seconds(lambda span: _bare_copy(connection, span), spans),
                    _seconds(lambda span: sum(b.num_rows for b in copy.read([span])), spans),
                )
                for _ in range(TURNS)
            ]
            theirs, ours = (min(some) for some in zip(*turns, strict=True))
        rate = f"{ROWS / ours:,.0f} rows/s, bare COPY {ROWS / theirs:,.0f}"
        ratio = theirs / ours
        yield Measure(
            "snapshot, against bare COPY", f"{ratio:.0%} ({rate})", "≥ 60 %", ratio >= 0.6
        )
        for low in range(0, CHANGES, CHANGE):  # small ones, which the server does not stream
            _run(session, f"UPDATE t SET n = n + 1 WHERE id > {low} AND id <= {low + CHANGE}")
        (end,) = _run(session, "SELECT pg_current_wal_flush_lsn()::text")
        bare = _drained(connection, begun.lsn, Lsn.parse(end), None)
        relations = Relations({table.oid: (ObjectId("u1"), table)})
        made = _drained(connection, begun.lsn, Lsn.parse(end), Assembly(relations, 0))
        rate = f"{CHANGES / made:,.0f} changes/s, bare decoding {CHANGES / bare:,.0f}"
        ratio = bare / made
        yield Measure(
            "stream, against bare decoding", f"{ratio:.0%} ({rate})", "≥ 50 %", ratio >= 0.5
        )
        drop(connection, SLOT)
        with ProcessPoolExecutor(1, get_context("spawn")) as alone:
            yield from alone.submit(_copied, connection).result()
        yield _lag(connection, url.split("host=")[1])
        session.close()


def _source(connection: Connection, tables: str) -> str:
    return (
        f"CREATE SOURCE s FROM POSTGRES CONNECTION '{connection.text}' PUBLICATION 'p' "
        f"FOR TABLES ({tables})"
    )


def _copied(connection: Connection) -> list[Measure]:
    """Return what a row that tasks copy costs the driver, and how soon it can be read."""
    with tempfile.TemporaryDirectory() as state, reclock.open(state) as db:
        db.execute("CREATE TABLE warm (n INT)")
        db.dataframe("SELECT n FROM warm").count()  # Spark is up
        db.execute("SET statement_timeout = 0")
        begun, spent = perf_counter(), cpu_by_kind([])
        db.execute(_source(connection, "t"))
        db.execute("SELECT count(*) FROM s")
        took, now = perf_counter() - begun, cpu_by_kind([])
        db.execute("DROP SOURCE s")
    python, java = (1e6 * (now[kind] - spent[kind]) / ROWS for kind in (DRIVER, DRIVER_JVM))
    return [
        Measure("copy by tasks, from the statement to readable", f"{ROWS / took:,.0f} rows/s"),
        Measure(
            "copy by tasks: driver CPU", f"{python:.2f} µs a row", "≤ 0.2", python <= 0.2
        ),
        Measure("copy by tasks: CPU of its JVM, with the tasks' side", f"{java:.2f} µs a row"),
    ]  # fmt: skip


def _lag(connection: Connection, host: str) -> Measure:
    """Return how far behind pgbench a database is."""
    program = _installed() / "bin" / "pgbench"
    given = [program, "-h", host, "-U", "postgres", "-q"]
    subprocess.run([*given, "-i", "-s", "5", "postgres"], check=True, stderr=subprocess.DEVNULL)
    session = connection.sql()
    _run(session, "ALTER PUBLICATION p SET TABLE pgbench_accounts, pgbench_tellers, "
                  "pgbench_branches, pgbench_history")  # fmt: skip
    session.close()
    tables = "pgbench_accounts, pgbench_tellers, pgbench_branches, pgbench_history"
    with tempfile.TemporaryDirectory() as state, reclock.open(state) as db:
        db.execute(_source(connection, tables))
        db.execute("SET statement_timeout = 0")
        db.execute("SELECT count(*) FROM s")
        load = subprocess.Popen(
            [*given[:5], "-n", "-c", "8", "-R", f"{TRANSACTIONS}", "-T", f"{SECONDS}", "postgres"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        sleep(2)
        found = []
        while load.poll() is None:
            sleep(0.1)
            found += [lag for (lag,) in db.execute(LAG).rows if lag is not None]
        said, _ = load.communicate()
        interval = parse_duration(db.execute("SHOW timestamp_interval").rows[0][0])
        db.execute("DROP SOURCE s")
    rate = float(next(line.split()[2] for line in said.splitlines() if line.startswith("tps")))
    middle, asked = median(found), REACHED * TRANSACTIONS
    figure = f"p50 {middle:.0f} ms, at {rate:,.0f} transactions/s"
    required = f"p50 ≤ {interval + 200} ms, at ≥ {asked:.0f}/s"
    met = middle <= interval + 200 and rate >= asked
    return Measure("lag behind pgbench", figure, required, met)


def _drained(connection: Connection, start: Lsn, end: Lsn, assembly: Assembly | None) -> float:
    """Return how long the log takes; the slot stays where it is."""
    stream = Stream(connection, SLOT, "p", start)
    messages = stream.read(end, 60.0)
    first = next(messages)  # the server has decoded the transaction
    begun = perf_counter()
    if assembly is not None:
        assembly.take(first)
    for message in messages:
        if assembly is not None:
            assembly.take(message)
    if assembly is not None:
        assembly.finish()
    took = perf_counter() - begun
    stream.close()
    return took
