"""CREATE [OR REPLACE] VIEW."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.coordinator.change import change_catalog
from reclock.coordinator.define import define_view
from reclock.coordinator.item import View
from reclock.coordinator.result import Result, already_there
from reclock.errors import DependentObjects

if TYPE_CHECKING:
    from reclock.coordinator.sequence.context import Context
    from reclock.ids import ObjectId
    from reclock.sql.statement import CreateView


def create_view(context: Context, statement: CreateView) -> Result:
    """Give a query a name; one that has it already may be replaced, if nothing needs it.

    The new one belongs to whom the old one did, with all privileges on it.
    """
    with context.writing() as world:
        catalog = world.catalog
        exists = catalog.find(statement.name.parts) is not None
        if exists and statement.if_not_exists:
            return Result("CREATE VIEW", notices=already_there(statement.name))
        gone: frozenset[ObjectId] = frozenset()
        old = None
        if exists and statement.or_replace:
            old = catalog.get(statement.name, View)
            gone = catalog.to_drop([old.id], cascade=False)
            if by := sorted(catalog[i].name for i in gone if i != old.id):
                message = f"cannot replace {old} because an index keeps it"
                hint = "DROP INDEX first, and create it again over the new view"
                raise DependentObjects(message, detail=f"there is {', '.join(by)}", hint=hint)
            kept = {i: item for i, item in catalog.items.items() if i not in gone}
            catalog = replace(catalog, items=kept)
        view = context.owned(define_view(statement, context.text, catalog), world)
        roles = world.roles
        if old is not None:
            view = replace(view, owner=old.owner)
            roles = roles.inherited(str(old.id), str(view.id))
        change_catalog(context.core, [view], gone, roles=roles)
    return Result("CREATE VIEW")
