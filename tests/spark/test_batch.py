"""Plans as Spark SQL against the reference evaluator: every kind of node, and random queries.

Answers catch wrong semantics; tables with NULLs, duplicates and no rows catch wrong
counts; errors must be raised exactly when the evaluator raises them.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest

from model.evaluate import answer, evaluate
from reclock.dataflow.types import arrow_types
from reclock.dataflow.values import from_python, rows_of
from reclock.errors import Error
from reclock.interval import Interval
from reclock.spark import batch
from reclock.spark.errors import spark_errors
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from reclock.sql.plan.relation import Constant, Distinct, Negate, QueryPlan, Threshold, Union
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite_query
from reclock.sql.schema import Column, Schema
from reclock.sql.types import (
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TEXT,
    TIMESTAMPTZ,
    Array,
    Numeric,
)
from strategies.queries import FuzzCatalog, random_query, random_tables

pytestmark = pytest.mark.spark

CATALOG = FuzzCatalog()
TABLES = {
    "t": Counter(
        {(1, 2, "x"): 2, (1, None, "y"): 1, (2, 0, None): 1, (None, 3, ""): 1, (3, 1, "xy"): 1}
    ),
    "u": Counter({(1, 1): 1, (1, None): 2, (None, 2): 1, (2, 2): 1, (4, 0): 1}),
    "v": Counter({(1, 3): 1, (2, None): 1, (3, 0): 1}),
}
QUERIES = [
    # leaves and rows
    "SELECT * FROM (VALUES (1, 'a'), (NULL, NULL), (1, 'a')) w(i, j)",
    "SELECT a + 1, coalesce(s, 'none') || '!' FROM t WHERE b > 0 OR b IS NULL",
    "SELECT a, g, n FROM u, unnest(ARRAY[a, c, NULL]) WITH ORDINALITY w(g, n)",
    "SELECT b, g FROM t, generate_series(1, b) w(g)",
    # joins
    "SELECT * FROM t JOIN u ON t.a = u.a",
    "SELECT * FROM t LEFT JOIN u ON t.a = u.a AND u.c > 1",
    "SELECT * FROM t RIGHT JOIN u ON t.a = u.a AND t.b + u.c > 1",
    "SELECT * FROM t FULL JOIN u ON t.a = u.a AND 6 / u.c > t.b",
    "SELECT * FROM u x, u y WHERE x.a IS NOT DISTINCT FROM y.c",
    "SELECT * FROM t WHERE a IN (SELECT a FROM u)",
    "SELECT * FROM t WHERE a NOT IN (SELECT k FROM v)",
    "SELECT * FROM t WHERE NOT EXISTS (SELECT FROM u WHERE u.a = t.a AND u.c > t.b)",
    "SELECT (SELECT max(c) FROM u WHERE u.a = v.k), k FROM v",
    # groups
    "SELECT a, count(*), count(b), sum(b), avg(b), min(s), max(s) FROM t GROUP BY a",
    "SELECT count(*), sum(a), array_agg(a), min(a) FROM u WHERE a > 9",
    "SELECT sum(DISTINCT c), count(DISTINCT a) FILTER (WHERE c > 0), bool_or(c > 1) FROM u",
    "SELECT a, array_agg(b ORDER BY b DESC), string_agg(s, '-' ORDER BY s) FROM t GROUP BY a",
    "SELECT array_agg(c), array_agg(a), string_agg('x', ',') FROM u",
    "SELECT a, b, count(*), grouping(a, b) FROM t GROUP BY ROLLUP (a, b)",
    "SELECT DISTINCT a FROM u",
    "SELECT DISTINCT ON (a) a, c FROM u ORDER BY a, c DESC",
    "SELECT 1 FROM t GROUP BY a HAVING count(*) > 1",
    # order
    "SELECT * FROM t ORDER BY b DESC, s LIMIT 3 OFFSET 1",
    "SELECT *, row_number() OVER (PARTITION BY a ORDER BY c), rank() OVER (ORDER BY a) FROM u",
    "SELECT c, sum(c) OVER (ORDER BY a), count(*) OVER (PARTITION BY a), ntile(2) OVER () FROM u",
    "SELECT lag(c) OVER (ORDER BY a), lead(c, 2, 7) OVER (ORDER BY a DESC) FROM u",
    "SELECT first_value(c) OVER w, last_value(c) OVER w, nth_value(c, 2) OVER w FROM u"
    " WINDOW w AS (ORDER BY a)",
    "SELECT array_agg(c) OVER (ORDER BY a), max(c) FILTER (WHERE c > 0) OVER (PARTITION BY a"
    " ORDER BY c ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM u",
    "SELECT percent_rank() OVER (ORDER BY c), cume_dist() OVER (ORDER BY c), dense_rank()"
    " OVER (ORDER BY c), rank() OVER () FROM u",
    # multisets
    "SELECT a FROM t UNION ALL SELECT a FROM u",
    "SELECT a FROM t EXCEPT ALL SELECT a FROM u",
    "SELECT a FROM u INTERSECT ALL SELECT a FROM t",
    "SELECT a, c FROM u EXCEPT SELECT a, b FROM t",
    "SELECT count(*) FROM (SELECT a FROM u EXCEPT ALL SELECT k FROM v) w",
    # one part used twice
    "WITH w AS (SELECT a, count(*) n FROM t GROUP BY a) SELECT * FROM w x JOIN w y ON x.n = y.n",
]
FAILING = [
    ("SELECT 1 / b FROM t", "22012"),
    ("SELECT count(*) FROM (SELECT 1 / b FROM t) w", "22012"),
    ("SELECT * FROM t WHERE 1 / b = 1", "22012"),
    ("SELECT s::int FROM t WHERE a = 1", "22P02"),
    ("SELECT (SELECT c FROM u WHERE u.a = v.k) FROM v", "21000"),
    ("SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY a) FROM t", "22003"),
    ("SELECT ntile(0) OVER (ORDER BY a) FROM t", "22014"),
]
NOT_FAILING = [
    "SELECT 1 / b FROM t WHERE b <> 0",
    "SELECT * FROM t WHERE b <> 0 AND 1 / b = 1",
    "SELECT 1 / t.b FROM t JOIN v ON t.a = v.k WHERE t.b > 0",
    "SELECT CASE WHEN b <> 0 THEN 1 / b END FROM t",
    "SELECT q.a FROM (SELECT a, b FROM t WHERE b <> 0) q WHERE 6 / q.b > 1",
]


def planned(text, **how):
    plan = plan_query(parse_query(text), CATALOG)
    return rewrite_query(plan, RewriteContext(**how)) if how else plan


@pytest.fixture(scope="module")
def ask(spark):
    """Answer a plan over tables, in its order."""
    session = spark.session

    def leaves(tables):
        made = {}
        for name, rows in tables.items():
            item = CATALOG.resolve((name,))
            kinds = [c.type for c in item.schema]
            given = list(rows.elements())
            columns = [from_python([r[i] for r in given], k) for i, k in enumerate(kinds)]
            table = pa.Table.from_arrays(columns, names=[f"c{i}" for i in range(len(kinds))])
            session.createDataFrame(table).createOrReplaceTempView(f"leaf_{name}")
            made[item.id] = f"leaf_{name}"
        return made

    def run(plan, tables):
        with spark_errors():
            script = batch.query(plan, leaves(tables))
            for name, rows in script.constants:
                session.createDataFrame(rows).createOrReplaceTempView(name)
            for part in script.parts:
                rows = session.sql(part.text)
                rows = rows.localCheckpoint() if part.computed else rows
                rows.createOrReplaceTempView(part.name)
            found = session.sql(script.text).toArrow()
        schema = Schema(plan.root.schema.columns[: plan.visible])
        assert tuple(found.schema.types) == arrow_types(schema)
        return [tuple(map(frozen, row)) for row in rows_of(found, [c.type for c in schema])]

    return run


def frozen(value):
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def outcome(of, plan, tables):
    """Return the rows, or the code of the error in their place."""
    try:
        return of(plan, tables)
    except Error as error:
        return [error.code]


def same(plan, read, expected):
    return read == expected if plan.order else Counter(read) == Counter(expected)


@pytest.mark.parametrize("text", QUERIES + NOT_FAILING)
def test_every_node_is_the_evaluators(ask, text):
    plan = planned(text, outer_joins=True)
    empty = {name: Counter() for name in TABLES}
    for tables in (TABLES, empty):
        assert same(plan, ask(plan, tables), answer(plan, tables)), text


@pytest.mark.parametrize(("text", "code"), FAILING)
def test_a_row_without_a_value_is_an_error(ask, text, code):
    plan = planned(text)  # as written: a rewrite may do without the column that fails
    with pytest.raises(Error) as raised:
        ask(plan, TABLES)
    assert raised.value.code == code
    assert "|" not in raised.value.message


KINDS = (INTEGER, TEXT, BOOLEAN, Numeric(9, 2), INTERVAL, DATE, TIMESTAMPTZ, BYTEA,
         Array(INTERVAL), DOUBLE)  # fmt: skip
LONG = [
    (i, f"it's {i}\n", i % 2 == 0, Decimal(i) / 4, Interval(-i, i, i * i),
     date(2024, 1, 1) + timedelta(i), datetime(2024, 1, 1, i % 24, tzinfo=UTC), bytes([i]),
     (Interval(i), None), i / 8)
    for i in range(100)
]  # fmt: skip


def shown(rows):
    """Return the rows as answers show them: arrays as lists."""
    columns = [from_python([r[i] for r in rows], k) for i, k in enumerate(KINDS)]
    table = pa.Table.from_arrays(columns, names=[str(i) for i in range(len(KINDS))])
    return [tuple(map(frozen, row)) for row in rows_of(table, KINDS)]


@pytest.mark.parametrize("limit", [0, 10**6], ids=["table", "text"])
def test_long_constants_are_tables_and_the_same(ask, monkeypatch, limit):
    monkeypatch.setattr(batch.leaf, "TEXT_ROWS", limit)
    schema = Schema(tuple(Column(f"k{i}", kind) for i, kind in enumerate(KINDS)))
    nothing = (None,) * len(KINDS)
    rows = Constant(schema, (*((row, 1 + i % 3) for i, row in enumerate(LONG)), (nothing, 2)))
    taken = Constant(schema, (*((row, -1) for row in LONG[::2]), (nothing, -1)))
    for node in (rows, Union((rows, taken)), Threshold(Union((rows, taken)))):
        plan = QueryPlan(node, node.width)
        assert bool(batch.query(plan, {}).constants) == (limit == 0)
        assert Counter(ask(plan, {})) == Counter(shown(answer(plan, {})))
    with pytest.raises(Error) as raised:
        ask(QueryPlan(taken, taken.width), {})
    assert raised.value.code == "22000"


def test_what_is_shared_is_computed_once_and_text_stays_linear():
    step = "SELECT x.a, y.a b FROM ({0}) x JOIN ({0}) y ON x.a = y.a"
    text = "SELECT a, c FROM u"
    for _ in range(12):
        text = f"WITH w AS ({text}) {step.format('SELECT * FROM w')}"
    script = batch.query(planned(text), {CATALOG.resolve(("u",)).id: "leaf_u"})
    assert sum(part.computed for part in script.parts) >= 1
    assert len(script.text) + sum(len(part.text) for part in script.parts) < 20_000


def within(function, depth, of="a"):
    """Return a function of a function of … a column."""
    head, _, tail = function.partition("{}")
    return head * depth + of + tail * depth


DEEP = [
    ("SELECT {} AS x FROM t", "abs({})", "a"),
    ("SELECT sum(x) FROM (SELECT {} AS x FROM t) s", "coalesce(nullif(6 / b, 3), abs({}))", "a"),
    ("SELECT a FROM t WHERE {} > 3", "CASE WHEN b % 7 = 3 THEN 6 / b ELSE abs({}) END", "a"),
    ("SELECT a FROM t WHERE {} > 'x'", "left({}, -1)", "s"),
    ("SELECT 1 FROM (SELECT left({}, -1) AS x FROM t) w JOIN t ON t.s = w.x", "left({}, -1)", "s"),
    ("SELECT {}, count(*) FROM t GROUP BY 1", "({}::text::int + 1)", "a"),
]


@pytest.mark.parametrize(("text", "function", "of"), DEEP)
def test_what_spark_makes_of_it_grows_with_the_depth(spark, text, function, of):
    rows = spark.session.range(1).selectExpr("INT(id) c0", "INT(id) c1", "STRING(id) c2")
    rows.repartition(1).createOrReplaceTempView("deep_t")
    sizes = []
    for depth in (2, 4, 6):
        plan = planned(text.format(within(function, depth, of)), outer_joins=True)
        script = batch.query(plan, {CATALOG.resolve(("t",)).id: "deep_t"})
        for part in script.parts:
            spark.session.sql(part.text).createOrReplaceTempView(part.name)
        frame = spark.session.sql(script.text)
        sizes.append(len(frame._jdf.queryExecution().optimizedPlan().toString()))
    assert sizes[2] < 4 * sizes[0]


@pytest.mark.slow(seconds=25)
def test_errors_are_the_evaluators_however_deep(ask):
    for text, function, of in DEEP:
        plan = planned(text.format(within(function, 40, of)), outer_joins=True)
        for tables in (TABLES, TABLES | {"t": Counter({(1, 2, "x" * 60): 2, (None, 9, "y"): 1})}):
            expected, read = outcome(answer, plan, tables), outcome(ask, plan, tables)
            assert same(plan, read, expected), text


def test_counts_may_be_negative_on_the_way_but_not_at_the_end(ask):
    one = Schema((Column("x", INTEGER),))
    some = Constant(one, (((1,), 3), ((2,), 1)))
    less = Constant(one, (((1,), 1), ((2,), 2), ((3,), 1)))
    signed = Constant(one, (((1,), 2), ((2,), -1)))
    difference = Union((some, Negate(less)))
    for node in (Threshold(difference), Distinct(difference), Union((signed, some, some))):
        read = Counter(ask(QueryPlan(node, 1), TABLES))
        assert read == evaluate(node, {})
    with pytest.raises(Error, match="more of a row was taken away") as raised:
        ask(QueryPlan(difference, 1), TABLES)
    assert raised.value.code == "22000"


@pytest.mark.parametrize("seed", [11, 12])
def test_random_queries_are_the_evaluators(ask, seed):
    random = Random(seed)
    tables = random_tables(random)
    for number in range(8):
        text = random_query(random)
        plan = planned(text, outer_joins=number % 2 == 0)
        expected, read = outcome(answer, plan, tables), outcome(ask, plan, tables)
        assert same(plan, read, expected), text
