"""Witnesses: a row on which an expression fails, looked up when the error is read.

An error row of a view is a code and a message (``dataflow.error_rows``): with the row in it there
would be one per failing row, on every tick. So the row is searched for when an error is reported.
The error says where it was met (``error_place``): among the errors of a kept object, or in a query,
and at which time. ``row_of`` asks the plan as of that time (``sql.witness``) for the first row that
fails.

Invariants. The row fails at the time of the error, with this code and message. It is named only to
a role that may read all that the query, or the view, is computed from: a role that may read only
the view gets the error without a row. The search itself never fails a statement: an error whose row
cannot be found (forgotten, dropped, or too costly) is reported without one, and so are the error of
a whole group, and that of a view WITH (REFRESH …), which has an earlier time. The search takes no
lock, and ticks do nothing for it.

Cost: a query over the inputs of the view, once per reported error.

Tests: tests/engine/test_witness.py; with Spark: tests/engine/test_witness_spark.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reclock.dataflow.graph import collection_of, errors_of
from reclock.dataflow.values import rows_of
from reclock.engine.error_place import Asked, Kept
from reclock.engine.leaves import leaves, shapes
from reclock.errors import Error
from reclock.rows.copy_text import text_of
from reclock.sql import types as t
from reclock.sql.plan.relation import Get, walk
from reclock.sql.plan.temporal import at_time
from reclock.sql.witness import suspects

if TYPE_CHECKING:
    from reclock.dataflow.stop import Stop
    from reclock.engine.core import Core
    from reclock.engine.error_place import Place
    from reclock.engine.world import World
    from reclock.errors import ExpressionFailed
    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Node
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
        """Return a row of what a view reads; or, if a view that it reads has the error, of that."""
        known = self.world.items.get(item)
        if known is None:
            return None
        shape = self.world.of(known).shape
        if item not in shape.views or shape.defined[item].schedule is not None:
            return None
        plan = shape.views[item]
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
            row = self._asked(suspect)
            if row is not None:
                return row
        return None

    def _asked(self, suspect: Suspect) -> str | None:
        shape, traces = shapes(self.world, suspect.plan)
        there = [traces[collection_of(i.id)] for i in leaves(self.world, suspect.plan)]
        if sum(shard.rows for shard in there) > self.most:
            return None
        if not all(shard.description.definite_at(self.timestamp) for shard in there):
            return None
        plan = suspect.plan
        try:
            answer = self.core.engine.peek(plan, shape, traces, self.timestamp, stop=self.stop)
        except Error:
            return None  # an aggregate below fails itself
        kinds = [c.type for c in plan.root.schema]
        for row in rows_of(answer, kinds):
            return told(suspect.names, row, kinds)
        return None

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
