"""Answers without Spark: scans, look-ups and first rows, against the reference evaluator."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.collections import arranged
from model.evaluate import answer
from reclock.arrangement.store import LocalStore
from reclock.dataflow import direct as module
from reclock.dataflow.direct import direct, pieces
from reclock.dataflow.scan import Arranged
from reclock.dataflow.types import arrow_types
from reclock.dataflow.values import rows_of
from reclock.errors import NegativeCount
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite_query
from reclock.time.timestamp import Timestamp
from strategies.queries import FuzzCatalog, random_tables

CATALOG = FuzzCatalog()
NOW = Timestamp(3)
DIRECT = [
    "SELECT * FROM t",
    "SELECT s, a, s FROM t",
    "SELECT * FROM t WHERE a = 1",
    "SELECT b FROM t WHERE a = 1 AND s = 'x' AND 2 = b",
    "SELECT * FROM v WHERE k = 2",
    "SELECT d FROM v WHERE k = 2 AND d = 1",
    "SELECT * FROM v WHERE k = 2 AND k = 3",
    "SELECT * FROM v WHERE d = NULL::int",
    "SELECT * FROM t ORDER BY b DESC, s NULLS FIRST",
    "SELECT a FROM t ORDER BY b DESC LIMIT 2 OFFSET 1",
    "SELECT * FROM t WHERE s = '' ORDER BY a LIMIT 3",
    "SELECT * FROM (VALUES (2, 'x'), (1, NULL), (1, NULL)) w(i, j) ORDER BY i",
    "SELECT 7, 'x', NULL::int",
    "SELECT 7, k FROM v WHERE d = 1",
    "SELECT true FROM t",
    "SELECT * FROM t WHERE a > 1",
    "SELECT * FROM t WHERE a = b OR s IS NULL",
    "SELECT a::bigint + b, s || '!' FROM t WHERE a <> 0 AND b % a <= 1 ORDER BY 1, 2 LIMIT 3",
    "SELECT k * 1.5 AS x, CASE WHEN d > 1 THEN 'much' ELSE d::text END FROM v WHERE k = 1",
    "SELECT a / coalesce(nullif(b, 0), 1) FROM t",
]
FOR_SPARK = [
    "SELECT upper(s) FROM t",
    "SELECT * FROM t WHERE upper(s) = 'A'",
    "SELECT a, count(*) FROM t GROUP BY a",
    "SELECT * FROM t, u",
    "SELECT * FROM (SELECT * FROM t ORDER BY a, b, s LIMIT 2) q WHERE a = 1",
]


@cache
def planned(text):
    plan = plan_query(parse_query(text), CATALOG)
    return rewrite_query(plan, RewriteContext(outer_joins=True))


def collections(tables, store, keys=()):
    """Arrange every table by its whole row, and by each of ``keys`` (table, columns)."""
    leaves = {}
    for name, rows in tables.items():
        item = CATALOG.resolve((name,))
        types = arrow_types(item.schema)
        by = [tuple(range(len(types))), *(columns for of, columns in keys if of == name)]
        leaves[item.id] = [arranged(types, key, [(rows, 1)], store) for key in by]
    return leaves


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), keyed=st.booleans())
def test_the_answer_is_the_evaluators(tmp_path_factory, seed, keyed):
    tables = random_tables(Random(seed))
    keys = [("v", (0,)), ("t", (2, 0)), ("t", (2,))] if keyed else []
    leaves = collections(tables, LocalStore(tmp_path_factory.mktemp("s")), keys)
    for text in DIRECT:
        plan = planned(text)
        table = direct(plan, leaves, NOW)
        assert table is not None, text
        read = rows_of(table, [c.type for c in plan.root.schema.columns[: plan.visible]])
        expected = answer(plan, tables)
        if plan.order or "LIMIT" in text:
            assert read == expected, text
        assert Counter(read) == Counter(expected), text
        assert table.column_names == list(plan.root.schema.names[: plan.visible])


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_a_large_scan_in_pieces_is_the_same(tmp_path_factory, seed):
    tables = random_tables(Random(seed))
    leaves = collections(tables, LocalStore(tmp_path_factory.mktemp("s")), [("v", (0,))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PIECE_ROWS", 2)
        for text in DIRECT:
            plan = planned(text)
            found = pieces(plan, leaves, NOW)
            if found is not None:
                table = direct(plan, leaves, NOW)
                scanned = pa.Table.from_batches(found, table.schema)
                assert scanned.equals(table), text


def test_what_is_scanned_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIECE_ROWS", 2)
    rows = Counter({(k, k): 1 for k in range(9)})
    tables = {"v": rows, "t": Counter(), "u": Counter()}
    leaves = collections(tables, LocalStore(tmp_path), [("v", (0,))])
    for text in ("SELECT * FROM v", "SELECT d, 7 FROM v", "SELECT k FROM v WHERE d = 1"):
        assert len(list(pieces(planned(text), leaves, NOW))) > 1, text
    for text in (
        "SELECT * FROM t", "SELECT d FROM v WHERE k = 1", "SELECT * FROM v ORDER BY k",
        "SELECT * FROM v LIMIT 3", "SELECT 1", "SELECT k + 1 FROM v",
    ):  # fmt: skip
        assert pieces(planned(text), leaves, NOW) is None, text


@pytest.mark.parametrize("text", FOR_SPARK)
def test_what_needs_an_expression_is_left_to_spark(tmp_path, text):
    leaves = collections(random_tables(Random(1)), LocalStore(tmp_path))
    assert direct(planned(text), leaves, NOW) is None


def test_spark_says_which_row_is_an_error(tmp_path):
    tables = {"v": Counter(), "t": Counter({(1, 0, "a"): 1, (6, 3, "b"): 1}), "u": Counter()}
    leaves = collections(tables, LocalStore(tmp_path))
    assert direct(planned("SELECT a / b FROM t"), leaves, NOW) is None
    assert direct(planned("SELECT a FROM t WHERE 6 / b = 2"), leaves, NOW) is None
    found = direct(planned("SELECT a / b FROM t WHERE b <> 0"), leaves, NOW)
    assert found.column(0).to_pylist() == [2], "a row that is out is no error"


def test_a_large_collection_is_looked_up_or_left_to_spark(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FILTERED_ROWS", 2)
    rows = Counter({(k, k): 1 for k in range(5)})
    tables = {"v": rows, "t": Counter(), "u": Counter()}
    leaves = collections(tables, LocalStore(tmp_path), [("v", (0,))])
    by_key = direct(planned("SELECT d FROM v WHERE k = 3"), leaves, NOW)
    assert by_key.column(0).to_pylist() == [3]
    assert direct(planned("SELECT k FROM v WHERE d = 3"), leaves, NOW) is None
    assert direct(planned("SELECT k FROM v WHERE d > 3"), leaves, NOW) is None
    assert direct(planned("SELECT k + 1 FROM v"), leaves, NOW) is None, "not given in pieces"
    assert direct(planned("SELECT * FROM v"), leaves, NOW).num_rows == 5
    assert direct(planned("SELECT * FROM v ORDER BY d"), leaves, NOW) is None
    assert direct(planned("SELECT * FROM v ORDER BY d LIMIT 2"), leaves, NOW).num_rows == 2


def test_the_answer_is_that_of_the_time_asked_for(tmp_path):
    item = CATALOG.resolve(("v",))
    types = arrow_types(item.schema)
    history = [
        (Counter({(1, 10): 1, (2, 20): 2}), 1),
        (Counter({(1, 10): -1, (1, 11): 1, (2, 20): -1}), 2),
    ]
    for key in ((0,), (0, 1), (1,)):
        leaf = {item.id: [arranged(types, key, history, LocalStore(tmp_path))]}
        one = planned("SELECT d FROM v WHERE k = 1")
        two = planned("SELECT d FROM v WHERE k = 2")
        assert direct(one, leaf, Timestamp(1)).column(0).to_pylist() == [10]
        assert direct(one, leaf, Timestamp(2)).column(0).to_pylist() == [11]
        assert direct(two, leaf, Timestamp(1)).column(0).to_pylist() == [20, 20]
        assert direct(two, leaf, Timestamp(2)).column(0).to_pylist() == [20]


def test_a_collection_without_runs_is_empty(tmp_path):
    item = CATALOG.resolve(("v",))
    keyed = arranged(arrow_types(item.schema), (0,), [(Counter(), 1)], LocalStore(tmp_path))
    leaf = {item.id: [Arranged(keyed.keying, None)]}
    for text in ("SELECT * FROM v", "SELECT * FROM v WHERE k = 1"):
        table = direct(planned(text), leaf, NOW)
        assert table.num_rows == 0
        assert table.schema.types == [pa.int32(), pa.int32()]


def test_a_row_that_is_there_less_than_not_at_all_is_an_error(tmp_path):
    item = CATALOG.resolve(("v",))
    wrong = arranged(arrow_types(item.schema), (0,), [({(1, 1): -1}, 1)], LocalStore(tmp_path))
    for text in ("SELECT * FROM v", "SELECT * FROM v WHERE k = 1"):
        with pytest.raises(NegativeCount, match="negative number of times"):
            direct(planned(text), {item.id: [wrong]}, NOW)
