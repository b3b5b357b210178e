"""Witnesses: a row on which an expression fails, looked up when the error is read.

An error row of a view is a code and a message (``dataflow.error_rows``): with the row in it there
would be one per failing row, on every tick. So the row is searched for when an error is reported.
The error says where it was met (``error_place``): among the errors of a kept object, or in a query,
and at which time. ``row_of`` asks the plan as of that time (``sql.witness``) for the first row that
fails.

Invariants. The row fails at the time of the error, with this code and message. It is named only to
a role that may read all that the query, or the view, is computed from: a role that may read only
the view gets the error without a row. The search itself never fails a statement: an error whose row
cannot be found (forgotten, dropped, or too costly) is reported without one. Of an error over a
whole group the keys are named. A view WITH (REFRESH …) has the errors of its last refresh, and rows
of that time are named as long as its inputs have them. The search takes no lock, and ticks do
nothing for it.

Cost: a query over the inputs of the view, once per reported error; for a group twice that, and as
many queries as its number has bits.

Tests: tests/engine/test_witness.py; with Spark: tests/engine/test_witness_spark.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from reclock.dataflow.graph import collection_of, errors_of
from reclock.dataflow.values import rows_of
from reclock.engine.error_place import Asked, Kept
from reclock.engine.leaves import leaves, shapes
from reclock.errors import Error, ExpressionFailed
from reclock.rows.copy_text import text_of
from reclock.sql import types as t
from reclock.sql.plan.relation import Get, walk
from reclock.sql.plan.temporal import at_time
from reclock.sql.witness import GROUPS, Group, suspects

if TYPE_CHECKING:
    from reclock.dataflow.stop import Stop
    from reclock.engine.core import Core
    from reclock.engine.error_place import Place
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.relation import QueryPlan
    from reclock.sql.types import Type
    from reclock.sql.witness import Suspect
    from reclock.time.timestamp import Timestamp

MOST_ROWS: Final = 10_000_000
"""The row of an error is not looked for among more updates than this."""

SEARCHED: Final = 200_000
"""The same for system relations, which are looked at often."""

VALUE: Final = 40
"""How many characters of a value are shown at most."""

_BARE: Final = (*t.INTEGERS, *t.FLOATS, t.BOOLEAN)
"""Types whose values are shown without quotes."""


def witness(core: Core, role: str | None, error: ExpressionFailed, stop: Stop | None) -> None:
    """Add a row that fails to the detail of an error, if its place is known."""
    place, error.place = error.place, None
    if not isinstance(place, Kept | Asked):
        return
    with core.reading() as world:
        row = row_of(core, world, role, place, (error.code, error.message), stop=stop)
    if row is not None:
        error.detail = "; ".join(filter(None, (error.detail, row)))


def row_of(
    core: Core,
    world: World,
    role: str | None,
    place: Place,
    error: tuple[str, str],
    *,
    stop: Stop | None = None,
    most: int = MOST_ROWS,
) -> str | None:
    """Return a row that fails with a code and a message, as text; None if none can be told."""
    search = _Search(core, world, role, error, place.timestamp, stop, most)
    try:
        if isinstance(place, Kept):
            return search.of_kept(place.item)
        return search.of_plan(place.plan.root, place.shown.root)
    except (Error, RecursionError):
        return None  # what is told is the error, whatever became of the search


@dataclass(frozen=True)
class _Search:
    """Looks for a row of one error, for one role."""

    core: Core
    world: World
    role: str | None
    error: tuple[str, str]
    timestamp: Timestamp
    stop: Stop | None
    most: int

    def of_kept(self, item: ObjectId) -> str | None:
        """Return a row of what a view reads, as of when its rows are."""
        known = self.world.items.get(item)
        if known is None:
            return None
        shape = self.world.of(known).shape
        if item not in shape.views:
            return None
        schedule = shape.defined[item].schedule
        if schedule is not None:
            last = schedule.round_down(self.timestamp)
            if last is None:
                return None
            return replace(self, timestamp=last).of_view(shape.views[item])
        return self.of_view(shape.views[item])

    def of_view(self, plan: Node) -> str | None:
        """Return a row of what a plan reads; or, if a view that it reads has the error, of that."""
        found = self.of_plan(plan, at_time(plan, int(self.timestamp)))
        if found is not None:
            return found
        for read in _reads(plan):
            if self._has(read) and (found := self.of_kept(read)) is not None:
                return found
        return None

    def of_plan(self, plan: Node, shown: Node) -> str | None:
        """Return a row of what a plan reads, if the role may see it."""
        if not all(map(self._may_read, _reads(plan))):
            return None
        for suspect in suspects(shown, "|".join(self.error)):
            row = self._grouped(suspect) if isinstance(suspect, Group) else self._asked(suspect)
            if row is not None:
                return row
        return None

    def _asked(self, suspect: Suspect) -> str | None:
        kinds = [c.type for c in suspect.plan.root.schema]
        try:
            found = self._rows(suspect.plan)
        except Error:
            return None  # an aggregate below fails itself
        return told(suspect.names, found[0], kinds) if found else None

    def _grouped(self, group: Group) -> str | None:
        """Return the keys of a group that has the error: of the groups, half, and so on."""
        try:
            hashes = sorted(row[0] for row in self._rows(group.hashes))
        except Error:
            return None
        if not 0 < len(hashes) <= GROUPS or not self._fails(group, hashes):
            return None
        while len(hashes) > 1:
            half = hashes[: len(hashes) // 2]
            hashes = half if self._fails(group, half) else hashes[len(half) :]
        return self._asked(group.of(hashes[0]))

    def _fails(self, group: Group, hashes: list[str]) -> bool:
        try:
            self._rows(group.among(hashes[0], hashes[-1]))
        except ExpressionFailed as error:
            return (error.code, error.message) == self.error
        return False

    def _rows(self, plan: QueryPlan) -> list[tuple[Any, ...]]:
        """Return the rows of a query at the time; none if it costs too much, or is forgotten."""
        shape, traces = shapes(self.world, plan)
        there = [traces[collection_of(i.id)] for i in leaves(self.world, plan)]
        if sum(shard.rows for shard in there) > self.most:
            return []
        if not all(shard.description.definite_at(self.timestamp) for shard in there):
            return []
        answer = self.core.engine.peek(plan, shape, traces, self.timestamp, stop=self.stop)
        return list(rows_of(answer, [c.type for c in plan.root.schema]))

    def _may_read(self, item: ObjectId) -> bool:
        if self.role is None:
            return True
        known = self.world.catalog.items.get(item)
        return known is not None and self.world.roles.has(self.role, "SELECT", known)

    def _has(self, item: ObjectId) -> bool:
        """Return whether an object has an error at the time."""
        known = self.world.items.get(item)
        if known is None:
            return False
        state = self.world.of(known)
        arrangement = state.shape.graph.arrangements.get(errors_of(item))
        if arrangement is None:
            return False
        return any(
            self.error == (code, message)
            for batch in state.traces[arrangement.id].snapshot(self.timestamp)
            for code, message in zip(
                *(c.to_pylist() for c in arrangement.keying.columns(batch)), strict=True
            )
        )


def _reads(plan: Node) -> list[ObjectId]:
    return list(dict.fromkeys(node.item for node in walk(plan) if isinstance(node, Get)))


def told(names: tuple[str, ...], row: tuple[Any, ...], kinds: list[Type]) -> str:
    """Return a row as part of a detail.

    >>> told(("t.id", "t.note"), (7, "it's"), [t.BIGINT, t.TEXT])
    "for example where t.id = 7, t.note = 'it''s'"
    """
    pairs = zip(names, row, kinds, strict=True)
    return "for example where " + ", ".join(
        f"{name} is null" if value is None else f"{name} = {_literal(value, kind)}"
        for name, value, kind in pairs
    )


def _literal(value: Any, kind: Type) -> str:
    text = text_of(value, kind)
    text = text if len(text) <= VALUE else text[: VALUE - 1] + "…"
    if kind in _BARE or isinstance(kind, t.Numeric):
        return text
    return "'" + text.replace("'", "''") + "'"
