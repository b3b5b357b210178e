"""The target of a SUBSCRIBE: an object whose rows are kept, or a query that must be kept.

A table or a materialized view, by name or as a query that is nothing else, is followed as it
is. Any other query, also that of a view, is planned as a view would be: functions that
depend on the moment are refused, and so is what cannot be maintained at the cost of a change.

Tests: tests/subscribe/test_subscribe.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.catalog.item import RelationItem
from reclock.catalog.recording import Recording
from reclock.dataflow.ordering import OrderBy
from reclock.engine.system_answer import refuse_maintained
from reclock.errors import NotSupported, UndefinedName
from reclock.sql.cost import check_cost
from reclock.sql.plan.build import plan_query
from reclock.sql.plan.relation import Get, QueryPlan, walk
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite
from reclock.sql.schema import Column, Schema
from reclock.sql.syntax.expression import Name
from reclock.sql.types import BIGINT, BOOLEAN, TEXT
from reclock.time.pace import timeline_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.catalog.catalog import Catalog
    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Keys, Node
    from reclock.sql.statement import Subscribe
    from reclock.time.pace import Pace
    from reclock.time.timeline import Timeline


@dataclass(frozen=True)
class Target:
    """The rows that are followed; ``item`` keeps them, or None: then ``plan`` computes them.

    ``names`` are the objects that must not be dropped meanwhile.
    """

    statement: Subscribe
    schema: Schema
    pace: Pace | None
    item: ObjectId | None
    plan: Node
    asked: QueryPlan
    unique_keys: Keys
    names: Mapping[ObjectId, str]

    @property
    def key(self) -> tuple[int, ...]:
        """The columns of the envelope's key."""
        envelope = self.statement.envelope
        names = () if envelope is None else envelope.key
        found = tuple(_position(self.schema, name) for name in names)
        for at, name in enumerate(names):
            if name in names[:at]:
                message = f'column "{name}" specified more than once'
                raise UndefinedName(message, code="42701")
        return found

    @property
    def timeline(self) -> Timeline | None:
        """What its times mean; None for constants."""
        return None if self.pace is None else timeline_of(self.pace)

    @property
    def key_is_unique(self) -> bool:
        """Whether no two rows can have the same key, whatever happens."""
        return any(unique <= set(self.key) for unique in self.unique_keys)

    @property
    def order(self) -> tuple[OrderBy, ...]:
        """How the updates of one time are ordered; column −1 is ``mz_diff``."""
        made = []
        for item in self.statement.order_within:
            if not isinstance(item.expression, Name):
                message = "WITHIN TIMESTAMP ORDER BY an expression is not supported"
                raise NotSupported(message, hint="order by columns, or by mz_diff")
            name = item.expression.parts[-1]
            at = -1 if name == "mz_diff" else _position(self.schema, name)
            made.append(OrderBy(at, item.descending, item.nulls_first))
        return tuple(made)

    @property
    def output(self) -> Schema:
        """The columns of the rows that SQL gives."""
        head = [Column("mz_timestamp", BIGINT, nullable=False)]
        if self.statement.progress:
            head.append(Column("mz_progressed", BOOLEAN, nullable=False))
        envelope = self.statement.envelope
        if envelope is None:
            return Schema((*head, Column("mz_diff", BIGINT), *self.schema))
        key = [self.schema[at] for at in self.key]
        rest = [c for at, c in enumerate(self.schema) if at not in self.key]
        head.append(Column("mz_state", TEXT))
        if envelope.kind == "upsert":
            return Schema((*head, *key, *rest))
        before = [Column(f"before_{c.name}", c.type) for c in rest]
        after = [Column(f"after_{c.name}", c.type) for c in rest]
        return Schema((*head, *key, *before, *after))


def plan_target(statement: Subscribe, parameters: tuple[object, ...], catalog: Catalog) -> Target:
    """Return what a statement follows, planned and checked."""
    recording = Recording(catalog)
    if statement.relation is not None:
        named = catalog.get(statement.relation, RelationItem)
        recording.found.add(named.id)
        relation = named.relation()
        node: Node = relation.plan or Get(
            relation.id, relation.name, relation.schema, relation.timeline, relation.unique_keys
        )
    else:
        assert statement.query is not None
        node = plan_query(
            statement.query, recording, maintained=True, parameters=parameters
        ).relation
    refuse_maintained(node, catalog.system, "SUBSCRIBE")
    plan = rewrite(node, RewriteContext())
    item = plan.item if isinstance(plan, Get) else None
    if item is None:
        _check_cost(plan)
    for leaf in walk(plan):
        if isinstance(leaf, Get):
            recording.found.add(leaf.item)
    asked = QueryPlan(rewrite(node, RewriteContext(outer_joins=True)), node.width)
    timeline = plan.timeline.timeline
    pace = None if timeline is None else catalog.pace(timeline, recording.found)
    target = Target(
        statement, node.schema, pace, item, plan, asked, node.unique_keys,
        {found: str(catalog[found]) for found in recording.found},
    )  # fmt: skip
    _ = target.key, target.order  # refuses columns that do not exist
    return target


def _check_cost(plan: Node) -> None:
    try:
        check_cost(plan, allowed=False)
    except NotSupported as error:
        error.hint = "create a materialized view that allows it, and subscribe to that"
        raise


def _position(schema: Schema, name: str) -> int:
    fits = [at for at, column in enumerate(schema) if column.name == name]
    if len(fits) == 1:
        return fits[0]
    if fits:
        message = f'column "{name}" is ambiguous'
        raise UndefinedName(message, code="42702")
    message = f'column "{name}" does not exist'
    raise UndefinedName(message, hint=f"the columns are {', '.join(schema.names)}")
