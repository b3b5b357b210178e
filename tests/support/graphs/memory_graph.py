"""A graph with its state in memory: views kept incrementally, read at every time.

What the engine does with arrangements on disk, for tests: ``tick`` runs the graph on
changes of tables and adds what it appends to the state; ``rows_at`` adds up a view's
updates. ``Changes`` draws random changes of the tables of ``testing.queries``.
"""

from __future__ import annotations

from collections import Counter
from math import nan
from typing import TYPE_CHECKING, Any

from graphs.deltas import delta_of
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.stream import concat
from reclock.change.update import Update
from reclock.dataflow.graph import collection_of, errors_of
from reclock.dataflow.maintain import Tick
from reclock.dataflow.render.build import Relation, View, build_graph, key_of
from reclock.dataflow.trace import DeltaTrace
from reclock.dataflow.types import arrow_types
from reclock.dataflow.values import to_python
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite
from reclock.sql.types import JSON, TEXT
from reclock.time.timestamp import Timestamp
from strategies.queries import FuzzCatalog

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from random import Random

    import pyarrow as pa

    from reclock.dataflow.evaluate import Evaluator
    from reclock.dataflow.graph import ArrangementId
    from reclock.ids import ObjectId
    from reclock.sql.names import CatalogItem
    from reclock.sql.plan.node import Node
    from reclock.sql.types import Type
    from reclock.time.refresh import Schedule

Row = tuple[object, ...]
Rows = Counter[Row]
Log = list[tuple[Row, int, int]]
"""Changes of a table: row, time, diff."""

CATALOG = FuzzCatalog()
TABLES = {name: item for name in ("t", "u", "v") if (item := CATALOG.resolve((name,)))}


def planned(text: str) -> Node:
    """Return the plan of a query over the tables, as a view would keep it."""
    plan = plan_query(parse_query(text), CATALOG, maintained=True)
    return rewrite(plan.relation, RewriteContext())


class MemoryGraph:
    """Views over the tables, and their state; some may have a refresh schedule."""

    def __init__(
        self,
        plans: Mapping[ObjectId, Node],
        evaluator: Evaluator,
        schedules: Mapping[ObjectId, Schedule] | None = None,
        tables: Mapping[str, CatalogItem] = TABLES,
    ) -> None:
        self._tables = tables
        relations = {
            item.id: Relation(item.schema, tuple(range(len(item.schema))))
            for item in tables.values()
        }
        self.plans = plans
        known = schedules or {}
        views = {item: View(plan, key_of(plan), known.get(item)) for item, plan in plans.items()}
        self.graph, _ = build_graph(relations, views, {})
        self.evaluator = evaluator
        self.state: dict[ArrangementId, DeltaTrace] = {}

    def tick(self, logs: Mapping[str, Log], times: range, *, hydrating: bool = False) -> None:
        """Run one tick on the changes of the tables."""
        tick = Tick(self.graph, written(logs, self._tables), self.state, times, hydrating=hydrating)
        for name, updates in tick.run(self.evaluator).items():
            layout = self.graph.arrangements[name].keying.layout
            if updates.schema.types != layout.schema.types:
                message = f"updates of {name} are {updates.schema}, not {layout.schema}"
                raise TypeError(message)
            if consolidate(layout, updates) is not updates:
                message = f"updates of {name} are not consolidated"
                raise ValueError(message)
            known = self.state.get(name)
            whole = updates if known is None else concat([known.updates, updates])
            self.state[name] = DeltaTrace(layout, whole)

    def hydrate(self, tables: Mapping[str, Rows], at: int) -> None:
        """Begin with the tables as they are at ``at``."""
        logs = {name: [(row, at, n) for row, n in rows.items()] for name, rows in tables.items()}
        self.tick(logs, range(at, at + 1), hydrating=True)

    def rows_at(self, item: ObjectId, time: int) -> Rows:
        """Return the rows of a view at ``time``."""
        kinds = [column.type for column in self.plans[item].schema]
        return self._at(collection_of(item), kinds, time)

    def errors_at(self, item: ObjectId, time: int) -> Rows:
        """Return the error rows of a view at ``time``."""
        return self._at(errors_of(item), [TEXT, TEXT], time)

    def _at(self, name: ArrangementId, kinds: list[Type], time: int) -> Rows:
        found: Rows = Counter()
        trace = self.state.get(name)
        if trace is None:
            return found
        delta = self.graph.arrangements[name].keying.restore(trace.updates)
        columns = [hashable(c, k) for c, k in zip(delta.columns[:-2], kinds, strict=True)]
        rows: Iterable[Row] = zip(*columns, strict=True) if columns else [()] * delta.num_rows
        times, diffs = (column.to_pylist() for column in delta.columns[-2:])
        for row, at, diff in zip(rows, times, diffs, strict=True):
            if at <= time:
                found[row] += diff
        return Counter({row: n for row, n in found.items() if n})


def hashable(column: pa.Array, kind: Type) -> list[Any]:
    """Return values that a counter finds again: JSON as its text, arrays as tuples, one NaN."""
    plain = column.to_pylist() if JSON in (kind, getattr(kind, "element", None)) else None
    return list(map(_same, to_python(column, kind) if plain is None else plain))


def _same(value: object) -> object:
    """Return a value that is found again in a counter; NaN is only if it is one object."""
    if isinstance(value, list):
        return tuple(map(_same, value))
    return nan if isinstance(value, float) and value != value else value  # noqa: PLR0124


def written(
    logs: Mapping[str, Log], tables: Mapping[str, CatalogItem] = TABLES
) -> dict[ObjectId, pa.RecordBatch]:
    """Return changes of tables as the tick takes them."""
    return {
        tables[name].id: delta_of(
            arrow_types(tables[name].schema), [Update(r, Timestamp(t), d) for r, t, d in log]
        )
        for name, log in logs.items()
        if log
    }


class Changes:
    """Random changes: ``tables`` is where they led, ``history`` what it was at each time."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.tables: dict[str, Rows] = {name: Counter() for name in TABLES}
        self.history: dict[int, dict[str, Rows]] = {}

    def draw(self, times: range) -> dict[str, Log]:
        """Change the tables at some of ``times``."""
        logs: dict[str, Log] = {name: [] for name in TABLES}
        for at in times:
            for name, log in logs.items():
                for _ in range(self._random.choice([0, 0, 1, 2, 4])):
                    row, diff = self._change(name)
                    self.tables[name][row] += diff
                    self.tables[name] = +self.tables[name]
                    log.append((row, at, diff))
            self.history[at] = {name: Counter(rows) for name, rows in self.tables.items()}
        return logs

    def _change(self, name: str) -> tuple[Row, int]:
        """Return a row to add, or one to take away."""
        now, random = self.tables[name], self._random
        free = [k for k in range(8) if not any(row[0] == k for row in now)]
        if now and (random.random() < 0.4 or (name == "v" and not free)):
            return random.choice(list(now.elements())), -1
        numbers = [random.choice([None, 0, 1, 2, 3]) for _ in range(2)]
        if name == "v":
            return (random.choice(free), numbers[0]), 1
        if name == "u":
            return tuple(numbers), 1
        return (*numbers, random.choice([None, "x", "y", "xy", ""])), 1
