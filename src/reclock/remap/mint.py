"""Minting: deciding, once and for all readers, which positions belong to which time.

Definition. Given the clock and the source's upstream frontier F (``probe``), ``propose``
binds the next time to F::

    t = now rounded up to the interval;  nothing if t is not beyond what is bound
    R(t) = F                             upper becomes {t + 1}

Rules (P1, P2, P5):

* the clock did not move, or went back: nothing is minted, nothing is lost;
* the source did not move: no binding, but ``upper`` advances, so time passes for idle
  sources and for readers without a single partition;
* the source went back relative to what was bound before the probe: ``SourceRegressed``,
  whatever was deleted or truncated upstream must not be read under old times;
* the source is complete (F is closed): the binding is final and the remap is sealed;
* the assignment is fixed when ``append`` succeeds, and only then. The loser of a race
  re-reads the remap and mints only what is left: the *join* of its probe and what the
  winner bound, at the first time beyond the winner's.

``propose`` is pure; ``Minter`` runs it over a handle. Each durable step has a failpoint.
Tests: tests/remap/test_mint.py, crash table in tests/remap/test_crash.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from reclock.errors import InvalidCompaction, SourceRegressed
from reclock.failpoints import hit
from reclock.time.antichain import Antichain
from reclock.time.order import T
from reclock.time.timestamp import Timestamp, round_up

if TYPE_CHECKING:
    from reclock.change.update import Update
    from reclock.remap.handle import RemapHandle
    from reclock.remap.trace import Frontier, Remap


@dataclass(frozen=True, slots=True)
class Proposal(Generic[T]):
    """An extension of a remap to ``time``, to be appended if no other minter was faster."""

    time: Timestamp
    updates: list[Update[T, Timestamp]]
    expected: Frontier
    upper: Frontier


def propose(
    remap: Remap[T], now_ms: int, interval: int, probed: Antichain[T]
) -> Proposal[T] | None:
    """Return the next binding, or ``None`` when time has nothing to bind.

    ``probed`` must be at or beyond ``remap.latest`` (``check_probe``).

    >>> from reclock.remap.trace import Remap
    >>> from reclock.time.timestamp import Sequence
    >>> remap = Remap.unbound(Antichain.of(Sequence(0)))
    >>> propose(remap, 1_001, 1_000, Antichain.of(Sequence(7))).time
    Timestamp(2000)
    """
    time = round_up(now_ms, interval)
    if not remap.upper.less_equal(time):  # a sealed remap's upper is at or before no time
        return None
    upper: Frontier = Antichain() if probed.is_closed else Antichain.of(time.step())
    return Proposal(time, remap.changes(time, probed), remap.upper, upper)


def check_probe(source: str, remap: Remap[T], probed: Antichain[T]) -> None:
    """Refuse a probe that is behind what was bound before it was taken."""
    if remap.latest.precedes(probed):
        return
    message = f'source "{source}" moved backwards'
    detail = f"positions up to {remap.latest} are bound, but the source now ends at {probed}"
    hint = (
        "the topic or file was deleted, recreated or truncated; what is already bound cannot "
        "be read again: drop the source and create it again"
    )
    raise SourceRegressed(message, detail=detail, hint=hint)


class Minter(Generic[T]):
    """Extends one source's remap through a handle; any number may race on one remap."""

    def __init__(self, source: str, handle: RemapHandle[T], interval: int) -> None:
        self._source = source
        self._handle = handle
        self._interval = interval
        self._remap = handle.load()

    @property
    def remap(self) -> Remap[T]:
        """The durable remap as last seen; never shows a binding that is not durable."""
        return self._remap

    def sync(self) -> Remap[T]:
        """Re-read the durable remap, which others may have extended."""
        self._remap = self._handle.load()
        return self._remap

    def mint(self, now_ms: int, probed: Antichain[T]) -> Remap[T]:
        """Bind ``probed`` at the next time if there is one; return the durable remap."""
        hit("remap.mint.before")
        if not self._remap.is_sealed:
            check_probe(self._source, self._remap, probed)
        while proposal := propose(self._remap, now_ms, self._interval, probed):
            hit("remap.append.before")
            current = self._handle.append(proposal.updates, proposal.expected, proposal.upper)
            hit("remap.append.after")
            if current is None:
                self._remap = self._remap.extended(proposal.updates, proposal.upper)
                break
            probed = probed.join(self.sync().latest)
        return self._remap

    def compact(self, since: Timestamp) -> Remap[T]:
        """Fold bindings at or before ``since``; a no-op when already there.

        Others may have extended and folded the remap meanwhile: what is durable decides.
        """
        if self._remap.upper.less_equal(since):
            self.sync()
        if since > self._remap.since:
            compacted = self._remap.compacted(since)
            hit("remap.compact.before")
            try:
                self._handle.compact(since)
                self._remap = compacted
            except InvalidCompaction:
                if self.sync().since < since:
                    raise
        return self._remap
