"""The reference evaluator against PostgreSQL: all calls whose functions it has, over edge values.

The query net compares what it plans and keeps with this model, without Spark; what the model gets
wrong, the net could not find.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from graphs.memory_graph import hashable
from model.evaluate_scalar import EvaluationError, evaluate_scalar, knows, normal
from reclock.dataflow.values import from_python
from reclock.errors import Error
from reclock.testing.postgres import running_postgres

from ..shards import turn  # noqa: TID252 - tests are no package
from .cases import cases
from .deviations import MINUS_ZERO, is_decided
from .net import TRY, Difference, ask_postgres, columns_of, planned, shown, tuples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.types import Type

    from .cases import Case

pytestmark = pytest.mark.postgres

GROUPS: dict[tuple[Type, ...], list[Case]] = defaultdict(list)
for _case in cases():
    GROUPS[_case.kinds].append(_case)


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with running_postgres() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        connection.execute(TRY)
        yield connection


def known(kinds: tuple[Type, ...]) -> dict[Case, Scalar]:
    """Return the calls that the model has, with their plans."""
    names = [f"c{i}" for i in range(len(kinds))]
    made = {}
    for case in GROUPS[kinds]:
        try:
            scalar = planned(case.expression.format(*names), kinds)
        except Error:
            continue
        if knows(scalar):
            made[case] = scalar
    return made


def value(scalar: Scalar, row: tuple[object, ...]) -> str | None:
    try:
        made = evaluate_scalar(scalar, row)
    except EvaluationError as error:
        return "!" + error.code
    answer: str | None = shown(from_python([made], scalar.type), [None], scalar.type)[0]
    return answer


def _is_minus_zero(literal: str | None) -> bool:
    """The model has one zero."""
    return literal is not None and MINUS_ZERO.search(literal) is not None


def differing(connection: Any, kinds: tuple[Type, ...], rng: random.Random) -> list[Difference]:
    """Return where the model does not answer as PostgreSQL, over some arguments of each call."""
    calls = known(kinds)
    if not calls:
        return []
    every = [row for row in tuples(next(iter(calls))) if not any(map(_is_minus_zero, row))]
    rows = every if len(every) <= 60 else rng.sample(every, 60)
    columns = map(hashable, columns_of(kinds, rows), kinds)
    given = [tuple(map(normal, row)) for row in zip(*columns, strict=True)]
    asked = [(case, row) for case in calls for row in rows]
    theirs = iter(ask_postgres(connection, asked))
    found = []
    for case, scalar in calls.items():
        for row, values in zip(rows, given, strict=True):
            wanted, got = next(theirs), value(scalar, values)
            if wanted != got and MINUS_ZERO.sub("0", wanted or "") != got:
                found.append(Difference(case, row, wanted, got, "model", scalar.type))
    return [difference for difference in found if not is_decided(difference)]


def test_some_calls(connection: Any) -> None:
    drawn = int(os.environ.get("RECLOCK_SEED") or turn(Path(__file__).parent))
    rng = random.Random(drawn)
    found = [d for k in rng.sample(list(GROUPS), 20) for d in differing(connection, k, rng)]
    assert not found, f"RECLOCK_SEED={drawn}\n" + "\n".join(map(str, found[:30]))


@pytest.mark.slow(seconds=20)
def test_all_calls(connection: Any) -> None:
    rng = random.Random(0)
    found = [d for kinds in GROUPS for d in differing(connection, kinds, rng)]
    assert not found, "\n".join(map(str, found[:30])) + f"\n… {len(found)} in all"
