"""Temporal filters: rows that come and go because time passes, not because data changes.

Definition. Each row has a validity ``[lower, upper)``, from the conjuncts of the filter that
compare with ``mz_now()``. Batch reading::

    out[t] = { row ∈ in[t] : lower(row) ≤ t < upper(row) }

As updates, ``(row, t, d)`` becomes ``d`` at max(t, lower) and ``−d`` at max(t, upper), and
nothing when those are the same time: the interval is empty, or already over. NULL bounds
make the filter not true, so nothing at all. Updates at or beyond ``until`` are dropped; the
result is right before ``until``. A bound past the greatest timestamp is never reached.

Both readings are compared in tests/change/test_model.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from model.consolidate import consolidate
from reclock.change.update import Update
from reclock.change.value import canonical
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Validity(NamedTuple):
    """``[lower, upper)`` in any integers; ``None`` for a side that has no bound."""

    lower: int | None = None
    upper: int | None = None

    def covers(self, time: int) -> bool:
        """Return whether a row with this validity is there at ``time``."""
        return (self.lower is None or self.lower <= time) and (
            self.upper is None or time < self.upper
        )


def temporal_filter(
    updates: Iterable[Update[Any, Timestamp]],
    validity: Callable[[Any], Validity | None],
    until: Timestamp | None = None,
) -> list[Update[Any, Timestamp]]:
    """Return the rows while they are valid; ``validity`` is ``None`` if a bound is NULL.

    >>> log = [Update(("alarm", 10, 20), Timestamp(12), 1)]
    >>> for update in temporal_filter(log, lambda row: Validity(row[1], row[2])): print(*update)
    ('alarm', 10, 20) 12 1
    ('alarm', 10, 20) 20 -1
    """
    end = Timestamp.greatest + 1 if until is None else until
    out: list[Update[Any, Timestamp]] = []
    for data, time, diff in updates:
        valid = validity(canonical(data))
        if valid is None:
            continue
        start = time if valid.lower is None else max(time, valid.lower)
        stop = end if valid.upper is None else max(time, valid.upper)
        if start >= stop:
            continue
        out += [Update(data, Timestamp(t), d) for t, d in ((start, diff), (stop, -diff)) if t < end]
    return consolidate(out)
