"""Texts: joined, measured in characters, cut at constants, compared with simple patterns.

What depends on letters (``upper``, ``lower``) is Spark's: alphabets differ between libraries.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from reclock.dataflow.local.piece import Kernel, Piece, columns, plain, refused
from reclock.sql import types as t
from reclock.sql.plan.functions.length import MAX_BYTES, TOO_LONG
from reclock.sql.plan.scalar import Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.dataflow.local.piece import Datum
    from reclock.sql.plan.scalar import Call

_LENGTHS: Final = frozenset({"length", "char_length", "character_length"})
_MOST: Final = 2**30


def kernel_of(call: Call) -> Kernel | None:  # noqa: PLR0911 - one per function
    """Return the kernel of a function of texts."""
    name, arguments = call.function.name, call.arguments
    if not arguments or arguments[0].type != t.TEXT:
        return None
    others = [a.value if isinstance(a, Literal) else None for a in arguments[1:]]
    match name, others:
        case "||", _ if all(a.type == t.TEXT for a in arguments):
            return _joined if call.function.failures else plain(_side_by_side)
        case length, [] if length in _LENGTHS:
            return plain(pc.utf8_length)
        case "left", [int(count)] if 0 <= count < _MOST:
            return plain(lambda text, _: pc.utf8_slice_codeunits(text, 0, count))
        case "substring", [int(first)] if first < _MOST:
            begin = max(first, 1) - 1
            return plain(lambda text, _: pc.utf8_slice_codeunits(text, begin))
        case "substring", [int(first), int(count)] if abs(first) < _MOST and 0 <= count < _MOST:
            begin = max(first, 1) - 1
            end = max(first - 1 + count, begin)
            return plain(lambda text, *_: pc.utf8_slice_codeunits(text, begin, end))
        case "like", [str(pattern)] if "\\" not in pattern:
            return plain(partial(_like, pattern))
    return None


def _side_by_side(*texts: Datum) -> pa.Array:
    return pc.binary_join_element_wise(*texts, "", null_handling="emit_null")


def _joined(arguments: Sequence[Datum]) -> Piece:
    """Join texts, of which none may become too long: that is known before one is made."""
    texts = columns(arguments)
    sizes = [pc.binary_length(text).cast(pa.int64()) for text in texts]
    total = sizes[0]
    for size in sizes[1:]:
        total = pc.add(total, size)
    longer = pc.greater(total, MAX_BYTES)
    if pc.any(longer).as_py():
        texts[0] = pc.if_else(longer, pa.scalar(None, pa.string()), texts[0])
    return refused(_side_by_side(*texts), (longer, TOO_LONG))


def _like(pattern: str, text: pa.Array, _: Datum) -> pa.Array:
    return pc.match_like(text, pattern)
