from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.evaluate import evaluate
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from reclock.sql.plan.relation import Join, JoinKind, walk
from reclock.sql.rewrite.pipeline import FINISH, SIMPLIFY, RewriteContext, rewrite
from strategies.queries import FuzzCatalog, random_query, random_tables

if TYPE_CHECKING:
    from reclock.sql.plan.node import Node
    from reclock.sql.rewrite.pipeline import Rule

RULES = tuple(dict.fromkeys((*SIMPLIFY, *FINISH)))


def planned(seed: int) -> tuple[Node, dict[str, Counter[tuple[object, ...]]]]:
    random = Random(seed)
    tables = random_tables(random)
    text = random_query(random)
    return plan_query(parse_query(text), FuzzCatalog()).relation, tables


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_each_rule_keeps_the_result(rule: Rule, seed: int) -> None:
    node, tables = planned(seed)
    assert evaluate(rule(node), tables) == evaluate(node, tables)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), outer_joins=st.booleans())
def test_all_rules_together_keep_the_result(seed: int, outer_joins: bool) -> None:
    node, tables = planned(seed)
    made = rewrite(node, RewriteContext(outer_joins=outer_joins))
    assert made.schema.names == node.schema.names
    assert evaluate(made, tables) == evaluate(node, tables)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_only_inner_joins_are_left(seed: int) -> None:
    made = rewrite(planned(seed)[0], RewriteContext())
    assert all(n.kind is JoinKind.INNER for n in walk(made) if isinstance(n, Join))


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_unique_keys_are_unique(seed: int) -> None:
    node, tables = planned(seed)
    for at in walk(rewrite(node, RewriteContext())):
        for key in at.unique_keys:
            seen: Counter[tuple[object, ...]] = Counter()
            for row, count in evaluate(at, tables).items():
                seen[tuple(row[c] for c in sorted(key))] += abs(count)
            assert all(count == 1 for count in seen.values()), (at, key)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_columns_declared_not_null_are_not(seed: int) -> None:
    node, tables = planned(seed)
    for at in walk(node):
        for index, column in enumerate(at.schema):
            if not column.nullable:
                assert all(row[index] is not None for row in evaluate(at, tables)), (at, column)


def test_equal_text_has_equal_fingerprints() -> None:
    first, second = planned(7)[0], planned(7)[0]
    assert first == second
    assert first.fingerprint == second.fingerprint
    assert rewrite(first, RewriteContext()).fingerprint != planned(8)[0].fingerprint
