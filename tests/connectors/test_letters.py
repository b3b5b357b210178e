"""Dead letters: what was read of records that do not decode, and where."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors import letters
from reclock.connectors.letters import Place, parted, place_of, placed, with_payload

WHOSE = 'source "s", partition'


def decoded(codes):
    """Return decoded records of one partition: part, offset, a row of one column, a fault."""
    texts = [
        None if code is None else placed(WHOSE, 0, at) + "bad" for at, code in enumerate(codes)
    ]
    size = len(codes)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([0] * size, pa.int32()),
            pa.array(range(size), pa.int64()),
            pa.array(range(size), pa.int64()),
            pa.array(codes, pa.string()),
            pa.array(texts, pa.string()),
        ],
        names=[f"c{i}" for i in range(5)],
    )


def raw(values):
    return pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})


@given(st.lists(st.sampled_from([None, "22P04"])))
def test_every_record_is_a_row_or_a_letter(codes):
    values = [b"v%d" % at for at in range(len(codes))]
    rows, found = parted([with_payload(decoded(codes), raw(values))], WHOSE)
    good = [at for at, code in enumerate(codes) if code is None]
    assert [at for batch in rows for at in batch.column(1).to_pylist()] == good
    assert all(batch.num_columns == 5 for batch in rows)
    told = [row for batch in found for row in batch.to_pylist()]
    assert told == [
        {"part": "0", "offset": at, "key": None, "value": values[at], "code": code, "reason": "bad"}
        for at, code in enumerate(codes)
        if code is not None
    ]


def test_a_long_value_is_cut():
    long = b"x" * (letters.MOST_BYTES + 1)
    _, (found,) = parted([with_payload(decoded(["22P04"]), raw([long]))], WHOSE)
    assert found.column("value")[0].as_py() == long[:-1]


@given(st.text(alphabet="abc/, :", min_size=1), st.integers(0, 2**62), st.text())
def test_the_place_of_a_fault_can_be_read_again(part, offset, reason):
    found = place_of(placed(WHOSE, part, offset) + reason, WHOSE)
    assert found == Place(part, offset, reason)


def test_other_errors_have_no_place():
    assert place_of("division by zero", WHOSE) is None
    assert place_of('source "s": topic "t" was deleted', WHOSE) is None
    assert place_of('source "other", partition 0, offset 1: bad', WHOSE) is None
