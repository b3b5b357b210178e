"""Raw records as the input of an envelope: nothing is left out, faults say where and why."""

from __future__ import annotations

import pickle

import pyarrow as pa

from reclock.connectors.format.choose import decoder_of
from reclock.connectors.format.decoder import Field
from reclock.connectors.records import NO_KEY, NO_VALUE, UNDECODABLE, Decode, Part, Typed
from reclock.sql.statement.source import Format
from reclock.sql.types import BIGINT, TEXT

ID = Field("id", BIGINT, pa.int64(), nullable=False)
X = Field("x", TEXT, pa.string(), nullable=True)


def raw(*records, key=False):
    columns = {
        "partition": pa.array([3] * len(records), pa.int32()),
        "offset": pa.array(range(10, 10 + len(records)), pa.int64()),
        "value": pa.array([r[1] if key else r for r in records], pa.binary()),
    }
    if key:
        columns["key"] = pa.array([r[0] for r in records], pa.binary())
    return pa.record_batch(columns)


def rows(batch):
    return list(zip(*(c.to_pylist() for c in batch.columns), strict=True))


def plain(**given):
    value = Part(decoder_of(Format("json"), [ID, X], {}), (0, 1))
    types = (pa.int64(), pa.string(), *given.pop("more", ()))
    return Decode(types, value, whose='source "s", partition', **given)


def test_good_rows_have_no_code():
    made = rows(plain()(raw(b'{"id": 1, "x": "a"}', b'{"id": 2}')))
    assert made == [(3, 10, 1, "a", None, None), (3, 11, 2, None, None, None)]


def test_faults_name_the_place_and_the_reason():
    bad = rows(plain()(raw(b'{"id": 1}', b"nope", None, b'{"x": "a"}')))
    assert bad[0][4:] == (None, None)
    assert [row[4] for row in bad[1:]] == [UNDECODABLE, NO_VALUE, UNDECODABLE]
    assert all(f'source "s", partition 3, offset {11 + n}: ' in bad[n + 1][5] for n in range(3))
    assert all(row[2:4] == (None, None) for row in bad[1:])


def test_inline_faults_are_rows():
    made = rows(plain(inline=True, more=(pa.string(),))(raw(b'{"id": 1}', b"nope", None)))
    assert [row[5:] for row in made] == [(None, None)] * 3
    assert made[0][4] is None
    assert "offset 11" in made[1][4]
    assert "no value" in made[2][4]


def upsert(*, inline=False):
    key = Part(decoder_of(Format("json"), [ID], {}), (0,))
    value = Part(decoder_of(Format("json"), [X], {}), (1,))
    types = (pa.int64(), pa.string(), *([pa.string()] if inline else []))
    return Decode(types, value, (key,), upserts=True, inline=inline)


def test_upsert_has_order_and_tombstones():
    good, gone = (b'{"id": 1}', b'{"x": "a"}'), (b'{"id": 1}', None)
    made = rows(upsert()(raw(good, gone, key=True)))
    assert made == [
        (3, 10, 1, "a", 10, False, None, None),
        (3, 11, 1, None, 11, True, None, None),
    ]


def test_a_fault_of_a_key_is_told_from_one_of_a_value():
    records = [(b'{"id": 1}', b"nope"), (None, b"{}"), (b"{}", b"{}"), (b"nope", b"nope")]
    made = rows(upsert()(raw(*records, key=True)))
    assert [row[6] for row in made] == [UNDECODABLE, NO_KEY, NO_KEY, NO_KEY]
    assert [row[2] for row in made] == [1, None, None, None]
    inlined = rows(upsert(inline=True)(raw(*records, key=True)))
    assert [row[7] for row in inlined] == [None, NO_KEY, NO_KEY, NO_KEY]
    assert inlined[0][4] is not None


def test_typed_records_keep_their_diff_and_their_faults():
    batch = pa.record_batch(
        {
            "partition": pa.array([0, 0], pa.int32()),
            "offset": pa.array([1, 1], pa.int64()),
            "n": pa.array([5, 4], pa.int64()),
            "diff": pa.array([1, -1], pa.int64()),
        }
    )
    made = Typed((pa.int64(),))(batch)
    assert made.schema.names[-1] == "diff"
    assert rows(made) == [(0, 1, 5, None, None, 1), (0, 1, 4, None, None, -1)]
    faulty = batch.drop_columns(["diff"]).append_column("fault", pa.array([None, "too big"]))
    assert [row[3] for row in rows(Typed((pa.int64(),))(faulty))] == [None, UNDECODABLE]


def test_a_decode_travels():
    decode = pickle.loads(pickle.dumps(upsert()))
    assert rows(decode(raw((b'{"id": 1}', b"{}"), key=True)))[0][2] == 1
