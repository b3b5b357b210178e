"""Transactions step by step: TEMP and OUTPUT are the definition's, and restarts change nothing."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.arrangement.layout import diff_of, time_of
from reclock.change.transactions import Mention, Row, Transaction, counted, summary
from reclock.dataflow import delta as deltas
from reclock.dataflow.envelope import DEBEZIUM, TRANSACTIONS, envelope_fields, input_types
from reclock.errors import ConflictingStatements
from reclock.ingest.transactions.release import Member, complete_together
from reclock.ingest.transactions.transactions import Transactions
from reclock.time.timestamp import Timestamp

ROW = (pa.int64(), pa.string())
NAMES = ["k", "x", *(f.name for f in envelope_fields(TRANSACTIONS, ROW))]
KINDS = input_types(TRANSACTIONS, ROW)
PUBLISHED = ["k", "x", *(f.name for f in envelope_fields(DEBEZIUM, ROW))]
PARTITIONS = 3


def batch(rows):
    columns = [
        pa.array([row.get(n) for row in rows], kind) for n, kind in zip(NAMES, KINDS, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(NAMES))])


def of_row(row):
    return {
        "k": row.key, "x": f"{row.partition} {row.offset}",
        "has_before": False, "has_after": True, "op": "c",
        "partition": row.partition, "order": row.offset, "transaction": row.transaction,
        "total_order": row.order, "collection_order": row.order,
    }  # fmt: skip


def of_mention(mention, offset):
    status = "END" if mention.ends else "BEGIN"
    return {"order": offset, "transaction": mention.id, "status": status, "count": mention.rows}


def rows_of(delta, names):
    if delta is None:
        return []
    columns = [c.to_pylist() for c in deltas.rows_of(delta)]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return [*zip(rows, time_of(delta).tolist(), diff_of(delta).tolist(), strict=True)]


class Durable:
    """What ticks publish: rows by their times, what waits, and how far was read."""

    def __init__(self, *, strict, remembered=1_000):
        self.options = {"strict": strict, "remembered": remembered}
        self.waiting = Transactions(Timestamp(0), ROW, (0,), **self.options)
        self.output, self.temp = Counter(), Counter()
        self.upper = 1
        self.read = self.bound = (0, (0,) * PARTITIONS)

    def take(self, mentions, logs, read):
        """Read on, up to an offset of each log."""
        begun, offsets = self.read
        ended, others = read
        said = [of_mention(m, n) for n, m in enumerate(mentions[begun:ended], begun)]
        if said:
            self.waiting.add(batch(said))
        for log, start, stop in zip(logs, offsets, others, strict=True):
            if log[start:stop]:
                self.waiting.add(batch([of_row(row) for row in log[start:stop]]))
        self.read = read

    def tick(self, most=1_000_000, at=None):
        """Publish; out of turn, at times that are given."""
        if at is None and not self.options["strict"]:
            at = Timestamp(self.upper)
        offer = self.waiting.offer(None, most, at)
        if offer is None:
            return False
        for row, time, diff in rows_of(offer.closed, PUBLISHED):
            assert self.upper <= time < offer.upper
            assert diff == 1
            partition, offset = map(int, row["x"].split())
            self.output[partition, offset, time] += 1
        for row, time, diff in rows_of(offer.waiting, NAMES):
            assert time == offer.upper - 1
            self.temp[tuple(row.items())] += diff
        assert min(self.temp.values(), default=0) >= 0
        self.upper, self.bound = int(offer.upper), self.read
        self.waiting.settle(offer.upper, offer)
        return True

    def restart(self):
        """Begin with what is durable: the summary at t, and the inputs at remap[t]."""
        durable = [batch([dict(row) for row in self.temp.elements()])]
        begun = Timestamp(self.upper if self.upper > 1 else 0)
        self.waiting = Transactions(begun, ROW, (0,), durable, **self.options)
        self.read = self.bound


@st.composite
def streams(draw):
    """Transactions as a connector writes them: whole, not ended, repeated from somewhere on."""
    events, last = [], 0
    for n in range(draw(st.integers(0, 5))):
        name, rows = f"t{n}", draw(st.lists(st.integers(0, 3), max_size=4))
        ours = bool(rows) or draw(st.booleans())
        events.append(Mention(name, ends=False))
        events += [(name, order, key) for order, key in enumerate(rows, 1)]
        if draw(st.integers(0, 7)):
            events.append(Mention(name, ends=True, rows=len(rows) if ours else None))
        if not draw(st.integers(0, 4)):
            events += events[draw(st.integers(last, len(events))) :]
        if not draw(st.integers(0, 4)):
            events.append((None, None, draw(st.integers(0, 3))))
        last = max(last, len(events) - 6)
    mentions = [e for e in events if isinstance(e, Mention)]
    if mentions and not draw(st.integers(0, 3)):
        mentions.pop(draw(st.integers(0, len(mentions) - 1)))
    logs = [[] for _ in range(PARTITIONS)]
    rows = [e for e in events if not isinstance(e, Mention)]
    for at, (name, order, key) in enumerate(rows):
        log = logs[key % PARTITIONS]
        log.append(Row(key % PARTITIONS, len(log), name, order, key, f"{at}"))
    return mentions, logs


@st.composite
def walks(draw, mentions, logs):
    """How far each log is read, step by step, to the end of all."""
    steps, at = [], [0] * (1 + PARTITIONS)
    ends = [len(mentions), *map(len, logs)]
    for _ in range(draw(st.integers(0, 4))):
        at = [draw(st.integers(n, end)) for n, end in zip(at, ends, strict=True)]
        steps.append((at[0], tuple(at[1:])))
    return [*steps, (ends[0], tuple(ends[1:]))]


def defined(mentions, logs, read, *, strict):
    rows = [row for log, n in zip(logs, read[1], strict=True) for row in log[:n]]
    return summary(mentions[: read[0]], rows, strict=strict)


def waits(temp):
    """Return what waits, as the definition has it, and what is remembered beside it."""
    rows, numbers, ends, done, passed = set(), {}, {}, set(), set()
    for pairs in temp.elements():
        row = dict(pairs)
        name = row["transaction"]
        if row["status"] is None and row["number"] is not None:
            passed.add((row["k"], row["number"]))
        elif row["status"] is None:
            rows.add((row["partition"], row["order"]))
        elif row["status"] == "DONE":
            done.add(row["number"])
        else:
            numbers[name] = row["number"]
            if row["status"] == "END":
                ends[name] = row["count"]
    mentioned = {Transaction(n, i, i in ends, ends.get(i)) for i, n in numbers.items()}
    open_ = min((t.number for t in mentioned), default=1 << 60)
    assert all(number > open_ for _, number in passed)  # older ones may still come
    return rows, mentioned, done


@settings(max_examples=40)
@given(streams(), st.booleans(), st.data())
def test_the_summary_is_that_of_the_definition_at_every_time(stream, strict, data):
    mentions, logs = stream
    state = Durable(strict=strict)
    for read in data.draw(walks(mentions, logs)):
        state.take(mentions, logs, read)
        if not state.tick():
            continue
        said = defined(mentions, logs, read, strict=strict)
        found = Counter({(p, o): n for (p, o, _), n in state.output.items()})
        assert found == Counter((row.partition, row.offset) for _, row in said.output)
        rows, mentioned, done = waits(state.temp)
        assert rows == {(r.partition, r.offset) for r in said.temp if isinstance(r, Row)}
        assert mentioned == {t for t in said.temp if isinstance(t, Transaction)}
        assert done.isdisjoint(t.number for t in mentioned)
        if strict:
            numbers = {(r.partition, r.offset): n for n, r in said.output if n}
            assert all(numbers.get((p, o), t) == t for p, o, t in state.output)


@settings(max_examples=40)
@given(streams(), st.booleans(), st.booleans(), st.data())
def test_restarted_at_any_time_with_its_summary_and_inputs_it_gives_the_same(
    stream, strict, reclocked, data
):
    """The sentence of the reclocking document, word by word."""
    mentions, logs = stream
    one, other = Durable(strict=strict), Durable(strict=strict)
    for n, read in enumerate(data.draw(walks(mentions, logs)), 1):
        at = Timestamp(n * 10) if reclocked else None
        one.take(mentions, logs, read)
        other.take(mentions, logs, read)
        if data.draw(st.booleans()):
            other.restart()  # what was read since the last time is read again
            other.take(mentions, logs, read)
        assert one.tick(at=at) == other.tick(at=at)
        assert (one.output, one.temp, one.upper) == (other.output, other.temp, other.upper)


@settings(max_examples=40)
@given(streams(), st.data())
def test_how_much_a_tick_takes_changes_no_strict_time(stream, data):
    mentions, logs = stream
    ends = len(mentions), tuple(map(len, logs))
    whole, pieces = Durable(strict=True), Durable(strict=True)
    for state in (whole, pieces):
        state.take(mentions, logs, ends)
    while whole.tick():
        pass
    while pieces.tick(most=data.draw(st.integers(1, 3))):
        if data.draw(st.booleans()):
            pieces.restart()
            pieces.take(mentions, logs, ends)
    loose = {(r.partition, r.offset) for log in logs for r in log if r.transaction is None}
    assert {c for c in whole.output if c[:2] not in loose} == {
        c for c in pieces.output if c[:2] not in loose
    }


def transaction(name, *keys):
    """Return what is said of a transaction, and its rows, one in each partition in turn."""
    mentions = [Mention(name, ends=False), Mention(name, ends=True, rows=len(keys))]
    return mentions, [Row(0, 0, name, n, key) for n, key in enumerate(keys, 1)]


def test_only_so_many_are_remembered_and_what_waits_is_bounded():
    state = Durable(strict=True, remembered=5)
    for n in range(50):
        said, rows = transaction(f"t{n}", 1, 2)
        state.waiting.add(batch([of_mention(m, 2 * n + i) for i, m in enumerate(said)]))
        state.waiting.add(batch([of_row(r._replace(offset=2 * n + r.order)) for r in rows]))
        assert state.tick()
        assert len(+state.temp) <= 5
        if n % 7 == 0:
            state.restart()
    assert state.upper == 51
    said, rows = transaction("t47", 1, 2)  # the connector sends the last ones again
    state.waiting.add(batch([of_mention(m, 100 + i) for i, m in enumerate(said)]))
    state.waiting.add(batch([of_row(row) for row in rows]))
    assert not state.tick()
    assert state.waiting.waiting_for() is None


def test_numbers_do_not_depend_on_what_was_released():
    mentions = [m for n in range(9) for m in transaction(f"t{n % 6}", 1)[0]]
    quick, slow = Durable(strict=True, remembered=4), Durable(strict=True, remembered=4)
    for offset, mention in enumerate(mentions):
        for state in (quick, slow):
            state.waiting.add(batch([of_mention(mention, offset)]))
        if mention.ends:
            row = Row(0, offset, mention.id, 1, 1)
            quick.waiting.add(batch([of_row(row)]))
            quick.tick()
    assert [k.number for k in slow.waiting.known()] == [1, 2, 3, 4, 5, 6]
    assert quick.waiting.stated == len(counted(mentions, 4)) + 1 == 10
    with pytest.raises(ConflictingStatements, match="mentioned again"):
        slow.tick()


@pytest.mark.parametrize(
    ("said", "rows", "waits"),
    [
        ([Mention("a", False)], [Row(0, 0, "a", 1, 1)], 'number 1, transaction "a" has no END'),
        ([Mention("a", True, 2)], [Row(0, 0, "a", 1, 1)], "lacks 1 of 2 rows"),
        ([], [Row(0, 0, "a", 1, 1)], "1 rows, but neither BEGIN nor END"),
        ([Mention("a", True, None)], [Row(0, 0, "a", 1, 1)], "END counts those of none alone"),
        ([], [Row(0, 0, None, None, 1)], "rows without a transaction wait"),
        ([], [], None),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_it_says_what_it_waits_for(said, rows, waits, strict):
    state = Durable(strict=strict)
    state.take(said, [rows, [], []], (len(said), (len(rows), 0, 0)))
    text = state.waiting.waiting_for()
    assert text is None if waits is None else waits in text
    assert state.waiting.waiting == len(rows)
    loose = any(row.transaction is None for row in rows)
    assert state.tick() == (loose and not strict)


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("count", [1, None])
def test_more_rows_than_are_counted_are_a_contradiction(late, count):
    state = Durable(strict=True)
    rows = [Row(0, n, "a", n, n) for n in (1, 2)]
    counted_rows = rows[: count or 0]
    if not late and count is None:
        return  # it waits: the test above
    state.waiting.add(batch([of_mention(Mention("a", True, count), 0)]))
    if counted_rows:
        state.waiting.add(batch([of_row(row) for row in counted_rows]))
    if late:
        assert state.tick()
    state.waiting.add(batch([of_row(row) for row in rows]))
    with pytest.raises(ConflictingStatements, match="more"):
        state.tick()


def test_out_of_turn_no_row_overtakes_an_older_one_of_its_key():
    state = Durable(strict=False)
    said = [Mention("a", True, 2), Mention("b", True, 1), Mention("c", True, 1)]
    log = [Row(0, 0, "a", 1, 7), Row(0, 1, "b", 1, 7), Row(0, 2, "c", 1, 8)]
    state.take(said, [log, [], []], (3, (3, 0, 0)))
    assert state.tick()
    assert set(state.output) == {(0, 2, 1)}
    state.take(said, [log, [Row(1, 0, "a", 2, 9)], []], (3, (3, 1, 0)))
    assert state.tick()
    assert set(state.output) == {(0, 2, 1), (0, 0, 2), (1, 0, 2), (0, 1, 2)}


def test_one_that_has_not_heard_of_what_others_have_is_not_waited_for():
    ahead, behind = Durable(strict=False), Durable(strict=False)
    said = [Mention(name, True, None) for name in "abc"]
    ahead.take(said, [[], [], []], (2, (0, 0, 0)))
    assert ahead.tick()
    ahead.take(said, [[], [], []], (3, (0, 0, 0)))
    behind.take(said, [[], [], []], (1, (0, 0, 0)))
    members = [Member(state.waiting, 10) for state in (ahead, behind)]
    assert complete_together(members) == [{3}, {1}]
    behind.take(said, [[], [], []], (2, (0, 0, 0)))  # now it has what the other has released
    assert complete_together(members) == [set(), {1, 2}]
    behind.take(said, [[], [], []], (3, (0, 0, 0)))
    assert complete_together(members) == [{3}, {1, 2, 3}]
