"""Random words and prices, made of integers only.

``words`` are lower-case letters of given lengths; ``prices`` are spread evenly over the
logarithm from 1 to a million, in hundredths, as Nexmark's are: a table of 385 powers of ten,
exact by decimal arithmetic, with straight lines between them.

Cost: a word takes one draw for eight letters; a batch of n words of at most w letters takes
n × w bytes while it is made. Tests: tests/connectors/generator/test_text.py.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from reclock.connectors.generator.draw import Draws

_LETTERS_PER_DRAW: Final = 8
_SPACE_BELOW: Final = 20  # of 256: about one in thirteen
_SHORTEST: Final = 3

_STEPS_PER_DECADE: Final = 64
_DECADES: Final = 6
_FRACTION_BITS: Final = 16


def words(
    draws: Draws,
    field: str,
    numbers: NDArray[np.int64],
    lengths: NDArray[np.int64],
    *,
    spaced: bool = False,
) -> pa.Array:
    """Return a word of each length; ``spaced`` ones may have spaces inside.

    >>> from reclock.connectors.generator.draw import Draws
    >>> words(Draws(7), "name", np.arange(2), np.array([3, 5])).to_pylist()
    ['gun', 'cnzwp']
    """
    width = int(lengths.max(initial=0))
    blocks = [
        draws.bits(f"{field}/{block}", numbers).astype("<u8")
        for block in range(-(-width // _LETTERS_PER_DRAW))
    ]
    if not blocks:
        return pa.array([""] * len(numbers), pa.string())
    random = np.stack(blocks, axis=1).view(np.uint8)[:, :width]
    letters = ((random.astype(np.uint16) * 26) >> 8).astype(np.uint8) + np.uint8(ord("a"))
    at = np.arange(width)
    if spaced:
        inside = (at > 0) & (at < lengths[:, None] - 1)
        letters[inside & (random < _SPACE_BELOW)] = ord(" ")
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    data = letters[at < lengths[:, None]]
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(numbers), buffers)


def short_words(
    draws: Draws, field: str, numbers: NDArray[np.int64], below: int, *, spaced: bool = False
) -> pa.Array:
    """Return words of at least 3 and less than ``below`` letters."""
    lengths = _SHORTEST + draws.below(f"{field}/length", numbers, below - _SHORTEST)
    return words(draws, field, numbers, lengths, spaced=spaced)


def padding(
    draws: Draws, field: str, numbers: NDArray[np.int64], room: NDArray[np.int64]
) -> pa.Array:
    """Return words whose lengths are ``room`` on average, give or take a fifth."""
    room = np.maximum(room, 0)
    spread = room // 5
    more = draws.below(f"{field}/length", numbers, np.maximum(2 * spread, 1))
    return words(draws, field, numbers, room - spread + more)


def chosen(draws: Draws, field: str, numbers: NDArray[np.int64], values: Sequence[str]) -> pa.Array:
    """Return one of ``values`` for each number."""
    return pa.array(values, pa.string()).take(pa.array(draws.below(field, numbers, len(values))))


def prices(draws: Draws, field: str, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return prices from 100 to 100 000 000: hundredths, evenly over their logarithm."""
    drawn = draws.below(field, numbers, (len(_POWERS) - 1) << _FRACTION_BITS)
    step, fraction = drawn >> _FRACTION_BITS, drawn & ((1 << _FRACTION_BITS) - 1)
    rise = _POWERS[step + 1] - _POWERS[step]
    exact = _POWERS[step] + ((rise * fraction) >> _FRACTION_BITS)
    half = 1 << (_FRACTION_BITS - 1)
    rounded: NDArray[np.int64] = (exact + half) >> _FRACTION_BITS
    return rounded


def _powers() -> NDArray[np.int64]:
    """Return 100 × 10^(i/64) × 2¹⁶ for i from 0 to 384."""
    with localcontext(prec=50):
        one = Decimal(100 << _FRACTION_BITS)
        steps = range(_STEPS_PER_DECADE * _DECADES + 1)
        exact = [one * Decimal(10) ** (Decimal(i) / _STEPS_PER_DECADE) for i in steps]
        return np.array([int(value.to_integral_value()) for value in exact], np.int64)


_POWERS: Final = _powers()
