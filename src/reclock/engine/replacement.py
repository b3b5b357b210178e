"""A materialized view is replaced by another query, and goes on: the same object, with other rows.

Definition. At T, the time of the change of the catalog, the rows are those of the new query; before
T they are, and stay, those of the old one. So what is read of it, or of what is made of it, changes
once, at T, by the difference::

    update at T  =  new(T) − old(T − 1)

``roots`` are the views whose queries changed. What is *renewed* with them is every arrangement that
holds their rows or comes from them: it is filled anew, in the graph after the change, as if it were
not there. Then those that are read at past times keep their runs and get one more, the difference
at T; the state of operators, which nobody reads at past times, is exchanged.

``Difference`` follows both sides while ticks go on (``preparation``), so that what is left to do
under the lock is of the size of the difference, and of what happened in the last moment.

Tests: tests/engine/test_replacement.py, tests/export/test_alter.py.
"""

from __future__ import annotations

from itertools import chain, count
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.arrangement.cache import process_cache
from reclock.arrangement.layout import diff_of
from reclock.arrangement.shard import Shard
from reclock.arrangement.stream import advance_to, concat, merged
from reclock.catalog.item import MaterializedView
from reclock.dataflow.graph import collection_of, errors_of
from reclock.dataflow.work import Stream
from reclock.engine.arrangements import beginning, following, layouts_of, write_runs
from reclock.engine.shape import is_computed
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reclock.arrangement.layout import Layout
    from reclock.arrangement.run import RunRef
    from reclock.arrangement.store import Store
    from reclock.catalog.catalog import Catalog
    from reclock.dataflow.graph import ArrangementId, Graph
    from reclock.engine.arrangements import Runs
    from reclock.engine.engine import Updates
    from reclock.engine.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.time.description import Description
    from reclock.time.timestamp import Timestamp

WHOLE_ROWS: Final = 1 << 16
"""A difference of so many updates is one batch; a larger one is written piece by piece."""

_numbers: Final = count(1)


def roots(before: Catalog, after: Catalog) -> frozenset[ObjectId]:
    """Return the views that have another query than before, if a view was replaced."""
    both = [
        (old, item)
        for i, item in after.items.items()
        if (old := before.items.get(i)) is not None and old is not item
    ]
    if not any(_revision(old) != _revision(item) for old, item in both):
        return frozenset()
    return frozenset(
        item.id
        for old, item in both
        if is_computed(item) and is_computed(old)
        if _revision(old) != _revision(item) or old.plan != item.plan
    )


def _revision(item: object) -> int:
    return item.revision if isinstance(item, MaterializedView) else 0


def renewed(graph: Graph, replaced: frozenset[ObjectId]) -> frozenset[ArrangementId]:
    """Return the arrangements of a graph that hold what is replaced, or come from it."""
    here = replaced & graph.views.keys()
    if not here:
        return frozenset()
    rows = {graph.views[item] for item in here}
    found = {of(item) for item in here for of in (collection_of, errors_of)}
    below = {at for at in graph.references if rows.intersection(graph.steps[at].inputs)}
    for name, arranged in graph.arrangements.items():
        made_by = (arranged.source, *graph.writers.get(name, ()))
        if any(step is not None and not below.isdisjoint(graph.cone(step)) for step in made_by):
            found.add(name)
    return frozenset(found & graph.arrangements.keys())


def with_history(
    fresh: frozenset[ArrangementId], before: Graph, after: Graph
) -> frozenset[ArrangementId]:
    """Return those of renewed arrangements that go on with a difference."""
    both = fresh & before.arrangements.keys() & after.arrangements.keys()
    graphs = before, after
    return frozenset(n for n in both if all(g.arrangements[n].history for g in graphs))


