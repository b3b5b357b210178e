"""Multiset operations: Union (ALL), Negate, Threshold. Cost: the changed rows.

The others are made of these: ``A EXCEPT ALL B`` is threshold(A − B), ``A INTERSECT ALL B``
is A − threshold(A − B); without ALL the inputs are made distinct first.
"""

from __future__ import annotations

from dataclasses import dataclass

from reclock.sql.plan.node import Node, PlanError
from reclock.sql.schema import Column, Schema


@dataclass(frozen=True, eq=False)
class Union(Node):
    """All rows of all inputs; columns are named by the first."""

    members: tuple[Node, ...]

    def __post_init__(self) -> None:
        """Check that the inputs have the same column types."""
        if not self.members:
            message = "Union: there must be at least one input"
            raise PlanError(message)
        first = self.members[0].schema
        for member in self.members[1:]:
            if [c.type for c in member.schema] != [c.type for c in first]:
                message = f"Union: {member.schema} does not fit {first}"
                raise PlanError(message)
        columns = tuple(
            Column(c.name, c.type, any(m.schema[at].nullable for m in self.members))
            for at, c in enumerate(first)
        )
        keys = self.members[0].unique_keys if len(self.members) == 1 else ()
        self._finish(Schema(columns), keys)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The united nodes."""
        return self.members


@dataclass(frozen=True, eq=False)
class Negate(Node):
    """Every row as often as before, with the opposite sign."""

    input: Node

    def __post_init__(self) -> None:
        """Carry the input's schema."""
        self._finish(self.input.schema, self.input.unique_keys)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The negated node."""
        return (self.input,)


@dataclass(frozen=True, eq=False)
class Threshold(Node):
    """The rows whose count is positive, that often."""

    input: Node

    def __post_init__(self) -> None:
        """Carry the input's schema."""
        self._finish(self.input.schema, self.input.unique_keys)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The clamped node."""
        return (self.input,)
