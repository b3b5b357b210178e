"""Reads and decodes exact ranges of a source: a value that travels to where that is done.

A task that unpickles it imports what it reads and decodes with, and nothing that a statement is
understood with: a parser of SQL takes a worker as long to load as half a million records.

Tests: tests/connectors/test_reading.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from reclock.connectors import letters
from reclock.connectors.ahead import ahead
from reclock.connectors.records import decoded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from reclock.connectors.cdcv2 import Cdcv2Decode
    from reclock.connectors.debezium import DebeziumDecode
    from reclock.connectors.records import Decode, Typed
    from reclock.connectors.source import Reader
    from reclock.connectors.transactions import TransactionsDecode
    from reclock.remap.batch import Range

    AnyDecode: TypeAlias = Decode | DebeziumDecode | Cdcv2Decode | TransactionsDecode | Typed
    """How records become input."""


@dataclass(frozen=True)
class Reading:
    """Reads and decodes."""

    reader: Reader
    decode: AnyDecode
    types: tuple[pa.DataType, ...]
    skips: bool = False
    """Whether records with a fault have what they were made of with them."""

    def __call__(self, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
        """Yield the records of ``ranges``, decoded while the next ones are fetched."""
        raw = ahead(batch for batch in self.reader.read(ranges))
        return (self._decoded(batch) for batch in raw)

    def _decoded(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        made = decoded(self.decode, raw, self.types)
        return letters.with_payload(made, raw) if self.skips else made
