"""What a sink writes as Avro, fastavro and a source read back: the same values of every type."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.format.avro_decoder import AvroDecoder
from reclock.connectors.format.decoder import Field
from reclock.connectors.format.registry import Registry
from reclock.dataflow.types import arrow_type
from reclock.dataflow.values import from_python
from reclock.errors import InvalidDefinition, SourceUnavailable
from reclock.sinks.encode.avro_binary import binary, decimal_width
from reclock.sinks.encode.avro_format import AvroFormat, Ids, Schemas, change_schema, record_schema
from reclock.sinks.encode.encoder import Which
from reclock.sql import types as t
from reclock.sql.schema import Column
from reclock.testing.schema_registry import running_registry
from strategies.values import kinds, values_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.testing.schema_registry import SchemaRegistry


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with running_registry() as served:
        yield served


def same(a: Any, b: Any, kind: t.Type) -> bool:
    """Whether two values are one, with NaN as itself."""
    if a is None or b is None:
        return a is b
    match kind:
        case t.Array():
            return len(a) == len(b) and all(
                same(x, y, kind.element) for x, y in zip(a, b, strict=True)
            )
        case t.Record():
            return all(same(a[n], b[n], inside) for n, inside in kind.fields)
    if kind in t.FLOATS:
        return np.array_equal([a], [b], equal_nan=True)
    return a == b


@st.composite
def columns(draw: st.DrawFn) -> tuple[list[Column], list[pa.Array]]:
    found = draw(st.lists(kinds(), min_size=1, max_size=3))
    size = draw(st.integers(1, 6))
    described, made = [], []
    for i, kind in enumerate(found):
        nullable = draw(st.booleans())
        one = st.none() | values_of(kind) if nullable else values_of(kind)
        values = draw(st.lists(one, min_size=size, max_size=size))
        described.append(Column(f"f{i}", kind, nullable))
        made.append(from_python(values, kind))
    start = draw(st.integers(0, size - 1))
    return described, [column.slice(start) for column in made]


@given(columns())
def test_a_source_reads_back_what_a_sink_writes(given: tuple[list[Column], list[pa.Array]]) -> None:
    described, written = given
    payloads = AvroFormat(tuple(described), (), Ids(0, 0x01020304)).rows(written).to_pylist()
    assert all(payload[:5] == b"\0\1\2\3\4" for payload in payloads)
    schema = json.dumps(record_schema("row", described))
    fields = tuple(Field(c.name, c.type, arrow_type(c.type)) for c in described)
    data = pa.array([payload[5:] for payload in payloads], pa.binary())
    decoded = AvroDecoder(fields, schema).decode(data)
    assert decoded.faults is None
    for column, before, after in zip(described, written, decoded.columns, strict=True):
        for a, b in zip(before.to_pylist(), after.to_pylist(), strict=True):
            assert same(a, b, column.type)


@given(columns())
def test_bytes_are_those_of_fastavro(given: tuple[list[Column], list[pa.Array]]) -> None:
    """Another writer writes the same, where Avro leaves no choice: not in decimals."""
    described, written = given
    if any("decimal" in json.dumps(record_schema("row", [c])) for c in described):
        return
    schema = fastavro.parse_schema(record_schema("row", described))
    payloads = AvroFormat(tuple(described), (), Ids(0, 0)).rows(written).to_pylist()
    for payload in payloads:
        value = fastavro.schemaless_reader(io.BytesIO(payload[5:]), schema, None)
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, value)
        assert out.getvalue() == payload[5:]


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_longs(a: int, b: int) -> None:
    made = binary(pa.array([a, b]), t.BIGINT, nullable=False).to_pylist()
    for number, payload in zip((a, b), made, strict=True):
        assert fastavro.schemaless_reader(io.BytesIO(payload), "long", None) == number


@pytest.mark.parametrize("precision", range(1, 39))
def test_decimals_have_room(precision: int) -> None:
    width = decimal_width(precision)
    most = 10**precision - 1
    assert -(2 ** (8 * width - 1)) <= -most < most < 2 ** (8 * width - 1)


def test_changes_have_both_sides() -> None:
    described = (Column("id", t.BIGINT, nullable=False), Column("s", t.TEXT))
    old = [pa.array([1, None, 3]), pa.array(["a", None, "c"])]
    new = [pa.array([1, 2, None]), pa.array(["b", None, None])]
    which = Which(np.array([True, False, True]), np.array([True, True, False]))
    made = AvroFormat(described, (0,), Ids(7, 8))
    schema = fastavro.parse_schema(change_schema(described))
    read = [
        fastavro.schemaless_reader(io.BytesIO(payload[5:]), schema, None)
        for payload in made.changes(old, new, which).to_pylist()
    ]
    assert read == [
        {"before": {"id": 1, "s": "a"}, "after": {"id": 1, "s": "b"}},
        {"before": None, "after": {"id": 2, "s": None}},
        {"before": {"id": 3, "s": "c"}, "after": None},
    ]
    assert made.keys([pa.array([-1])]).to_pylist() == [b"\0\0\0\0\7\1"]


def test_schemas_are_registered_once(registry: SchemaRegistry) -> None:
    described = (Column("id", t.BIGINT, nullable=False), Column("s", t.TEXT))
    where = Registry.of(registry.url, {})
    schemas = Schemas(described, (0,), "debezium")
    ids = schemas.registered(where, "sales")
    assert ids == schemas.registered(where, "sales")
    assert ids.key != ids.value
    assert set(registry.asked) == {"/subjects/sales-key/versions", "/subjects/sales-value/versions"}
    fastavro.parse_schema(change_schema(described))
    keyless = Schemas(described, (), "upsert")
    made = AvroFormat(described, (), keyless.registered(where, "other"))
    assert "/subjects/other-key/versions" not in registry.asked
    assert made.rows([pa.array([1]), pa.array(["x"])]).to_pylist()[0][5:] == b"\x02\x02\x02x"


def test_known_schemas_are_looked_for_and_not_registered_again(registry: SchemaRegistry) -> None:
    where = Registry.of(registry.url, {})
    schemas = Schemas((Column("id", t.BIGINT),), (0,), "upsert")
    ids = schemas.registered(where, "sales")
    registry.asked.clear()
    assert AvroFormat.known(where, "sales", schemas, ids).ids == ids
    assert set(registry.asked) == {"/subjects/sales-key", "/subjects/sales-value"}


def test_a_registry_that_calls_schemas_otherwise_is_refused(registry: SchemaRegistry) -> None:
    where = Registry.of(registry.url, {})
    schemas = Schemas((Column("id", t.BIGINT),), (0,), "upsert")
    registry.register("other", {"type": "long"})
    with pytest.raises(InvalidDefinition, match='schema of "sales-value" 2; it was 1'):
        AvroFormat.known(where, "sales", schemas, Ids(2, 1))
    assert AvroFormat.known(where, "sales", schemas, Ids(3, 2)).ids == Ids(3, 2), "made up for"


def test_a_registry_that_does_not_take_a_schema(registry: SchemaRegistry) -> None:
    registry.refused = "Schema being registered is incompatible with an earlier schema"
    schemas = Schemas((Column("id", t.BIGINT),), (), "upsert")
    with pytest.raises(InvalidDefinition, match="incompatible"):
        schemas.registered(Registry.of(registry.url, {}), "t")
    with pytest.raises(SourceUnavailable):
        schemas.registered(Registry.of("http://127.0.0.1:1", {}), "t")


@pytest.mark.parametrize(
    "columns",
    [
        [Column("a b", t.BIGINT)],
        [Column("1a", t.BIGINT)],
        [Column("a", t.BIGINT), Column("a", t.TEXT)],
        [Column("a", t.Record((("x y", t.TEXT),)))],
        [Column("a", t.UNKNOWN)],
    ],
)
def test_columns_that_avro_cannot_have(columns: list[Column]) -> None:
    with pytest.raises(InvalidDefinition):
        record_schema("row", columns)


def test_records_in_records_have_names_of_their_own() -> None:
    inner = t.Record((("x", t.TEXT),))
    described = [Column("a", inner), Column("b", t.Array(t.Record((("x", inner),))))]
    fastavro.parse_schema(change_schema(described))
