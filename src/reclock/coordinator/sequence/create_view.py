"""CREATE [OR REPLACE] VIEW."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.coordinator.change import change_catalog
from reclock.coordinator.define import define_view
from reclock.coordinator.item import View
from reclock.coordinator.result import Result, already_there
from reclock.coordinator.sequence.drafting import draft_edit
from reclock.coordinator.sequence.in_utc import in_utc
from reclock.errors import DependentObjects

if TYPE_CHECKING:
    from reclock.coordinator.draft import Draft
    from reclock.coordinator.roles import Roles
    from reclock.coordinator.sequence.context import Context
    from reclock.coordinator.world import World
    from reclock.ids import ObjectId
    from reclock.sql.statement import CreateView


def create_view(context: Context, statement: CreateView) -> Result:
    """Give a query a name; one that has it already may be replaced, if nothing needs it.

    The new one belongs to whom the old one did, with all privileges on it.
    """

    def edit(world: World | Draft) -> tuple[list[View], frozenset[ObjectId], Roles] | None:
        catalog, roles = world.catalog, world.roles
        exists = catalog.find(statement.name.parts) is not None
        if exists and statement.if_not_exists:
            return None
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
        if old is not None:
            view = replace(view, owner=old.owner)
            roles = roles.inherited(str(old.id), str(view.id))
        return [view], gone, roles

    if context.transaction is not None:
        made = draft_edit(context, statement, edit)
    else:
        with context.writing() as world:
            found = edit(world)
            made = found is not None
            if found is not None:
                added, gone, roles = found
                change_catalog(context.core, added, gone, roles=roles)
    return Result(
        "CREATE VIEW", notices=in_utc(context, statement) if made else already_there(statement.name)
    )
