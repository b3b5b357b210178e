"""Statements as arrays: the same times close as message by message, and restarts change nothing."""

from __future__ import annotations

import json
from collections import Counter
from itertools import permutations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cdcv2_reader import Reader
from reclock.arrangement.layout import diff_of, time_of
from reclock.change.cdcv2.message import Progress, Updates
from reclock.change.update import Update
from reclock.dataflow import delta as deltas
from reclock.errors import ConflictingStatements
from reclock.ingest.cdcv2.statements import Statements
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Timestamp
from strategies.changes import update_logs
from strategies.statements import deliveries

ROW = (pa.int64(), pa.string())
TYPES = (*ROW, *[pa.int64()] * 4, *[pa.string()] * 3)
DATA = st.tuples(st.none() | st.integers(0, 2), st.none() | st.sampled_from("ab"))
END = 1 << 70


def batch(*messages):
    rows = []
    for message in messages:
        if isinstance(message, Progress):
            upper = None if message.upper.is_closed else int(message.upper.element())
            counts = json.dumps([[int(t), n] for t, n in message.counts])
            lower = int(message.lower.element())
            rows.append((None, None, None, None, lower, upper, counts, None, None))
        else:
            rows += [(*u.data, int(u.time), u.diff, *[None] * 5) for u in message.array]
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(TYPES)]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(TYPES))])


def rows_of(delta):
    if delta is None:
        return []
    rows = zip(*(c.to_pylist() for c in deltas.rows_of(delta)), strict=True)
    return [*zip(rows, time_of(delta).tolist(), diff_of(delta).tolist(), strict=True)]


class Durable:
    """What a tick publishes: rows, the upper, and what waits."""

    def __init__(self):
        self.statements = Statements(Timestamp(0), len(ROW))
        self.published = Counter()
        self.temp = Counter()
        self.upper, self.complete = 0, False

    def tick(self, limit=None, most=1_000_000):
        offer = self.statements.offer(limit, most)
        if offer is None:
            return
        for (*row, _, _), time, diff in rows_of(offer.closed):
            assert self.upper <= time < offer.upper
            self.published[tuple(row), time] += diff
        for row, _, diff in rows_of(offer.waiting):
            self.temp[row] += diff
        self.upper, self.complete = int(offer.upper), offer.complete
        self.statements.settle(offer.upper, offer)

    def restart(self, order=None):
        """Begin with what is durable, in batches of any order: runs lie as they were written."""
        rows = [*self.temp.elements()]
        assert min(self.temp.values(), default=0) >= 0
        columns = [pa.array([r[i] for r in rows], kind) for i, kind in enumerate(TYPES)]
        made = pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(TYPES))])
        order = reversed(range(len(rows))) if order is None else order
        self.statements = Statements(
            Timestamp(self.upper), len(ROW), [made.slice(at, 1) for at in order]
        )


def is_remembered(row):
    """Whether a statement is not one that waits, but what is known of times that are complete."""
    *_, code, message = row
    return code is None and message is not None


def expected(log, upper):
    """The collection before an upper."""
    found = Counter()
    for data, time, diff in log:
        if time < upper:
            found[data, int(time)] += diff
    return {k: n for k, n in found.items() if n}


def published(durable):
    return {k: n for k, n in durable.published.items() if n}


@given(deliveries(update_logs(DATA)), st.data())
def test_the_same_times_close_as_message_by_message(delivery, data):
    reader, durable = Reader(), Durable()
    for message in delivery.messages:
        reader.receive(message)
        durable.statements.add(batch(message))
        if data.draw(st.booleans()):
            durable.tick()
            closed = END if reader.upper.is_closed else int(reader.upper.element())
            assert durable.complete == reader.upper.is_closed
            if not durable.complete:
                assert durable.upper == closed
            assert published(durable) == expected(delivery.collection, durable.upper)
        if durable.complete:
            break
    if not durable.complete:
        durable.tick()
    assert published(durable) == expected(delivery.collection, END)
    if not durable.complete:
        assert [row for row in durable.temp.elements() if not is_remembered(row)] == []


STEPS = st.tuples(st.integers(1, 3), st.sampled_from([1, 2, 1_000]), st.booleans())


@given(deliveries(update_logs(DATA)), st.lists(STEPS, max_size=8))
def test_a_summary_and_the_inputs_from_there_on_give_the_same(delivery, steps):
    """The seed's sentence: restarted at any time, from its summary, with the inputs from there."""
    durable, position, bound = Durable(), 0, 0
    for more, most, restart in [*steps, (len(delivery.messages), 1_000, True)]:
        some = delivery.messages[position : position + more]
        if some and not durable.complete:
            durable.statements.add(batch(*some))
            position += len(some)
            before = durable.upper
            durable.tick(most=most)
            if durable.upper > before:
                bound = position  # the positions that the last time is bound to
        if restart and not durable.complete:
            durable.restart()
            position = bound
    if not durable.complete and position < len(delivery.messages):
        durable.statements.add(batch(*delivery.messages[position:]))
    while not durable.complete:
        before = durable.upper
        durable.tick()
        if durable.upper == before:
            break
    assert published(durable) == expected(delivery.collection, END)


