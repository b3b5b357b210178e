"""The first readable time of a source: when everything that was there at its creation is bound.

Definition. F is the upstream frontier when CREATE SOURCE ran; it is one of the source's durable
facts. With the remap R of the source::

    first readable time  =  the first t with  F ≤ R(t)

so a first read has everything that was in the topic, or in the files, before the statement, and
every later one too; no reader sees a part of it, or nothing. A source has no readable time before
that, and nor has a view over it. The statement itself waits for nothing.

A source that has ended can be read, however far it got: its error says what happened. Sources that
bring their times, or transactions, have no F: what is complete of them they say themselves. Load
generators have none either: nothing is there before their first tick.

Invariant: R never goes back, so neither does the time (P7); F is durable, so a restarted process
finds the same (P2). Cost: a bisection, once per version of R.

Tests: tests/ingest/test_first.py.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reclock.errors import SourceRegressed, SourceStopped
from reclock.time.antichain import Antichain
from reclock.time.frontier import BEGINNING, at
from reclock.time.position import offsets_of

if TYPE_CHECKING:
    from reclock.connectors.source import Source as Connector
    from reclock.durable.keyed import Json
    from reclock.ids import ObjectId
    from reclock.remap.codec import Codec
    from reclock.remap.trace import Remap
    from reclock.time.frontier import Frontier

FACT = "first"


def first_facts(source: Connector[Any], origin: Antichain[Any], codec: Codec[Any]) -> Json:
    """Return F as a fact of a new source; none of one that cannot be read, as its status says."""
    try:
        found = source.probe(origin)
    except (SourceRegressed, SourceStopped):
        return {}
    return {FACT: [codec.encode(position) for position in found]}


def first_of(facts: Json, codec: Codec[Any]) -> Antichain[Any] | None:
    """Return F of a source; None if it has none."""
    known = facts.get(FACT)
    return None if known is None else Antichain(map(codec.decode, known))


def readable_from(remap: Remap[Any], first: Antichain[Any]) -> Frontier | None:
    """Return the first readable time; None if that is still to come."""
    if remap.is_sealed or first.precedes(remap.origin):
        return BEGINNING
    bindings = remap.bindings
    found = bisect_left(bindings, True, key=lambda binding: first.precedes(binding.frontier))
    return None if found == len(bindings) else at(bindings[found].time)


@dataclass(frozen=True)
class Loading:
    """A source that cannot be read yet, and how far it is."""

    source: ObjectId
    name: str
    remap: Remap[Any]
    first: Antichain[Any]

    def __str__(self) -> str:
        begun = offsets_of(self.remap.origin)
        wanted, bound = offsets_of(self.first), offsets_of(self.remap.latest)
        total = sum(stop - begun.get(part, 0) for part, stop in wanted.items())
        done = sum(min(bound.get(p, 0), stop) - begun.get(p, 0) for p, stop in wanted.items())
        return f'source "{self.name}" has bound {done} of {total} offsets'
