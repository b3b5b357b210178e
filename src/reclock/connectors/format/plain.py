"""TEXT and BYTES: a payload is the value of the only column.

Tests: tests/connectors/format/test_plain.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from reclock.connectors.format.batch import Sure, Unsure, decode_batch
from reclock.connectors.format.decoder import Decoded
from reclock.connectors.format.json_exact import decoded

if TYPE_CHECKING:
    from reclock.connectors.format.decoder import Field


@dataclass(frozen=True, slots=True)
class TextDecoder:
    """A payload is UTF-8, and the value of the column."""

    field: Field

    def decode(self, data: pa.Array) -> Decoded:
        """Return the texts; what is not UTF-8 is a fault."""
        return decode_batch(data, [self.field], [self._fast], lambda payload: (decoded(payload),))

    def _fast(self, payloads: pa.Array) -> Sure:
        try:
            return Sure((payloads.cast(self.field.arrow),))
        except pa.ArrowInvalid as error:
            raise Unsure from error


@dataclass(frozen=True, slots=True)
class BytesDecoder:
    """A payload is the value of the column."""

    field: Field

    def decode(self, data: pa.Array) -> Decoded:
        """Return the payloads."""
        return Decoded((data.cast(self.field.arrow),), None)
