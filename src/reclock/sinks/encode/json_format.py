"""FORMAT JSON for sinks: rows as objects, one member for each column, in their order.

A key is the object of the key columns, a value the object of all columns; a change is
``{"before": row or null, "after": row or null}``. Equal keys have equal bytes, and unequal ones
others, because each type has one text for each value (``json_text``).

Tests: tests/sinks/encode/test_json_text.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from reclock.errors import InvalidDefinition
from reclock.sinks.encode.json_text import joined, record, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from reclock.sinks.encode.encoder import Which
    from reclock.sql.schema import Column


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """Objects with members for ``columns``; keys with those at ``key``."""

    columns: tuple[Column, ...]
    key: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse columns that an object cannot tell apart."""
        names = [column.name for column in self.columns]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            message = f'two columns have the name "{repeated}"'
            raise InvalidDefinition(message, hint="give one of them another name with AS")

    def keys(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the key of each row, of its key columns."""
        return as_bytes(objects([self.columns[at] for at in self.key], columns))

    def rows(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return each row as a value."""
        return as_bytes(objects(self.columns, columns))

    def changes(
        self, before: Sequence[pa.Array], after: Sequence[pa.Array], which: Which
    ) -> pa.Array:
        """Return each pair of rows, of which one may be missing, as a value."""
        old, new = self._present(before, which.before), self._present(after, which.after)
        return as_bytes(joined(['{"before":', old, ',"after":', new, "}"]))

    def _present(self, columns: Sequence[pa.Array], there: NDArray[np.bool_]) -> pl.Series:
        null = pl.Series(["null"]).new_from_index(0, len(there))
        if not there.any():
            return null
        made = objects(self.columns, columns)
        return made if there.all() else made.zip_with(pl.Series(there), null)


def objects(described: Sequence[Column], columns: Sequence[pa.Array]) -> pl.Series:
    """Return each row as the text of an object."""
    members = [texts(a, c.type) for a, c in zip(columns, described, strict=True)]
    return record([column.name for column in described], members)


def as_bytes(made: pl.Series) -> pa.Array:
    """Return texts as payloads."""
    return made.cast(pl.Binary).to_arrow(compat_level=pl.CompatLevel.oldest())
