"""CREATE INDEX.

A unique index is made in a transaction, the session's or one of its own: it reads the columns of
the key, looks for a key that several rows have, and is run again if others write meanwhile.

Cost: to make a unique index, the columns of the key in memory, and the index under the lock.
Tests: tests/session/test_unique.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.item import Table
from reclock.catalog.unique import UniqueKey
from reclock.engine.catalog_change import change_catalog
from reclock.engine.constraints import refuse_repeated
from reclock.rows.result import Result, already_there
from reclock.session.background_ddl import beside
from reclock.session.definition import define_index
from reclock.session.dml.target import whole
from reclock.session.statements.alter_table import in_transaction
from reclock.session.statements.drafting import draft_object
from reclock.sql.plan.relation import Get, Project, QueryPlan, column

if TYPE_CHECKING:
    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Index, Item
    from reclock.engine.preparation import Prepared
    from reclock.engine.world import World
    from reclock.session.statements.context import Context
    from reclock.session.transaction.draft import Draft
    from reclock.sql.statement import CreateIndex


def create_index(context: Context, statement: CreateIndex) -> Result:
    """Arrange a relation by other columns."""
    name = statement.name

    def make(world: World | Draft) -> Index | None:
        if statement.if_not_exists and name and world.catalog.find(name.parts) is not None:
            return None
        return context.owned(define_index(statement, context.text, world.catalog), world)

    def add(_: World, item: Item, prepared: Prepared | None) -> bool:
        change_catalog(context.core, [item], prepared=prepared)
        return True

    if statement.unique:
        made: bool | None = _create_unique(context, statement)
    elif context.transaction is not None:
        made = draft_object(context, statement, make)
    else:
        made = beside(context, make, add)
    return Result("CREATE INDEX", notices=() if made or name is None else already_there(name))


def _create_unique(context: Context, statement: CreateIndex) -> bool:
    """Make a unique index, unless it is there; refuse rows that have a key in common."""
    name = statement.name
    role, interrupt = context.session.role, context.session.interrupt

    def plan_of(catalog: Catalog) -> QueryPlan:
        index = define_index(statement, context.text, catalog)
        table = catalog[index.on]
        assert isinstance(table, Table)
        of = table.relation()
        rows = Get(of.id, of.name, of.schema, of.timeline, of.unique_keys)
        key = Project(rows, tuple((of.schema[at].name, column(rows, at)) for at in index.key))
        return QueryPlan(key, key.width)

    def step(draft: Draft) -> tuple[Draft, bool]:
        context.session.check_rights(statement, context.parameters, draft)
        item = context.owned(define_index(statement, context.text, draft.catalog), draft)
        table = draft.catalog[item.on]
        assert isinstance(table, Table)
        key = UniqueKey(item.name, item.key, item.id, item.nulls_distinct)
        refuse_repeated(table, key, whole(draft.answer(plan_of, role, interrupt)))
        return draft.edited([item]), True

    def run() -> None:
        assert context.transaction is not None
        table = context.catalog.get(statement.relation, Table)
        context.transaction.check_write(table)
        context.transaction.reads(plan_of, role, interrupt)
        context.transaction.run(step)

    if statement.if_not_exists and name and context.catalog.find(name.parts) is not None:
        return False
    define_index(statement, context.text, context.catalog)
    in_transaction(context, run)
    return True
