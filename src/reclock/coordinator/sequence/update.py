"""UPDATE: rows that a condition is true for are replaced, at one timestamp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.result import Result
from reclock.coordinator.sequence.delete import matching_rows
from reclock.coordinator.sequence.read_then_write import read_then_write
from reclock.coordinator.sequence.target import assigned, planned, target_table
from reclock.coordinator.write import Change
from reclock.errors import ConstraintViolation, StatementError, UndefinedName
from reclock.sql.names import Scope, ScopeColumn
from reclock.sql.plan.build import plan_scalar
from reclock.sql.plan.build.block import Block
from reclock.sql.plan.relation import Project, column
from reclock.sql.syntax.expression import DefaultText
from reclock.sql.syntax.place import place_of, placed

if TYPE_CHECKING:
    import pyarrow as pa

    from reclock.coordinator.catalog import Catalog
    from reclock.coordinator.item import Table
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.names import CatalogView
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.relation import QueryPlan
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.statement import Update


def update(context: Context, statement: Update) -> Result:
    """Replace the rows there are at the time of the statement: none is missed."""
    try:
        return _update(context, statement)
    except ConstraintViolation as error:
        expression = dict(statement.assignments).get(error.column or "")
        error.position = place_of(expression) or statement.name.position
        raise


def _update(context: Context, statement: Update) -> Result:
    def plan_of(catalog: Catalog) -> tuple[Table, QueryPlan]:
        table = target_table(statement.name, catalog)
        node = before_and_after(statement, table, catalog, context.parameters)
        return table, planned(table, node)

    def change_of(table: Table, columns: list[pa.Array]) -> Change:
        width = len(table.columns)
        return Change(table, columns[width:], columns[:width])

    count, timestamp = read_then_write(context, plan_of, change_of)
    return Result(f"UPDATE {count}", timestamp=timestamp)


def before_and_after(
    statement: Update, table: Table, catalog: CatalogView, parameters: tuple[object, ...]
) -> Node:
    """Return the plan of the rows as they are, and beside each what it becomes."""
    node = matching_rows(statement, catalog, parameters)
    block = Block(node, _scope(statement, table))
    names = table.schema.names
    given: dict[int, Scalar | None] = {}
    for name, expression in statement.assignments:
        if name not in names:
            message = f'column "{name}" of relation "{table.name}" does not exist'
            hint = f"there are the columns {', '.join(names)}"
            raise UndefinedName(message, hint=hint, position=statement.name.position)
        at = names.index(name)
        if at in given:
            message = f'multiple assignments to column "{name}"'
            hint = "assign to each column once"
            raise StatementError(message, code="42601", hint=hint, position=statement.name.position)
        default = isinstance(expression, DefaultText)
        given[at] = None if default else plan_scalar(expression, block, catalog, parameters)
    before: list[tuple[str, Scalar]] = [
        (name, column(block.node, i)) for i, name in enumerate(names)
    ]
    after = list(before)
    for i, value in given.items():
        with placed(dict(statement.assignments)[names[i]]):
            after[i] = (names[i], assigned(table, i, value, catalog))
    return Project(block.node, (*before, *after))


def _scope(statement: Update, table: Table) -> Scope:
    qualifier = statement.alias or statement.name.parts[-1]
    return Scope(
        tuple(
            ScopeColumn(qualifier, c.name, i, c.type, c.nullable)
            for i, c in enumerate(table.schema)
        )
    )
