"""DELETE: the rows that a condition is true for are taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.session.dml.target import target_table
from reclock.session.dml.update import plan_delete
from reclock.session.statements.read_then_write import read_then_write

if TYPE_CHECKING:
    from reclock.catalog.catalog import Catalog
    from reclock.rows.result import Result
    from reclock.session.dml.written import Written
    from reclock.session.statements.context import Context
    from reclock.sql.statement import Delete


def delete(context: Context, statement: Delete) -> Result:
    """Take away the rows there are at the time of the statement: none is missed."""

    def plan_of(catalog: Catalog) -> Written:
        table = target_table(statement.name, catalog)
        return plan_delete(statement, table, catalog, context.parameters)

    outcome, timestamp = read_then_write(context, plan_of)
    return outcome.result("DELETE", timestamp)
