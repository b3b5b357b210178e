"""The model's operators against SQLite, which computes each answer from scratch.

At every time the accumulated inputs become tables and a query gives the contents that the
incremental output must accumulate to. SQLite knows nothing of this package, so an error
would have to be made twice. What old versions of it lack (FULL JOIN, EXCEPT ALL) is said
in SQL that they have.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import given

from model import join, reduce, sets
from model.consolidate import accumulate
from model.incremental import incrementalise
from model.topk import Order, top_k
from strategies.changes import ALL_TIMES, Log, multiset_logs

keyed = {"left_key": join.columns(0), "right_key": join.columns(0)}


def not_null(values: list[Any]) -> list[Any]:
    return [v for v in values if v is not None]


def aggregates(group: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    numbers = not_null([number for number, _ in group])
    texts = not_null([text for _, text in group])
    return (
        len(group),
        len(texts),
        len(set(texts)),
        sum(numbers) if numbers else None,
        min(texts, default=None),
        max(texts, default=None),
    )


AGGREGATES = "count(*), count(b), count(DISTINCT b), sum(a), min(b), max(b)"
LEFT = "SELECT l.a, l.b, r.a, r.b FROM l LEFT JOIN r ON l.a = r.a"
RIGHT = "SELECT l.a, l.b, r.a, r.b FROM r LEFT JOIN l ON l.a = r.a"
NUMBERED = "SELECT a, b, row_number() OVER (PARTITION BY a, b) n FROM"


def top(order: str, first: int, last: int) -> str:
    window = f"row_number() OVER (PARTITION BY a ORDER BY {order}) n"
    return f"SELECT a, b FROM (SELECT *, {window} FROM l) WHERE n BETWEEN {first} AND {last}"


JOINS = {
    "inner": (
        partial(join.inner, **keyed),
        "SELECT l.a, l.b, r.a, r.b FROM l JOIN r ON l.a = r.a",
    ),
    "inner on two columns": (
        partial(join.inner, left_key=join.columns(0, 1), right_key=join.columns(0, 1)),
        "SELECT l.a, l.b, r.a, r.b FROM l JOIN r ON l.a = r.a AND l.b = r.b",
    ),
    "left": (partial(join.left_outer, **keyed, right_width=2), LEFT),
    "right": (partial(join.right_outer, **keyed, left_width=2), RIGHT),
    "full": (
        partial(join.full_outer, **keyed, left_width=2, right_width=2),
        f"{LEFT} UNION ALL {RIGHT} WHERE NOT EXISTS (SELECT 1 FROM l WHERE l.a = r.a)",
    ),
    "semi": (
        partial(join.semi, **keyed),
        "SELECT * FROM l WHERE EXISTS (SELECT 1 FROM r WHERE l.a = r.a)",
    ),
    "anti": (
        partial(join.anti, **keyed),
        "SELECT * FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE l.a = r.a)",
    ),
}

REDUCTIONS = {
    "group by": (
        lambda left, _: reduce.reduce(left, join.columns(1), aggregates),
        f"SELECT b, {AGGREGATES} FROM l GROUP BY b",
    ),
    "group by all": (
        lambda left, _: reduce.reduce_all(left, aggregates),
        f"SELECT {AGGREGATES} FROM l",
    ),
}

SETS = {
    "distinct": (lambda left, _: sets.distinct(left), "SELECT DISTINCT a, b FROM l"),
    "threshold": (lambda left, _: sets.threshold(left), "SELECT a, b FROM l"),
    "except": (sets.except_distinct, "SELECT a, b FROM l EXCEPT SELECT a, b FROM r"),
    "except all": (
        sets.except_all,
        f"SELECT a, b FROM ({NUMBERED} l EXCEPT {NUMBERED} r)",
    ),
    "intersect": (sets.intersect_distinct, "SELECT a, b FROM l INTERSECT SELECT a, b FROM r"),
    "intersect all": (
        sets.intersect_all,
        f"SELECT a, b FROM ({NUMBERED} l INTERSECT {NUMBERED} r)",
    ),
}

TOP_K = {
    "top 2": (
        lambda left, _: top_k(left, join.columns(0), (Order(1),), 2),
        top("b IS NULL, b", 1, 2),
    ),
    "top 2 after the first, descending": (
        lambda left, _: top_k(left, join.columns(0), (Order(1, descending=True),), 2, 1),
        top("b IS NULL DESC, b DESC", 2, 3),
    ),
    "limit by two columns": (
        lambda left, _: top_k(left, join.columns(), (Order(1, descending=True), Order(0)), 3),
        "SELECT a, b FROM l ORDER BY b IS NULL DESC, b DESC, a IS NULL, a LIMIT 3",
    ),
}


def ask(database: sqlite3.Connection, query: str, *tables: Counter[Any]) -> Counter[Any]:
    for name, contents in zip("lr", tables, strict=True):
        database.execute(f"DELETE FROM {name}")
        database.executemany(f"INSERT INTO {name} VALUES (?, ?)", contents.elements())
    return Counter(database.execute(query).fetchall())


@pytest.fixture(scope="module")
def database() -> Any:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE l (a, b)")
    connection.execute("CREATE TABLE r (a, b)")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "cases", [JOINS, REDUCTIONS, SETS, TOP_K], ids=["joins", "reductions", "sets", "top-k"]
)
@given(left=multiset_logs(), right=multiset_logs())
def test_operators_agree_with_sql_at_every_time(
    database: sqlite3.Connection, cases: dict[str, Any], left: Log, right: Log
) -> None:
    for case, (operator, query) in cases.items():
        out = incrementalise(operator)(left, right, as_of=ALL_TIMES[0])
        for t in ALL_TIMES:
            expected = ask(database, query, accumulate(left, t), accumulate(right, t))
            assert accumulate(out, t) == expected, case