class Difference:
    """What new arrangements have that old ones of the same names do not, and the reverse.

    As runs: the whole difference at the beginning, and then what is taken from the old side.
    """

    def __init__(
        self, segments: Store, layouts: Mapping[ArrangementId, Layout], upper: Timestamp
    ) -> None:
        self._segments = segments
        self._layouts = layouts
        self._stem = f"difference-{next(_numbers)}"
        self._begun = self._upper = upper
        self._runs: dict[ArrangementId, tuple[RunRef, ...]] = {}

    @property
    def names(self) -> frozenset[ArrangementId]:
        """The arrangements that are compared."""
        return frozenset(self._runs)

    def begin(
        self, fresh: Mapping[ArrangementId, Shard], old: Mapping[ArrangementId, Shard]
    ) -> None:
        """Compare both sides as of the last complete time."""
        as_of = self._begun.back()
        made: dict[ArrangementId, Updates] = {}
        for name in sorted(fresh):
            layout = self._layouts[name]
            both = (fresh[name].snapshot(as_of), negated(old[name].snapshot(as_of)))
            made[name] = _gathered(merged(layout, both))
        self._write(made, dict.fromkeys(made, beginning(self._begun)))

    def follow(self, old: Mapping[ArrangementId, Shard], upper: Timestamp) -> None:
        """Take what has changed in the old side since."""
        if not self._upper < upper:
            return
        made = {
            name: _gathered(negated(old[name].changes(self._upper, at(upper))))
            for name in sorted(self._runs)
        }
        self._write(made, {name: following(self._runs[name], upper) for name in made})
        self._upper = upper

    def closing(self, name: ArrangementId, fresh: Shard, time: Timestamp) -> Updates:
        """Return the whole difference, as updates at one time up to which ``fresh`` is there."""
        layout, upper = self._layouts[name], at(time.step())
        own = _shard(layout, self._runs[name], self._segments, self._upper)
        parts = [*own.sources, fresh.changes(self._begun, upper)]
        return _gathered(merged(layout, parts, advance_to(layout, time)))

    def _write(
        self,
        updates: Mapping[ArrangementId, Updates],
        descriptions: Mapping[ArrangementId, Description[Timestamp]],
    ) -> None:
        stem = f"{self._stem}-{self._upper}-{len(self._runs)}"
        made = write_runs(self._segments, stem, updates, self._layouts, descriptions)
        self._runs |= {name: (*self._runs.get(name, ()), *refs) for name, refs in made.items()}


def swapped(
    state: TimelineState,
    after: TimelineState,
    added: Runs,
    fresh: frozenset[ArrangementId],
    known: Difference | None,
) -> tuple[Runs, frozenset[ArrangementId]]:
    """Return the runs that a replacement adds, and the arrangements whose old ones go.

    ``added`` are those of new arrangements, up to and with the time that the step closes;
    ``after`` has the graph after it.
    """
    time = state.table_upper
    there = fresh & state.arrangements.runs.keys()
    kept = with_history(fresh, state.shape.graph, after.shape.graph)
    layouts = layouts_of(after.shape.graph)
    shards = {n: _shard(layouts[n], added[n], state.segments, time.step()) for n in sorted(kept)}
    if known is None:
        known = Difference(state.segments, layouts, state.upper)
        known.begin(shards, state.traces)
    known.follow(state.traces, state.upper)
    updates = {name: known.closing(name, shard, time) for name, shard in shards.items()}
    runs = state.arrangements.runs
    changed = {name: following(runs[name], time.step()) for name in shards if updates[name]}
    stem = state.stem("replace", time)
    made = write_runs(state.segments, stem, updates, layouts, changed)
    rest = {name: refs for name, refs in added.items() if name not in kept}
    return {**rest, **made}, there - kept


def negated(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the updates that undo others, in the same order."""
    for batch in batches:
        columns = [*batch.columns[:-1], pa.array(-diff_of(batch))]
        yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _gathered(pieces: Iterator[pa.RecordBatch]) -> Updates:
    """Return updates that come in pieces as one batch, or as a stream if they are many."""
    first: list[pa.RecordBatch] = []
    rows = 0
    for piece in pieces:
        first.append(piece)
        rows += piece.num_rows
        if rows > WHOLE_ROWS:
            return Stream(rows, chain(first, pieces))
    return concat(first) if first else ()


def _shard(layout: Layout, refs: tuple[RunRef, ...], segments: Store, upper: Timestamp) -> Shard:
    return Shard.open(layout, refs, segments, process_cache(), at(upper))
