"""TopK: the first rows of each group; Window: a value per row from its group.

Ties in TopK and in functions that depend on row order are broken by all columns, in
order, ascending, NULLs last: a maintained view must not depend on arrival. Cost: TopK reads
the head of a sorted arrangement, Window recomputes the changed groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.sql.plan.functions.aggregate import NEVER_NULL
from reclock.sql.plan.node import Node, PlanError
from reclock.sql.schema import Column, Schema

if TYPE_CHECKING:
    from reclock.sql.plan.functions.aggregate import Aggregate
    from reclock.sql.plan.node import SortKey
    from reclock.sql.types import Type


@dataclass(frozen=True, eq=False)
class TopK(Node):
    """In each group, the rows from ``offset`` on, at most ``limit`` of them (None: all)."""

    input: Node
    group: tuple[int, ...]
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0

    def __post_init__(self) -> None:
        """Check columns and bounds."""
        self._check_columns("group", self.group, self.input.width)
        self._check_columns("order", (k.column for k in self.order), self.input.width)
        if self.offset < 0 or (self.limit is not None and self.limit < 0):
            message = f"TopK: limit {self.limit} offset {self.offset} is negative"
            raise PlanError(message)
        keys = list(self.input.unique_keys)
        if self.limit is not None and self.limit <= 1:
            keys.append(frozenset(self.group))
        structure = (self.group, self.order, self.limit, self.offset)
        self._finish(self.input.schema, keys, *structure)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The node whose rows compete."""
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Frame:
    """Which rows of the group a window function sees; an offset of None is unbounded.

    ``unit`` is rows, range or groups; bounds are (preceding | current row | following, n).
    """

    unit: str
    start: tuple[str, int | None]
    end: tuple[str, int | None]

    def __str__(self) -> str:
        return f"{self.unit} between {_bound(self.start)} and {_bound(self.end)}"


def _bound(bound: tuple[str, int | None]) -> str:
    kind, offset = bound
    if kind == "current row":
        return kind
    return f"{'unbounded' if offset is None else offset} {kind}"


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function, or an aggregate used as one; ``filter`` is a boolean column."""

    function: Aggregate
    arguments: tuple[int, ...]
    type: Type
    frame: Frame | None = None
    filter: int | None = None

    @property
    def nullable(self) -> bool:
        """Whether NULL can come out."""
        return self.function.name not in NEVER_NULL

    def __str__(self) -> str:
        inside = ", ".join(f"#{a}" for a in self.arguments)
        text = f"{self.function.name}({inside})"
        if self.filter is not None:
            text += f" filter (#{self.filter})"
        return text if self.frame is None else f"{text} {self.frame}"


@dataclass(frozen=True, eq=False)
class Window(Node):
    """Each row, followed by the value of each call over its partition."""

    input: Node
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    calls: tuple[tuple[str, WindowCall], ...]

    def __post_init__(self) -> None:
        """Check columns."""
        width = self.input.width
        self._check_columns("partition", self.partition, width)
        self._check_columns("order", (k.column for k in self.order), width)
        for name, call in self.calls:
            self._check_columns(name, call.arguments, width)
        added = Schema(tuple(Column(n, c.type, c.nullable) for n, c in self.calls))
        structure = (self.partition, self.order, tuple(c for _, c in self.calls))
        self._finish(self.input.schema + added, self.input.unique_keys, *structure)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The node whose rows are looked at."""
        return (self.input,)