@given(deliveries(update_logs(DATA)), st.integers(0, 22))
def test_nothing_is_closed_beyond_a_limit(delivery, limit):
    durable = Durable()
    durable.statements.add(batch(*delivery.messages))
    durable.tick(limit)
    assert durable.upper <= limit
    assert not durable.complete
    assert published(durable) == expected(delivery.collection, durable.upper)
    durable.tick()
    assert published(durable) == expected(delivery.collection, END)


def statement(*updates):
    return Updates(tuple(Update(data, Timestamp(t), diff) for data, t, diff in updates))


def progress(lower, upper, *counts):
    end = Antichain() if upper is None else Antichain.of(Timestamp(upper))
    pairs = tuple((Timestamp(t), n) for t, n in counts)
    return Progress(Antichain.of(Timestamp(lower)), end, pairs)


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([statement(((1, "a"), 3, 1), ((1, "a"), 3, 2)), progress(0, 9, (3, 2))], "two diffs"),
        ([statement(((1, "a"), 3, 1), ((1, "b"), 3, 1)), progress(0, 9, (3, 1))], "more updates"),
        ([statement(((1, "a"), 3, 1)), progress(0, 9)], "more updates"),
        ([progress(0, 9, (3, 1)), progress(2, 5, (3, 2))], "two counts"),
    ],
)
def test_contradictions_publish_nothing(messages, reason):
    durable = Durable()

    def receive():
        for message in messages:
            durable.statements.add(batch(message))
            durable.tick()

    with pytest.raises(ConflictingStatements, match=reason):
        receive()
    assert not published(durable)


def test_what_is_published_leaves_nothing_behind():
    durable = Durable()
    for t in range(1, 200):
        counts = [(t - 1, 1)] if t > 1 else []
        durable.statements.add(batch(statement(((1, "a"), t, 1)), progress(t - 1, t, *counts)))
        durable.tick()
        assert durable.statements.waiting <= 2
        assert durable.statements.size < 2_000
    assert durable.upper == 199


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_what_waits_is_checked_by_all_that_is_remembered(order):
    """Progress over complete and open times waits; what it is checked by may lie after it."""
    durable = Durable()
    durable.statements.add(batch(statement(((1, "a"), 3, 1)), progress(0, 9, (3, 1), (7, 1))))
    durable.tick()
    assert durable.upper == 7
    durable.restart(order)
    durable.statements.add(batch(statement(((2, "b"), 7, 1))))
    durable.tick()
    assert durable.upper == 9


def test_what_is_published_is_remembered_though_nothing_came_since_a_restart():
    durable = Durable()
    durable.statements.add(batch(statement(((1, "a"), 3, 1), ((1, "b"), 7, 1))))
    durable.statements.add(batch(progress(0, 9, (3, 1), (7, 1))))
    durable.tick(limit=5)
    durable.restart()
    durable.tick()
    assert durable.upper == 9
    for late in (statement(((2, "a"), 3, 1)), statement(((2, "a"), 7, 1))):
        with pytest.raises(ConflictingStatements, match="after it was complete"):
            durable.statements.add(batch(late))
    durable.restart()
    assert min(durable.temp.values()) >= 0


def test_it_says_what_it_waits_for():
    said = Statements(Timestamp(0), len(ROW))
    assert said.waiting_for() is None
    said.add(batch(statement(((1, "a"), 5, 1))))
    assert said.waiting_for() == "no progress is stated for time 0"
    said.add(batch(progress(7, 9)))
    assert said.waiting_for() == "no progress is stated for time 0; it is stated from 7 on"
    said.add(batch(progress(0, 7, (5, 3), (6, 1))))
    assert said.waiting_for() == "time 5 lacks 2 of 3 updates"
    assert said.latest == 8


def test_a_fault_is_published_with_the_first_time_that_is_open():
    said = Statements(Timestamp(0), len(ROW))
    made = batch(statement(((1, "a"), 5, 1)), progress(0, 6, (5, 1)))
    fault = pa.RecordBatch.from_arrays(
        [*(pa.nulls(1, kind) for kind in TYPES[:-2]), pa.array(["22P04"]), pa.array(["bad"])],
        names=made.schema.names,
    )
    said.add(made)
    said.add(fault)
    offer = said.offer(None, 10)
    assert sorted(rows_of(offer.closed), key=repr) == [
        ((1, "a", None, None), 5, 1), ((None, None, "22P04", "bad"), 0, 1),
    ]  # fmt: skip
    assert all(is_remembered(row) for row, _, _ in rows_of(offer.waiting))


def test_a_fault_that_comes_while_a_tick_is_under_way_is_not_lost():
    said = Statements(Timestamp(0), len(ROW))
    made = batch(statement(((1, "a"), 5, 1)), progress(0, 6, (5, 1)))
    said.add(made)
    offer = said.offer(None, 10)
    fault = [*(pa.nulls(1, kind) for kind in TYPES[:-2]), pa.array(["22P04"]), pa.array(["bad"])]
    said.add(pa.RecordBatch.from_arrays(fault, names=made.schema.names))
    said.settle(offer.upper, offer)
    assert said.faults == [("22P04", "bad")]
    said.add(batch(progress(6, 8)))
    assert rows_of(said.offer(None, 10).closed) == [((None, None, "22P04", "bad"), 6, 1)]
