"""An engine without Spark: the reference evaluator behind the seam ``engine.engine``.

Every view is computed from scratch at every time at which something changed, and the
difference is what a tick appends; arrangements that hold the rows of an object get them,
the inner state of operators stays empty, but for that of the envelopes of sources, which are
folded record by record (``testing.envelopes``). As slow and simple as it can be: for tests of
everything around the engine, and to compare the real one with.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from engines.loop_cluster import LoopTasks
from model.envelopes import Held, fold_of
from model.evaluate import answer, evaluate
from model.evaluate_scalar import EvaluationError
from model.evaluator import PythonEvaluator
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import diff_of, time_of
from reclock.change.value import canonical
from reclock.dataflow import delta as deltas
from reclock.dataflow.envelope import NONE
from reclock.dataflow.error_rows import hint_of
from reclock.dataflow.graph import collection_of, errors_of, faults_of, positions_of
from reclock.dataflow.merge import merge_here, merge_in_tasks
from reclock.dataflow.piece import Piece
from reclock.dataflow.pieces import Pieces
from reclock.dataflow.placement import Execution
from reclock.dataflow.steps.refresh import UNREFRESHED, unrefreshed
from reclock.dataflow.values import from_python
from reclock.errors import ExpressionFailed, NotSupported
from reclock.interval import Interval
from reclock.sql.plan.relation import Get, walk
from reclock.sql.plan.temporal import at_time, is_temporal
from reclock.time.frontier import at
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from model.evaluate import Row, Rows
    from reclock.arrangement.precedence import Unhurried
    from reclock.arrangement.run import RunRef
    from reclock.arrangement.shard import Shard
    from reclock.arrangement.store import Store
    from reclock.dataflow.changes import Changes
    from reclock.dataflow.evaluate import Answer, Request
    from reclock.dataflow.graph import Arrangement, ArrangementId
    from reclock.dataflow.job.load import Load
    from reclock.dataflow.job.tasks import Tasks
    from reclock.dataflow.keying import Keying
    from reclock.dataflow.merge import Merge
    from reclock.dataflow.render.source import Source
    from reclock.dataflow.stage import Stager, Together
    from reclock.dataflow.stop import Stop
    from reclock.dataflow.work import Effort
    from reclock.engine.engine import Updates
    from reclock.engine.shape import Shape
    from reclock.ids import ObjectId
    from reclock.remap.batch import Range
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.relation import QueryPlan

Contents = dict["ArrangementId", "Rows"]


class ModelEngine:
    """``engine.engine.Engine`` in plain Python; ``steps`` counts the ticks it computed.

    An answer of more than ``whole_rows`` rows is given while it is taken, as from the runs.
    """

    def __init__(self, whole_rows: int = 20_000) -> None:
        self.whole_rows = whole_rows
        self.steps = 0
        self.load: Load | None = None
        self.merged_in_tasks = 0
        self._execution = Execution.AUTO

    def configure(self, execution: Execution) -> None:
        """Note where merges are to run: all else has one place."""
        self._execution = execution

    def evaluate(self, requests: Sequence[Request]) -> list[Answer]:
        """Evaluate expressions in plain Python."""
        return PythonEvaluator().evaluate(requests)

    @property
    def merges_in_tasks(self) -> bool:
        """Whether merges are cut into parts."""
        return self._execution is Execution.SPARK

    def outlook(self, shape: Shape, changed: Collection[ObjectId]) -> None:
        """Say nothing: there is one place."""
        del shape, changed

    def step(
        self,
        shape: Shape,
        changes: Mapping[ObjectId, Changes],
        traces: Mapping[ArrangementId, Shard],
        lower: Timestamp,
        upper: Timestamp,
        *,
        effort: Effort | None = None,
        stop: Stop | None = None,
    ) -> Mapping[ArrangementId, Updates]:
        """Return what changes of tables and sources append: everything, at every time.

        Where views depend on the time itself, they are computed too at each time that one of
        its comparisons has to do with.
        """
        del effort, stop  # there are no tasks
        self.steps += 1
        before = _contents(shape, traces, lower.back())
        graph = shape.graph
        deltas_of = {
            item: change.delta(graph.keying(graph.entry(item)[1]))
            for item, change in changes.items()
        }
        updates: dict[ArrangementId, list[tuple[Row, int, int]]] = {}
        times = {t for batch in deltas_of.values() for t in time_of(batch).tolist()}
        if _is_temporal(shape):
            times.add(int(lower))
        times |= _refreshes(shape, lower, upper)
        done: set[int] = set()
        while times - done:
            time = min(times - done)
            done.add(time)
            after = {a: Counter(rows) for a, rows in before.items()}
            for item, batch in deltas_of.items():
                due = batch.filter(pa.array(time_of(batch) == time))
                if item in shape.sources and shape.sources[item].envelope == NONE:
                    _add(item, due, after)
                    continue
                if item in shape.sources:
                    _fold(shape.sources[item], item, due, after)
                    continue
                rows = after[collection_of(item)]
                for row, diff in zip(_rows(deltas.rows_of(due)), diff_of(due), strict=True):
                    rows[row] += int(diff)
            found = _evaluate(shape, after, time)
            times |= {t for t in found if time < t < upper}
            for arrangement, rows in after.items():
                _note(updates.setdefault(arrangement, []), before[arrangement], rows, time)
            before = after
        return _arranged(shape, updates)

    def is_due(
        self,
        shape: Shape,
        traces: Mapping[ArrangementId, Shard],
        lower: Timestamp,
        upper: Timestamp,
    ) -> bool:
        """Return whether it may: there is no telling without computing."""
        del traces
        return _is_temporal(shape) or bool(_refreshes(shape, lower, upper))

    def hydrate(
        self,
        shape: Shape,
        new: frozenset[ArrangementId],
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
        *,
        beside: Unhurried | None = None,
        stop: Stop | None = None,
    ) -> Mapping[ArrangementId, Updates]:
        """Return the contents of new arrangements as of a time."""
        del beside, stop
        contents = _contents(shape, traces, as_of)
        _evaluate(shape, contents, as_of, frozenset(map(str, new)))
        updates = {
            a: [(row, int(as_of), n) for row, n in rows.items() if n]
            for a, rows in contents.items()
            if a in new
        }
        return _arranged(shape, updates)

    def follow(
        self,
        shape: Shape,
        new: frozenset[ArrangementId],
        before: Mapping[ArrangementId, Shard],
        after: Mapping[ArrangementId, Shard],
        *,
        lower: Timestamp,
        upper: Timestamp,
        stop: Stop | None = None,
    ) -> Mapping[ArrangementId, Updates]:
        """Return what some times append to new arrangements: computed at each of them."""
        del stop
        held = _contents(shape, before, lower.back())
        there = held.keys() & after.keys() - new  # others were dropped, and are not read
        kept = [shape.graph.arrangements[name] for name in sorted(there)]
        times = _refreshes(shape, lower, upper) | {
            time
            for arrangement in kept
            for batch in after[arrangement.id].changes(lower, at(upper))
            for time in time_of(batch).tolist()
        }
        if _is_temporal(shape):
            times.add(int(lower))
        updates: dict[ArrangementId, list[tuple[Row, int, int]]] = {}
        done: set[int] = set()
        while times - done:
            time = min(times - done)
            done.add(time)
            found = {a: Counter(rows) for a, rows in held.items()}
            found |= {a.id: _stored(after, a, Timestamp(time)) for a in kept}
            times |= {t for t in _evaluate(shape, found, time) if time < t < upper}
            for name in found.keys() & new:
                _note(updates.setdefault(name, []), held[name], found[name], time)
            held = found
        return _arranged(shape, updates)

    def peek(
        self,
        plan: QueryPlan,
        shape: Shape | None,
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
        *,
        stop: Stop | None = None,
    ) -> pa.Table:
        """Return the answer of the reference evaluator."""
        del stop
        tables = {}
        for node in walk(plan.root):
            if isinstance(node, Get) and shape is not None:
                arrangement = shape.graph.arrangements[collection_of(node.item)]
                tables[node.name] = _stored(traces, arrangement, as_of)
        try:
            rows = answer(plan, tables)
        except EvaluationError as error:
            hint = hint_of(error.code)
            raise ExpressionFailed(str(error), code=error.code, hint=hint) from error
        kinds = [c.type for c in plan.root.schema][: plan.visible]
        columns = [from_python((row[i] for row in rows), kind) for i, kind in enumerate(kinds)]
        return pa.Table.from_arrays(columns, [f"c{i}" for i in range(len(kinds))])

    def stream(
        self,
        plan: QueryPlan,
        shape: Shape | None,
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
        *,
        stop: Stop | None = None,
    ) -> Pieces:
        """Return the same in batches."""
        table = self.peek(plan, shape, traces, as_of, stop=stop)
        if shape is None or table.num_rows <= self.whole_rows:
            return Pieces.of(table)
        step = max(1, self.whole_rows)
        return Pieces((batch for batch in table.to_batches(step)), reads_runs=True)

    def dataframe(
        self,
        plan: QueryPlan,
        shape: Shape | None,
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
    ) -> Any:
        """Refuse: there is no Spark."""
        message = "a DataFrame without Spark is not supported"
        raise NotSupported(message)

    def reading_tasks(self, records: int, size: int = 0) -> int:
        """Return none: there are no tasks."""
        del records, size
        return 0

    def note_read(self, records: int, size: int, seconds: float) -> None:
        """Do nothing: costs decide nothing here."""

    def stage(
        self,
        stager: Stager | Together,
        shares: Sequence[Sequence[Range]],
        title: str,
        *,
        stop: Stop | None = None,
    ) -> list[Piece]:
        """Read one share after the other, here: for tests that ask for it."""
        del title, stop
        return [Piece.from_text(p.text()) for share in shares for p in stager.staged(share)]

    def tasks(
        self,
        rows: int,
        title: str,
        *,
        effort: Effort | None = None,
        stop: Stop | None = None,
    ) -> Tasks:
        """Return tasks that run one after the other, here."""
        del rows, title, effort, stop
        return LoopTasks()

    def merge(
        self,
        merges: Sequence[Merge],
        store: Store,
        stem: str,
        *,
        title: str,
        stop: Stop | None = None,
    ) -> Sequence[tuple[RunRef, ...]]:
        """Merge here, or in tasks that are a loop if ``execution`` says that it is Spark's."""
        del title
        if not self.merges_in_tasks:
            return merge_here(merges, store, stem, stop)
        self.merged_in_tasks += len(merges)
        return merge_in_tasks(LoopTasks(), merges, store, stem)

    def close(self) -> None:
        """Do nothing."""


