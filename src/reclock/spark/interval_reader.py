"""Text to interval in Spark: the parser of literals itself, as a function of the session.

``CAST(text AS interval)`` reads what a literal may be, by the same code, so that a column and a
literal never differ. A text that is none gives NULL, and its error (``spark_cast``).

Cost: rows go through a Python worker, which only queries with such a cast pay for.

Tests: tests/session/test_intervals_spark.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa  # noqa: TC002 - Spark reads the signature

from reclock.dataflow.values import from_python
from reclock.errors import Error
from reclock.sql.interval import parse_interval
from reclock.sql.plan.interval_text import READER
from reclock.sql.types import INTERVAL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from reclock.interval import Interval


def register_reader(session: SparkSession, texts: Iterable[str | None]) -> None:
    """Make the function known to the session, if one of ``texts`` uses it."""
    if not any(text is not None and f"{READER}(" in text for text in texts):
        return
    from pyspark.sql.functions import (  # type: ignore[attr-defined]  # noqa: PLC0415
        arrow_udf,  # it has no stub, and importing it imports all of pyspark
    )

    session.udf.register(READER, arrow_udf(read_intervals, INTERVAL.spark_name))


def read_intervals(texts: pa.Array) -> pa.Array:
    """Return the interval of each text; NULL if it is none.

    >>> read_intervals(pa.array(["1 mon", "x", None])).to_pylist()
    [{'days': 0, 'micros': 0, 'months': 1}, None, None]
    """
    return from_python((_read(text) for text in texts.to_pylist()), INTERVAL)


def _read(text: str | None) -> Interval | None:
    if text is None:
        return None
    try:
        return parse_interval(text)
    except Error:
        return None
