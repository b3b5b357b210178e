"""Exact aggregates for one-shot queries: a list of values in Spark, added up as a view does.

Spark adds floats one after the other, so the last digits of a sum depend on the order of
rows; and it averages long decimals with fewer digits than their type has. A view does
neither (``operators.accumulate``). For a SELECT to give what a view of the same query holds
(P3), ``exact_text`` collects the values of a group and hands the list to a function of the
session, which is the view's own accumulator. ::

    sum, avg, variances and deviations of floats
    avg of decimals of more than ``AVERAGED`` digits

Cost: the values of a group are in memory at once, which is why queries over large
collections are left to Spark (``EXACT_ROWS``): their last digits may differ from a view's.

Tests: tests/spark/test_exact_text.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.dataflow.operators.accumulate.average import average_of
from reclock.dataflow.operators.accumulate.total import sum_of
from reclock.dataflow.operators.accumulate.variance import Variance
from reclock.dataflow.types import arrow_type
from reclock.sql.types import DOUBLE, FLOATS, REAL, Numeric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

    from reclock.dataflow.operators.accumulate.aggregate import Aggregate
    from reclock.sql.types import Type

EXACT_ROWS: Final = 1_000_000
"""Queries that read no more updates than this add up exactly."""

AVERAGED: Final = (18, 12)
"""Digits before and after the point of decimals whose average Spark computes exactly."""

_VARIANCES: Final = frozenset({"stddev_samp", "stddev_pop", "var_samp", "var_pop"})
_NAME: Final = re.compile(r"reclock_exact_(\w+?)__(\w+?)__(\w+)")
_CODES: Final = {"double": DOUBLE, "real": REAL}


def needs_list(name: str, kind: Type, *, exact: bool) -> bool:
    """Return whether an aggregate over values of ``kind`` is added up here."""
    if not exact:
        return False
    if kind in FLOATS:
        return name in {"sum", "avg", *_VARIANCES}
    if name != "avg" or not isinstance(kind, Numeric):
        return False
    before, after = AVERAGED
    return kind.precision - kind.scale > before or kind.scale > after


def exact_text(name: str, kind: Type, result: Type, values: str) -> str:
    """Return text for the aggregate over the list ``values``; NULL if it has no value."""
    return f"reclock_exact_{name}__{_code(kind)}__{_code(result)}({values})"


def _code(kind: Type) -> str:
    if isinstance(kind, Numeric):
        return f"n{kind.precision}_{kind.scale}"
    return next(code for code, known in _CODES.items() if known == kind)


def _decoded(code: str) -> Type:
    if code in _CODES:
        return _CODES[code]
    precision, scale = map(int, code[1:].split("_"))
    return Numeric(precision, scale)


def register_exact(session: SparkSession, texts: Iterable[str]) -> None:
    """Make the functions that ``texts`` use known to the session."""
    used = {found for text in texts for found in _NAME.finditer(text)}
    if not used:
        return
    from pyspark.sql.functions import (  # type: ignore[attr-defined]  # noqa: PLC0415
        arrow_udf,  # it has no stub, and importing it imports all of pyspark
    )

    for function in used:
        kind, result = _decoded(function[2]), _decoded(function[3])
        made = arrow_udf(adder(function[1], kind, result), result.spark_name)
        session.udf.register(function[0], made)


def adder(name: str, kind: Type, result: Type) -> Callable[[pa.Array], pa.Array]:
    """Return the function from lists to the aggregate of each.

    >>> from reclock.sql.types import DOUBLE
    >>> adder("sum", DOUBLE, DOUBLE)(pa.array([[1e300, 1.0, -1e300], []])).to_pylist()
    [1.0, None]
    """
    of = _accumulator(name, arrow_type(kind), arrow_type(result))

    def add(lists: pa.Array) -> pa.Array:
        values = lists.flatten().cast(arrow_type(kind))
        sizes = np.asarray(lists.value_lengths().fill_null(0))
        some = sizes > 0
        starts = (np.cumsum(sizes) - sizes)[some].astype(np.int64)
        diff = np.ones(len(values), np.int64)
        answer = of.read([term.sums([values], diff, starts) for term in of.terms])
        made = answer.values
        if answer.failed is not None:
            made = pc.if_else(pa.array(answer.failed), pa.scalar(None, made.type), made)
        places = np.full(len(sizes), -1, np.int64)
        places[some] = np.arange(len(starts))
        return made.take(pa.array(places, mask=~some))

    return add


def _accumulator(name: str, kind: pa.DataType, result: pa.DataType) -> Aggregate:
    if name == "sum":
        return sum_of(0, kind)
    if name == "avg":
        return average_of(0, kind, None, result)
    return Variance(0, kind, name.endswith("_samp"), name.startswith("stddev"))