def _note(updates: list[tuple[Row, int, int]], before: Rows, after: Rows, time: int) -> None:
    """Add what leads from some rows to others."""
    updates += [
        (row, time, after[row] - before[row])
        for row in after.keys() | before.keys()
        if after[row] != before[row]
    ]


def _contents(shape: Shape, traces: Mapping[ArrangementId, Shard], as_of: Timestamp) -> Contents:
    """Return the rows of every arrangement that holds those of an object."""
    graph = shape.graph
    found: Contents = {}
    for item in (*graph.tables, *graph.views):
        for arrangement in _holding(shape, item):
            found[arrangement.id] = _stored(traces, arrangement, as_of)
        for name in (errors_of(item), faults_of(item), positions_of(item)):
            if name in graph.arrangements:
                found[name] = _stored(traces, graph.arrangements[name], as_of)
    return found


def _add(item: ObjectId, records: pa.RecordBatch, contents: Contents) -> None:
    """Add records that are rows, or faults, as often as they say."""
    for record, diff in zip(_rows(deltas.rows_of(records)), diff_of(records), strict=True):
        *row, code, message = canonical(record)
        name, added = collection_of(item), tuple(row)
        if code is not None:
            name, added = errors_of(item), (code, message)
        contents[name][added] += int(diff)


