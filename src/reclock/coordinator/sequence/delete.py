"""DELETE: the rows that a condition is true for are taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.read import read_latest
from reclock.coordinator.result import Result
from reclock.coordinator.sequence.target import planned, target_table, whole
from reclock.coordinator.write import write
from reclock.sql.plan.build import plan_query
from reclock.sql.syntax import query as q
from reclock.sql.syntax.expression import Star

if TYPE_CHECKING:
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.names import CatalogView
    from reclock.sql.plan.node import Node
    from reclock.sql.statement import Delete, Update


def delete(context: Context, statement: Delete) -> Result:
    """Take rows away; they are read and written under one lock, so none is missed."""
    with context.writing() as world:
        table = target_table(statement.name, world.catalog)
        matching = matching_rows(statement, world.catalog, context.parameters)
        removed = whole(
            read_latest(context.core, planned(table, matching), context.session.interrupt)
        )
        none = [column.slice(0, 0) for column in removed]
        timestamp = write(context.core, table, none, removed)
    return Result(f"DELETE {len(removed[0])}", timestamp=timestamp)


def matching_rows(
    statement: Delete | Update, catalog: CatalogView, parameters: tuple[object, ...]
) -> Node:
    """Return the plan of the rows that a statement's condition is true for."""
    alias = None if statement.alias is None else q.Alias(statement.alias)
    source = q.TableName(statement.name, alias)
    query = q.Query(q.Select((q.SelectItem(Star()),), source, statement.where))
    return plan_query(query, catalog, parameters=parameters).relation
