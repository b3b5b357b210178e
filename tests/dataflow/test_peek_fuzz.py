"""Random one-shot queries through ``peek`` against the reference evaluator.

A failure names its seed: ``RECLOCK_SEED=<seed>`` runs that one alone.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from reclock.arrangement.store import LocalStore
from reclock.dataflow.peek import peek
from reclock.dataflow.types import arrow_types
from reclock.dataflow.values import rows_of
from reclock.errors import Error
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite_query
from reclock.testing.collections import arranged
from reclock.testing.evaluate import answer
from reclock.testing.queries import FuzzCatalog, random_query, random_tables
from reclock.time.timestamp import Timestamp

pytestmark = pytest.mark.spark

CATALOG = FuzzCatalog()
CHOSEN = os.environ.get("RECLOCK_SEED")
QUICK = [int(CHOSEN)] if CHOSEN else [104]
SLOW = [] if CHOSEN else [*range(100, 104), *range(105, 112)]
SEEDS = [*QUICK, *(pytest.param(seed, marks=pytest.mark.slow(seconds=10)) for seed in SLOW)]
NOW = Timestamp(1)


def outcome(run):
    """Return the rows, or the code of the error in their place."""
    try:
        return [tuple(tuple(v) if isinstance(v, list) else v for v in row) for row in run()]
    except Error as error:
        return [error.code]


@pytest.mark.parametrize("lowered", [False, True], ids=["as Spark joins", "as a view joins"])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_queries_are_the_evaluators(spark, tmp_path, seed, lowered):
    random = Random(f"{seed} {lowered}")
    tables = random_tables(random)
    store = LocalStore(tmp_path)
    leaves = {}
    for name, rows in tables.items():
        item = CATALOG.resolve((name,))
        leaves[item.id] = [arranged(arrow_types(item.schema), (0,), [(rows, 1)], store)]
    for _ in range(4):
        text = random_query(random)
        plan = plan_query(parse_query(text), CATALOG)
        plan = rewrite_query(plan, RewriteContext(outer_joins=not lowered))
        kinds = [column.type for column in plan.root.schema.columns[: plan.visible]]
        expected = outcome(lambda plan=plan: answer(plan, tables))
        read = outcome(
            lambda plan=plan, kinds=kinds: rows_of(peek(spark, plan, leaves, NOW), kinds)
        )
        same = read == expected if plan.order else Counter(read) == Counter(expected)
        assert same, f"seed {seed}: {text}\nread {read}\nexpected {expected}"
