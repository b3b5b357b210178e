"""CREATE [OR REPLACE] VIEW."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.catalog.item import View
from reclock.engine.catalog_change import change_catalog
from reclock.errors import DependentObjects
from reclock.rows.result import Result, already_there
from reclock.session.definition import define_view
from reclock.session.statements.drafting import draft_edit
from reclock.session.statements.in_utc import in_utc

if TYPE_CHECKING:
    from reclock.catalog.roles import Roles
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.session.statements.context import Context
    from reclock.session.transaction.draft import Draft
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
            view = replace(view, owner=old.owner, comments=_kept(old, view))
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


def _kept(old: View, view: View) -> dict[str, str]:
    """Return the comments on a view that is replaced, and on the columns that it still has."""
    names = {"", *view.schema.names}
    return {name: text for name, text in old.comments.items() if name in names}
