"""The key of a record as the columns of a primary key.

A key in JSON is an object with a field for every column or, if there is one column, the bare
value: ``{"id": 7}`` and ``7`` are the same key. A key of one text column may also be bare text
that is no JSON: ``k1`` and ``"k1"`` are the same key.

Tests: tests/connectors/test_key.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.connectors.format.decoder import Decoded

if TYPE_CHECKING:
    from reclock.connectors.format.decoder import Decoder

_OBJECT: Final = rb"^[ \t\r\n]+\{"
"""An object after blanks, which JSON allows."""


@dataclass(frozen=True)
class BareKey:
    """Decodes the key of one column called ``name`` (quoted as JSON); a ``Decoder``."""

    decoder: Decoder
    name: str
    is_text: bool

    def decode(self, data: pa.Array) -> Decoded:
        """Return the column of each key."""
        other = pc.invert(pc.fill_null(pc.starts_with(data, pattern=b"{"), True))
        if not pc.any(other).as_py():
            return self.decoder.decode(data)
        bare = pc.and_not(other, pc.fill_null(pc.match_substring_regex(data, _OBJECT), False))
        wrapped = pc.binary_join_element_wise(
            pa.scalar(f'{{"{self.name}":'.encode(), data.type), _one_value(data, bare),
            pa.scalar(b"}", data.type), pa.scalar(b"", data.type),
        )  # fmt: skip
        decoded = self.decoder.decode(pc.if_else(bare, wrapped, data))
        if decoded.faults is None or not self.is_text:
            return decoded
        return self._plain(decoded, data, pc.and_(other, decoded.faults.is_valid()))

    def _plain(self, decoded: Decoded, data: pa.Array, which: pa.Array) -> Decoded:
        """Take the bytes themselves where they are text and nothing else."""
        assert decoded.faults is not None
        column, faults = decoded.columns[0].to_pylist(), decoded.faults.to_pylist()
        for at in np.flatnonzero(which.to_numpy(zero_copy_only=False)).tolist():
            try:
                column[at], faults[at] = data[at].as_py().decode(), None
            except UnicodeDecodeError:
                continue
        kept = pa.array(faults, pa.string())
        none = kept.null_count == len(kept)
        return Decoded((pa.array(column, pa.string()),), None if none else kept)


def _one_value(data: pa.Array, bare: pa.Array) -> pa.Array:
    """Return bare keys without those that are more than one value: ``7,"id":8`` is no key."""
    doubtful = pc.and_(bare, pc.fill_null(pc.match_substring(data, b","), False))
    if not pc.any(doubtful).as_py():
        return data
    values = data.to_pylist()
    for at in np.flatnonzero(doubtful.to_numpy(zero_copy_only=False)).tolist():
        try:
            json.loads(values[at])
        except ValueError:
            values[at] = b""
    return pa.array(values, data.type)
