"""The compaction policy: how much history an object keeps (P5).

Definition. With a window of w (``RETAIN HISTORY FOR``, else the setting
``logical_compaction_window``; milliseconds, or steps of a timeline without a clock)::

    wanted(since, {u})  =  { max(0, u - max(w, 1)) }     w steps behind upper, at least one
    wanted(since, {})   =  since                         a finished object stays as it is
    next                =  since ∨ (wanted ∧ permitted)

where ``permitted`` is the meet of all holds on the object (``holds``), ``{}`` for none.

Invariants, for every since, upper and permitted:

    since ≤ next                      never backwards
    next ≤ permitted                  when since ≤ permitted, which holds guarantee
    next ≤ {u - 1}                    when since is: the last complete time stays readable
    next = {}  only if  since = {}    a policy never ends an object, dropping it does

The last one differs from what "everything is complete, so everything may be forgotten"
suggests: a closed object is readable at every time from since on, for as long as it
exists, and since ``{}`` would make it unreadable. It keeps at most one window of history
and no more will come, so nothing grows. A dropped object's since goes to ``{}`` through
``Holds.advance``, when its last hold allows it.

Cost O(1). Properties: tests/time/test_policy.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from reclock.errors import InvalidValue
from reclock.time.frontier import CLOSED, Frontier, at


@dataclass(frozen=True, slots=True)
class Policy:
    """Keep ``window`` of history behind upper.

    >>> Policy(window=1_000).next_since(at(0), at(5_000))
    {4000}
    >>> Policy(window=1_000).next_since(at(0), at(5_000), permitted=at(3_500))
    {3500}
    >>> Policy(window=0).next_since(at(0), at(5_000))
    {4999}
    """

    window: int

    def __post_init__(self) -> None:
        """Refuse to keep less than nothing."""
        if self.window < 0:
            message = f"a compaction window must not be negative, got {self.window}"
            raise InvalidValue(message)

    def wanted(self, since: Frontier, upper: Frontier) -> Frontier:
        """Return the since that the window alone asks for; it may be before ``since``."""
        if upper.is_closed:
            return since
        return at(upper.element().back(max(self.window, 1)))

    def next_since(
        self, since: Frontier, upper: Frontier, *, permitted: Frontier = CLOSED
    ) -> Frontier:
        """Return the since to compact to: ``since`` itself when nothing may be forgotten."""
        return since.join(self.wanted(since, upper).meet(permitted))
