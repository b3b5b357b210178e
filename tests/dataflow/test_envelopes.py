"""The envelopes of sources against a fold in plain Python, at every time (P3, P9).

Random records: many times in one tick, ties, NULL keys, tombstones, faults, duplicates,
empty ticks; in the driver and in parts. Every tick finds its state in the store, as after a
restart. Views over sources are in test_envelope_views.py.
"""

from __future__ import annotations

import pickle
from collections import Counter
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.loop_cluster import LoopCluster
from engines.model_engine import ModelEngine
from graphs.deltas import delta_of
from graphs.source_graph import SourceGraph
from model.envelopes import fold_of
from model.evaluator import PythonEvaluator
from reclock.arrangement.store import LocalStore
from reclock.change.update import Update
from reclock.dataflow.changes import Changes
from reclock.dataflow.envelope import DEBEZIUM, NONE, UPSERT, input_types
from reclock.dataflow.graph import collection_of, errors_of
from reclock.dataflow.operators.upsert import Upsert
from reclock.dataflow.render.build import build_graph
from reclock.dataflow.render.source import Source
from reclock.dataflow.trace import DeltaTrace
from reclock.dataflow.types import arrow_types
from reclock.engine.shape import Shape
from reclock.errors import Corrupt
from reclock.ids import ObjectId
from reclock.spark import job as run
from reclock.sql.schema import Column, Schema
from reclock.sql.types import DOUBLE, INTEGER, TEXT
from reclock.time.timestamp import Timestamp

S = ObjectId("u1")
SCHEMA = Schema((Column("a", INTEGER), Column("f", DOUBLE), Column("s", TEXT)))
TICK = 3
"""Times in a tick."""

codes = st.sampled_from([(None, None)] * 6 + [("22P02", "no number"), ("22000", "no text")])
values = st.tuples(
    st.sampled_from([None, 0, 1, 1, 2]),
    st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5]),
    st.sampled_from([None, "", "x", "y"]),
)
NONE_RECORDS = st.builds(lambda row, fault: (*row, *fault), values, codes)
UPSERT_RECORDS = st.builds(
    lambda row, order, tombstone, fault: (*row, order, tombstone, *fault),
    values, st.integers(0, 3), st.sampled_from([False, False, True, None]), codes,
)  # fmt: skip
few = st.tuples(
    st.sampled_from([0, 0, 1, 1, 2, None]), st.sampled_from([0.0, -0.0, float("nan")]), st.just("x")
)
positions = st.one_of(
    st.tuples(st.none(), st.sampled_from([None, 0]), st.sampled_from([None, 0])),
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from([None, 0, 1]), st.just(None)),
    st.tuples(st.just(""), st.integers(0, 5), st.sampled_from([None, 0, 1])),
)
shapes = st.sampled_from(
    [("c", False, True), ("r", False, True), ("u", True, True), ("u", False, True)]
    + [("d", True, False), ("d", False, False), (None, False, False)] * 2
    + [("u", True, False), ("d", True, True), ("t", False, False), (None, True, True)]
)
DEBEZIUM_RECORDS = st.builds(
    lambda after, before, shape, partition, position, order, fault: (
        *after, *before, *shape[1:], shape[0], partition, *position, order, *fault
    ),
    few, few, shapes, st.integers(0, 1), positions, st.integers(0, 3), codes,
)  # fmt: skip


def ticks_of(records):
    """Ticks of (time in the tick, record); empty ones too."""
    return st.lists(st.lists(st.tuples(st.integers(0, TICK - 1), records), max_size=8), max_size=6)


def placed(ticks):
    """Give every record a place of its own: a log has no two at one, and ties are as they came."""
    return [
        [(time, (*r[:-3], r[-3] * 100 + at, *r[-2:])) for at, (time, r) in enumerate(records)]
        for records in ticks
    ]


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(run, "PART_ROWS", 3)


def batch_of(source, records, first):
    types = input_types(source.envelope, arrow_types(source.schema))
    return delta_of(types, [Update(r, Timestamp(first + t), 1) for t, r in records])


class Modelled(SourceGraph):
    """The same by the model engine."""

    @property
    def shape(self):
        kept = {S: (collection_of(S), errors_of(S))}
        return Shape(self.graph, self.plans, {}, kept, self.sources)

    def _step(self, changes, shards, lower, upper):
        arrived = {item: Changes((delta,)) for item, delta in changes.items()}
        return ModelEngine().step(self.shape, arrived, shards, lower, upper)

    def _hydrate(self, new, shards, as_of):
        return ModelEngine().hydrate(self.shape, new, shards, as_of)


