"""FORMAT JSON as a decoder.

Tests: tests/connectors/format/test_json.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from reclock.connectors.format.batch import decode_batch
from reclock.connectors.format.json_exact import record_reader
from reclock.connectors.format.json_template import read_template

if TYPE_CHECKING:
    import pyarrow as pa

    from reclock.connectors.format.decoder import Decoded, Field

SHAPES: Final = 4
"""How many shapes of records are tried."""


@dataclass(frozen=True, slots=True)
class JsonDecoder:
    """A payload is a JSON object; ``strict`` refuses members that are no columns."""

    fields: tuple[Field, ...]
    strict: bool = False

    def decode(self, data: pa.Array) -> Decoded:
        """Return the columns and faults of JSON objects."""
        shape = partial(read_template, fields=self.fields, strict=self.strict)
        exact = record_reader(self.fields, self.strict)
        return decode_batch(data, self.fields, [shape] * SHAPES, exact)
