"""From a target frontier back to source positions: where to go on after a crash.

Definition. An output that is durable up to ``upper`` contains, for each source, exactly
the updates that land before ``upper``: those not at or beyond ``R(upper − 1)``. So reading
resumes at that frontier, and nothing before it is read again::

    resume(R, {u}) = R(u − 1)        resume(R, {0}) = origin        resume(R, {}) = {}

The order of durability makes this total: an output's upper is published with the bindings
below it or after them, so ``upper ≤ R.upper`` always. If the
bindings were compacted past ``u − 1`` the positions are not known any more, which holds
prevent; it is an error, never a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import CompactedPastResume
from reclock.remap.trace import UNBOUND, Frontier, Remap
from reclock.time.antichain import Antichain

if TYPE_CHECKING:
    from reclock.time.order import T


def resume(remap: Remap[T], upper: Frontier) -> Antichain[T]:
    """Return the source positions at which an output written up to ``upper`` goes on.

    >>> from reclock.time.timestamp import Sequence, Timestamp
    >>> remap = Remap.unbound(Antichain.of(Sequence(0)))
    >>> remap = remap.bound(Timestamp(10), Antichain.of(Sequence(4)))
    >>> resume(remap, Antichain.of(Timestamp(11))), resume(remap, Antichain.of(Timestamp(10)))
    ({4}, {0})
    """
    if upper == UNBOUND:
        return remap.origin
    if upper.is_closed:
        return Antichain()
    last = upper.element().back()
    if last < remap.since:
        message = f"cannot resume at {upper}: its bindings were compacted"
        detail = f"the output is written up to {upper}, bindings are definite in {remap.interval}"
        hint = "an output holds back its sources' bindings until it is written; recreate it"
        raise CompactedPastResume(message, detail=detail, hint=hint)
    return remap.at(last)