def check(source, ticks, *, in_parts=False, compacting=False, graph_type=SourceGraph):
    with TemporaryDirectory() as path:
        cluster = LoopCluster(PythonEvaluator()) if in_parts else None
        graph = graph_type({S: source}, LocalStore(Path(path)), cluster)
        fold, expected = fold_of(source), {0: (Counter(), Counter())}
        for number, records in enumerate(ticks):
            first = 1 + number * TICK
            graph.tick({S: batch_of(source, records, first)}, range(first, first + TICK))
            for time in range(TICK):
                fold.take([record for t, record in records if t == time])
                expected[first + time] = deepcopy((fold.rows, fold.errors))
            if compacting:
                expected = {max(expected): expected[max(expected)]}
                for name in graph.graph.arrangements:
                    graph.compact(name, max(expected))
        for time, (rows, errors) in expected.items():
            assert graph.rows_at(S, time) == rows, time
            assert graph.errors_at(S, time) == errors, time


@settings(max_examples=30)
@given(ticks=ticks_of(NONE_RECORDS), key=st.sampled_from([(), (0,)]), in_parts=st.booleans())
def test_none_is_its_fold_at_every_time(ticks, key, in_parts):
    check(Source(SCHEMA, key, NONE), ticks, in_parts=in_parts)


@settings(max_examples=50)
@given(ticks=ticks_of(UPSERT_RECORDS), key=st.sampled_from([(0,), (2, 0), (1,), (0, 1, 2)]))
def test_upsert_is_its_fold_at_every_time(ticks, key):
    check(Source(SCHEMA, key, UPSERT), ticks)


@settings(max_examples=30)
@given(ticks=ticks_of(UPSERT_RECORDS), key=st.sampled_from([(0,), (2, 0)]))
def test_upsert_in_parts_is_its_fold_at_every_time(ticks, key):
    check(Source(SCHEMA, key, UPSERT), ticks, in_parts=True)


@settings(max_examples=30)
@given(ticks=ticks_of(UPSERT_RECORDS), in_parts=st.booleans())
def test_upsert_goes_on_from_compacted_state(ticks, in_parts):
    check(Source(SCHEMA, (0,), UPSERT), ticks, in_parts=in_parts, compacting=True)


@settings(max_examples=60)
@given(ticks=ticks_of(DEBEZIUM_RECORDS).map(placed), key=st.sampled_from([(), (0,), (2, 0), (1,)]))
def test_debezium_is_its_fold_at_every_time(ticks, key):
    check(Source(SCHEMA, key, DEBEZIUM), ticks)


@settings(max_examples=30)
@given(ticks=ticks_of(DEBEZIUM_RECORDS).map(placed), key=st.sampled_from([(), (0,)]))
def test_debezium_in_parts_is_its_fold_at_every_time(ticks, key):
    # A key in two partitions has no order there; ours have one over all.
    ordered = [[(t, (*r[:-3], n, *r[-2:])) for n, (t, r) in enumerate(tick)] for tick in ticks]
    check(Source(SCHEMA, key, DEBEZIUM), ordered, in_parts=True)


@settings(max_examples=30)
@given(ticks=ticks_of(DEBEZIUM_RECORDS).map(placed), key=st.sampled_from([(), (0,)]))
def test_debezium_goes_on_from_compacted_state(ticks, key):
    check(Source(SCHEMA, key, DEBEZIUM), ticks, compacting=True)


@settings(max_examples=40)
@given(data=st.data(), envelope=st.sampled_from([NONE, UPSERT, DEBEZIUM]))
def test_the_engine_of_tests_folds_from_what_is_stored(data, envelope):
    records = {NONE: NONE_RECORDS, UPSERT: UPSERT_RECORDS, DEBEZIUM: DEBEZIUM_RECORDS}[envelope]
    key = data.draw(st.sampled_from([(0,), (1,)] if envelope == UPSERT else [(), (0,)]))
    check(Source(SCHEMA, key, envelope), data.draw(ticks_of(records)), graph_type=Modelled)


def upserted(records, rows=(), faults=()):
    """The rows, the errors and the faulty keys that records change, at time 9."""
    operator = Upsert(arrow_types(SCHEMA), (0,), ("a",))
    traces = [
        DeltaTrace(k.layout, k.arrange(delta_of(k.types, [Update(r, Timestamp(1), 1) for r in at])))
        for k, at in ((operator.rows, rows), (operator.faults, faults))
    ]
    source = Source(SCHEMA, (0,), UPSERT)
    made = operator.step(batch_of(source, [(0, r) for r in records], 9), *traces)
    return [[tuple(row.values()) for row in batch.to_pylist()] for batch in made]


