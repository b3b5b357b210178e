"""Inner equi-join: ``dA⋈B + A⋈dB + dA⋈dB``.

Rule. With A and B before the tick (traces arranged by the join key) and their changes dA
and dB, the change of A ⋈ B is what each change finds in the other's trace, and in the
other change. The time of a pair is the later of the two, its diff the product; for a pair
with a stored update that time is the change's, since everything stored is earlier. ::

    row of the result = columns of the left, then columns of the right

Where only some columns of the result are ``needed``, the others are NULL: to gather texts that the
next step throws away takes longer than all the rest.

A key with NULL in it matches nothing. Without key columns every pair matches: the cross
join. A product that int64 cannot hold is an error, never a wrong number. The result is
consolidated if something in it is taken away: a row that was stored, retracted and compacted
not yet would otherwise come out as two updates that cancel.

Cost: a look-up per changed row, and the pairs found. Keeps P3 and P5.

Tests: tests/dataflow/test_join.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.arrangement.column import validity
from reclock.arrangement.layout import diff_of, time_of
from reclock.arrangement.probe import taken, with_keys
from reclock.dataflow import delta as deltas
from reclock.dataflow.trace import DeltaTrace
from reclock.errors import InvalidValue

if TYPE_CHECKING:
    import numpy.typing as npt

    from reclock.arrangement.layout import Int64s
    from reclock.dataflow.keying import Keying
    from reclock.dataflow.trace import Trace

_SAFE: Final = 1 << 31


@dataclass(frozen=True)
class Join:
    """The join of two collections, each keyed by its columns of the join condition."""

    left: Keying
    right: Keying
    null_safe: tuple[bool, ...] = ()
    """Per key column, whether NULL matches NULL; nothing given: never."""
    needed: frozenset[int] | None = None
    """The columns of the result that are read; None: all."""

    def __post_init__(self) -> None:
        """Refuse keys that cannot be compared."""
        left, right = ([side.types[i] for i in side.key] for side in (self.left, self.right))
        if left != right:
            message = "the two sides of a join have keys of different types"
            raise InvalidValue(message, detail=f"left {left}, right {right}")

    @property
    def types(self) -> deltas.Types:
        """The types of the result's columns."""
        return self.left.types + self.right.types

    def step(
        self,
        left: pa.RecordBatch,
        left_trace: Trace,
        right: pa.RecordBatch,
        right_trace: Trace,
    ) -> pa.RecordBatch:
        """Return the change of the join, from the changes of its sides (deltas)."""
        keyed = self.left.arrange(left), self.right.arrange(right)
        return self.keyed_step(keyed[0], left_trace, keyed[1], right_trace)

    def keyed_step(
        self,
        left: pa.RecordBatch,
        left_trace: Trace,
        right: pa.RecordBatch,
        right_trace: Trace,
    ) -> pa.RecordBatch:
        """Return the same from changes that are arranged as the sides' traces are."""
        a = _matchable(self.left, left, self.null_safe)
        b = _matchable(self.right, right, self.null_safe)
        parts = []
        if a.num_rows:
            parts.append(self._pairs(a, right_trace, changed_is_left=True))
            if b.num_rows:
                both = DeltaTrace(self.right.layout, b)
                parts.append(self._pairs(a, both, changed_is_left=True))
        if b.num_rows:
            parts.append(self._pairs(b, left_trace, changed_is_left=False))
        found = [part for part in parts if part.num_rows]
        if not found:
            return deltas.empty(self.types)
        made = deltas.union(found)
        return deltas.consolidated(made) if (diff_of(made) < 0).any() else made

    def _pairs(
        self, changed: pa.RecordBatch, other: Trace, *, changed_is_left: bool
    ) -> pa.RecordBatch:
        """Return the pairs of changed updates with those of the other side's trace."""
        mine, yours = (self.left, self.right) if changed_is_left else (self.right, self.left)
        i_want, you_want = self._wanted if changed_is_left else reversed(self._wanted)
        probe, found = other.lookup(mine.keys(changed), you_want)
        if i_want is not None:
            i_want = with_keys(mine.layout, i_want)
        matched = taken(changed, pa.array(probe), i_want)
        one, two = mine.columns(matched), yours.columns(found)
        return deltas.build(
            [*one, *two] if changed_is_left else [*two, *one],
            np.maximum(time_of(matched), time_of(found)),
            product(diff_of(matched), diff_of(found)),
        )

    @cached_property
    def _wanted(self) -> tuple[frozenset[int] | None, frozenset[int] | None]:
        """Which columns of the arrangements of both sides are needed."""
        if self.needed is None:
            return None, None
        width = len(self.left.types)
        return (
            frozenset(self.left.place(i) for i in self.needed if i < width),
            frozenset(self.right.place(i - width) for i in self.needed if i >= width),
        )


def _matchable(
    side: Keying, updates: pa.RecordBatch, null_safe: tuple[bool, ...]
) -> pa.RecordBatch:
    """Return keyed updates without those whose key has a NULL that matches nothing."""
    there: npt.NDArray[np.bool_] | None = None
    safe = null_safe or (False,) * len(side.key)
    for column, is_safe in zip(side.layout.keys(updates), safe, strict=True):
        valid = None if is_safe else validity(column)
        if valid is not None:
            there = valid if there is None else there & valid
    return updates if there is None else updates.filter(pa.array(there))


def product(one: Int64s, other: Int64s) -> Int64s:
    """Return the products pair by pair; one that int64 cannot hold is an error.

    >>> product(np.array([2, -3]), np.array([5, 7])).tolist()
    [10, -21]
    """
    if len(one) and max(one.max(), -one.min(), other.max(), -other.min()) >= _SAFE:
        exact = one.astype(object) * other.astype(object)
        if ((exact >= 1 << 63) | (exact < -(1 << 63))).any():
            raise deltas.out_of_range()
    return one * other
