"""CREATE OR REPLACE MATERIALIZED VIEW: the same object with another query.

It keeps its id, name, owner, privileges, comments, indexes, and the columns that its rows are
arranged by; what is made of it is planned again over it as it is now, and goes on. ``replacing``
says what every object becomes, or why the view cannot be replaced; ``engine.replacement`` says what
its rows are, and when.

Tests: tests/session/test_replace_view.py.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from reclock.catalog.item import Index, MaterializedView, RelationItem, Sink, View
from reclock.engine.catalog_change import change_catalog
from reclock.errors import InvalidDefinition, NotSupported, StatementError
from reclock.export.alter import check_rows
from reclock.session.alter.rebuild import rebuilt
from reclock.session.background_ddl import beside
from reclock.session.definition import define_materialized_view
from reclock.session.statements.drafting import draft_edit
from reclock.time.pace import Own

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Item
    from reclock.catalog.roles import Roles
    from reclock.engine.preparation import Prepared
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.session.statements.context import Context
    from reclock.session.transaction.draft import Draft
    from reclock.sql.statement import CreateMaterializedView


def replace_materialized_view(context: Context, statement: CreateMaterializedView) -> None:
    """Give a materialized view another query, while all that reads it goes on."""

    def items(catalog: Catalog, view: MaterializedView) -> list[Item]:
        return replacing(catalog, context.core.world.roles, view)

    def make(world: World) -> Item | None:
        view = defined(statement, context.text, world.catalog)
        check_followers(items(world.catalog, view), world.catalog, world.transients.values())
        return view

    def changed(catalog: Catalog, view: Item) -> Catalog:
        assert isinstance(view, MaterializedView)
        return catalog.changed(items(catalog, view), ())

    def finish(world: World, view: Item, prepared: Prepared | None) -> bool:
        assert isinstance(view, MaterializedView)
        change_catalog(context.core, items(world.catalog, view), prepared=prepared)
        return True

    def edit(draft: Draft) -> tuple[Iterable[Item], Iterable[ObjectId], Roles | None]:
        view = defined(statement, context.text, draft.catalog)
        found = replacing(draft.catalog, draft.roles, view)
        check_followers(found, draft.catalog, draft.base.transients.values())
        return found, (), None

    if context.transaction is not None:
        draft_edit(context, statement, edit)
    else:
        beside(context, make, finish, changed=changed)


def defined(statement: CreateMaterializedView, text: str, catalog: Catalog) -> MaterializedView:
    """Return what a view becomes; refuse what is not the same to those who read it."""
    old = catalog.get(statement.name, MaterializedView)
    position = statement.name.position
    if statement.refresh is not None or old.schedule is not None:
        message = f"cannot replace {old}: views with REFRESH options are not replaced"
        raise NotSupported(message, hint="DROP it first, and create it again", position=position)
    if isinstance(catalog.paces[old.id], Own):
        message = f"cannot replace {old}: its times are those of a source"
        detail = "there is no time of ours at which its rows could change"
        hint = "create a view with another name, or DROP it first"
        raise NotSupported(message, detail=detail, hint=hint, position=position)
    new = define_materialized_view(statement, text, catalog, old)
    if new.depends & {old.id, *catalog.dependents([old.id])}:
        message = f"{old} would be made of itself"
        raise InvalidDefinition(message, hint="give it another name", position=position)
    _check_columns(old, new, position)
    if None in {old.plan.timeline.timeline, new.plan.timeline.timeline}:
        message = f"cannot replace {old}: a query without inputs holds at every time"
        raise NotSupported(message, hint="DROP it first, and create it again", position=position)
    assert new.timeline is not None
    if new.timeline != old.timeline or isinstance(catalog.pace(new.timeline, new.depends), Own):
        message = f"cannot replace {old}: its times would be others"
        hint = "create a view with another name, or DROP it first"
        raise NotSupported(message, hint=hint, position=position)
    kept = old.retain_history_ms if new.retain_history_ms is None else new.retain_history_ms
    revision = old.revision + (new.plan != old.plan)
    return replace(
        new, id=old.id, key=old.key, owner=old.owner, comments=old.comments,
        retain_history_ms=kept, revision=revision,
    )  # fmt: skip


def replacing(catalog: Catalog, roles: Roles, view: MaterializedView) -> list[Item]:
    """Return what a view and all that is made of it become."""
    old = catalog[view.id]
    assert isinstance(old, MaterializedView)
    found: list[Item] = [view]
    for item in rebuilt(catalog, roles, old, view).added:
        before = catalog[item.id]
        if item.id == view.id:
            continue
        if isinstance(item, View | MaterializedView) and isinstance(before, type(item)):
            item = replace(item, seen=before.seen)  # noqa: PLW2901 - names are as they were
        if isinstance(item, MaterializedView) and item.schedule is not None:
            message = f"cannot replace {old}: {item} has REFRESH options"
            raise NotSupported(message, hint=f"DROP {item.name} first, and create it again")
        if item == before:
            continue
        computed = isinstance(item, MaterializedView | Index)
        if computed and isinstance(catalog.paces.get(item.id), Own):
            message = f"cannot replace {old}: {item}, whose times are those of sources, reads it"
            hint = f"DROP {item.name} first, and create it again"
            raise NotSupported(message, hint=hint)
        found.append(item)
    after = catalog.changed(found, ())
    changed = {item.id for item in found}
    for sink in catalog.of_kind(Sink):
        if changed.intersection(phase.relation for phase in sink.phases):
            check_rows(sink, catalog, after)
    return found


def check_followers(
    found: Iterable[Item], catalog: Catalog, followers: Iterable[MaterializedView]
) -> None:
    """Refuse to replace what a subscribed query relies on for what it no longer says."""
    weaker = {
        item.id: item
        for item in found
        if isinstance(item, RelationItem) and _is_weaker(catalog[item.id], item)
    }
    for follower in followers:
        for item in sorted(follower.depends & weaker.keys()):
            message = f"cannot replace {weaker[item]} while a subscribed query reads it"
            detail = "its rows were unique, or not NULL, in a way that they would not be any more"
            hint = "end the subscription, and begin it again afterwards"
            raise StatementError(message, code="55006", detail=detail, hint=hint)


def _is_weaker(old: Item, new: RelationItem) -> bool:
    """Return whether a relation says less of its rows than before."""
    assert isinstance(old, RelationItem)
    before, after = old.relation(), new.relation()
    nulls = any(
        now.nullable and not was.nullable
        for was, now in zip(before.schema, after.schema, strict=True)
    )
    lost = [k for k in before.unique_keys if not any(key <= k for key in after.unique_keys)]
    return nulls or bool(lost)


def _check_columns(old: MaterializedView, new: MaterializedView, position: int | None) -> None:
    """Refuse other columns than before: who reads the view goes on."""
    code, hint = "42P16", "create a view with another name, or DROP it first"
    for was, now in zip_longest(old.schema, new.schema):
        if now is None:
            message = "cannot drop columns from view"
        elif was is None:
            message = f'cannot add column "{now.name}" to {old}'
            raise NotSupported(message, hint=hint, position=position)
        elif was.name != now.name:
            message = f'cannot change name of view column "{was.name}" to "{now.name}"'
        elif was.type != now.type:
            message = (
                f'cannot change data type of view column "{was.name}" from {was.type} to {now.type}'
            )
        else:
            continue
        raise StatementError(message, code=code, hint=hint, position=position)
