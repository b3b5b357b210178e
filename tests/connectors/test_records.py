"""Raw records as the input of an envelope: nothing is left out, faults say where and why."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from reclock.connectors.faults import NO_KEY, NO_VALUE, UNDECODABLE
from reclock.connectors.format.choose import decoder_of
from reclock.connectors.format.decoder import Field
from reclock.connectors.records import Decode, Part, Typed, decoded
from reclock.errors import SourceUnavailable
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


MICROS = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize("ms", [2**62, -(2**62), 253_402_300_800_000, -62_135_596_800_001])
def test_a_time_that_there_is_not_is_a_fault_of_its_record(ms):
    records = raw(b'{"id": 1}', b'{"id": 2}', b'{"id": 3}')
    times = pa.array([0, ms, None], pa.timestamp("ms", tz="UTC"))
    made = plain(more=(MICROS,), included=((2, "timestamp"),))(
        records.append_column("timestamp", times)
    )
    assert made.column(4).cast(pa.int64()).to_pylist() == [0, None, None]
    assert made.column(5).to_pylist() == [None, UNDECODABLE, None]
    assert "offset 11: its timestamp is not in the years" in made.column(6)[1].as_py()


class Failing:
    """A decoder that does what none should."""

    whose = 'source "s", partition'

    def __init__(self, good, error):
        self.good, self.error = good, error

    def __call__(self, batch):
        if b"bad" in batch.column("value").to_pylist():
            raise self.error
        return self.good(batch)


def test_a_record_that_no_decoder_survives_stops_nobody():
    kinds = (pa.int64(), pa.string(), pa.string(), pa.string())
    decode = Failing(plain(), KeyError("what"))
    values = [b"bad" if n in (3, 4, 9) else b'{"id": %d}' % n for n in range(10)]
    made = rows(decoded(decode, raw(*values), kinds))
    assert [row[:3] for row in made] == [
        (3, 10 + n, None if n in (3, 4, 9) else n) for n in range(10)
    ]
    assert [row[1] for row in made if row[4] == UNDECODABLE] == [13, 14, 19]
    assert "offset 13: it cannot be decoded: 'what'" in made[3][5]


def test_what_is_not_the_fault_of_records_is_tried_again():
    for error in (SourceUnavailable("not now"), OSError("not now")):
        with pytest.raises(type(error)):
            decoded(Failing(plain(), error), raw(b"bad"), ())
