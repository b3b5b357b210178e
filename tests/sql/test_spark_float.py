"""The text of floats in Spark SQL, against ``float_text``, which is compared with PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from reclock.errors import Error
from reclock.sql.float_text import float_text, read_float
from reclock.sql.plan.spark_cast import cast_failure, cast_text
from reclock.sql.plan.spark_float import float_as_text
from reclock.sql.types import DOUBLE, REAL, TEXT

if TYPE_CHECKING:
    from reclock.spark.session import Spark
    from reclock.sql.types import Type

pytestmark = pytest.mark.spark

POWERS = 2.0 ** np.arange(-1074, 1024)
TENS = np.array([float(f"{d}e{k}") for k in range(-30, 60) for d in (1, 3, 9.5)])
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5.62949953421312e37, 2.251799813685248e38])


def doubles(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.concatenate(
        [
            rng.integers(0, 2**64, count, dtype=np.uint64).view(np.float64),
            rng.integers(1, 2**52, count // 5, dtype=np.uint64).view(np.float64),
            rng.random(count) * 10.0 ** rng.integers(-8, 41, count),
            rng.integers(2**53, 2**62, count).astype(float),
            np.arange(1, 200) * 5e-324,
            *(np.nextafter(POWERS[::7], toward) for toward in (0, np.inf)),
            *(POWERS[::7], TENS, -TENS, SPECIAL),
        ]
    )


def reals(rng: np.random.Generator, count: int) -> np.ndarray:
    with np.errstate(all="ignore"):
        powers = POWERS[925:1202].astype(np.float32)
        return np.concatenate(
            [
                rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32),
                rng.integers(2**24, 2**62, count).astype(np.float32),
                np.arange(1, 200, dtype=np.uint32).view(np.float32),
                *(np.nextafter(powers, np.float32(toward)) for toward in (0, np.inf)),
                *(powers, TENS.astype(np.float32), SPECIAL[:5].astype(np.float32)),
            ]
        )


def written(spark: Spark, values: np.ndarray, kind: Type) -> list[str]:
    frame = spark.session.createDataFrame(pa.table({"x": values}))
    made: list[str] = (
        frame.selectExpr(f"{float_as_text('x', kind)} AS t").toArrow()["t"].to_pylist()
    )
    return made


def compare(spark: Spark, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    for kind, values in ((DOUBLE, doubles(rng, count)), (REAL, reals(rng, count))):
        texts = written(spark, values, kind)
        differ = [
            (float_text(float(x), kind), text)
            for x, text in zip(values, texts, strict=True)
            if float_text(float(x), kind) != text
        ]
        assert not differ, f"seed {seed}: {differ[:5]}"


def test_floats_have_postgresql_s_text(spark: Spark) -> None:
    compare(spark, 19, 300)


@pytest.mark.slow(seconds=40)
@pytest.mark.parametrize("seed", range(8))
def test_many_floats_have_postgresql_s_text(spark: Spark, seed: int) -> None:
    compare(spark, seed, 20_000)


TEXTS = [
    "1e400", "-1e400", "1e-400", "0e999", "-0", "1e", "", " 1 ", "1d", "1f", "NaN", "+nan", "-inf",
    "Infinity", "infinit", "1e39", "3.4028236e38", "7e-46", "16777217.0000000000000001", ".5", "5.",
    ".", "1_0", "0x1p3", "\uff11", "\t1\n", "\u00a01", "1 2", None,
]  # fmt: skip


@pytest.mark.parametrize("kind", [DOUBLE, REAL], ids=str)
def test_texts_are_read_as_literals_are(spark: Spark, kind: Type) -> None:
    frame = spark.session.createDataFrame(pa.table({"x": TEXTS}))
    value, error = cast_text("x", TEXT, kind), cast_failure("x", TEXT, kind)
    found = frame.selectExpr(f"{value} AS v", f"{error} AS e").toArrow().to_pylist()
    for text, row in zip(TEXTS, found, strict=True):
        wanted: object = None
        problem = None
        try:
            wanted = None if text is None else read_float(text, kind)
        except Error as raised:
            problem = f"{raised.code}|{raised.message}"
        assert repr(row["v"]) == repr(wanted), text
        if text is not None and wanted is None:
            assert row["e"] == problem, text


def test_doubles_that_no_real_is_are_errors(spark: Spark) -> None:
    values = [1e300, -1e300, 1e-300, 0.0, float("inf"), float("nan"), 1.5, None, 1e-45]
    frame = spark.session.createDataFrame(pa.table({"x": pa.array(values, pa.float64())}))
    value, error = cast_text("x", DOUBLE, REAL), cast_failure("x", DOUBLE, REAL)
    found = frame.selectExpr(f"{value} AS v", f"{error} AS e").toArrow().to_pylist()
    assert [row["v"] is None for row in found] == [True] * 3 + [False] * 4 + [True, False]
    over, under = "22003|value out of range: overflow", "22003|value out of range: underflow"
    assert [row["e"] for row in found[:3]] == [over, over, under]
