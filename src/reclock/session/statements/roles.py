"""CREATE ROLE, ALTER ROLE, DROP ROLE, GRANT, REVOKE and OWNER TO: changes of the catalog.

In a transaction they are part of its draft, and happen with the rest of it, in one append.

Tests: tests/catalog/test_roles.py, tests/session/test_draft_roles.py.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.catalog.item import Item, RelationItem
from reclock.catalog.roles import DATABASE, PUBLIC, Role
from reclock.catalog.serial.item import Sequence
from reclock.engine.catalog_change import change_catalog
from reclock.engine.joining import waits
from reclock.errors import DependentObjects, StatementError, UndefinedName
from reclock.failpoints import hit
from reclock.rows.result import Result
from reclock.session.statements.drafting import draft_edit
from reclock.session.statements.drop import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.roles import Roles
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.session.statements.context import Context
    from reclock.session.transaction.draft import Draft
    from reclock.sql.statement import (
        AlterOwner,
        AlterRole,
        CreateRole,
        DropRole,
        Grant,
        Statement,
    )
    from reclock.sql.syntax.expression import Name


def create_role(context: Context, statement: CreateRole) -> Result:
    """Make a role; of its password only a verifier is kept."""
    role = Role(statement.name).altered(statement.options)
    _change(context, statement, lambda world: world.roles.added(role, statement.position))
    return Result("CREATE ROLE")


def alter_role(context: Context, statement: AlterRole) -> Result:
    """Change what a role may, or its password."""

    def after(world: World | Draft) -> Roles:
        _refuse_public(statement.name, statement.position)
        role = world.roles.get(statement.name, statement.position)
        return world.roles.changed([role.altered(statement.options)])

    _change(context, statement, after)
    return Result("ALTER ROLE")


def drop_role(context: Context, statement: DropRole) -> Result:
    """Remove roles with their privileges; who is logged in stays so, with none."""

    def after(world: World | Draft) -> Roles:
        found = []
        for name in statement.names:
            with suppress(*((UndefinedName,) if statement.if_exists else ())):
                found.append(world.roles.get(name, statement.position).name)
        for name in found:
            _refuse_public(name, statement.position)
            _refuse_owner(world, name)
            if name == context.session.role:
                message = "current user cannot be dropped"
                hint = "log in as another superuser to drop it"
                raise StatementError(message, code="55006", hint=hint, position=statement.position)
        return world.roles.changed(removed=found)

    _change(context, statement, after)
    return Result("DROP ROLE")


def _refuse_public(name: str, position: int) -> None:
    """Refuse what is said of everybody as if it was one role."""
    if name == PUBLIC:
        message = 'role name "public" is reserved'
        hint = "GRANT privileges to public, or REVOKE them"
        raise StatementError(message, code="42939", hint=hint, position=position)


def _refuse_owner(world: World | Draft, name: str) -> None:
    """Refuse to drop a role that something belongs to: another of its name would have it."""
    owned = [str(item) for item in world.catalog.items.values() if item.owner == name]
    if owned:
        message = f'role "{name}" cannot be dropped because some objects are its own'
        detail = ", ".join(owned)
        hint = "ALTER … OWNER TO another role, or DROP them first"
        raise DependentObjects(message, detail=detail, hint=hint)


def alter_owner(context: Context, statement: AlterOwner) -> Result:
    """Give an object to another role."""

    def find(world: World) -> Item:
        return world.catalog.get(statement.name, kind_of(statement.kind))

    def edit(world: World | Draft) -> tuple[list[Item], frozenset[ObjectId], None] | None:
        item = world.catalog.get(statement.name, kind_of(statement.kind))
        role = world.roles.get(statement.role, statement.position)
        if role.name == PUBLIC:
            message = "an object cannot belong to public"
            hint = "give it to a role, or GRANT privileges to public"
            raise StatementError(message, code="42704", hint=hint, position=statement.position)
        if item.owner == role.name:
            return None
        return [replace(item, owner=role.name)], frozenset(), None

    if context.transaction is not None:
        draft_edit(context, statement, edit)
    else:
        with context.writing(lambda world: waits(context.core, world, [find(world)])) as world:
            found = edit(world)
            if found is not None:
                change_catalog(context.core, found[0])
    return Result(f"ALTER {statement.kind.upper()}")


def grant(context: Context, statement: Grant) -> Result:
    """Give privileges to roles, or take them away."""

    def after(world: World | Draft) -> Roles:
        on = [DATABASE]
        if statement.on is not None:
            on = [str(_granted(world.catalog, name).id) for name in statement.on]
        roles = [world.roles.get(name, statement.position) for name in statement.roles]
        changed = [
            role.granted(on, statement.privileges, revoke=statement.revoke) for role in roles
        ]
        return world.roles.changed(changed)

    _change(context, statement, after)
    return Result("REVOKE" if statement.revoke else "GRANT")


def _change(
    context: Context, statement: Statement, roles_after: Callable[[World | Draft], Roles]
) -> None:
    """Make other roles durable; a change that changes nothing writes nothing."""
    core = context.core

    def edit(draft: Draft) -> tuple[tuple[()], tuple[()], Roles] | None:
        roles = roles_after(draft)
        return ((), (), roles) if roles.records(draft.roles) else None

    if context.transaction is not None:
        draft_edit(context, statement, edit)
        return
    with context.writing() as world:
        roles = roles_after(world)
        records = roles.records(world.roles)
        if records:
            append, stored = core.catalog_store.change(world.stored, records)
            after = world.with_catalog(stored, world.catalog.changed((), ()))
            hit("ddl.publish.before")
            core.publish(after.with_roles(roles), [append])
            hit("ddl.publish.after")


def _granted(catalog: Catalog, name: Name) -> Item:
    """Return what a privilege is on: a relation, or a sequence."""
    found = catalog.find(name.parts)
    return found if isinstance(found, Sequence) else catalog.get(name, RelationItem)
