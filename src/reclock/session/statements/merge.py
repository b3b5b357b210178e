"""MERGE: rows of a source are inserted, or update and delete those that they match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import ConstraintViolation
from reclock.session.dml.defaults import Defaults
from reclock.session.dml.merge import plan_merge
from reclock.session.dml.target import target_table
from reclock.session.statements.read_then_write import read_then_write

if TYPE_CHECKING:
    from reclock.catalog.catalog import Catalog
    from reclock.rows.result import Result
    from reclock.session.dml.written import Written
    from reclock.session.statements.context import Context
    from reclock.sql.statement import Merge


def merge(context: Context, statement: Merge) -> Result:
    """Do to each row what the first WHEN says that fits it, at one timestamp."""
    defaults = Defaults(context.session)

    def plan_of(catalog: Catalog) -> Written:
        table = target_table(statement.name, catalog)
        return plan_merge(statement, table, catalog, context.parameters, defaults)

    try:
        outcome, timestamp = read_then_write(context, plan_of)
    except ConstraintViolation as error:
        error.position = statement.name.position
        raise
    return outcome.result("MERGE", timestamp)
