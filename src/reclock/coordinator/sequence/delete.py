"""DELETE: the rows that a condition is true for are taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.result import Result
from reclock.coordinator.sequence.read_then_write import read_then_write
from reclock.coordinator.sequence.target import planned, target_table
from reclock.coordinator.write import Change
from reclock.sql.plan.build import plan_query
from reclock.sql.syntax import query as q
from reclock.sql.syntax.expression import Star

if TYPE_CHECKING:
    import pyarrow as pa

    from reclock.coordinator.catalog import Catalog
    from reclock.coordinator.item import Table
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.names import CatalogView
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.relation import QueryPlan
    from reclock.sql.statement import Delete, Update


def delete(context: Context, statement: Delete) -> Result:
    """Take away the rows there are at the time of the statement: none is missed."""

    def plan_of(catalog: Catalog) -> tuple[Table, QueryPlan]:
        table = target_table(statement.name, catalog)
        return table, planned(table, matching_rows(statement, catalog, context.parameters))

    def change_of(table: Table, removed: list[pa.Array]) -> Change:
        return Change(table, [column.slice(0, 0) for column in removed], removed)

    count, timestamp = read_then_write(context, plan_of, change_of)
    return Result(f"DELETE {count}", timestamp=timestamp)


def matching_rows(
    statement: Delete | Update, catalog: CatalogView, parameters: tuple[object, ...]
) -> Node:
    """Return the plan of the rows that a statement's condition is true for."""
    alias = None if statement.alias is None else q.Alias(statement.alias)
    source = q.TableName(statement.name, alias)
    query = q.Query(q.Select((q.SelectItem(Star()),), source, statement.where))
    return plan_query(query, catalog, parameters=parameters).relation
