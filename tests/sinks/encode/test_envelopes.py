"""Envelopes against their definitions, row by row, on random changes."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.sinks.encode import debezium, encoder, upsert
from reclock.sinks.encode.debezium import DebeziumEncoder
from reclock.sinks.encode.json_format import JsonFormat
from reclock.sinks.encode.upsert import UpsertEncoder
from reclock.sql import types as t
from reclock.sql.schema import Column
from reclock.time.description import Description
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.sinks.encode.encoder import Encoded, Encoder

COLUMNS = (Column("k", t.BIGINT), Column("v", t.TEXT))
FORMAT = JsonFormat(COLUMNS, (0,))
WHOLE = Description(at(0), at(100), at(0))

Changes = dict[tuple[int, tuple[int | None, str | None]], int]
"""The diff of each row at each time."""

ROWS = st.tuples(st.none() | st.integers(0, 3), st.none() | st.sampled_from("ab"))
CHANGES = st.dictionaries(
    st.tuples(st.integers(0, 4), ROWS), st.integers(-3, 3).filter(bool), max_size=12
)


@pytest.fixture(autouse=True, params=[3, 16_384])
def chunk_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (upsert, debezium):
        monkeypatch.setattr(module, "CHUNK", request.param)
    assert encoder.CHUNK > 3


def delta(changes: Changes) -> pa.RecordBatch:
    """Return the changes in an order of no meaning."""
    rows = [(*row, time, diff) for (time, row), diff in changes.items()]
    columns = list(zip(*rows, strict=True)) or [()] * 4
    kinds = (pa.int64(), pa.string(), pa.int64(), pa.int64())
    arrays = [pa.array(c, kind) for c, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["c0", "c1", "time", "diff"])


def messages_of(encoded: Encoded) -> Iterator[tuple[int, Any, Any]]:
    for chunk in encoded.chunks():
        for message in chunk:
            key = None if message.key is None else json.loads(message.key)
            value = None if message.value is None else json.loads(message.value)
            yield message.time, key, value


def check_times(encoded: Encoded) -> list[tuple[int, Any, Any]]:
    """Return the messages; times ascend, counts are right, a second look is the same."""
    messages = list(messages_of(encoded))
    times = [time for time, _, _ in messages]
    assert times == sorted(times)
    assert dict(encoded.times) == Counter(times)
    assert [time for time, _ in encoded.times] == sorted(set(times))
    assert list(messages_of(encoded)) == messages
    return messages


def row_of(value: dict[str, Any]) -> tuple[Any, ...]:
    return value["k"], value["v"]


@given(CHANGES)
def test_upsert(changes: Changes) -> None:
    encoded = UpsertEncoder(FORMAT, (0,)).encode(delta(changes), WHOLE)
    messages = check_times(encoded)
    touched = {(time, row[0]) for time, row in changes}
    said = {(time, key["k"]): value for time, key, value in messages}
    assert said.keys() == touched
    assert len(messages) == len(touched), "one message for each key of a time"
    broken = set()
    for (time, key), value in said.items():
        added = {r: d for (at_, r), d in changes.items() if (at_, r[0]) == (time, key) and d > 0}
        assert (value is None) == (not added)
        assert value is None or row_of(value) in added
        if sum(added.values()) > 1:
            broken.add((time, json.dumps({"k": key}, separators=(",", ":"))))
    assert {(f.time, f.detail.split()[1]) for f in encoded.faults} == broken
    assert all(fault.code == "23505" for fault in encoded.faults)


@given(CHANGES, st.booleans())
def test_debezium(changes: Changes, keyed: bool) -> None:
    encoded = DebeziumEncoder(FORMAT, (0,) if keyed else ()).encode(delta(changes), WHOLE)
    messages = check_times(encoded)
    sums: Counter[tuple[int, tuple[Any, ...]]] = Counter()
    alone: dict[tuple[int, Any], set[str]] = {}
    order: dict[tuple[int, Any], list[int]] = {}
    for time, key, value in messages:
        before, after = value["before"], value["after"]
        for row, diff in ((before, -1), (after, 1)):
            if row is not None:
                sums[time, row_of(row)] += diff
                order.setdefault((time, row["k"] if keyed else None), []).append(diff)
                assert key == ({"k": row["k"]} if keyed else None)
        assert before or after
        assert keyed or not (before and after), "without a key nothing is paired"
        if not (before and after):
            side = "before" if before else "after"
            alone.setdefault((time, key and key["k"]), set()).add(side)
    assert {c: d for c, d in sums.items() if d} == changes
    assert sum(abs(d) for d in changes.values()) == sum(
        (m[2]["before"] is not None) + (m[2]["after"] is not None) for m in messages
    )
    assert encoded.faults == ()
    if keyed:
        assert all(len(sides) == 1 for sides in alone.values()), "what can be paired is"
    else:
        assert all(diffs == sorted(diffs) for diffs in order.values()), "first what takes away"


def test_a_pair_is_of_one_time() -> None:
    changes: Changes = {(1, (7, "a")): 1, (2, (7, "a")): -1, (2, (7, "b")): 1, (3, (7, "b")): -1}
    encoded = DebeziumEncoder(FORMAT, (0,)).encode(delta(changes), WHOLE)
    a, b = {"k": 7, "v": "a"}, {"k": 7, "v": "b"}
    assert [(time, value) for time, _, value in check_times(encoded)] == [
        (1, {"before": None, "after": a}),
        (2, {"before": a, "after": b}),
        (3, {"before": b, "after": None}),
    ]


def encoders() -> list[Encoder]:
    return [UpsertEncoder(FORMAT, (0,)), DebeziumEncoder(FORMAT, (0,)), DebeziumEncoder(FORMAT)]


@pytest.mark.parametrize("made", encoders(), ids=["upsert", "debezium", "keyless"])
def test_nothing_is_no_message(made: Encoder) -> None:
    encoded = made.encode(delta({}), WHOLE)
    assert encoded.times == ()
    assert list(encoded.chunks()) == []
    assert encoded.faults == ()


@pytest.mark.parametrize("made", encoders(), ids=["upsert", "debezium", "keyless"])
def test_a_snapshot_keeps_its_order(made: Encoder) -> None:
    changes: Changes = {(5, (n, None)): 1 for n in range(10)}
    encoded = made.encode(delta(changes), WHOLE)
    rows = [value.get("after", value) for _, _, value in check_times(encoded)]
    assert [row["k"] for row in rows] == list(range(10))


def test_faults_are_bounded() -> None:
    changes: Changes = {(0, (n // 2, f"{n}")): 1 for n in range(2000)}
    batch = delta(changes)
    encoded = UpsertEncoder(FORMAT, (0,)).encode(batch, WHOLE)
    assert 0 < len(encoded.faults) < 1000
    assert dict(encoded.times) == {0: 1000}
