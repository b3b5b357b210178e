"""UPDATE: rows that a condition is true for are replaced, at one timestamp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.read import read_latest
from reclock.coordinator.result import Result
from reclock.coordinator.sequence.delete import matching_rows
from reclock.coordinator.sequence.target import assigned, planned, target_table, whole
from reclock.coordinator.write import write
from reclock.errors import ConstraintViolation, StatementError, UndefinedName
from reclock.sql.names import Scope, ScopeColumn
from reclock.sql.plan.build import plan_scalar
from reclock.sql.plan.build.block import Block
from reclock.sql.plan.relation import Project, column
from reclock.sql.syntax.expression import DefaultText
from reclock.sql.syntax.place import place_of, placed

if TYPE_CHECKING:
    from reclock.coordinator.item import Table
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.names import CatalogView
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.statement import Update


def update(context: Context, statement: Update) -> Result:
    """Replace rows; they are read and written under one lock, so none is missed."""
    try:
        return _update(context, statement)
    except ConstraintViolation as error:
        expression = dict(statement.assignments).get(error.column or "")
        error.position = place_of(expression) or statement.name.position
        raise


def _update(context: Context, statement: Update) -> Result:
    with context.writing() as world:
        table = target_table(statement.name, world.catalog)
        node = before_and_after(statement, table, world.catalog, context.parameters)
        columns = whole(read_latest(context.core, planned(table, node), context.session.interrupt))
        width = len(table.columns)
        timestamp = write(context.core, table, columns[width:], columns[:width])
    return Result(f"UPDATE {len(columns[0])}", timestamp=timestamp)


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
