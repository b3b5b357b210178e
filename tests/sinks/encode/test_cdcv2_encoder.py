"""What ENVELOPE MATERIALIZE writes, read by the reference of CDCv2."""

from __future__ import annotations

import io
import json
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cdcv2_codec import decode
from model.cdcv2_reader import Reader
from reclock.change.cdcv2.message import Message, Updates
from reclock.sinks.encode import cdcv2
from reclock.sinks.encode.avro_format import AvroFormat, Ids, statement_schema
from reclock.sinks.encode.cdcv2 import AvroWording, Cdcv2Encoder, JsonWording
from reclock.sinks.encode.json_format import JsonFormat
from reclock.sql import types as t
from reclock.sql.schema import Column
from reclock.time.description import Description
from reclock.time.frontier import CLOSED, at

if TYPE_CHECKING:
    import random

COLUMNS = (Column("k", t.BIGINT), Column("v", t.TEXT))
ENCODER = Cdcv2Encoder(JsonWording(JsonFormat(COLUMNS)))
AVRO = Cdcv2Encoder(AvroWording(AvroFormat(COLUMNS, (), Ids(0, 7))))
SCHEMA = fastavro.parse_schema(statement_schema(COLUMNS))


def read_avro(value: bytes) -> Message:
    """Return a message in Avro as that which says the same in JSON."""
    assert value[:5] == b"\0\0\0\0\7"
    stream = io.BytesIO(value[5:])
    said = fastavro.schemaless_reader(stream, SCHEMA, None)
    assert not stream.read()
    assert isinstance(said, dict)
    return decode(json.dumps({name: part for name, part in said.items() if part is not None}))


ENCODERS = {"json": (ENCODER, decode), "avro": (AVRO, read_avro)}

Changes = dict[tuple[int, tuple[int | None, str | None]], int]

ROWS = st.tuples(st.none() | st.integers(0, 3), st.none() | st.text(max_size=3))
CHANGES = st.dictionaries(
    st.tuples(
        st.integers(0, 19),
        st.tuples(st.none() | st.integers(0, 3), st.none() | st.text(max_size=3)),
    ),
    st.integers(-3, 3).filter(bool),
    max_size=30,
)


def delta(changes: Changes) -> pa.RecordBatch | None:
    rows = [(*row, time, diff) for (time, row), diff in changes.items()]
    if not rows:
        return None
    kinds = (pa.int64(), pa.string(), pa.int64(), pa.int64())
    columns = zip(*rows, strict=True)
    arrays = [pa.array(c, kind) for c, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["c0", "c1", "time", "diff"])


@pytest.mark.parametrize("form", ENCODERS)
@given(CHANGES, st.lists(st.integers(1, 19), unique=True), st.randoms(), st.integers(1, 500))
def test_a_reader_closes_every_time_with_its_updates(
    form: str, changes: Changes, cuts: list[int], shuffle: random.Random, size: int
) -> None:
    encoder, read_message = ENCODERS[form]
    cdcv2.SIZE, before = size, cdcv2.SIZE  # type: ignore[misc]
    messages: list[bytes] = []
    bounds = [0, *sorted(cuts), 20]
    for lower, upper in pairwise(bounds):
        part = {c: d for c, d in changes.items() if lower <= c[0] < upper}
        encoded = encoder.encode(delta(part), Description(at(lower), at(upper), at(0)))
        counts: Counter[int] = Counter()
        for message in (m for chunk in encoded.chunks() for m in chunk):
            assert message.key is None
            assert message.value is not None
            assert lower <= message.time < upper
            decoded = read_message(message.value)
            if isinstance(decoded, Updates):
                counts[message.time] += 1
                assert {int(u.time) for u in decoded.array} == {message.time}
                assert len(decoded.array) == 1 or len(message.value) < size + 200
            messages.append(message.value)
        assert dict(encoded.times) == counts
    cdcv2.SIZE = before  # type: ignore[misc]
    messages += shuffle.sample(messages, len(messages) // 2)
    shuffle.shuffle(messages)
    reader = Reader()
    read: dict[Any, int] = {}
    for message in messages:
        closed = reader.receive(read_message(message))
        for u in () if closed is None else closed.updates:
            read[int(u.time), (u.data["k"], u.data["v"])] = u.diff
    assert reader.upper == at(20)
    assert read == changes


def test_progress_without_data_and_of_the_end() -> None:
    (idle,) = ENCODER.encode(None, Description(at(3), at(7), at(0))).chunks()
    assert [m.time for m in idle] == [6]
    assert idle.values[0].as_py() == b'{"progress":{"lower":[3],"upper":[7],"counts":[]}}'
    (end,) = ENCODER.encode(None, Description(at(3), CLOSED, at(0))).chunks()
    assert end.values[0].as_py() == b'{"progress":{"lower":[3],"upper":[],"counts":[]}}'
    assert list(ENCODER.encode(None, Description(at(3), at(3), at(0))).chunks()) == []
