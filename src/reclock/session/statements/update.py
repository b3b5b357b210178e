"""UPDATE: rows that a condition is true for are replaced, at one timestamp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import ConstraintViolation
from reclock.session.dml.defaults import Defaults
from reclock.session.dml.target import target_table
from reclock.session.dml.update import plan_update
from reclock.session.statements.read_then_write import read_then_write
from reclock.sql.syntax.place import place_of

if TYPE_CHECKING:
    from reclock.catalog.catalog import Catalog
    from reclock.rows.result import Result
    from reclock.session.dml.written import Written
    from reclock.session.statements.context import Context
    from reclock.sql.statement import Update


def update(context: Context, statement: Update) -> Result:
    """Replace the rows there are at the time of the statement: none is missed."""
    defaults = Defaults(context.session)

    def plan_of(catalog: Catalog) -> Written:
        table = target_table(statement.name, catalog)
        return plan_update(statement, table, catalog, context.parameters, defaults)

    try:
        outcome, timestamp = read_then_write(context, plan_of)
    except ConstraintViolation as error:
        expression = dict(statement.assignments.values).get(error.column or "")
        error.position = place_of(expression) or statement.name.position
        raise
    return outcome.result("UPDATE", timestamp)
