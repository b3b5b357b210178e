"""PostgreSQL as a source against the same client library doing nothing else, in one run.

Snapshot: one table copied by readers of ranges of pages, one per core, into records, against bare
``COPY … TO STDOUT (FORMAT binary)`` of the same ranges by as many clients. Stream: changes of the
log taken in and made columns, against a loop that reads and decodes the same messages. Both are
ratios, so that they mean something on a busy machine.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.measure import Measure
from reclock.connectors.postgres.connection import Connection
from reclock.connectors.postgres.describe import Wanted, describe
from reclock.connectors.postgres.slot import drop, exported
from reclock.connectors.postgres.snapshot import END, Copy
from reclock.connectors.postgres.stream import Stream
from reclock.coordinator.source.postgres.assembly import Assembly, Relations
from reclock.coordinator.source.postgres.define import fields_of
from reclock.ids import ObjectId
from reclock.remap.batch import Range
from reclock.testing.postgres import running_postgres
from reclock.time.timestamp import Lsn, Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ROWS = 1_000_000
CHANGES = 200_000
CORES = os.cpu_count() or 1
SLOT = "benchmark"


def _run(session: Any, sql: str) -> Any:
    with session.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone() if cursor.description else None


def _bare_copy(connection: Connection, span: Range) -> int:
    session = connection.sql()
    low, high = f"({span.start},0)", f"({span.stop},0)"
    query = f"SELECT * FROM t WHERE ctid >= '{low}'::tid AND ctid < '{high}'::tid"
    with session.cursor() as cursor, open(os.devnull, "wb") as nowhere:
        cursor.copy_expert(f"COPY ({query}) TO STDOUT (FORMAT binary)", nowhere)
    session.close()
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
    """Measure both."""
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
            theirs = _seconds(lambda span: _bare_copy(connection, span), spans)
            ours = _seconds(lambda span: sum(b.num_rows for b in copy.read([span])), spans)
        rate = f"{ROWS / ours:,.0f} rows/s, bare COPY {ROWS / theirs:,.0f}"
        ratio = theirs / ours
        yield Measure(
            "snapshot, against bare COPY", f"{ratio:.0%} ({rate})", "≥ 60 %", ratio >= 0.6
        )
        _run(session, f"UPDATE t SET n = n + 1 WHERE id <= {CHANGES}")
        (end,) = _run(session, "SELECT pg_current_wal_flush_lsn()::text")
        bare = _drained(connection, begun.lsn, Lsn.parse(end), None)
        relations = Relations({table.oid: (ObjectId("u1"), table)})
        made = _drained(connection, begun.lsn, Lsn.parse(end), Assembly(relations, 0))
        rate = f"{CHANGES / made:,.0f} changes/s, bare decoding {CHANGES / bare:,.0f}"
        ratio = bare / made
        yield Measure(
            "stream, against bare decoding", f"{ratio:.0%} ({rate})", "≥ 50 %", ratio >= 0.5
        )
        session.close()
        drop(connection, SLOT)


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
