"""Nodes that look at one row at a time: Project, Filter, FlatMap. Cost: the change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.sql.plan.node import Node, PlanError
from reclock.sql.plan.scalar import ColumnRef
from reclock.sql.schema import Column, Schema
from reclock.sql.types import BIGINT, BOOLEAN, Array

if TYPE_CHECKING:
    from reclock.sql.plan.scalar import Scalar


@dataclass(frozen=True, eq=False)
class Project(Node):
    """Compute ``outputs`` from each row; nothing else of the row is kept."""

    input: Node
    outputs: tuple[tuple[str, Scalar], ...]

    def __post_init__(self) -> None:
        """Check every output against the input's schema."""
        for name, scalar in self.outputs:
            self._check_scalar(f'output "{name}"', scalar, self.input.schema)
        schema = Schema(tuple(Column(n, s.type, s.nullable) for n, s in self.outputs))
        place: dict[int, int] = {}
        for at, (_, scalar) in enumerate(self.outputs):
            if isinstance(scalar, ColumnRef):
                place.setdefault(scalar.index, at)
        keys = [
            frozenset(place[c] for c in key)
            for key in self.input.unique_keys
            if all(c in place for c in key)
        ]
        self._finish(schema, keys, tuple(s for _, s in self.outputs))

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The projected node."""
        return (self.input,)


@dataclass(frozen=True, eq=False)
class Filter(Node):
    """Keep the rows for which all ``predicates`` are true, tried from left to right."""

    input: Node
    predicates: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        """Check that predicates are boolean."""
        for predicate in self.predicates:
            self._check_scalar("predicate", predicate, self.input.schema)
            if predicate.type != BOOLEAN:
                message = f"Filter: predicate {predicate} is {predicate.type}, not boolean"
                raise PlanError(message)
        self._finish(self.input.schema, self.input.unique_keys, self.predicates)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The filtered node."""
        return (self.input,)


@dataclass(frozen=True, eq=False)
class FlatMap(Node):
    """For each row, one row per element of ``array``: the row, the element, its number.

    A NULL or empty array gives no row. The number (from 1) is there if ``ordinality``.
    """

    input: Node
    array: Scalar
    name: str
    ordinality: bool = False

    def __post_init__(self) -> None:
        """Check that there is an array to unnest."""
        self._check_scalar("array", self.array, self.input.schema)
        if not isinstance(self.array.type, Array):
            message = f"FlatMap: {self.array} is {self.array.type}, not an array"
            raise PlanError(message)
        added = [Column(self.name, self.array.type.element)]
        if self.ordinality:
            added.append(Column("ordinality", BIGINT, nullable=False))
        schema = self.input.schema + Schema(tuple(added))
        keys = (
            [key | {self.input.width + 1} for key in self.input.unique_keys]
            if self.ordinality
            else []
        )
        self._finish(schema, keys, self.array, self.ordinality)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The node whose rows are unnested."""
        return (self.input,)
