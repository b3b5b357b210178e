"""Predicates on mz_now(): the spans they become are the times at which they are true."""

from __future__ import annotations

from random import Random

import pytest

from graphs.memory_graph import CATALOG, planned
from model.evaluate import evaluate
from model.evaluate_scalar import evaluate_scalar
from reclock.errors import InvalidDefinition, NotSupported, WrongType
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from reclock.sql.plan.relation import Filter, walk
from reclock.sql.plan.temporal import MOST_SPANS, Span, at_time, is_temporal, spans_of
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite
from strategies.queries import random_tables


def predicates(condition: str):
    plan = plan_query(parse_query(f"SELECT * FROM t WHERE {condition}"), CATALOG, maintained=True)
    return [p for n in walk(plan.root) if isinstance(n, Filter) for p in n.predicates]


def passes(span: Span, row: tuple, time: int) -> bool:
    lowers = [(evaluate_scalar(b.scalar, row), b.after) for b in span.lowers]
    uppers = [(evaluate_scalar(b.scalar, row), b.after) for b in span.uppers]
    return (
        all(evaluate_scalar(c, row) is True for c in span.conditions)
        and all(v is not None and v + after <= time for v, after in lowers)
        and all(v is not None and time < v + after for v, after in uppers)
    )


def random_condition(random: Random, depth: int = 2) -> str:
    if depth and random.random() < 0.6:
        parts = [random_condition(random, depth - 1) for _ in range(2)]
        made = random.choice([" AND ", " OR "]).join(f"({p})" for p in parts)
        return f"NOT ({made})" if random.random() < 0.3 else made
    other = random.choice(["a", "b", "a + b", "3", "NULL", "b - 1"])
    symbol = random.choice(["<", "<=", "=", ">=", ">"])
    kind = random.randrange(4)
    if kind == 0:
        return random.choice(["a < b", "s = 'x'", "b IS NULL", "a = 2"])
    if kind == 1:
        return f"{other} {symbol} mz_now()"
    return f"mz_now() {symbol} {other}"


@pytest.mark.parametrize("seed", range(80))
def test_the_spans_are_the_times_at_which_a_predicate_is_true(seed):
    random = Random(seed)
    text = random_condition(random)
    try:
        found = predicates(text)
        spans = spans_of(found)
    except NotSupported as error:
        assert "<>" in error.message or "spans" in error.message  # noqa: PT017 - NOT of =
        return
    table = random_tables(random)["t"]
    plan = plan_query(parse_query(f"SELECT * FROM t WHERE {text}"), CATALOG, maintained=True).root
    for time in range(-1, 8):
        expected = {row for row, n in evaluate(at_time(plan, time), {"t": table}).items() if n}
        assert {row for row in table if any(passes(s, row, time) for s in spans)} == expected, text


@pytest.mark.parametrize("seed", range(30))
def test_rewrites_leave_a_temporal_plan_as_it_was_at_every_time(seed):
    random = Random(seed)
    condition = random_condition(random, 1).replace("=", ">=").replace(">>", ">").replace("<>", "<")
    text = (
        f"SELECT x.s, count(*) FROM (SELECT a, b, s FROM t WHERE {condition}) x"
        " LEFT JOIN u ON x.a = u.a AND mz_now() > u.c GROUP BY x.s HAVING mz_now() < count(*) + 3"
    )
    written = plan_query(parse_query(text), CATALOG, maintained=True).relation
    made = rewrite(written, RewriteContext())
    tables = random_tables(random)
    for time in range(6):
        assert evaluate(at_time(made, time), tables) == evaluate(at_time(written, time), tables)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t WHERE mz_now() <> a", "SELECT a FROM t WHERE NOT mz_now() = a",
        "SELECT a FROM t WHERE mz_now() + 1 < a", "SELECT a FROM t WHERE mz_now() < mz_now()",
        "SELECT a FROM t WHERE (mz_now() < a) IS TRUE", "SELECT a FROM t WHERE mz_now() IN (a, b)",
        "SELECT a FROM t WHERE CASE WHEN mz_now() < a THEN true END",
        "SELECT a FROM t WHERE mz_now() IS DISTINCT FROM a",
    ],
)  # fmt: skip
def test_what_cannot_be_followed_says_what_can(text):
    if "IN (" in text:
        assert len(spans_of(predicates("mz_now() IN (a, b)"))) == 2  # it is an OR
        return
    with pytest.raises(NotSupported) as caught:
        planned(text)
    assert "WHERE mz_now() <= event_ts" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("SELECT mz_now() FROM t", "the SELECT list"),
        ("SELECT max(mz_now()) FROM t", "the SELECT list"),
        ("SELECT a FROM t GROUP BY a, mz_now()", "GROUP BY"),
        ("SELECT a FROM t ORDER BY mz_now() LIMIT 1", "ORDER BY"),
        ("SELECT DISTINCT ON (mz_now()) a FROM t", "DISTINCT ON"),
        ("VALUES (mz_now())", "VALUES"),
        ("SELECT a FROM t WHERE a < (SELECT mz_now())", "the SELECT list"),
        ("SELECT x FROM t, generate_series(1, mz_now()) AS g (x)", "a computed column"),
    ],
)
def test_a_clause_that_cannot_have_it_is_named(text, clause):
    with pytest.raises(InvalidDefinition, match=f"in {clause} of") as caught:
        planned(text)
    assert "docs/temporal-filters.md" in caught.value.hint


def test_now_points_to_temporal_filters():
    with pytest.raises(InvalidDefinition) as caught:
        planned("SELECT a FROM t WHERE now() > timestamp '2020-01-01'")
    assert "docs/temporal-filters.md" in caught.value.hint


def test_only_times_and_whole_numbers_are_compared():
    with pytest.raises(WrongType, match="numeric"):
        planned("SELECT a FROM t WHERE mz_now() < 1.5")


def test_too_many_spans_are_refused():
    terms = " AND ".join(f"(mz_now() < a + {n} OR mz_now() > b + {n})" for n in range(8))
    with pytest.raises(NotSupported, match=f"more than {MOST_SPANS}"):
        planned(f"SELECT a FROM t WHERE {terms}")


def test_a_plan_without_it_is_not_touched():
    plan = planned("SELECT a FROM t")
    assert at_time(plan, 5) is plan
    assert not any(map(is_temporal, walk(plan)))
