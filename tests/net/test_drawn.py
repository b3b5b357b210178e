"""What the net draws: every function, type and clause that it can, so that none is lost unseen.

Counted over some thousand queries, always the same ones, without asking anything of them.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from net.calls import OF, RARE
from net.kinds import LITERALS, NAMES
from net.paths import plan_of
from net.run import queries_of
from reclock.errors import Error
from reclock.sql.plan.decorrelate import scalars_of
from reclock.sql.plan.functions import FUNCTIONS
from reclock.sql.plan.functions.aggregate import AGGREGATES, WINDOWS
from reclock.sql.plan.relation import Reduce, Window, walk
from reclock.sql.plan.scalar import Call
from reclock.sql.plan.scalar import walk as walk_scalar

if TYPE_CHECKING:
    from reclock.sql.plan.node import Node

BLOCKS = 400

NOT_DRAWN = frozenset(
    {"array_contains", "current_date", "localtimestamp", "mz_now", "mz_timestamp", "now"}
)
"""Functions that PostgreSQL has not, or whose answer is another one at every moment."""

CLAUSES = (
    "left join", "right join", "full join", "cross join", "inner join", "natural ", "using (",
    "lateral (", "unnest(", "generate_series(", "with ordinality", "union all", "union (",
    "except all", "except (", "intersect all", "intersect (", "with r", "values (", "distinct on",
    "select distinct", "group by rollup", "group by cube", "grouping sets", "grouping(", " having ",
    "filter (where", "over (partition", "over (order", "over (w", " window w as", "rows between",
    "range between", " limit ", " offset ", "fetch first", "exists (select", "not exists (select",
    " in (select", "not in (select", "any (select", "all (select", "(select max(", "case when",
    "between symmetric", "not between", "is distinct from", "is not distinct from", " escape 'x'",
    " ilike ", "nulls first", "nulls last", "within group", "array_agg(distinct", "order by 1",
    "'NaN'", "'-Infinity'", "2147483647", "9223372036854775807", "0001-01-01", "9999-12-31",
)  # fmt: skip
"""Pieces of text, each of some clause, form or edge."""


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [str(query) for seed in range(BLOCKS) for query in queries_of(seed, 10, wide=True)]


@pytest.fixture(scope="module")
def plans(texts: list[str]) -> list[Node]:
    made = [plan_of(text) for text in texts]
    return [plan.relation for plan in made if not isinstance(plan, Error)]


def test_most_queries_have_an_answer(texts: list[str], plans: list[Node]) -> None:
    assert len(plans) > 0.93 * len(texts)
    assert len({*texts}) > 0.99 * len(texts)


def test_every_function_is_drawn(plans: list[Node]) -> None:
    drawn = Counter(
        part.function.name
        for plan in plans
        for node in walk(plan)
        for scalar in scalars_of(node)
        for part in walk_scalar(scalar)
        if isinstance(part, Call)
    )
    print("functions:", dict(drawn.most_common()))
    assert {*FUNCTIONS} - {*drawn} - seldom() == NOT_DRAWN
    assert len(drawn.keys() & FUNCTIONS.keys()) > 0.8 * len(FUNCTIONS)


def seldom() -> set[str]:
    """Return the functions that calls can have which are drawn seldom."""
    found = set()
    for call in (call for calls in RARE.values() for call in calls):
        parts = [LITERALS[part[1:]][0] if part.startswith("@") else part for part in call]
        plan = plan_of(f"select {''.join(parts)} from t")
        assert not isinstance(plan, Error), (call, plan)
        scalars = [s for node in walk(plan.relation) for s in scalars_of(node)]
        found |= {p.function.name for s in scalars for p in walk_scalar(s) if isinstance(p, Call)}
    return found


def test_every_aggregate_is_drawn(plans: list[Node]) -> None:
    nodes = [node for plan in plans for node in walk(plan)]
    drawn = Counter(
        call.function.name for n in nodes if isinstance(n, Reduce) for _, call in n.aggregates
    )
    over = Counter(
        call.function.name for n in nodes if isinstance(n, Window) for _, call in n.calls
    )
    print("aggregates:", dict(drawn), "over windows:", dict(over))
    assert {a.name for a in AGGREGATES} <= {*drawn}
    assert {w.name for w in WINDOWS} <= {*over}
    assert {"sum", "count", "min", "max"} <= {*over}


def test_every_type_is_drawn(plans: list[Node]) -> None:
    drawn = Counter(re.sub(r"\(.*\)", "", str(c.type)) for plan in plans for c in plan.schema)
    print("types:", dict(drawn))
    wanted = {re.sub(r"\(.*\)", "", n).replace("int[]", "integer[]") for n in NAMES.values()}
    wanted = {{"int": "integer", "jsonb": "json"}.get(n, n) for n in wanted}
    assert {n for n in wanted if drawn[n] < 100} == set()


def test_every_clause_is_drawn(texts: list[str]) -> None:
    drawn = {piece: sum(piece in text for text in texts) for piece in CLAUSES}
    print("clauses:", drawn)
    assert {piece: n for piece, n in drawn.items() if n < 5} == {}


def test_every_kind_has_calls() -> None:
    assert {*OF} == {*NAMES}
    assert {*RARE} <= {*NAMES}
