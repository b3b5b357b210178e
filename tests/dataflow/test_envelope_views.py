"""Views over sources with errors, created whenever: as if they had always been there (P1, P9).

A source can never be read again, so a view begins from the rows and errors that are kept, and
must count each error once however many ways lead to it. Random records and random moments of
creation, in the driver and in parts, against the same views made at the beginning and against
the query, at every time.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.loop_cluster import LoopCluster
from graphs.deltas import delta_of
from graphs.source_graph import SourceGraph
from model.envelopes import fold_of
from model.evaluate import evaluate
from model.evaluate_scalar import EvaluationError
from model.evaluator import PythonEvaluator
from reclock.arrangement.store import LocalStore
from reclock.change.update import Update
from reclock.dataflow.envelope import DEBEZIUM, NONE, UPSERT, input_types
from reclock.dataflow.given import Given
from reclock.dataflow.graph import collection_of, errors_of
from reclock.dataflow.render.build import Relation
from reclock.dataflow.render.source import Source
from reclock.dataflow.types import arrow_types
from reclock.ids import ObjectId
from reclock.spark import job as run
from reclock.sql.schema import Column, Schema
from reclock.sql.types import INTEGER, TEXT
from reclock.time.timestamp import Timestamp

SCHEMA = Schema((Column("a", INTEGER), Column("s", TEXT)))
TYPES = arrow_types(SCHEMA)
KEYED, PLAIN, CAPTURED, TABLE = (ObjectId(f"u{n}") for n in range(1, 5))
SOURCES = {
    KEYED: Source(SCHEMA, (0,), UPSERT),
    PLAIN: Source(SCHEMA, (), NONE),
    CAPTURED: Source(SCHEMA, (), DEBEZIUM),
}
TABLES = {TABLE: Relation(SCHEMA, (0, 1))}
VIEWS = {
    ObjectId(f"u{number}"): text
    for number, text in enumerate(
        (
            "SELECT a, s FROM u1",
            "SELECT a, 6 / a AS x FROM u1",
            "SELECT s, count(*) AS n FROM u1 GROUP BY s",
            "SELECT l.a, r.s FROM u1 l JOIN u2 r ON l.a = r.a",
            "SELECT a FROM u10 UNION ALL SELECT x FROM u11",
            "SELECT n, count(*) AS m FROM u12 GROUP BY n",
            "SELECT a FROM u10 EXCEPT ALL SELECT a FROM u1",
            "SELECT max(a) AS m FROM u3",
            "SELECT a, s FROM u4 UNION ALL SELECT a, s FROM u1",
            "SELECT a.a, b.m FROM u14 a LEFT JOIN u17 b ON a.a = b.m",
            "SELECT a, 6 / a AS x FROM u1 WHERE s = 'x'",
            "SELECT x FROM u11 UNION ALL SELECT x FROM u20 UNION ALL SELECT a FROM u19",
        ),
        10,
    )
}
TICK = 2

fault = st.sampled_from([(None, None)] * 3 + [("22P02", "no number")])
row = st.tuples(st.sampled_from([0, 1, 2, None]), st.sampled_from(["x", "y"]))
known = st.tuples(st.sampled_from([0, 1, 2]), st.sampled_from(["x", "y"]))
RECORDS = {
    KEYED: st.builds(
        lambda r, tombstone, f: (*r, 0, tombstone, *f),
        st.one_of(known, known, row), st.sampled_from([False, False, True]), fault,
    ),
    PLAIN: st.builds(lambda r, f: (*r, *f), row, fault),
    CAPTURED: st.builds(
        lambda r, op, f: (*r, *r, True, True, op, 0, None, None, None, 0, *f),
        row, st.sampled_from(["c", "c", "d", "u"]), fault,
    ),
    TABLE: row,
}  # fmt: skip
moments = st.lists(st.tuples(st.sampled_from(list(RECORDS)), st.integers(0, TICK - 1)), max_size=6)


@st.composite
def histories(draw):
    """Ticks of (object, time in the tick, record), and the tick before which each view is made."""
    ticks = [
        [(item, t, draw(RECORDS[item])) for item, t in draw(moments)]
        for _ in range(draw(st.integers(1, 4)))
    ]
    made = sorted(draw(st.lists(st.integers(0, len(ticks)), min_size=12, max_size=12)))
    return ticks, dict(zip(VIEWS, made, strict=True))


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(run, "PART_ROWS", 3)


def changes_of(records, first):
    found = {}
    for item in RECORDS:
        source = SOURCES.get(item)
        types = TYPES if source is None else input_types(source.envelope, TYPES)
        log = [Update(r, Timestamp(first + t), 1) for i, t, r in records if i == item]
        found[item] = delta_of(types, log)
    return found


def batch(graph, item, contents, failed):
    """Return what a view's query gives, and whether it has an error."""
    if item in contents:
        return contents[item], failed[item]
    tables, bad = {}, False
    for name in graph.relation_names():
        if f"{name} " in f"{VIEWS[item]} ":
            tables[name], wrong = batch(graph, ObjectId(name), contents, failed)
            bad |= wrong
    if bad:
        return Counter(), True
    try:
        return Counter(evaluate(graph.plans[item], tables)), False
    except EvaluationError:
        return Counter(), True


