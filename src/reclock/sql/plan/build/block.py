"""A query under construction: the rows so far and the names that are in scope.

``node`` only ever grows columns at its end while expressions are planned (a subquery's
result becomes a column), so references made earlier stay right.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reclock.sql.names import Place, Scope, resolve_column
from reclock.sql.plan.relation import Constant, QueryPlan
from reclock.sql.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.sql.names import CatalogView
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import ColumnRef, OuterRef, Scalar
    from reclock.sql.syntax.expression import Expression, Name
    from reclock.sql.syntax.query import Query

ONE_EMPTY_ROW = Constant(Schema(()), (((), 1),))


@dataclass(frozen=True, slots=True)
class CommonPlan:
    """A WITH query that has been planned, and how deep it stands."""

    plan: Node
    depth: int


@dataclass(slots=True)
class Block:
    """One SELECT's rows and scope; ``outer`` is the enclosing one.

    ``known`` maps expressions that are already columns (aggregates, window functions,
    grouping expressions) to what they became. ``grouped`` finds what an expression means
    after GROUP BY, and refuses columns that are not grouped.

    A block can also be the rows to the left of an item of FROM, which only LATERAL items see.
    ``level`` tells them apart: blocks with the same ``level`` that is not None belong to one
    FROM, so that a name that fits in two of them is ambiguous. For what is not LATERAL, their
    columns are in ``hidden``, which no name can mean, but which errors explain.
    """

    node: Node = ONE_EMPTY_ROW
    scope: Scope = field(default_factory=Scope)
    outer: Block | None = None
    common: dict[str, CommonPlan] = field(default_factory=dict)
    known: dict[Expression, Scalar] = field(default_factory=dict)
    grouped: Callable[[Expression], Scalar | None] | None = None
    level: object = None
    hidden: Scope = field(default_factory=Scope)

    @property
    def depth(self) -> int:
        """How many queries enclose this one."""
        return 0 if self.outer is None else self.outer.depth + 1

    def resolve(self, name: Name) -> ColumnRef | OuterRef:
        """Return what ``name`` means here."""
        places = []
        at: Block | None = self
        while at is not None:
            places.append(Place(at.scope, at.hidden, at.level))
            at = at.outer
        return resolve_column(name, tuple(places))

    def find_common(self, name: str) -> CommonPlan | None:
        """Return the WITH query of that name, from the nearest query that has one."""
        at: Block | None = self
        while at is not None:
            if name in at.common:
                return at.common[name]
            at = at.outer
        return None


def offering(outer: Block | None, common: dict[str, CommonPlan]) -> Block | None:
    """Return ``outer`` as an enclosing block that also offers ``common``."""
    if not common:
        return outer
    if outer is None:
        return Block(common=common)
    return replace(outer, common={**outer.common, **common})


def blind(block: Block | None, level: object) -> Block | None:
    """Return ``block`` as what stands in FROM without LATERAL sees it: the rest of FROM hidden."""
    if block is None or block.level is not level:
        return block
    return replace(block, scope=Scope(), hidden=block.scope, outer=blind(block.outer, level))


@dataclass(frozen=True, slots=True)
class Planner:
    """What planning any part of a query needs.

    ``maintained`` refuses what is not a function of the data. ``query`` plans a query
    inside another; it is here so that expressions can hold queries.
    """

    catalog: CatalogView
    maintained: bool
    parameters: tuple[object, ...]
    query: Callable[[Planner, Query, Block | None], QueryPlan]

    def subquery(self, query: Query, outer: Block | None) -> Node:
        """Plan a query inside another and return its rows."""
        return self.query(self, query, outer).relation
