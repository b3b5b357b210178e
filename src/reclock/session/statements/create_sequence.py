"""CREATE SEQUENCE and ALTER SEQUENCE.

Tests: tests/session/test_sequences.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.catalog.item import Table
from reclock.catalog.serial.define import altered, sequence_of
from reclock.catalog.serial.item import OwnedBy, Position, Sequence
from reclock.engine.catalog_change import change_catalog
from reclock.errors import StatementError, UndefinedName
from reclock.rows.result import Result, already_there
from reclock.session import sequence_functions as calls
from reclock.session.statements.drafting import draft_object
from reclock.sql.syntax.expression import Name

if TYPE_CHECKING:
    from reclock.catalog.catalog import Catalog
    from reclock.engine.world import World
    from reclock.session.statements.context import Context
    from reclock.session.transaction.draft import Draft
    from reclock.sql.statement import AlterSequence, CreateSequence


def create_sequence(context: Context, statement: CreateSequence) -> Result:
    """Make a sequence."""

    def make(world: World | Draft) -> Sequence | None:
        catalog = world.catalog
        if statement.if_not_exists and catalog.find(statement.name.parts) is not None:
            return None
        name = catalog.check_new(statement.name)
        made = sequence_of(catalog.next_id, name, statement.options)
        made = replace(made, owned_by=_owner(statement.options.owned_by, catalog))
        return context.owned(made, world)

    if context.transaction is not None:
        made = draft_object(context, statement, make)
    else:
        with context.writing() as world:
            sequence = make(world)
            made = sequence is not None
            if sequence is not None:
                change_catalog(context.core, [sequence])
    return Result("CREATE SEQUENCE", notices=() if made else already_there(statement.name))


def alter_sequence(context: Context, statement: AlterSequence) -> Result:
    """Change what a sequence is, or have it begin again."""
    options = statement.options
    with context.writing() as world:
        catalog = world.catalog
        if statement.if_exists and catalog.find(statement.name.parts) is None:
            skipped = f'relation "{statement.name}" does not exist, skipping'
            return Result("ALTER SEQUENCE", notices=(skipped,))
        known = calls.named(statement.name, catalog)
        made = altered(known, options)
        if options.owned_by is not None:
            made = replace(made, owned_by=_owner(options.owned_by, catalog))
        if made != known:
            change_catalog(context.core, [made])
        if options.restarts:
            start = made.start if options.restart is None else options.restart
            context.core.sequences.set(made, Position(start, called=False))
    return Result("ALTER SEQUENCE")


def _owner(owned_by: tuple[str, ...] | None, catalog: Catalog) -> OwnedBy | None:
    """Return the column that a sequence belongs to."""
    if not owned_by:
        return None
    if len(owned_by) < 2:
        message = "invalid OWNED BY option"
        hint = "Specify OWNED BY table.column or OWNED BY NONE."
        raise StatementError(message, code="42601", hint=hint)
    table = catalog.get(Name(owned_by[:-1]), Table)
    names = table.schema.names
    if owned_by[-1] not in names:
        message = f'column "{owned_by[-1]}" of relation "{table.name}" does not exist'
        hint = f"there are the columns {', '.join(names)}"
        raise UndefinedName(message, hint=hint)
    return OwnedBy(table.id, names.index(owned_by[-1]) + 1)
