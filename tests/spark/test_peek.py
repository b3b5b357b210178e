"""One-shot answers through Spark: small and large collections, names, errors from tasks."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from graphs.collections import arranged
from reclock.arrangement.store import LocalStore
from reclock.dataflow import direct
from reclock.dataflow.types import arrow_types
from reclock.dataflow.values import rows_of
from reclock.errors import Corrupt, ExpressionFailed, SegmentMissing
from reclock.ids import ObjectId
from reclock.interval import Interval
from reclock.spark import frame
from reclock.spark import peek as module
from reclock.spark.local_relation import local_relation
from reclock.spark.peek import dataframe, peek, stream, way
from reclock.sql.names import CatalogItem
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite_query
from reclock.sql.schema import Column, Schema
from reclock.sql.types import INTEGER, INTERVAL, TEXT
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Timestamp

pytestmark = pytest.mark.spark

ITEM = CatalogItem(
    ObjectId("u1"),
    "t",
    "table",
    Schema((Column("k", INTEGER), Column("v", TEXT), Column("m", INTERVAL))),
    EPOCH_MS,
    frozenset(),
)
ROWS = Counter({(i % 50, f"v{i}", Interval(i % 3 - 1)): 1 + i % 2 for i in range(120)})
LATER = {(0, "v0", Interval(-1)): -1, (100, None, None): 2}
NOW, THEN = Timestamp(2), Timestamp(1)


class Catalog:
    def resolve(self, name):
        return ITEM if name[-1] == "t" else None

    def relation_names(self):
        return ("t",)


def planned(text):
    plan = plan_query(parse_query(text), Catalog())
    return rewrite_query(plan, RewriteContext(outer_joins=True))


@pytest.fixture(params=["on the driver", "in tasks"])
def leaves(request, tmp_path, monkeypatch):
    """A collection, and the store of its runs, read in one of two places."""
    monkeypatch.setattr(frame, "LOCAL_ROWS", 0 if request.param == "in tasks" else 10**6)
    store = LocalStore(tmp_path)
    types = arrow_types(ITEM.schema)
    made = arranged(types, (0,), [(ROWS, 1), (LATER, 2)], store, inline=False)
    return {ITEM.id: [made]}, store


def test_the_answer_is_that_of_the_time(spark, leaves):
    leaf, store = leaves
    plan = planned("SELECT k + 1 AS next, count(*), max(m) AS m FROM t GROUP BY k ORDER BY k DESC")
    for as_of, change in ((THEN, {}), (NOW, LATER)):
        table = peek(spark, plan, leaf, as_of, store)
        assert table.column_names == ["next", "count", "m"]
        kinds = [c.type for c in plan.root.schema.columns[: plan.visible]]
        rows = Counter(ROWS)
        rows.update(change)
        expected = []
        for k in sorted({row[0] for row, n in rows.items() if n}, reverse=True):
            mine = Counter({row: n for row, n in rows.items() if row[0] == k})
            months = [row[2] for row in mine.elements() if row[2] is not None]
            expected.append((k + 1, mine.total(), max(months, default=None)))
        assert rows_of(table, kinds) == expected


@pytest.mark.parametrize("place", ["in memory", "in files", "task by task"])
def test_a_stream_gives_the_same_rows_in_the_same_order(spark, leaves, monkeypatch, place):
    leaf, store = leaves
    if place != "in memory":
        monkeypatch.setattr(module, "SPILLED_ROWS", 0)
    if place == "task by task":
        monkeypatch.setattr(type(spark), "own_cores", None)
    for text in (
        "SELECT v, md5(v) AS n, m FROM t WHERE k > 3 ORDER BY n DESC, v",
        "SELECT k FROM t WHERE sqrt(k) > 1000",
    ):
        plan = planned(text)
        found = stream(spark, plan, leaf, NOW, store)
        assert found.reads_runs == (place == "task by task")
        table = peek(spark, plan, leaf, NOW, store)
        assert pa.Table.from_batches(found.batches, table.schema).to_pylist() == table.to_pylist()


def test_what_spark_sorts_is_sorted_the_same(spark, leaves, monkeypatch):
    leaf, store = leaves
    plan = planned("SELECT v, m FROM t ORDER BY m DESC NULLS LAST, v")
    here = peek(spark, plan, leaf, NOW, store)
    monkeypatch.setattr(direct, "FILTERED_ROWS", 0)
    assert "without" not in way(plan, leaf)
    assert peek(spark, plan, leaf, NOW, store).to_pylist() == here.to_pylist()


@pytest.mark.parametrize(
    ("text", "few"),
    [
        ("SELECT * FROM generate_series(1, 10) AS s(n)", True),
        ("SELECT * FROM generate_series(1, 50001) AS s(n)", False),
        ("SELECT * FROM generate_series(100000, 1, -3) AS s(n)", True),
        ("SELECT * FROM generate_series(1, 100000) AS s(n) LIMIT 7", True),
        ("SELECT count(*) FROM generate_series(1, 100000) AS s(n)", True),
        ("SELECT k, n FROM t, generate_series(1, k) AS s(n)", False),
        ("SELECT k, n FROM t, unnest(ARRAY[k, 1]) AS u(n)", True),
        ("SELECT a.k FROM t a, t b, t c", False),
    ],
)
def test_what_is_known_to_give_few_rows(tmp_path, text, few):
    made = arranged(arrow_types(ITEM.schema), (0,), [(ROWS, 1)], LocalStore(tmp_path))
    assert module._gives_few(planned(text), {ITEM.id: [made]}) is few


def test_an_expression_that_fails_raises_its_error(spark, leaves):
    leaf, store = leaves
    with pytest.raises(ExpressionFailed, match="division by zero") as raised:
        peek(spark, planned("SELECT 1 / k FROM t"), leaf, NOW, store)
    assert raised.value.code == "22012"
    assert "\n" not in raised.value.message


def test_a_frame_has_the_names_and_types_of_the_query(spark, leaves):
    leaf, store = leaves
    made = dataframe(spark, planned("SELECT v AS name, m FROM t WHERE k > 90"), leaf, NOW, store)
    assert made.columns == ["name", "m"]
    assert made.schema["m"].dataType.simpleString() == "struct<days:int,micros:bigint,months:int>"
    assert made.count() == 2
    assert not [t for t in spark.bulk.catalog.listTables() if "reclock_leaf" in t.name]


def test_an_error_of_a_task_is_the_error_it_was(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(frame, "LOCAL_ROWS", 0)
    store = LocalStore(tmp_path)
    leaf = [arranged(arrow_types(ITEM.schema), (0,), [(ROWS, 1)], store, inline=False)]
    plan = planned("SELECT md5(v) FROM t")
    (segment,) = tmp_path.iterdir()
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / segment.name).write_bytes(content)
    with pytest.raises(Corrupt, match="corrupt run"):
        peek(spark, plan, {ITEM.id: leaf}, THEN, LocalStore(damaged))
    with pytest.raises(SegmentMissing):
        peek(spark, plan, {ITEM.id: leaf}, THEN, LocalStore(tmp_path / "nowhere"))


def test_arrays_of_an_empty_table_are_a_column(spark):
    arrays = pa.chunked_array([], pa.list_(pa.int32()))
    assert local_relation(spark.session, pa.table({"l": arrays})).collect() == []
