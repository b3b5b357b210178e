"""Collections for tests of reads: rows at times, arranged in real runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphs.build import build
from graphs.deltas import delta_of
from reclock.arrangement.cache import process_cache
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.shard import Shard
from reclock.change.update import Update
from reclock.dataflow.keying import Keying
from reclock.dataflow.scan import Arranged
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.arrangement.run import RunRef
    from reclock.arrangement.store import Store
    from reclock.dataflow.delta import Types


def arranged(
    types: Types,
    key: tuple[int, ...],
    changes: Sequence[tuple[Mapping[tuple[Any, ...], int], int]],
    store: Store,
    *,
    inline: bool = True,
) -> Arranged:
    """Return a collection by ``key`` with one run per (changed counts of rows, time).

    Times rise from 1; the last run is open to all later times. Runs that are not ``inline``
    are segments, which tasks open.
    """
    keying = Keying(types, key)
    refs: list[RunRef] = []
    lower = Timestamp(0)
    for number, (counts, time) in enumerate(changes):
        log = [Update(row, Timestamp(time), count) for row, count in counts.items() if count]
        last = number == len(changes) - 1
        upper: Antichain[Timestamp] = (
            Antichain.closed() if last else Antichain.of(Timestamp(time + 1))
        )
        span = Description(Antichain.of(lower), upper, Antichain.of(Timestamp(0)))
        name = "-".join(["c", *map(str, key), str(number), str(id(changes))])
        limit = 1 << 30 if inline else 0
        with SegmentWriter(store, name, inline_limit=limit) as writer:
            build(writer, name, keying.layout, keying.arrange(delta_of(types, log)), span)
            refs += writer.finish()
        lower = Timestamp(time + 1)
    return Arranged(keying, Shard.open(keying.layout, refs, store, process_cache()))
