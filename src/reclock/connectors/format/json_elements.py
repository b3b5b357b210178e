"""JSON objects with one long array of alike elements, decoded element by element.

Definition. ``{"array": [e, e, …]}`` where every element begins with a field ``first`` and ends
with numbers ``…, "last": n}``. The text is cut between elements, all of them are decoded at
once by the decoder of elements, and put together again. Exactly what decoding the whole gives:

- Where it is cut there is a comma between an object that ends and one that begins: a quote
  inside of a text has a backslash before it. So if all pieces are objects, the whole is the array
  of them. A cut inside of an element leaves pieces that are none.
- Whatever has a piece that does not decode, or another form, goes to the decoder of wholes.

Cost: that of decoding the elements as records, vectorised, however few messages hold them.

Tests: tests/connectors/test_cdcv2.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.connectors.format.decoder import Decoded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]

    from reclock.connectors.format.decoder import Decoder

_BETWEEN = b"\n"


@dataclass(frozen=True, slots=True)
class ElementsDecoder:
    """Decodes ``whole``; the column ``name``, a list of what ``element`` decodes, is the first.

    ``fields`` are those of an element, in their order; those after the first are numbers.
    """

    whole: Decoder
    element: Decoder
    name: str
    fields: tuple[str, ...]

    def decode(self, data: pa.Array) -> Decoded:
        """Return the columns and faults of messages."""
        cut = self._cut(data)
        lengths = pc.fill_null(pc.list_value_length(cut), 0).to_numpy(zero_copy_only=False)
        pieces = self.element.decode(cut.flatten())
        of = np.repeat(np.arange(len(data)), lengths)
        fits = lengths > 0
        if pieces.faults is not None:
            bad = pieces.faults.is_valid().to_numpy(zero_copy_only=False)
            fits[of[bad]] = False
        rest = np.flatnonzero(~fits)
        others = self.whole.decode(data.take(pa.array(rest)))
        return self._together(fits, lengths, of, pieces, others)

    def _together(
        self, fits: Bools, lengths: Int64s, of: Int64s, pieces: Decoded, others: Decoded
    ) -> Decoded:
        """Return the messages that were cut, and the others, where they were."""
        kept = pa.array(np.flatnonzero(fits[of]))
        kind = others.columns[0].type
        struct = pa.StructArray.from_arrays(
            [column.take(kept) for column in pieces.columns], fields=list(kind.value_type)
        )
        sizes = lengths[fits]
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
        lists = pa.ListArray.from_arrays(offsets, struct, type=kind)
        place = np.empty(len(fits), np.int64)
        place[fits] = np.arange(len(sizes))
        place[~fits] = len(sizes) + np.arange(len(fits) - len(sizes))
        order = pa.array(place)

        def mixed(first: pa.Array, second: pa.Array) -> pa.Array:
            return pa.concat_arrays([first, second]).take(order)

        columns = [mixed(lists, others.columns[0])]
        columns += [mixed(pa.nulls(len(sizes), c.type), c) for c in others.columns[1:]]
        faults = others.faults
        if faults is not None:
            faults = mixed(pa.nulls(len(sizes), faults.type), faults)
        return Decoded(tuple(columns), faults)

    def _cut(self, data: pa.Array) -> pa.Array:
        """Return the pieces of each message that has the form; NULL for others."""
        opening = f'{{"{self.name}":['.encode()
        element = f'{{"{self.fields[0]}":'.encode()
        compact = pc.and_(pc.starts_with(data, opening + element), pc.ends_with(data, b"}]}"))
        compact = pc.and_not(compact, pc.match_substring(data, _BETWEEN))
        inner = pc.binary_slice(data, len(opening), -2)
        between = b"}," + element
        cut = pc.replace_substring(inner, between, b"}" + _BETWEEN + element)
        none = pa.scalar(None, data.type)
        if compact.true_count + data.null_count < len(data):
            cut = pc.if_else(compact, cut, self._spaced(pc.if_else(compact, none, data)))
        return pc.split_pattern(pc.if_else(data.is_valid(), cut, none), _BETWEEN)

    def _spaced(self, data: pa.Array) -> pa.Array:
        """Return the same of messages with spaces in them, not split yet."""
        first, *numbers = (re.escape(f'"{name}"') for name in self.fields)
        ends = r"\s*,\s*".join(rf"{name}\s*:\s*-?\d+" for name in numbers)
        opening = rf'^\s*\{{\s*"{re.escape(self.name)}"\s*:\s*\[\s*(\{{\s*{first}\s*:)'
        closing = rf"({ends}\s*\}})\s*\]\s*\}}\s*$"
        form = pc.and_(
            pc.match_substring_regex(data, opening), pc.match_substring_regex(data, closing)
        )
        plain = pc.and_not(form, pc.match_substring(data, _BETWEEN))
        inner = pc.if_else(plain, data, pa.scalar(None, data.type))
        inner = pc.replace_substring_regex(inner, opening, r"\1")
        inner = pc.replace_substring_regex(inner, closing, r"\1")
        between = rf"({ends}\s*\}})\s*,\s*(\{{\s*{first}\s*:)"
        return pc.replace_substring_regex(inner, between, "\\1\n\\2")
