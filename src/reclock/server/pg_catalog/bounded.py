"""The rows of a query over the catalog, as long as they are not more than anybody can want.

DuckDB bounds what it computes with, not what it gives: that is Arrow's memory, so it is taken a bit
at a time and counted. Cost: the bytes of the rows, at most ``MOST``.

Tests: tests/server/pg_catalog/test_answer.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.errors import NotSupported

if TYPE_CHECKING:
    import duckdb

MOST: Final = 64 << 20
"""In bytes: a catalog of a hundred thousand columns has less."""

_AT_ONCE: Final = 2_048


def bounded(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """Return all rows, or refuse (54000) when there are too many of them."""
    with relation.to_arrow_reader(_AT_ONCE) as reader:
        batches, size = [], 0
        for batch in reader:
            batches.append(batch)
            size += batch.nbytes
            if size > MOST:
                message = f"the query over the catalog gives more than {MOST >> 20} MiB"
                raise NotSupported(message, code="54000", hint="ask for less")
        return pa.Table.from_batches(batches, reader.schema)
