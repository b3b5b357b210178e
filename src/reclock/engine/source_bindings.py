"""The durable bindings of sources, as part of a timeline's state.

A tick appends the bindings that it makes in the transaction that publishes what it read, so
the two are never apart: what is bound was read, and what was read is bound (P2). A tick in
which a source brings nothing leaves its bindings untouched: they hold on until the next, and
idle sources cost nothing (P5). Their own upper may therefore be behind the timeline's.

Bindings are folded to the since of their source, some at a time: there are never more than
``SLACK`` of them before it. Those of sources that are gone are dropped when a database is
opened.

Tests: tests/ingest/test_sources.py; at random: test_source_walk.py; through
kill -9: test_kafka_crash.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from reclock.catalog.item import Source
from reclock.connectors.kafka.consistent import origin_of
from reclock.dataflow.piece import Piece
from reclock.durable.held_store import Held
from reclock.durable.held_store import drop_others as drop_held
from reclock.durable.remap_store import RemapStore
from reclock.engine.first_time import first_of, readable_from
from reclock.ids import CollectionId
from reclock.remap.codec import FILES, KAFKA, LSN, TOPICS
from reclock.sql.statement.source import FileConnection, KafkaConnection, PostgresConnection
from reclock.time.antichain import Antichain
from reclock.time.frontier import BEGINNING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.durable.store import Append, Store
    from reclock.engine.taken import Taken
    from reclock.ids import ObjectId
    from reclock.remap.codec import Codec
    from reclock.remap.trace import Remap
    from reclock.time.frontier import Frontier
    from reclock.time.timestamp import Timestamp

PREFIX: Final = "remap/"

SLACK: Final = 32
"""How many bindings before the since of their source are worth an append of their own."""


@dataclass(frozen=True)
class Bindings:
    """A source's remap at one moment, and where it is stored."""

    remap: Remap[Any]
    handle: RemapStore[Any]
    first: Antichain[Any] | None = None
    """What was there when the source was made (``first``)."""
    held: Held | None = None
    """What it has read and not published, in files, if that may be."""

    @cached_property
    def readable_from(self) -> Frontier | None:
        """From when on the source can be read; None: not yet."""
        return BEGINNING if self.first is None else readable_from(self.remap, self.first)

    def taken(self, taken: Taken) -> tuple[list[Append], Bindings]:
        """Return the appends of what a tick binds, and the bindings after it."""
        after, held, more = taken.remap, self.held, None
        append = self.handle.as_append(taken.updates, self.remap.upper, after.upper)
        if taken.held is not None:
            assert held is not None
            more, held = held.changed(taken.held)
        appends = [append] if more is None else [append, more]
        return appends, replace(self, remap=after, held=held)

    @cached_property
    def segments(self) -> frozenset[str]:
        """The files in which something waits."""
        records = () if self.held is None else self.held.records().values()
        pieces = (Piece.from_text(json.dumps(record["piece"])) for record in records)
        return frozenset(name for piece in pieces for name in piece.segments)

    def compacted(self, since: Timestamp) -> Bindings:
        """Fold everything at or before ``since``, durably, if that is much."""
        bindings = self.remap.bindings
        if len(bindings) <= SLACK or bindings[SLACK].time > since:
            return self
        if not self.remap.is_sealed:
            since = min(since, self.remap.upper.element().back())
        self.handle.compact(since)
        return replace(self, remap=self.remap.compacted(since))


def load(store: Store, items: Iterable[object]) -> dict[ObjectId, Bindings]:
    """Return the bindings of those ``items`` that are sources."""
    found = {}
    for item in items:
        if isinstance(item, Source) and item.parent is None:
            codec = codec_of(item)
            handle = RemapStore(store, item.id, codec)
            held = Held.open(store, item.id) if item.states else None
            found[item.id] = Bindings(handle.load(), handle, first_of(item.facts, codec), held)
    return found


def drop_others(store: Store, sources: Iterable[ObjectId]) -> None:
    """Drop the bindings of sources that are gone, and what they held."""
    there = [*sources]
    drop_held(store, there)
    kept = {f"{PREFIX}{source}" for source in there}
    for state in store.collections(PREFIX):
        if state.collection not in kept:
            store.drop(CollectionId(state.collection))


def codec_of(item: Source) -> Codec[Any]:
    """Return how the positions of a source are written, and where it begins."""
    match item.statement.connection:
        case KafkaConnection():
            origin = Antichain(map(KAFKA.decode, item.facts["origin"]))
            if (consistency := item.statement.consistency_topic) is None:
                return replace(KAFKA, origin=origin)
            begun = Antichain(map(KAFKA.decode, item.facts["counter"]["origin"]))
            topic = item.statement.connection.topic
            return replace(TOPICS, origin=origin_of((topic, origin), (consistency, begun)))
        case FileConnection():
            return FILES
        case PostgresConnection():
            return LSN
    return KAFKA
