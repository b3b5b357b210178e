"""Debezium's messages: rows before and after, positions, keys, and what is missing."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from reclock.connectors.debezium import DebeziumDecode, fields_of, key_fields_of
from reclock.connectors.format.choose import decoder_of
from reclock.connectors.format.decoder import Field
from reclock.sql.statement.source import Format
from reclock.sql.types import BIGINT, TEXT

FIELDS = [
    Field("id", BIGINT, pa.int64(), nullable=False),
    Field("x", TEXT, pa.string(), nullable=True),
]
NAMES = (
    "part", "at", "id", "x", "old_id", "old_x", "has_before", "has_after", "op", "partition",
    "p1", "p2", "p3", "order", "code", "message",
)  # fmt: skip


def decode(*messages, keys=None):
    value = decoder_of(Format("json"), fields_of(FIELDS), {})
    key = decoder_of(Format("json"), key_fields_of(FIELDS[:1]), {})
    made = DebeziumDecode((pa.int64(), pa.string()), value, (("id", True), ("x", False)), key, (0,))
    raw = pa.record_batch(
        {
            "partition": pa.array([0] * len(messages), pa.int32()),
            "offset": pa.array(range(len(messages)), pa.int64()),
            "value": pa.array([m and json.dumps(m).encode() for m in messages], pa.binary()),
            "key": pa.array(keys or [None] * len(messages), pa.binary()),
        }
    )
    columns = [c.to_pylist() for c in made(raw).columns]
    return [dict(zip(NAMES, row, strict=True)) for row in zip(*columns, strict=True)]


def change(op="c", before=None, after=None, **source):
    return {"op": op, "before": before, "after": after, "source": source or None, "ts_ms": 1}


ONE = {"id": 1, "x": "a"}


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: {"schema": {"a": 1}, "payload": m}])
def test_rows_and_operations(wrap):
    made = decode(
        wrap(change(after=ONE)), wrap(change("d", before=ONE)), wrap(change("u", ONE, ONE))
    )
    assert [(r["op"], r["has_before"], r["has_after"]) for r in made] == [
        ("c", False, True), ("d", True, False), ("u", True, True)]  # fmt: skip
    assert [(r["id"], r["x"], r["old_id"]) for r in made] == [
        (1, "a", None), (1, None, 1), (1, "a", 1)]  # fmt: skip
    assert all(r["code"] is None for r in made)


def test_rows_without_an_operation_say_what_it_is():
    pairs = [(None, ONE), (ONE, None), (ONE, ONE), (None, None)]
    made = decode(*({"before": before, "after": after} for before, after in pairs))
    assert [r["op"] for r in made] == ["c", "d", "u", None]
    assert [r["code"] is None for r in made] == [True, True, True, False]


def test_mixed_wrapping():
    made = decode(change(after=ONE), {"payload": change("d", before=ONE)})
    assert [r["op"] for r in made] == ["c", "d"]


@pytest.mark.parametrize(
    ("source", "position"),
    [
        ({"file": "bin.07", "pos": 4, "row": 2}, (f"bin.{7:019}", 4, 2)),
        ({"file": "a.1000000", "pos": 4}, (f"a.{1000000:019}", 4, 0)),
        ({"file": "no number", "pos": 4}, ("no number", 4, 0)),
        ({"sequence": '["24", "30"]', "lsn": 30}, ("", 24, 30)),
        ({"sequence": '[null, "30"]'}, ("", 0, 30)),
        (
            {"commit_lsn": "01:02", "change_lsn": "01:03", "event_serial_no": 2},
            ("01:02/01:03", 2, 0),
        ),
        ({"lsn": 30}, (None, 0, 0)),
        ({"sequence": "nonsense"}, (None, 0, 0)),
        ({}, (None, 0, 0)),
    ],
)
def test_positions(source, position):
    (row,) = decode(change(after=ONE, **source))
    assert (row["p1"], row["p2"], row["p3"]) == position


def test_the_key_of_a_deletion_may_be_in_the_key_of_the_message():
    made = decode(change("d", before=None, after=None) | {"before": {}}, change("d", before=ONE),
                  keys=[b'{"id": 7}', b'{"payload": {"id": 8}}'])  # fmt: skip
    assert [r["id"] for r in made] == [7, 1]


def test_a_deletion_needs_no_row_but_its_key():
    (row,) = decode(change("d"), keys=[b'{"id": 7}'])
    assert (row["id"], row["op"], row["code"]) == (7, "d", None)


def test_a_tombstone_says_nothing():
    (row,) = decode(None, keys=[b'{"id": 7}'])
    assert (row["has_before"], row["has_after"], row["code"]) == (False, False, None)


@pytest.mark.parametrize(
    "message",
    [change(), {"nothing": 1}, change(after={"x": "a"}), change(after={"id": "no"}), {"after": 5}],
)
def test_what_is_missing_is_a_fault(message):
    (row,) = decode(message)
    assert row["code"] is not None
    assert "offset 0" in row["message"]
