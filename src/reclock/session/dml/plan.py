"""Any statement that writes rows, planned, and what it takes to run it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.session.dml.defaults import DRY, Defaults
from reclock.session.dml.insert import plan_insert
from reclock.session.dml.merge import plan_merge
from reclock.session.dml.target import target_table
from reclock.session.dml.update import plan_delete, plan_update
from reclock.sql import statement as s

if TYPE_CHECKING:
    from reclock.catalog.catalog import Catalog
    from reclock.session.dml.insert import Given
    from reclock.session.dml.written import Written
    from reclock.sql.names import CatalogView


def plan_write(
    statement: s.Insert | s.Update | s.Delete | s.Merge,
    catalog: Catalog,
    parameters: tuple[object, ...],
    reading: CatalogView | None = None,
    defaults: Defaults = DRY,
) -> Written | Given:
    """Plan what a statement writes.

    ``reading`` is asked for the relations that it reads, in the catalog's place.
    """
    view = catalog if reading is None else reading
    table = target_table(statement.name, catalog)
    match statement:
        case s.Insert():
            keys = catalog.unique_keys(table)
            return plan_insert(statement, table, view, parameters, defaults=defaults, keys=keys)
        case s.Update():
            return plan_update(statement, table, view, parameters, defaults)
        case s.Delete():
            return plan_delete(statement, table, view, parameters)
        case s.Merge():
            return plan_merge(statement, table, view, parameters, defaults)


def privileges(statement: s.Insert | s.Update | s.Delete | s.Merge) -> list[str]:
    """Return the privileges on the table that a statement needs, but for what else it reads."""
    match statement:
        case s.Insert(conflict=conflict):
            needed = ["INSERT"]
            if conflict is not None and conflict.assignments is not None:
                needed.append("UPDATE")
        case s.Update():
            needed = ["UPDATE"]
        case s.Delete():
            needed = ["DELETE"]
        case s.Merge(whens=whens):
            needed = sorted({when.action.upper() for when in whens} - {"NOTHING"})
    return [*needed, "SELECT"] if statement.returning else needed
