"""All that minting asks of storage: three methods.

The remap's rules need no database to be tested: this protocol has a durable
implementation (``durable.remap_store``) and an in-memory one (``testing.remaps``), and
``conformance.remap`` (tests/support) states what both must do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from reclock.time.order import T

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.change.update import Update
    from reclock.remap.trace import Frontier, Remap
    from reclock.time.timestamp import Timestamp


class RemapHandle(Protocol[T]):
    """One source's durable remap, which other processes may extend too.

    ``load`` returns everything durable at one moment. ``append`` is compare-and-append: it succeeds
    only if the durable upper still is ``expected``, and is durable when it returns ``None``; else
    it wrote nothing and returns the current upper. ``compact`` folds times at or before ``since``;
    the caller has made sure that they are not needed. It raises ``InvalidCompaction`` if since
    would go back or reach an open upper.
    """

    def load(self) -> Remap[T]:
        """Return the durable remap."""
        ...

    def append(
        self, updates: Sequence[Update[T, Timestamp]], expected: Frontier, upper: Frontier
    ) -> Frontier | None:
        """Append ``updates`` in ``[expected, upper)``; on a lost race return the upper."""
        ...

    def compact(self, since: Timestamp) -> None:
        """Fold everything at or before ``since`` into ``since``."""
        ...
