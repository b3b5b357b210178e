"""The topic of a sink holds its relation: what was encoded is read back, whatever the types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.dataflow import delta as deltas
from reclock.dataflow.types import arrow_type
from reclock.dataflow.values import from_python
from reclock.errors import SinkRegressed
from reclock.export import read_back
from reclock.export.read_back import Topic
from reclock.sinks.encode.choose import Wanted, encoder_of
from reclock.sinks.failure import Stop
from reclock.sql import types as t
from reclock.sql.parse import parse_statements
from reclock.sql.schema import Column, Schema
from reclock.sql.statement import CreateSink
from reclock.testing.schema_registry import running_registry
from reclock.time.description import Description
from reclock.time.frontier import at
from reclock.time.timestamp import Timestamp
from strategies.values import kinds, values_of

if TYPE_CHECKING:
    from collections.abc import Iterator


SHAPES = {
    "upsert": ("KEY (k)", "UPSERT", True),
    "debezium": ("KEY (k)", "DEBEZIUM", True),
    "repeated": ("KEY (k)", "DEBEZIUM", False),
    "keyless": ("", "DEBEZIUM", False),
    "materialize": ("", "MATERIALIZE", False),
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what is replaced soon, so that it is seen."""
    monkeypatch.setattr(read_back, "_SLACK", 3)


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    with running_registry() as served:
        yield served.url


def statement_of(shape: str, form: str) -> CreateSink:
    key, envelope, _ = SHAPES[shape]
    (parsed,) = parse_statements(
        f"CREATE SINK s FROM v INTO KAFKA BROKER 'b' TOPIC 'out' {key} FORMAT {form} "
        f"ENVELOPE {envelope}"
    )
    assert isinstance(parsed.statement, CreateSink)
    return parsed.statement


@st.composite
def histories(draw: st.DrawFn) -> tuple[t.Type, list[list[tuple[int, Any, int]]]]:
    """Return a type, and the changes of some times: rows (key, value) with diffs."""
    kind = draw(kinds().filter(lambda k: "json" not in str(k).lower()))
    pool = draw(st.lists(st.none() | values_of(kind), min_size=1, max_size=4))
    held: dict[int, int] = {}
    times = []
    for _ in range(draw(st.integers(0, 6))):
        changed = []
        for key in draw(st.sets(st.integers(0, 3), max_size=3)):
            old = held.pop(key, None)
            if old is not None:
                changed.append((key, old, -1))
            new = draw(st.none() | st.integers(0, len(pool) - 1))
            if new is not None and new != old:
                held[key] = new
                changed.append((key, new, 1))
            elif new is not None:
                held[key] = new
                changed.pop()
        times.append([(key, pool[at], diff) for key, at, diff in changed])
    return kind, times


def delta_of(kind: t.Type, time: int, rows: list[tuple[int, Any, int]]) -> pa.RecordBatch:
    columns = [
        pa.array([k for k, _, _ in rows], pa.int64()),
        from_python([v for _, v, _ in rows], kind),
    ]
    size = len(rows)
    diffs = np.array([d for *_, d in rows], np.int64)
    return deltas.consolidated(deltas.build(columns, np.full(size, time, np.int64), diffs))


def records(encoded: Any, begin: int) -> Iterator[tuple[pa.RecordBatch, Any]]:
    for chunk in encoded.chunks():
        size = len(chunk)
        keys = pa.nulls(size, pa.binary()) if chunk.keys is None else chunk.keys.cast(pa.binary())
        columns = [
            pa.array(np.zeros(size, np.int32)), pa.array(np.arange(begin, begin + size)),
            chunk.values.cast(pa.binary()), keys,
        ]  # fmt: skip
        yield (
            pa.RecordBatch.from_arrays(columns, names=["partition", "offset", "value", "key"]),
            (chunk.times),
        )


@pytest.mark.parametrize("form", ["JSON", "AVRO"])
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=20, deadline=None)
@given(histories())
def test_it_is_read_back(shape: str, form: str, registry: str, given: Any) -> None:
    kind, history = given
    text = f"AVRO USING CONFLUENT SCHEMA REGISTRY '{registry}'" if form == "AVRO" else form
    statement = statement_of(shape, text)
    schema = Schema((Column("k", t.BIGINT, nullable=False), Column("v", kind)))
    topic = f"t{abs(hash(str(kind)))}"
    wanted = Wanted(topic, statement.format, statement.envelope, statement.key)
    encoder = encoder_of(wanted, schema)
    whole = [deltas.empty((pa.int64(), arrow_type(kind)))]
    found: list[Any] = []
    for time, rows in enumerate(history, 1):
        if rows:
            updates = delta_of(kind, time, rows)
            encoded = encoder.encode(updates, Description(at(time), at(time + 1), at(time)))
            found += records(encoded, 100 * time)
            whole.append(delta_of(kind, 0, rows))
    made = Topic(statement, schema, SHAPES[shape][2])
    contents = made.contents(iter(found), Timestamp(len(history) + 1))
    assert contents.equals(deltas.consolidated(deltas.union(whole)))


def test_a_time_that_the_sink_has_not_come_to_is_not_its_own() -> None:
    statement = statement_of("keyless", "JSON")
    schema = Schema((Column("k", t.BIGINT), Column("v", t.BIGINT)))
    encoder = encoder_of(Wanted("t", statement.format, "debezium"), schema)
    updates = delta_of(t.BIGINT, 7, [(1, 2, 1)])
    found = list(records(encoder.encode(updates, Description(at(7), at(8), at(7))), 3))
    topic = Topic(statement, schema, keyed=False)
    assert topic.contents(found, Timestamp(8)).num_rows == 1
    for wrong, frontier, text in (
        (found, 7, "offset 3 of partition 0 is of time 7"),
        ([(pa.RecordBatch.from_pylist(
            [{"partition": 0, "offset": 5, "value": b"what?", "key": None}],
            pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary()),
                       ("key", pa.binary())])), np.array([3]))], 8, "offset 5"),
    ):  # fmt: skip
        with pytest.raises(Stop) as caught:
            topic.contents(iter(wrong), Timestamp(frontier))
        assert isinstance(caught.value.error, SinkRegressed)
        assert text in str(caught.value.error.detail)


def test_a_row_that_goes_before_it_comes_is_not_its_own() -> None:
    statement = statement_of("keyless", "JSON")
    schema = Schema((Column("k", t.BIGINT), Column("v", t.BIGINT)))
    encoder = encoder_of(Wanted("t", statement.format, "debezium"), schema)
    updates = delta_of(t.BIGINT, 7, [(1, 2, -1)])
    found = list(records(encoder.encode(updates, Description(at(7), at(8), at(7))), 3))
    with pytest.raises(Stop) as caught:
        Topic(statement, schema, keyed=False).contents(found, Timestamp(8))
    assert "never there" in str(caught.value.error.detail)
