"""Error rows: what a view has in the place of rows that could not be computed (P9).

Expressions report an error as text ``SQLSTATE|message``; an error row is the pair, at the
time and with the diff of the row that caused it, so it goes away with that row.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

ERROR_TYPES: Final = (pa.string(), pa.string())
"""An error row is (SQLSTATE, message)."""


def parts_of(texts: pa.Array) -> list[pa.Array]:
    """Return the codes and the messages of error texts.

    >>> [part.to_pylist() for part in parts_of(pa.array(["22012|division by zero"]))]
    [['22012'], ['division by zero']]
    """
    halves = pc.split_pattern(texts, "|", max_splits=1)
    return [pc.list_element(halves, 0), pc.list_element(halves, 1)]