def test_the_same_value_again_is_no_change():
    row, fault = (1, 0.0, "x"), ("22P02", "no number")
    assert upserted([(*row, 0, False, None, None)], rows=[row]) == [[], [], []]
    assert upserted([(*row, 0, False, *fault)], faults=[(1, *fault)]) == [[], [], []]
    assert upserted([(1, None, None, 0, True, None, None)]) == [[], [], []]
    assert upserted([]) == [[], [], []]


def test_two_rows_of_one_key_are_not_gone_on_from():
    with pytest.raises(Corrupt):
        upserted([(1, 0.0, "x", 0, False, None, None)], rows=[(1, 0.0, "x"), (1, 0.0, "y")])


def told(key, *records):
    """What the records of a captured table come to, each at its own time."""
    source = Source(SCHEMA, key, DEBEZIUM)
    with TemporaryDirectory() as path:
        graph = SourceGraph({S: source}, LocalStore(Path(path)))
        for time, record in enumerate(records, 1):
            graph.tick({S: batch_of(source, [(0, record)], time)}, range(time, time + 1))
        return graph.rows_at(S, len(records)), graph.errors_at(S, len(records))


def captured(op, before=None, after=None, at=None, key=None):
    none = (None,) * len(SCHEMA)
    row = after or ((key, None, None) if key is not None else none)
    position = (None, None, None) if at is None else ("", at, 0)
    said = before is not None, after is not None, op, 0, *position, 0, None, None
    return (*row, *(before or none), *said)


ONE, TWO = (1, 0.0, "x"), (2, 0.0, "x")


def test_an_update_that_changes_the_key_takes_the_old_one_away():
    changed = captured("u", ONE, TWO)
    assert told((0,), captured("c", after=ONE), changed) == (Counter([TWO]), Counter())
    assert told((), captured("c", after=ONE), changed) == (Counter([TWO]), Counter())


def test_a_delete_without_the_row_before_finds_its_key_in_that_of_the_message():
    records = captured("c", after=ONE), captured("d", key=1), captured(None, key=1)
    assert told((0,), *records) == (Counter(), Counter())
    rows, errors = told((), *records)
    assert rows == Counter([ONE])
    ((code, message),) = errors
    assert code == "22000"
    assert "REPLICA IDENTITY FULL" in message


def test_a_restarted_connector_repeats_itself_in_vain():
    log = [captured("c", after=ONE, at=1), captured("c", after=TWO, at=2)]
    log += [captured("d", before=ONE, at=3), captured("c", after=ONE, at=4)]
    for again in range(len(log) + 1):
        for key in ((), (0,)):
            assert told(key, *log, *log[again:]) == (Counter([ONE, TWO]), Counter()), again


def test_rows_of_one_statement_share_a_position_and_all_count():
    both = captured("c", after=ONE, at=1), captured("c", after=TWO, at=1)
    assert told((), *both, *both) == (Counter([ONE, TWO]), Counter())


def test_a_snapshot_is_never_a_repetition():
    assert told((), captured("c", after=ONE, at=5), captured("r", after=TWO, at=1)) == (
        Counter([ONE, TWO]),
        Counter(),
    )


def test_an_operation_that_is_not_known_is_an_error():
    rows, errors = told((0,), captured("c", after=ONE), captured("t"))
    assert (rows, errors) == (Counter([ONE]), Counter([("22000", 'unknown operation "t"')]))


def test_more_deletes_than_rows_are_errors_and_leave_no_debt():
    gone = captured("d", before=ONE)
    rows, errors = told((), gone, captured("c", after=ONE), gone, gone, captured("c", after=ONE))
    assert rows == Counter([ONE])
    assert errors == Counter({("22000", "a row was taken away that was not there"): 2})


@pytest.mark.parametrize("key", [(), (0,)])
@pytest.mark.parametrize("envelope", [NONE, UPSERT, DEBEZIUM])
def test_a_graph_with_sources_can_be_sent_to_cluster(envelope, key):
    source = Source(SCHEMA, key or (0,) if envelope == UPSERT else key, envelope)
    graph, _ = build_graph({}, {}, {}, {S: source})
    sent = pickle.loads(pickle.dumps(graph))
    assert sent.steps == graph.steps
    assert sent.passing == graph.passing
