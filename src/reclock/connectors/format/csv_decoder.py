"""FORMAT CSV: the fast way and the exact one, as one decoder.

Tests: tests/connectors/format/test_csv.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from reclock.connectors.format.batch import decode_batch
from reclock.connectors.format.csv_batch import read_batch
from reclock.connectors.format.csv_exact import record_reader

if TYPE_CHECKING:
    import pyarrow as pa

    from reclock.connectors.format.decoder import Decoded, Field


@dataclass(frozen=True, slots=True)
class CsvDecoder:
    """A payload is a record of CSV, its values in the order of the columns."""

    fields: tuple[Field, ...]
    delimiter: str = ","

    def decode(self, data: pa.Array) -> Decoded:
        """Return the columns and faults of CSV records."""
        fast = partial(read_batch, fields=self.fields, delimiter=self.delimiter)
        return decode_batch(data, self.fields, [fast], record_reader(self.fields, self.delimiter))
