"""Grouping: Reduce with aggregates, and Distinct.

Reduce gives one row per group that occurs; without keys there is exactly one group, also
when the input is empty, with each aggregate's value for no rows. Cost: the changed rows
for accumulators (count, sum, avg …) and the head of a sorted arrangement (min, max), the
changed groups for every other aggregate. Distinct costs the changed rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.sql.plan.functions.aggregate import FAST, GENERAL, HEAD, NEVER_NULL
from reclock.sql.plan.node import Node, PlanError
from reclock.sql.schema import Column, Schema
from reclock.sql.types import BOOLEAN

if TYPE_CHECKING:
    from reclock.sql.plan.functions.aggregate import Aggregate
    from reclock.sql.plan.node import SortKey
    from reclock.sql.types import Type


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate over columns of the input."""

    function: Aggregate
    arguments: tuple[int, ...]
    type: Type
    distinct: bool = False
    filter: int | None = None
    order: tuple[SortKey, ...] = ()

    @property
    def how(self) -> str:
        """How it is maintained: accumulator, head of a sorted arrangement, or recomputed."""
        if self.function.how == HEAD:
            return HEAD
        return GENERAL if self.distinct else self.function.how

    @property
    def nullable(self) -> bool:
        """Whether NULL can come out."""
        return self.function.name not in NEVER_NULL

    def __str__(self) -> str:
        inside = ", ".join(f"#{a}" for a in self.arguments) or "*"
        text = f"{self.function.name}({'distinct ' if self.distinct else ''}{inside}"
        if self.order:
            text += " order by " + ", ".join(str(k) for k in self.order)
        text += ")"
        return text if self.filter is None else f"{text} filter (#{self.filter})"


@dataclass(frozen=True, eq=False)
class Reduce(Node):
    """Group by ``keys`` (columns of the input) and aggregate; NULL is a key like others."""

    input: Node
    keys: tuple[int, ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]

    def __post_init__(self) -> None:
        """Check every column."""
        width = self.input.width
        self._check_columns("key", self.keys, width)
        for name, call in self.aggregates:
            self._check_columns(name, call.arguments, width)
            self._check_columns(name, (k.column for k in call.order), width)
            if call.filter is not None:
                self._check_columns(name, (call.filter,), width)
                if self.input.schema[call.filter].type != BOOLEAN:
                    message = f"Reduce: filter of {name} is not boolean"
                    raise PlanError(message)
        columns = [self.input.schema[k] for k in self.keys]
        columns += [Column(n, c.type, c.nullable) for n, c in self.aggregates]
        place = {column: at for at, column in reversed(list(enumerate(self.keys)))}
        keys = [frozenset(range(len(self.keys)))]
        keys += [
            frozenset(place[c] for c in key)
            for key in self.input.unique_keys
            if key and all(c in place for c in key)
        ]
        structure = (self.keys, tuple(c for _, c in self.aggregates))
        self._finish(Schema(tuple(columns)), keys, *structure)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The grouped node."""
        return (self.input,)

    @property
    def accumulates(self) -> bool:
        """Whether a change costs the changed rows, whatever the size of the groups."""
        return all(c.how in {FAST, HEAD} for _, c in self.aggregates)


@dataclass(frozen=True, eq=False)
class Distinct(Node):
    """Each row once, if it occurs at all."""

    input: Node

    def __post_init__(self) -> None:
        """Carry the input's schema."""
        keys = [*self.input.unique_keys, frozenset(range(self.input.width))]
        self._finish(self.input.schema, keys)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The node made distinct."""
        return (self.input,)
