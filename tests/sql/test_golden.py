from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reclock.sql.explain import explain, explain_maintained
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from reclock.sql.plan.relation import QueryPlan
from reclock.sql.rewrite.fold_constants import fold_constants
from reclock.sql.rewrite.join_keys import join_keys
from reclock.sql.rewrite.lower_joins import lower_joins
from reclock.sql.rewrite.merge_projects import merge_projects
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite
from reclock.sql.rewrite.propagate_empty import propagate_empty
from reclock.sql.rewrite.prune_columns import prune_columns
from reclock.sql.rewrite.push_filters import push_filters
from reclock.sql.rewrite.remove_distinct import remove_distinct
from reclock.sql.rewrite.single_row import single_row
from reclock.sql.rewrite.top_k import top_k
from strategies.queries import FuzzCatalog

if TYPE_CHECKING:
    from collections.abc import Callable

    from datadriven import Case
    from reclock.sql.plan.node import Node

    Golden = Callable[[str, Callable[[Case], str]], None]

RULES = {
    "fold_constants": [fold_constants],
    "propagate_empty": [fold_constants, propagate_empty],
    "single_row": [single_row],
    "merge_projects": [merge_projects],
    "push_filters": [push_filters],
    "join_keys": [push_filters, join_keys],
    "top_k": [push_filters, top_k],
    "remove_distinct": [merge_projects, remove_distinct],
    "prune_columns": [prune_columns],
    "lower_joins": [push_filters, join_keys, lower_joins],
    "share": [lambda n: rewrite(n, RewriteContext())],
}


def outline(node: Node, depth: int = 0) -> list[str]:
    """Only the titles of the tree: what a rule changes."""
    lines = explain(QueryPlan(node, node.width)).splitlines()[1:]
    return [line for line in lines if not line.lstrip().startswith("|")]


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule: str, golden: Golden) -> None:
    def dispatch(case: Case) -> str:
        node = plan_query(parse_query(" ".join(case.input)), FuzzCatalog()).relation
        before = outline(node)
        for step in RULES[rule]:
            node = step(node)
        return "\n".join([*before, "=>", *outline(node)])

    golden(rule, dispatch)


def test_explain(golden: Golden) -> None:
    def dispatch(case: Case) -> str:
        plan = plan_query(parse_query(" ".join(case.input)), FuzzCatalog())
        if case.directive == "answer":
            return explain(plan)
        return explain_maintained(rewrite(plan.relation, RewriteContext()))

    golden("explain", dispatch)


def test_refusals(golden: Golden) -> None:
    def dispatch(case: Case) -> str:
        text = " ".join(case.input)
        return explain(plan_query(parse_query(text), FuzzCatalog(), maintained=True))

    golden("refusals", dispatch)
