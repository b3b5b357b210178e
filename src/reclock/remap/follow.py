"""Reclocking: giving source updates the times that the remap decided.

Notation. S is a source collection: updates at source positions s. R is the remap. ::

    reclocked(t) = Σ { dS(s) : not (R(t) ≤ s) }            R(t) ≤ s  ⇔  ∃ e ∈ R(t), e ≤ s

that is, at t the reclocked collection holds every source update whose position is not at
or beyond the frontier bound at t.

Derived: an update at s lands at exactly one time (uniqueness)::

    time_of(s) = the first t with not (R(t) ≤ s)

because R is monotone: once ``not (R(t) ≤ s)`` holds it holds for all later t, so s is
added once and never removed. All updates of one position land together; positions of
other parts play no role. If no such t is known yet, the update is ahead of the remap and
waits.

Checked literally against these definitions: tests/remap/test_follow.py
(test_uniqueness, test_definition, test_compaction_commutes).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.remap.trace import Remap
    from reclock.time.order import T
    from reclock.time.timestamp import Timestamp


def time_of(remap: Remap[T], position: T) -> Timestamp | None:
    """Return the one time ``position`` lands at; ``None`` while it is ahead of the remap.

    >>> from reclock.remap.trace import Remap
    >>> from reclock.time.antichain import Antichain
    >>> from reclock.time.position import KafkaPosition as K
    >>> from reclock.time.timestamp import Timestamp
    >>> remap = Remap.unbound(Antichain.of(K.everything()))
    >>> for t, offsets in (1000, {0: 50}), (2000, {0: 50, 1: 50}), (3000, {0: 100, 1: 50}):
    ...     remap = remap.bound(Timestamp(t), K.frontier(offsets))
    >>> time_of(remap, K.exact(0, 50)), time_of(remap, K.exact(0, 100))
    (Timestamp(3000), None)
    """
    found = bisect_left(
        remap.bindings, True, key=lambda binding: not binding.frontier.less_equal(position)
    )
    return remap.bindings[found].time if found < len(remap.bindings) else None
