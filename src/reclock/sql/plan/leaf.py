"""Leaves of plans: a catalog item, or constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.sql.plan.node import ONE_ROW, Node, PlanError
from reclock.time.timeline import TimelineContext

if TYPE_CHECKING:
    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Keys
    from reclock.sql.schema import Schema
    from reclock.time.timeline import Timeline


@dataclass(frozen=True, eq=False)
class Get(Node):
    """The rows of a catalog item: a table, a source, a materialized view. Cost: the change."""

    item: ObjectId
    name: str
    columns: Schema
    item_timeline: Timeline | None
    keys: Keys = frozenset()

    def __post_init__(self) -> None:
        """Carry the item's timeline."""
        self._finish(self.columns, self.keys, self.item)
        context = TimelineContext(self.item_timeline, self.name)
        if self.item_timeline is not None:
            object.__setattr__(self, "timeline", context)


@dataclass(frozen=True, eq=False)
class Constant(Node):
    """Rows that hold at every time, each with how often it occurs. Cost: nothing."""

    columns: Schema
    rows: tuple[tuple[tuple[object, ...], int], ...]

    def __post_init__(self) -> None:
        """Refuse rows of the wrong width."""
        for row, _ in self.rows:
            if len(row) != len(self.columns):
                message = f"Constant: row {row!r} does not fit {self.columns}"
                raise PlanError(message)
        single = sum(abs(count) for _, count in self.rows) <= 1
        types = tuple(str(c.type) for c in self.columns)
        self._finish(self.columns, ONE_ROW if single else (), types, self.rows)

    @property
    def is_empty(self) -> bool:
        """Whether there are no rows."""
        return not self.rows
