"""CDCv2 messages: one row for each statement, and a message whole or not at all."""

from __future__ import annotations

import io
import json
from operator import itemgetter

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cdcv2_codec import encode
from reclock.change.cdcv2.message import Progress
from reclock.connectors.cdcv2 import Cdcv2Decode, decoder
from reclock.connectors.format.decoder import Field
from reclock.sql.statement.source import Format
from reclock.sql.types import BIGINT, JSON, TEXT
from strategies.changes import update_logs
from strategies.statements import deliveries

FIELDS = [
    Field("id", BIGINT, pa.int64(), nullable=False),
    Field("x", TEXT, pa.string(), nullable=True),
]
SCHEMA = {
    "type": "record",
    "name": "message",
    "fields": [
        {"name": "array", "type": ["null", {"type": "array", "items": {
            "type": "record", "name": "update", "fields": [
                {"name": "data", "type": {"type": "record", "name": "row", "fields": [
                    {"name": "id", "type": "long"}, {"name": "x", "type": ["null", "string"]}]}},
                {"name": "time", "type": "long"},
                {"name": "diff", "type": "long"}]}}]},
        {"name": "progress", "type": ["null", {"type": "record", "name": "progress", "fields": [
            {"name": "lower", "type": {"type": "array", "items": "long"}},
            {"name": "upper", "type": {"type": "array", "items": "long"}},
            {"name": "counts", "type": {"type": "array", "items": {
                "type": "record", "name": "counted", "fields": [
                    {"name": "time", "type": "long"}, {"name": "count", "type": "long"}]}}}]}]},
    ],
}  # fmt: skip
DATA = st.fixed_dictionaries({"id": st.integers(-2, 2), "x": st.none() | st.text(max_size=2)})


def decoded(values, given=Format("json")):  # noqa: B008 - a frozen value
    made = Cdcv2Decode(
        (pa.int64(), pa.string()),
        decoder(given, FIELDS, {}),
        (("id", True), ("x", False)),
    )
    raw = pa.record_batch(
        {
            "partition": pa.array([0] * len(values), pa.int32()),
            "offset": pa.array(range(len(values)), pa.int64()),
            "value": pa.array(values, pa.binary()),
        }
    )
    found = list(zip(*(c.to_pylist() for c in made(raw).columns[1:]), strict=True))
    if any(row[-1] is not None for row in found):
        assert found == sorted(found, key=itemgetter(0)), "a fault is where its message is"
    return sorted(found, key=itemgetter(0))  # which is stable


def stated(messages):
    """What messages state, as rows: offset, id, x, time, diff, lower, upper, counts, fault."""
    rows = []
    for at, message in enumerate(messages):
        if isinstance(message, Progress):
            counts = json.dumps([[int(t), n] for t, n in message.counts])
            upper = None if message.upper.is_closed else int(message.upper.element())
            lower = int(message.lower.element())
            rows.append((at, None, None, None, None, lower, upper, counts, None, None))
        else:
            rows += [
                (at, u.data["id"], u.data["x"], int(u.time), u.diff, *[None] * 5)
                for u in message.array
            ]
    return rows


@given(deliveries(update_logs(DATA)))
def test_every_statement_is_a_row(delivery):
    values = [encode(message).encode() for message in delivery.messages]
    assert decoded(values) == stated(delivery.messages)


@given(deliveries(update_logs(DATA)))
def test_avro_says_the_same(delivery):
    values = []
    for message in delivery.messages:
        written = io.BytesIO()
        made = {"array": None, "progress": None, **json.loads(encode(message))}
        fastavro.schemaless_writer(written, fastavro.parse_schema(SCHEMA), made)
        values.append(written.getvalue())
    avro = Format("avro", schema=json.dumps(SCHEMA))
    assert decoded(values, avro) == stated(delivery.messages)


