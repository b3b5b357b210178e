"""One step of a sink: the sink as it is in a world, and the changes to write.

The state machine of a sink (``sinks.export``) asks for the changes of some times, where the
sources stood, and what they are; an encoder may ask for what the topic stands for. ``Work`` answers
all of it from one published world, so that the answers belong together.

Tests: tests/export/test_sinks.py, test_alter.py, test_recover.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import collection_of
from reclock.dataflow.render.build import Index
from reclock.export.contents import contents
from reclock.export.recover import described, sources_of
from reclock.time.frontier import at
from reclock.time.position import offsets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from reclock.catalog.item import Sink, Source
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.export.changes import Changes, Reach
    from reclock.sinks.encode.encoder import Encoded
    from reclock.sinks.log import Messages
    from reclock.time.frontier import Frontier


class Work(NamedTuple):
    """A sink, the world it is in, its changes, and how far they can be written."""

    sink: Sink
    world: World
    state: TimelineState
    changes: Changes
    reach: Reach

    def changed(self, lower: Frontier, upper: Frontier) -> Iterator[pa.RecordBatch]:
        """Return the changes of ``[lower, upper)``, where ``upper`` is as far as they reach."""
        assert upper == at(self.reach.upper)
        begin = max(lower.element(), self.changes.phases[0].start)
        return self.changes.between(self.state, begin, self.reach)

    def contents(self, keys: Sequence[pa.Array], lower: Frontier) -> pa.RecordBatch:
        """Return the rows that the topic stands for before ``lower``, of some keys."""
        base = self.changes.base(lower.element())
        if base is None:
            relation = collection_of(self.sink.relation)
            return deltas.empty(self.state.shape.graph.keying(relation).types)
        return contents(self.state, Index(base.relation, self.sink.shadow), base.time, keys)

    def positions(self, frontier: Frontier) -> Mapping[str, Any]:
        """Return where each source of the relation was just before a frontier."""
        time = frontier.element().back()
        found = {}
        for name, source in self._sources(frontier).items():
            remap = self.world.of(source).bindings[source.bound_by].remap  # its pace may be another
            last = [b.frontier for b in remap.bindings if b.time <= time]
            reached = offsets_of(last[-1] if last else remap.origin)
            found[name] = {str(part): offset for part, offset in reached.items()}
        return found

    def described(self, frontier: Frontier) -> Mapping[str, Any]:
        """Return what each source of the relation is."""
        return {name: described(source) for name, source in self._sources(frontier).items()}

    def _sources(self, frontier: Frontier) -> dict[str, Source]:
        relation = self.changes.relation_at(frontier.element().back())
        return sources_of(self.world.catalog, relation)


class Current:
    """The work of the step under way, for those who ask while it is."""

    def __init__(self) -> None:
        self.work: Work | None = None

    @property
    def _work(self) -> Work:
        assert self.work is not None, "asked outside of a step"
        return self.work

    def changed(self, lower: Frontier, upper: Frontier) -> Iterator[pa.RecordBatch]:
        """Return the changes of ``[lower, upper)``."""
        return self._work.changed(lower, upper)

    def contents(self, keys: Sequence[pa.Array], lower: Frontier) -> pa.RecordBatch:
        """Return the rows that the topic stands for before ``lower``, of some keys."""
        return self._work.contents(keys, lower)

    def positions(self, frontier: Frontier) -> Mapping[str, Any]:
        """Return where each source of the relation was just before a frontier."""
        return self._work.positions(frontier)

    def described(self, frontier: Frontier) -> Mapping[str, Any]:
        """Return what each source of the relation is."""
        return self._work.described(frontier)


class Counted:
    """Messages on their way, and the bytes of their values as they go."""

    def __init__(self, encoded: Encoded) -> None:
        self.times = encoded.times
        self.faults = encoded.faults
        self.bytes = 0
        self._encoded = encoded

    def chunks(self) -> Iterator[Messages]:
        """Yield the messages in order."""
        self.bytes = 0
        for chunk in self._encoded.chunks():
            self.bytes += chunk.values.nbytes
            yield chunk
