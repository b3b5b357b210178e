"""Random whole queries against PostgreSQL, on every path that an answer can take.

A block is a history of the tables and some queries over them (``support/net``). Every query is
asked of PostgreSQL and compared with its plan before and after all rewrites, with an answer from
the runs, with an equal query by PostgreSQL's manual or by parts (where p, where not p, where p is
null), with a view made before and one made after the data, of that query and the equal one, through
random writes, and with Spark's answers. What is not supported must be 0A000, and is counted. Where
PostgreSQL fails on a row, ``net.run.differs`` says when we must, too. Every commit draws other
queries; a failure says the number that draws them again: ``RECLOCK_NET_SEED=number``. What was
found is kept in tests/slt/net.slt.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from net.judge import Judge
from net.run import Net, queries_of
from net.shrink import script, shrunk
from net.tables import history
from reclock.testing.postgres import running_postgres

from ..shards import turn  # noqa: TID252 - tests are no package

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.dataflow.evaluate import Evaluator
    from reclock.spark.session import Spark

pytestmark = pytest.mark.postgres

CHOSEN = os.environ.get("RECLOCK_NET_SEED")
WIDE = os.environ.get("RECLOCK_NET_WIDE") == "1"
"""All forms that the planner takes, not those only that have been clean for long."""

FIRST = int(CHOSEN) if CHOSEN else 20_000 * turn(Path(__file__).parent)
EACH = 10
"""The queries of a block: as many views of one graph, and parts of one Spark job."""

QUICK, QUICK_BY_SPARK = (1, 1) if CHOSEN else (20, 1)
"""How many blocks every run has; a number that is given is that of one block."""

PARTS, PART = 500, 20
"""The slow suite has 100 thousand queries: so many parts of so many blocks."""

PROVEN = range(6)
"""Blocks of the wide net that every run has, always the same ones."""

PARTS_BY_SPARK, PART_BY_SPARK = 50, 2
"""And a thousand by Spark."""


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with running_postgres() as url:
        judge = Judge(url)
        yield judge
        judge.close()


@pytest.fixture(scope="module")
def evaluator(spark: Spark) -> Iterator[Evaluator]:
    from reclock.spark.evaluator import SparkEvaluator  # noqa: PLC0415
    from reclock.spark.exchange import Exchange  # noqa: PLC0415 - the others do without Spark

    exchange = Exchange(spark.session)
    yield SparkEvaluator(exchange)
    exchange.close()


def check(net: Net, blocks: range) -> None:
    for seed in blocks:
        net.block(seed, EACH)
        cases = net.report.cases
        if cases:
            smallest = shrunk(net, min(cases, key=lambda case: len(case.text)))
            pytest.fail(
                f"RECLOCK_NET_SEED={seed}: {len(cases)} cases, {smallest.path}: {smallest.said}\n"
                f"the smallest, for tests/slt:\n\n{script(smallest)}"
            )
    counts = net.report.counts
    print(f"blocks from {blocks[0]}:", dict(counts))
    assert counts["answered"] > counts["queries"] / 2, counts
    if counts["queries"] >= PART * EACH - EACH:
        assert counts["by direct"] > counts["queries"] / 50, counts
        for relation in ("by planned", "by rewritten", "by lowered", "by kept", "by twin"):
            assert counts[relation] > counts["queries"] / 5, (relation, counts)
        assert min(counts["partitions"], counts["manual"]) > 0, counts


def test_queries_answer_as_postgresql_does(judge: Judge) -> None:
    check(Net(judge, wide=WIDE), range(FIRST, FIRST + QUICK))


def test_wide_queries_answer_as_postgresql_does(judge: Judge) -> None:
    check(Net(judge, wide=True), PROVEN)


@pytest.mark.spark
def test_queries_answer_by_spark_as_postgresql_does(
    judge: Judge, spark: Spark, evaluator: Evaluator
) -> None:
    check(Net(judge, spark, evaluator, wide=WIDE), range(FIRST, FIRST + QUICK_BY_SPARK))


@pytest.mark.slow(seconds=15)
@pytest.mark.parametrize("part", range(PARTS))
def test_many_queries_answer_as_postgresql_does(judge: Judge, part: int) -> None:
    first = FIRST + (part + 1) * PART
    check(Net(judge, wide=WIDE), range(first, first + PART))


@pytest.mark.slow(seconds=30)
@pytest.mark.spark
@pytest.mark.parametrize("part", range(PARTS_BY_SPARK))
def test_many_queries_answer_by_spark_as_postgresql_does(
    judge: Judge, spark: Spark, evaluator: Evaluator, part: int
) -> None:
    first = FIRST + (PARTS + 1) * PART + part * PART_BY_SPARK
    check(Net(judge, spark, evaluator, wide=WIDE), range(first, first + PART_BY_SPARK))


def test_a_wrong_answer_is_found_and_made_small(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The net itself: break the planner, and a case of a few words comes out."""
    from reclock.sql.plan.build import source  # noqa: PLC0415

    monkeypatch.setitem(source._KINDS, "right", source.JoinKind.INNER)
    net = Net(judge)
    for seed in count():
        net.run(queries_of(seed, EACH), history(Random(seed), 1), only="planned")
        cases = [case for case in net.report.cases if case.path == "planned"]
        if cases:
            break
    made = shrunk(net, min(cases, key=lambda case: len(case.text)))
    assert "right join" in made.text
    assert len(made.text) < 200, made.text
    assert made.text in script(made)