@settings(max_examples=15)
@given(history=histories(), in_parts=st.booleans())
def test_views_are_as_if_they_had_always_been_there(history, in_parts):
    ticks, made = history
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        cluster = LoopCluster(PythonEvaluator()) if in_parts else None
        late = SourceGraph(SOURCES, LocalStore(Path(one)), cluster, TABLES)
        always = SourceGraph(SOURCES, LocalStore(Path(other)), None, TABLES)
        always.create(VIEWS, 0)
        folds, table = {item: fold_of(source) for item, source in SOURCES.items()}, Counter()
        then = {}
        for number in range(len(ticks) + 1):
            new = {item: VIEWS[item] for item, tick in made.items() if tick == number}
            late.create(new, number * TICK)
            if number == len(ticks):
                break
            first = 1 + number * TICK
            for graph in (late, always):
                graph.tick(changes_of(ticks[number], first), range(first, first + TICK))
            for time in range(TICK):
                for item, fold in folds.items():
                    fold.take([r for i, t, r in ticks[number] if (i, t) == (item, time)])
                table.update(r for i, t, r in ticks[number] if (i, t) == (TABLE, time))
                then[first + time] = deepcopy((folds, table))
        for item, tick in made.items():
            for time, (at, rows) in then.items():
                if time < tick * TICK:
                    continue
                said = f"{item} at {time}: {VIEWS[item]}"
                errors = late.errors_at(item, time)
                assert errors == always.errors_at(item, time), said
                assert late.rows_at(item, time) == always.rows_at(item, time), said
                contents = {i: fold.rows for i, fold in at.items()} | {TABLE: rows}
                failed = {i: bool(fold.errors) for i, fold in at.items()} | {TABLE: False}
                expected, bad = batch(late, item, contents, failed)
                assert bool(errors) == bad, said
                assert bad or late.rows_at(item, time) == expected, said


def test_an_error_of_a_source_is_counted_once_whatever_leads_to_it(tmp_path):
    graph = SourceGraph({KEYED: SOURCES[KEYED]}, LocalStore(tmp_path))
    good, bad = (1, "x", 0, False, None, None), (2, None, 0, False, "22P02", "no number")
    lost = (None, "x", 0, False, "22P02", "no key")
    graph.tick(
        {KEYED: changes_of([(KEYED, 0, r) for r in (good, bad, lost)], 1)[KEYED]}, range(1, 3)
    )
    both = Counter({("22P02", "no number"): 1, ("22P02", "no key"): 1})
    one, two, three, four, five = (ObjectId(f"u{n}") for n in range(10, 15))
    graph.create({one: "SELECT a FROM u1", two: "SELECT a + 1 AS a FROM u1"}, 2)
    graph.create({three: "SELECT a FROM u10 UNION ALL SELECT a FROM u11"}, 2)
    graph.create({four: "SELECT count(*) AS n FROM u12"}, 2)
    graph.create(
        {five: "SELECT n FROM u13 UNION ALL SELECT a FROM u1 UNION ALL SELECT a FROM u10"}, 2
    )
    for item in (one, two, three, four, five):
        assert graph.errors_at(item, 2) == both, item
    again = changes_of([(KEYED, 1, (2, "y", 0, False, None, None))], 3)[KEYED]
    graph.tick({KEYED: again}, range(3, 5))
    for item in (KEYED, one, two, three, four, five):
        assert graph.errors_at(item, 3) == both, item
        assert graph.errors_at(item, 4) == Counter({("22P02", "no key"): 1}), item
    assert graph.rows_at(three, 4) == Counter({(1,): 1, (2,): 2, (3,): 1})
    new = frozenset({collection_of(five), errors_of(five)})
    begin = Given.of(graph.graph, new, graph._shards())
    assert KEYED in begin.steps.values()
