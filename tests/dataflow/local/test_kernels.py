"""Every call of the function table that has a kernel, over edge values, against Spark.

With columns, and with a constant in the place of one argument: some kernels exist for constants
only. The function net compares the same calls with PostgreSQL (tests/functions/test_net.py).
"""

from __future__ import annotations

import os
from functools import cache
from itertools import groupby, product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from reclock.dataflow import delta as deltas
from reclock.dataflow.local import evaluated, is_local
from reclock.dataflow.values import from_python
from reclock.errors import Error

from ...functions.cases import Case, cases  # noqa: TID252 - tests are no package
from ...functions.edges import of  # noqa: TID252
from ...functions.net import computed, planned, quoted, shown  # noqa: TID252
from ...shards import turn  # noqa: TID252

if TYPE_CHECKING:
    from reclock.dataflow.evaluate import Evaluated
    from reclock.spark.session import Spark
    from reclock.sql.plan.scalar import Scalar

ROWS, FEW, SOME, TOGETHER, PARTS = 300, 40, 400, 40, 8


def forms(case: Case) -> list[str]:
    """Return a call over columns, and with a constant in the place of each argument."""
    columns = [f"c{i}" for i in range(len(case.kinds))]
    found = [case.expression.format(*columns)]
    for at, kind in enumerate(case.kinds):
        for literal in of(kind):
            given = [*columns[:at], quoted(literal, kind), *columns[at + 1 :]]
            found.append(case.expression.format(*given))
    return found


@cache
def local_calls() -> list[tuple[tuple[Any, ...], str]]:
    """Return the types of arguments, and the texts, of all calls that are local."""
    found = []
    for case in cases():
        for text in forms(case):
            try:
                scalar = planned(text, case.kinds)
            except Error:
                continue
            if is_local(scalar):
                found.append((case.kinds, text))
    return found


def differences(
    spark: Spark, kinds: tuple[Any, ...], texts: list[str], random: Random
) -> list[str]:
    """Compare what the kernels and Spark make of calls over the same rows."""
    edges = list(product(*(of(kind) for kind in kinds)))
    rows = edges if len(edges) <= ROWS else random.sample(edges, ROWS)
    columns = [from_python([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
    scalars: list[Scalar] = [planned(text, kinds) for text in texts]
    delta = deltas.build(columns, np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64))
    found = evaluated(scalars, delta)
    wanted = computed(spark, columns, len(rows), scalars)
    wrong = []
    for text, scalar, values, errors, spark_says in zip(
        texts, scalars, found.values, found.errors, wanted, strict=True
    ):
        failed = [None] * len(rows) if errors is None else errors.to_pylist()
        ours = shown(values, failed, scalar.type)
        apart = [
            n for n, pair in enumerate(zip(ours, spark_says, strict=True)) if len(set(pair)) > 1
        ]
        if apart:
            n = apart[0]
            wrong.append(f"{text} of {rows[n]}: {ours[n]!r}, in Spark {spark_says[n]!r}")
    return wrong


def compared(spark: Spark, calls: list[tuple[tuple[Any, ...], str]], random: Random) -> list[str]:
    """Compare calls, those of the same arguments together."""
    wrong = []
    for kinds, group in groupby(sorted(calls, key=lambda c: tuple(map(str, c[0]))), lambda c: c[0]):
        texts = [text for _, text in group]
        for first in range(0, len(texts), TOGETHER):
            wrong += differences(spark, kinds, texts[first : first + TOGETHER], random)
    return wrong


def test_most_calls_of_numbers_and_times_are_local() -> None:
    assert len(local_calls()) > 3_000


def test_constants_give_what_columns_give() -> None:
    """A call of constants only, which no kernel may take for one of columns."""
    random = Random(int(os.environ.get("RECLOCK_SEED") or turn(Path(__file__).parent)))
    wrong = []
    every = [case for case in cases() if case.kinds]
    for case in random.sample(every, SOME):
        row = tuple(random.choice(of(kind)) for kind in case.kinds)
        texts = (
            case.expression.format(*(f"c{i}" for i in range(len(row)))),
            case.expression.format(*map(quoted, row, case.kinds)),
        )
        try:
            scalars = [planned(text, case.kinds) for text in texts]
        except Error:
            continue
        if all(map(is_local, scalars)):
            columns = [from_python([v] * 2, k) for v, k in zip(row, case.kinds, strict=True)]
            delta = deltas.build(columns, np.zeros(2, np.int64), np.ones(2, np.int64))
            found = [answers(evaluated([scalar], delta), scalar) for scalar in scalars]
            if found[0] != found[1]:
                wrong.append(f"{case} of {row}: {found}")
    assert not wrong, "\n".join(wrong)


def answers(found: Evaluated, scalar: Scalar) -> list[str | None]:
    """Return the only column that was evaluated."""
    values, errors = found.values[0], found.errors[0]
    failed = [None] * len(values) if errors is None else errors.to_pylist()
    return shown(values, failed, scalar.type)


@pytest.mark.spark
def test_some_calls_give_what_spark_gives(spark: Spark) -> None:
    random = Random(int(os.environ.get("RECLOCK_SEED") or turn(Path(__file__).parent)))
    wrong = compared(spark, random.sample(local_calls(), FEW), random)
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.slow(seconds=40)
@pytest.mark.parametrize("part", range(PARTS))
def test_all_calls_give_what_spark_gives(spark: Spark, part: int) -> None:
    wrong = compared(spark, local_calls()[part::PARTS], Random(part))
    assert not wrong, "\n".join(wrong)
