"""Rows in batches, each given once: what an answer is while it is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator

    import pyarrow as pa


class Pieces(NamedTuple):
    """Rows in batches, each given once.

    ``reads_runs``: whether they are read while they are taken, so that their time must be held.
    """

    batches: Generator[pa.RecordBatch, None, None]
    reads_runs: bool = False

    @classmethod
    def of(cls, table: pa.Table) -> Pieces:
        """Return the rows of a table."""
        return cls(batch for batch in table.to_batches())