GOOD = {"data": {"id": 1, "x": "a"}, "time": 3, "diff": 1}


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"array": [GOOD, {**GOOD, "diff": 0}]}, "no diff other than 0"),
        ({"array": [GOOD, {**GOOD, "time": -1}]}, "no time from 0 to"),
        ({"array": [{"data": {"id": 1}, "diff": 1}, GOOD]}, "no time from 0 to"),
        ({"array": [{**GOOD, "data": {"x": "a"}}]}, 'column "id" is NULL'),
        ({"array": [GOOD, None]}, "no data"),
        ({"array": [{**GOOD, "data": None}]}, "no data"),
        ({"array": [{**GOOD, "time": 2**63}]}, "cannot be decoded"),
        ({"array": [{**GOOD, "time": 2**62}]}, "no time from 0 to"),
        ({"progress": {"lower": [0], "upper": [2**62 + 1], "counts": []}}, "times are from 0 to"),
        ({"array": [GOOD], "progress": {"lower": [0], "upper": [1], "counts": []}}, "both"),
        ({}, "neither"),
        ([], "cannot be decoded"),
        ({"progress": {"lower": [], "upper": [1], "counts": []}}, "lower must have one time"),
        ({"progress": {"lower": [3], "upper": [3], "counts": []}}, "not before"),
        ({"progress": {"lower": [-3], "upper": [3], "counts": []}}, "its progress is wrong"),
        ({"progress": {"lower": [0], "upper": [3]}}, "counts is missing"),
        (
            {"progress": {"lower": [0], "upper": [3], "counts": [{"time": 3, "count": 1}]}},
            "is not in",
        ),
        ({"progress": {"lower": [0], "upper": [3], "counts": [{"time": 1}]}}, "progress is wrong"),
    ],
)
def test_a_message_that_is_wrong_states_nothing(message, reason):
    good = json.dumps({"array": [GOOD]}).encode()
    first, fault, last = decoded([good, json.dumps(message).encode(), good])
    assert first[1:5] == last[1:5] == (1, "a", 3, 1)
    assert fault[:8] == (1, *[None] * 7)
    assert fault[8] in ("22P04", "22004")
    assert "offset 1" in fault[9]
    assert reason in fault[9]


def test_a_message_without_a_value_is_a_fault():
    (fault,) = decoded([None])
    assert fault[8:] == ("22004", "partition 0, offset 0: it has no value")


UPDATE = '{"data":{"id":1,"x":"a","j":%s},"time":3,"diff":-1}'
INSIDE = '[{"data":1,"time":5,"diff":1},{"data":2,"time":6,"diff":2}]'
TEXTS = [
    "[]",
    UPDATE % "1",
    f"{UPDATE % '1'},{UPDATE % 'null'}",
    f"{UPDATE % INSIDE},{UPDATE % INSIDE}",
    f" {UPDATE % INSIDE} ,  {UPDATE % '[]'} ",
    '{"time":3,"diff":1,"data":{"id":1}},{"data":{"id":2},"time":3,"diff":1}',
    f'{UPDATE % "1"},{{"data":{{"id":"x"}},"time":3,"diff":1}}',
    f"{UPDATE % '1'},,{UPDATE % '1'}",
    f"{UPDATE % '1'}\n,{UPDATE % '1'}",
    UPDATE % '"\\"time\\":3,\\"diff\\":1},{\\"data\\":"',
    f'{UPDATE % "1"},{UPDATE % "1"}]}},{{"array":[{UPDATE % "2"}',
    '{"data":{"id":1},"time":3,"diff":1.5},{"data":{"id":2},"time":3,"diff":1}',
]


@pytest.mark.parametrize("inner", TEXTS)
@pytest.mark.parametrize(
    "around", ['{"array":[%s]}', ' { "array" : [ %s ] } ', '{"array":[%s],"y":1}']
)
def test_cutting_messages_changes_nothing(around, inner):
    columns = [*FIELDS, Field("j", JSON, pa.string(), nullable=True)]
    cutting = decoder(Format("json"), columns, {})
    values = pa.array([(around % inner).encode(), b'{"array":[]}', None], pa.binary())
    cut, whole = cutting.decode(values), cutting.whole.decode(values)
    assert [c.to_pylist() for c in cut.columns] == [c.to_pylist() for c in whole.columns]
    faults = [[None] * 3 if d.faults is None else d.faults.to_pylist() for d in (cut, whole)]
    assert faults[0] == faults[1]
