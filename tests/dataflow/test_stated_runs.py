"""Statements of CDCv2 as tasks stage them: updates each once, and a summary that says the rest."""

from __future__ import annotations

import pyarrow as pa

from reclock.arrangement.layout import diff_of, time_of
from reclock.dataflow.keying import Keying
from reclock.dataflow.stated_runs import StatedRuns, Summary

ROW = (pa.int64(), pa.string())
TYPES = (pa.int32(), pa.int64(), *ROW, *[pa.int64()] * 4, *[pa.string()] * 3)


def records(*rows):
    columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(TYPES)]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{at}" for at in range(len(TYPES))])


def update(offset, data, time, diff):
    return (1, offset, *data, time, diff, None, None, None, None, None)


def test_updates_are_there_once_and_all_else_word_for_word():
    said = (1, 6, None, None, None, None, 0, None, "[[3, 2]]", None, None)
    fault = (1, 8, None, None, None, None, None, None, None, "22P04", "bad")
    runs = StatedRuns(Keying(ROW, (0,)))
    found, summary = runs.staged(
        [
            records(update(4, (1, "a"), 3, 1), update(4, (1, "a"), 3, 2), said),
            records(update(7, (1, "a"), 3, 1), update(7, (None, None), 9, -1), fault),
        ]
    )
    columns = [column.to_pylist() for column in runs.keying.columns(found)]
    rows = sorted(zip(*columns, time_of(found).tolist(), strict=True), key=repr)
    assert rows == [(1, "a", 1, 3), (1, "a", 2, 3), (None, None, -1, 9)]
    assert diff_of(found).tolist() == [1, 1, 1]
    told = Summary.of([summary], ROW)
    assert told.times.tolist() == [3, 9]
    assert told.rows.tolist() == [3, 1]
    assert told.updates.tolist() == [2, 1]
    assert [p.to_pylist() for p in told.places] == [["1", "1"], [6, 8]]
    stated = [*zip(*(c.to_pylist() for c in told.said.columns), strict=True)]
    assert stated == [said[2:], fault[2:]]


def test_progress_alone_has_no_updates():
    said = (0, 6, None, None, None, None, 0, 5, "[]", None, None)
    found, summary = StatedRuns(Keying.whole_row(ROW)).staged([records(said)])
    assert found.num_rows == 0
    assert Summary.of([summary], ROW).times.tolist() == []
