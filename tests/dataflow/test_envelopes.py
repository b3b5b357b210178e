"""The envelopes of sources against a fold in plain Python, at every time (P3, P9)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reclock.dataflow import delta as deltas
from reclock.dataflow.envelope import NONE, input_types
from reclock.dataflow.graph import collection_of, errors_of
from reclock.dataflow.maintain import Tick
from reclock.dataflow.render.build import Source, build_graph
from reclock.ids import ObjectId
from reclock.sql.schema import Column, Schema
from reclock.sql.types import BIGINT, TEXT
from reclock.testing.evaluator import PythonEvaluator

S = ObjectId("u1")


def test_records_with_a_fault_are_error_rows_and_the_others_rows():
    source = Source(Schema((Column("a", BIGINT), Column("b", TEXT))), (), NONE)
    graph, _ = build_graph({}, {}, {}, {S: source})
    types = input_types(NONE, (pa.int64(), pa.string()))
    columns = [[1, None, 1], ["x", None, "x"], [None, "22P02", None], [None, "no", None]]
    records = deltas.build(
        [pa.array(c, t) for c, t in zip(columns, types, strict=True)],
        np.array([5, 5, 6]),
        np.ones(3, np.int64),
    )
    made = Tick(graph, {S: records}, {}, range(5, 7)).run(PythonEvaluator())
    rows = graph.keying(collection_of(S)).restore(made[collection_of(S)])
    assert rows.to_pylist() == [
        {"c0": 1, "c1": "x", "time": 5, "diff": 1},
        {"c0": 1, "c1": "x", "time": 6, "diff": 1},
    ]
    errors = graph.keying(errors_of(S)).restore(made[errors_of(S)])
    assert errors.to_pylist() == [{"c0": "22P02", "c1": "no", "time": 5, "diff": 1}]
