"""A table of the driver as a DataFrame, with the user's active session as it was.

``createDataFrame`` makes its session the active one of the thread, which may be the user's: what
they would do next with "the active session" would run in ours. It also refuses a slice of an array
with NULLs ("null bitmap with offsets slice not supported"): such a slice is copied. A column of
arrays that has no chunk, as of an empty table, it refuses too: that gets an empty one.

Tests: tests/spark/test_given_session.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def local_relation(session: SparkSession, table: pa.Table, schema: Any = None) -> DataFrame:
    """Return a table as a frame of ``session``."""
    from pyspark.sql import SparkSession as Known  # noqa: PLC0415 - when it is used

    before = Known._activeSession  # noqa: SLF001 - its getter asks the JVM
    try:
        return session.createDataFrame(_whole(table), schema)
    finally:
        Known._activeSession = before  # noqa: SLF001
        active: Any = Known._get_j_spark_session_class(session._jvm)  # noqa: SLF001
        if before is None:
            active.clearActiveSession()
        else:
            active.setActiveSession(before._jsparkSession)  # noqa: SLF001


def _whole(table: pa.Table) -> pa.Table:
    """Return the table with no slice of an array that has NULLs, and no array without a chunk."""
    for number, field in enumerate(table.schema):
        column = table.column(number)
        if pa.types.is_nested(field.type) and not column.num_chunks:
            empty = pa.chunked_array([pa.array([], field.type)])
            table = table.set_column(number, field, empty)
        elif pa.types.is_list(field.type) and any(c.offset and c.null_count for c in column.chunks):
            copied = [chunk.take(pa.array(range(len(chunk)))) for chunk in column.chunks]
            table = table.set_column(number, field, pa.chunked_array(copied, field.type))
    return table
