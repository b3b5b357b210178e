"""Remaps of partitioned sources: sparse and unordered partition ids, idle times, an end."""

from __future__ import annotations

from hypothesis import strategies as st

from reclock.remap.codec import KAFKA
from reclock.remap.trace import Remap
from reclock.time.antichain import Antichain
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Timestamp

PARTITIONS = st.sampled_from([0, 1, 2, 7, 40])
"""Few ids, so that partitions grow often; sparse, so that gaps lie between them."""


@st.composite
def remaps(
    draw: st.DrawFn, max_steps: int = 8, *, sealed: bool | None = None
) -> Remap[KafkaPosition]:
    """Draw a remap by extending it step by step, as minting does."""
    remap = Remap.unbound(KAFKA.origin)
    offsets: dict[int, int] = {}
    for _ in range(draw(st.integers(0, max_steps))):
        grown = draw(st.dictionaries(PARTITIONS, st.integers(0, 4), max_size=3))
        for partition, by in grown.items():
            offsets[partition] = offsets.get(partition, 0) + by
        frontier = KafkaPosition.frontier(offsets) if offsets else KAFKA.origin
        gap = draw(st.integers(0, 3))
        time = Timestamp(remap.upper.element() + gap)
        remap = remap.bound(time, frontier)
    if draw(st.booleans()) if sealed is None else sealed:
        remap = remap.bound(Timestamp(remap.upper.element()), Antichain())
    return remap


@st.composite
def records(draw: st.DrawFn) -> list[KafkaPosition]:
    """Draw positions of records, some of them ahead of any remap, repeats included."""
    exact = st.builds(KafkaPosition.exact, PARTITIONS, st.integers(0, 20))
    return draw(st.lists(exact, max_size=30))


def times_around(remap: Remap[KafkaPosition]) -> range:
    """Return every time at which ``remap`` is readable, and where it is sealed, some more."""
    stop = remap.bindings[-1].time + 3 if remap.is_sealed else remap.upper.element()
    return range(remap.since, stop)
