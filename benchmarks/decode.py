"""Decoding payloads into typed columns, against polars reading the same lines as it likes.

Records of about 80 bytes: two integers, an amount, a time. ``polars.read_ndjson`` is given
them as one text and makes floats and strings; ``decode`` is given the payloads and makes
exact decimals and times, checked. Rounds alternate, so both see the same machine; figures
are medians of rounds, in time of the process, because what else the machine does must not
count.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from benchmarks.measure import Measure
from reclock.connectors.format import Field, decoder_of
from reclock.dataflow.types import arrow_type
from reclock.sql.statement.source import Format
from reclock.sql.types import BIGINT, TEXT, TIMESTAMP, Array, Numeric, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.sql.types import Type

ROWS = 100_000
ROUNDS = 15

PLAIN: dict[str, Type] = {"id": BIGINT, "cust": BIGINT, "amount": Numeric(12, 2), "ts": TIMESTAMP}
NESTED: dict[str, Type] = {
    "id": BIGINT,
    "name": TEXT,
    "at": Record((("x", BIGINT), ("y", BIGINT))),
    "tags": Array(TEXT),
}


def plain_record(n: int) -> dict[str, object]:
    at = f"2026-01-01T{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}"
    return {"id": n * 7919, "cust": n % 9973, "amount": n % 100_000 / 100, "ts": at}


def nested_record(n: int) -> dict[str, object]:
    place = {"x": n % 100, "y": n % 7}
    return {"id": n, "name": f"name of {n}", "at": place, "tags": ["a", f"tag {n % 10}"][: n % 3]}


def run() -> Iterator[Measure]:
    """Measure what decoding costs, in times of polars.read_ndjson."""
    plain = [json.dumps(plain_record(n)).encode() for n in range(ROWS)]
    nested = [json.dumps(nested_record(n)).encode() for n in range(ROWS)]
    some_bad = [b'{"id": "x"}' if n % 1000 == 7 else record for n, record in enumerate(plain)]
    commas = [",".join(map(str, plain_record(n).values())).encode() for n in range(ROWS)]
    yield from compare("JSON", "json", PLAIN, plain, 1.3)
    yield from compare("JSON, one record in 1000 bad", "json", PLAIN, some_bad, lines=plain)
    yield from compare("JSON with records and arrays of text", "json", NESTED, nested)
    yield from compare("CSV", "csv", PLAIN, commas, lines=plain)


def compare(
    name: str,
    kind: str,
    columns: dict[str, Type],
    payloads: list[bytes],
    most: float | None = None,
    *,
    lines: list[bytes] | None = None,
) -> Iterator[Measure]:
    """Measure one decoder against polars on ``lines``, the same records unless given."""
    fields = [Field(column, t, arrow_type(t)) for column, t in columns.items()]
    decoder = decoder_of(Format(kind), fields, {})
    data = pa.array(payloads, pa.binary())
    text = b"\n".join(lines or payloads)
    works = {"decode": lambda: decoder.decode(data), "polars": lambda: pl.read_ndjson(text)}
    rounds = [{work: busy(run) for work, run in works.items()} for _ in range(ROUNDS)]
    took = {work: statistics.median(times[work] for times in rounds) for work in works}
    ratio = took["decode"] / took["polars"]
    yield Measure(f"{name}: decode", f"{ROWS / took['decode'] / 1e6:.2f}M rows/s")
    required = "" if most is None else f"≤ {most}"
    met = None if most is None else ratio <= most
    yield Measure(f"{name}: time of polars.read_ndjson", f"{ratio:.2f} ×", required, met)


def busy(work: Callable[[], object]) -> float:
    """Return the processor time that ``work`` takes, in all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start
