"""A key with several rows: the topic is a function of what the view has, at every time."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reclock.sinks.encode.json_format import JsonFormat
from reclock.sinks.encode.shadow import ShadowEncoder
from reclock.sql import types as t
from reclock.sql.schema import Column
from reclock.time.description import Description
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.time.frontier import Frontier

FORMAT = JsonFormat((Column("k", t.BIGINT), Column("v", t.TEXT)), (0,))
END = 8

Row = tuple[int, str]
Log = dict[int, Counter[Row]]


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Draw changes of a multiset; often of one that has each key once."""
    there: Counter[Row] = Counter()
    log: Log = {}
    unique = draw(st.booleans())
    for time in range(END):
        change: Counter[Row] = Counter()
        for _ in range(draw(st.integers(0, 4))):
            row = (draw(st.integers(0, 2)), draw(st.sampled_from("abc")))
            owned = [r for r in there if there[r] > 0 and r[0] == row[0]]
            gone = draw(st.sampled_from(owned)) if owned else None
            if gone is not None and (unique or draw(st.booleans())):
                there[gone] -= 1
                change[gone] -= 1
            if draw(st.booleans()):
                there[row] += 1
                change[row] += 1
        log[time] = Counter({row: diff for row, diff in change.items() if diff})
    return log


def batch(rows: list[tuple[Any, ...]], *names: str) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * (2 + len(names))
    kinds = (pa.int64(), pa.string(), *(pa.int64() for _ in names))
    arrays = [pa.array(c, kind) for c, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["c0", "c1", *names])


def contents(log: Log, before: int) -> Counter[Row]:
    total: Counter[Row] = Counter()
    for time, change in log.items():
        if time < before:
            for row, diff in change.items():
                total[row] += diff
    return Counter({row: n for row, n in total.items() if n})


def shows(log: Log, before: int) -> dict[int, Row]:
    """Return the row that shows of each key, by the definition."""
    found: dict[int, Row] = {}
    for row in contents(log, before):
        text = json.dumps({"k": row[0], "v": row[1]})
        other = found.get(row[0])
        if other is None or text > json.dumps({"k": other[0], "v": other[1]}):
            found[row[0]] = row
    return found


@given(logs(), st.integers(0, END))
def test_the_topic_is_a_function_of_the_view(log: Log, restart: int) -> None:
    def look(keys: Sequence[pa.Array], lower: Frontier) -> pa.RecordBatch:
        wanted = keys[0].to_pylist()
        assert len(wanted) == len(set(wanted))
        there = contents(log, int(lower.element())).items()
        time = int(lower.element()) - 1
        return batch([(*row, time, n) for row, n in there if row[0] in wanted], "time", "diff")

    encoder = ShadowEncoder(FORMAT, (0,), look)
    topic: dict[int, Row] = {}
    faults = set()
    for lower, upper in ((0, restart), (restart, END)):
        rows = [
            (*row, time, diff) for time in range(lower, upper) for row, diff in log[time].items()
        ]
        updates = batch(rows, "time", "diff") if rows else None
        encoded = encoder.encode(updates, Description(at(lower), at(upper), at(0)))
        messages = [m for chunk in encoded.chunks() for m in chunk]
        assert dict(encoded.times) == Counter(m.time for m in messages)
        assert [m.time for m in messages] == sorted(m.time for m in messages)
        faults |= {(f.time, json.loads(f.detail.split()[1])["k"]) for f in encoded.faults}
        for time in range(lower, upper):
            said = [m for m in messages if m.time == time]
            assert len({m.key for m in said}) == len(said), "one message for a key of a time"
            usual = contents(log, time), contents(log, time + 1)
            for message in said:
                key = json.loads(message.key or b"")["k"]
                value = None if message.value is None else json.loads(message.value)
                new = value and (value["k"], value["v"])
                alone = all(sum(n for r, n in c.items() if r[0] == key) <= 1 for c in usual)
                assert alone or topic.get(key) != new, "a shadow says nothing"
                if new is None:
                    topic.pop(key, None)
                else:
                    topic[key] = new
            assert topic == shows(log, time + 1)
    crowded = {
        (time, key)
        for time in range(END)
        for key in {row[0] for row in log[time]}
        if sum(n for row, n in contents(log, time + 1).items() if row[0] == key) > 1
    }
    assert faults == crowded


def test_shadows_come_and_go() -> None:
    log: Log = {
        0: Counter({(1, "b"): 1}),
        1: Counter({(1, "a"): 1}),
        2: Counter({(1, "b"): -1}),
        3: Counter({(1, "a"): -1}),
    }
    encoder = ShadowEncoder(FORMAT, (0,), lambda *_: batch([], "time", "diff"))
    rows = [(*row, time, diff) for time, change in log.items() for row, diff in change.items()]
    encoded = encoder.encode(batch(rows, "time", "diff"), Description(at(0), at(9), at(0)))
    assert [(m.time, m.value) for chunk in encoded.chunks() for m in chunk] == [
        (0, b'{"k":1,"v":"b"}'),
        (2, b'{"k":1,"v":"a"}'),
        (3, None),
    ]
    assert [fault.time for fault in encoded.faults] == [1]


def test_nothing_is_no_message() -> None:
    encoder = ShadowEncoder(FORMAT, (0,), lambda *_: batch([], "time", "diff"))
    assert list(encoder.encode(None, Description(at(0), at(9), at(0))).chunks()) == []
