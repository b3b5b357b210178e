"""The interval of times that a batch of updates describes.

Definition. ``Description(lower, upper, since)`` on a set of updates says::

    the updates are exactly those with times in  [lower, upper)
        = { t : beyond(lower) ∋ t, beyond(upper) ∌ t }
    and accumulations are right at every t in  beyond(since) ∩ not beyond(upper)

``since`` permits compaction: a time t may have been replaced by a later one that no
reader at or beyond ``since`` can tell from it. A collection is *definite* in
``[since, upper)``. Batches, runs, remaps and sink commits all use this type; no module
invents its own start and end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from reclock.errors import InvalidValue
from reclock.time.order import T

if TYPE_CHECKING:
    from reclock.time.antichain import Antichain


@dataclass(frozen=True, slots=True)
class Description(Generic[T]):
    """``[lower, upper)``, readable from ``since``.

    >>> from reclock.time.antichain import Antichain
    >>> from reclock.time.timestamp import Timestamp
    >>> at = lambda t: Antichain.of(Timestamp(t))
    >>> d = Description(at(3), at(7), at(0))
    >>> d, d.contains(Timestamp(3)), d.contains(Timestamp(7))
    ([{3}, {7}) since {0}, True, False)
    """

    lower: Antichain[T]
    upper: Antichain[T]
    since: Antichain[T]

    def __post_init__(self) -> None:
        """Refuse an interval that ends before it begins."""
        if not self.lower.precedes(self.upper):
            message = f"lower {self.lower} is not at or before upper {self.upper}"
            raise InvalidValue(message)

    def contains(self, time: T) -> bool:
        """Return whether ``time`` is in ``[lower, upper)``."""
        return self.lower.less_equal(time) and not self.upper.less_equal(time)

    def definite_at(self, time: T) -> bool:
        """Return whether an accumulation at ``time`` is right and complete."""
        return self.since.less_equal(time) and not self.upper.less_equal(time)

    @property
    def is_empty(self) -> bool:
        """Whether no time is in the interval."""
        return self.lower == self.upper

    def followed_by(self, later: Description[T]) -> Description[T]:
        """Return the description of both batches taken together; they must meet."""
        if self.upper != later.lower:
            message = f"batches do not meet: one ends at {self.upper}, next begins {later.lower}"
            raise InvalidValue(message)
        return Description(self.lower, later.upper, self.since.join(later.since))

    def __repr__(self) -> str:
        return f"[{self.lower}, {self.upper}) since {self.since}"
