"""Every row of the function table, every operator and every cast, against PostgreSQL.

The quick test draws some calls and arguments, other ones with each commit: it prints its seed, and
``RECLOCK_SEED=n`` draws the same again. The slow ones try all of them.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from reclock.dataflow.values import from_python
from reclock.server.codec import binary, text
from reclock.testing.postgres import running_postgres

from ..shards import turn  # noqa: TID252 - tests are no package
from .cases import cases
from .deviations import is_decided
from .edges import EDGES
from .net import TRY, compare, compare_constants, tuples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.spark.session import Spark
    from reclock.sql.types import Type

    from .cases import Case
    from .net import Difference

pytestmark = [pytest.mark.postgres, pytest.mark.spark]

CASES = list(cases())
GROUPS: dict[tuple[Type, ...], list[Case]] = defaultdict(list)
for _case in CASES:
    GROUPS[_case.kinds].append(_case)

ROWS = 400
"""So many tuples of arguments of a call are tried at most."""

SHARDS = 8


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with running_postgres() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        connection.execute(TRY)
        yield connection


def seed() -> int:
    """Return the seed that the environment gives, or another one each time."""
    return int(os.environ.get("RECLOCK_SEED") or turn(Path(__file__).parent))


def undecided(found: list[Difference]) -> str:
    left = [difference for difference in found if not is_decided(difference)]
    return "\n".join(map(str, left[:30])) + (f"\n… {len(left)} in all" if left else "")


def test_some_calls(spark: Spark, connection: Any) -> None:
    drawn = seed()
    print(f"RECLOCK_SEED={drawn}")
    rng = random.Random(drawn)
    found: list[Difference] = []
    for kinds in rng.sample(list(GROUPS), 6):
        asked = rng.sample(GROUPS[kinds], min(6, len(GROUPS[kinds])))
        rows = tuples(asked[0])
        found += compare(spark, connection, asked, rng.sample(rows, min(25, len(rows))))
    constants = [(case, rng.choice(tuples(case))) for case in rng.sample(CASES, 30)]
    found += compare_constants(spark, connection, constants)
    assert not undecided(found), f"RECLOCK_SEED={drawn}\n{undecided(found)}"


@pytest.mark.slow(seconds=30)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_all_calls(spark: Spark, connection: Any, shard: int) -> None:
    rng = random.Random(shard)
    found: list[Difference] = []
    for kinds in list(GROUPS)[shard::SHARDS]:
        rows = tuples(GROUPS[kinds][0])
        rows = rows if len(rows) <= ROWS else rng.sample(rows, ROWS)
        found += compare(spark, connection, GROUPS[kinds], rows)
    assert not undecided(found), undecided(found)


@pytest.mark.slow(seconds=40)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_all_constants(spark: Spark, connection: Any, shard: int) -> None:
    rng = random.Random(shard)
    found: list[Difference] = []
    asked = [(case, row) for case in CASES[shard::SHARDS] for row in _few(rng, tuples(case))]
    for start in range(0, len(asked), 60):
        found += compare_constants(spark, connection, asked[start : start + 60])
    assert not undecided(found), undecided(found)


def _few(rng: random.Random, rows: list[tuple[str | None, ...]]) -> list[tuple[str | None, ...]]:
    return rng.sample(rows, min(4, len(rows)))


@pytest.mark.parametrize("kind", list(EDGES), ids=str)
def test_values_on_the_wire(connection: Any, kind: Type) -> None:
    for literal in EDGES[kind]:
        value = from_python([literal], kind)[0].as_py()
        for form, ours in (
            (False, text.write(value, kind).encode()),
            (True, binary.write(value, kind)),
        ):
            cursor = connection.execute(f"SELECT %s::text::{kind}", (literal,), binary=form)
            assert cursor.pgresult.get_value(0, 0) == ours, (literal, form)
