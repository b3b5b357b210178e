"""Rows that are taken away and not there: the source says so, and names them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.dataflow import delta as deltas
from reclock.dataflow.keying import Keying
from reclock.dataflow.taken_away import check_taken_away
from reclock.dataflow.trace import DeltaTrace
from reclock.errors import ConflictingStatements, Error


def updates(*rows):
    made = [{"data": {"id": i, "x": x}, "time": t, "diff": d} for i, x, t, d in rows]
    return {"array": made}


def progress(lower, upper, *counts):
    made = [{"time": t, "count": n} for t, n in counts]
    return {"progress": {"lower": [lower], "upper": [upper], "counts": made}}


@pytest.mark.parametrize("columns", ["(id BIGINT, x TEXT)", "(id BIGINT, x TEXT, "])
def test_a_source_that_takes_away_what_is_not_there_says_so(feed, columns):
    if columns.endswith(", "):
        columns += "PRIMARY KEY (id) NOT ENFORCED)"
    feed.db.execute(
        f"CREATE SOURCE cdc {columns} FROM KAFKA BROKER 'b:1' TOPIC '{feed.topic}' FORMAT JSON "
        "ENVELOPE MATERIALIZE WITH (RETAIN HISTORY FOR '1 h')"
    )
    feed.db.execute("CREATE MATERIALIZED VIEW n AS SELECT id, count(*) AS n FROM cdc GROUP BY id")
    feed.send(updates((1, "a", 3, 1), (2, "b", 3, 2)), progress(0, 5, (3, 2)))
    feed.tick()
    feed.send(updates((1, "a", 6, -1), (1, "c", 6, 1), (2, "b", 6, -1)), progress(5, 7, (6, 3)))
    feed.tick()
    assert feed.rows("SELECT * FROM cdc") == [(1, "c"), (2, "b")]
    feed.send(updates((1, "c", 8, -1), (1, "a", 9, -1)), progress(7, 10, (8, 1), (9, 1)))
    for _ in range(2):
        feed.tick()
        for name in ("cdc", "n"):
            with pytest.raises(Error) as caught:
                feed.rows(f"SELECT * FROM {name}")
            assert caught.value.message == (
                'source "cdc" contradicts itself: a row is taken away at time 9 that is not there'
            )
            assert "(1, 'a')" in caught.value.detail
        assert feed.rows("SELECT * FROM cdc AS OF 6") == [(1, "c"), (2, "b")]
        assert feed.status("state") == ("failed",)
        feed.crash()
    assert feed.db.check() == []


ROWS = st.tuples(st.integers(0, 2), st.none() | st.sampled_from("ab"))
CHANGES = st.lists(st.tuples(ROWS, st.integers(5, 8), st.sampled_from([-2, -1, 1, 2])), max_size=8)
KINDS = (pa.int64(), pa.string())


def delta(changes, *more):
    columns = [pa.array([c[0][n] for c in changes], kind) for n, kind in enumerate(KINDS)]
    columns += [pa.nulls(len(changes), kind) for kind in more]
    times, diffs = (np.array([c[n] for c in changes], np.int64) for n in (1, 2))
    return deltas.build(columns, times, diffs)


@given(st.dictionaries(ROWS, st.integers(1, 2)), CHANGES, st.sampled_from([(0, 1), (0,)]))
def test_exactly_what_goes_below_none_is_refused(there, changes, key):
    keying = Keying(KINDS, key)
    stored = DeltaTrace(keying.layout, keying.arrange(delta([(r, 3, n) for r, n in there.items()])))
    counts, first = Counter(there), None
    for time in range(5, 9):
        for row, at, diff in changes:
            counts[row] += diff if at == time else 0
        if first is None and min(counts.values(), default=0) < 0:
            first = time
    said = delta(changes, pa.string(), pa.string())
    if first is None:
        check_taken_away(keying, stored, said)
    else:
        with pytest.raises(ConflictingStatements, match=f"at time {first} "):
            check_taken_away(keying, stored, said)
