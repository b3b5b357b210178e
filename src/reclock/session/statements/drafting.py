"""Statements in a transaction: their effects are kept in its draft, and repeated if necessary.

Each gives the transaction a step (``replay``): a function from a draft to the next one.

Tests: tests/session/test_draft.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.engine.constraints import check_conditions, check_not_null, fitted
from reclock.engine.write import Change
from reclock.session.dml.target import whole
from reclock.session.dml.written import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Item, Table
    from reclock.catalog.roles import Roles
    from reclock.engine.core import Core
    from reclock.ids import ObjectId
    from reclock.session.dml.written import Written
    from reclock.session.statements.context import Context
    from reclock.session.transaction.draft import Draft
    from reclock.sql.statement import Statement


def draft_object(
    context: Context, statement: Statement, make: Callable[[Draft], Item | None]
) -> bool:
    """Add an object to the transaction's draft; return whether there was one to add."""

    def edit(draft: Draft) -> tuple[Iterable[Item], Iterable[ObjectId], Roles | None] | None:
        item = make(draft)
        return None if item is None else ([item], (), None)

    return draft_edit(context, statement, edit)


def draft_edit(
    context: Context,
    statement: Statement,
    edit: Callable[[Draft], tuple[Iterable[Item], Iterable[ObjectId], Roles | None] | None],
) -> bool:
    """Add and remove objects in the transaction's draft; return whether there were any."""
    assert context.transaction is not None

    def step(draft: Draft) -> tuple[Draft, bool]:
        context.session.check_rights(statement, context.parameters, draft)
        found = edit(draft)
        return (draft, False) if found is None else (draft.edited(*found), True)

    made: bool = context.transaction.run(step)
    return made


def draft_query(context: Context, plan_of: Callable[[Catalog], Written]) -> Outcome:
    """Write what a query gives into the transaction's draft; return what happened."""
    transaction = context.transaction
    assert transaction is not None
    role, interrupt = context.session.role, context.session.interrupt
    transaction.check_write(plan_of(context.catalog).table)
    transaction.reads(lambda catalog: plan_of(catalog).plan, role, interrupt)

    def step(draft: Draft) -> tuple[Draft, Outcome]:
        written = plan_of(draft.read_catalog)
        columns = whole(draft.answer(lambda c: plan_of(c).plan, role, interrupt))
        outcome = written.outcome(columns)
        return draft.written(checked(context.core, outcome.change)), outcome

    done: Outcome = transaction.run(step)
    return done


def draft_rows(
    context: Context,
    target: Callable[[Catalog], Table],
    rows_of: Callable[[Table, Catalog], list[pa.Array]],
) -> Outcome:
    """Write rows that depend on nothing into the transaction's draft; return what happened."""
    transaction = context.transaction
    assert transaction is not None
    known: list[tuple[Table, Change]] = []

    def step(draft: Draft) -> tuple[Draft, Outcome]:
        table = target(draft.read_catalog)
        if not known or known[0][0] != table:
            rows = rows_of(table, draft.read_catalog)
            known[:] = [(table, checked(context.core, Change(table, rows)))]
        change = known[0][1]
        return draft.written(change), Outcome(change, len(change.added[0]))

    transaction.check_write(target(context.catalog))
    done: Outcome = transaction.run(step)
    return done


def checked(core: Core, change: Change) -> Change:
    """Return a change whose rows the table can have, but for keys."""
    check_not_null(change.table, change.added)
    added = fitted(change.table, change.added)
    check_conditions(core.engine, change.table, added)
    return replace(change, added=added)