def _fold(source: Source, item: ObjectId, due: pa.RecordBatch, contents: Contents) -> None:
    """Fold records into what a source holds; faults with a diff of −1 take an error back."""
    records = []
    for record, diff in zip(_rows(deltas.rows_of(due)), diff_of(due), strict=True):
        if diff < 0:
            contents[errors_of(item)][record[-2], record[-1]] += int(diff)
        else:
            records.append(record)
    names = collection_of(item), errors_of(item), faults_of(item), positions_of(item)
    fold = fold_of(source, Held(*(contents.get(name, Counter()) for name in names)))
    fold.take(records)
    for name, rows in zip(names, fold.held(), strict=True):
        if name in contents:
            contents[name] = rows


def _holding(shape: Shape, item: ObjectId) -> list[Arrangement]:
    """Return the arrangements that hold the rows of an object, its collection first."""
    names = dict.fromkeys([collection_of(item), *shape.indexes.get(item, ())])
    return [shape.graph.arrangements[name] for name in names]


class _Now(int):
    """A time that notes what it is compared with."""

    compared: set[int]

    def __new__(cls, time: int, compared: set[int]) -> _Now:
        made = super().__new__(cls, time)
        made.compared = compared
        return made

    __hash__ = int.__hash__

    def __lt__(self, other: int) -> bool:
        return int(self) < self._noted(other)

    def __le__(self, other: int) -> bool:
        return int(self) <= self._noted(other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and int(self) == self._noted(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __ge__(self, other: int) -> bool:
        return int(self) >= self._noted(other)

    def __gt__(self, other: int) -> bool:
        return int(self) > self._noted(other)

    def _noted(self, other: int) -> int:
        self.compared.add(int(other))
        return int(other)


def _is_temporal(shape: Shape) -> bool:
    return any(is_temporal(node) for plan in shape.views.values() for node in walk(plan))


def _refreshes(shape: Shape, lower: Timestamp, upper: Timestamp) -> set[int]:
    """Return the times in ``[lower, upper)`` at which some view is refreshed."""
    found: set[int] = set()
    for view in shape.defined.values():
        due = None if view.schedule is None else view.schedule.round_up(lower)
        while view.schedule is not None and due is not None and due < upper:
            found.add(int(due))
            due = view.schedule.round_up(due.step())
    return found


def _first(shape: Shape, item: ObjectId) -> int:
    schedule = shape.defined[item].schedule
    return -1 if schedule is None or schedule.first is None else int(schedule.first)


def _is_refreshed(shape: Shape, item: ObjectId, time: int, is_new: bool) -> bool:
    """Return whether a view is computed at a time: always, when scheduled, and when it is new."""
    schedule = shape.defined[item].schedule
    return schedule is None or is_new or schedule.round_up(time) == time


def _evaluate(
    shape: Shape, contents: Contents, time: int, new: Collection[str] = frozenset()
) -> set[int]:
    """Compute every view, and what is arranged by other columns, from the tables.

    One with a schedule only when it is refreshed; if it is new before that, it is not there yet.
    Return the times that were compared with ``time``, and those after them.
    """
    compared: set[int] = set()
    for item in (*shape.graph.tables, *shape.graph.views):
        collection, *others = _holding(shape, item)
        if item in shape.views and _is_refreshed(shape, item, time, collection.id in new):
            now = _Now(time, compared)
            rows, errors = _view(at_time(shape.views[item], now), contents)
            if collection.id in new and (first := _first(shape, item)) > time:
                text = unrefreshed(Timestamp(first))
                rows, errors = Counter(), Counter({(UNREFRESHED, text): 1})
            contents[collection.id] = rows
            if errors_of(item) in shape.graph.arrangements:
                contents[errors_of(item)] = errors
        for other in others:
            contents[other.id] = contents[collection.id]
    return compared | {t + 1 for t in compared}


def _view(plan: Node, contents: Contents) -> tuple[Rows, Rows]:
    gets = [node for node in walk(plan) if isinstance(node, Get)]
    failed: Rows = Counter()
    for get in gets:
        failed += contents.get(errors_of(get.item), Counter())
    try:
        tables = {get.name: contents[collection_of(get.item)] for get in gets}
        return (Counter(), failed) if failed else (Counter(evaluate(plan, tables)), failed)
    except EvaluationError as error:
        return Counter(), Counter({(error.code, str(error)): 1})


def _stored(
    traces: Mapping[ArrangementId, Shard], arrangement: Arrangement, as_of: Timestamp
) -> Rows:
    rows: Rows = Counter()
    if arrangement.id in traces:
        for batch in traces[arrangement.id].snapshot(as_of):
            found = zip(_rows(arrangement.keying.columns(batch)), diff_of(batch), strict=True)
            for row, diff in found:
                rows[row] += int(diff)
    return rows


def _rows(columns: list[pa.Array]) -> list[Row]:
    return list(zip(*(map(_hashable, column.to_pylist()) for column in columns), strict=True))


def _hashable(value: object) -> object:
    if isinstance(value, dict):  # an interval: records are not in tables
        return Interval(value["months"], value["days"], value["micros"])
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _as_arrow(value: object) -> object:
    if isinstance(value, Interval):
        return {"days": value.days, "micros": value.microseconds, "months": value.months}
    return [_as_arrow(v) for v in value] if isinstance(value, tuple) else value


def _arranged(
    shape: Shape, updates: Mapping[ArrangementId, Iterable[tuple[Row, int, int]]]
) -> dict[ArrangementId, pa.RecordBatch]:
    made = {}
    for arrangement, some in updates.items():
        batch = _batch(shape.graph.arrangements[arrangement].keying, list(some))
        if batch.num_rows:
            made[arrangement] = batch
    return made


def _batch(keying: Keying, updates: list[tuple[Row, int, int]]) -> pa.RecordBatch:
    columns = [
        pa.array([_as_arrow(row[i]) for row, _, _ in updates], kind)
        for i, kind in enumerate(keying.types)
    ]
    time = np.array([t for _, t, _ in updates], np.int64)
    diff = np.array([d for _, _, d in updates], np.int64)
    return consolidate(keying.layout, keying.arrange(deltas.build(columns, time, diff)))
