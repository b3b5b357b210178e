"""UPDATE and DELETE: the affected rows, and their new values.

Rows of FROM, or USING, are joined to those of the table. If several match a row, it is updated, or
deleted, once, with one of them: always the least, so that a repetition gives the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.session.dml.defaults import DRY, Defaults
from reclock.session.dml.rows import Step, Target, after_set, as_it_is, identity, numbered, written
from reclock.session.dml.written import Action, Form
from reclock.sql.names import Scope
from reclock.sql.plan.build.write import WritePlanner
from reclock.sql.plan.relation import Join, JoinKind, TopK

if TYPE_CHECKING:
    from reclock.catalog.item import Table
    from reclock.session.dml.written import Written
    from reclock.sql.names import CatalogView
    from reclock.sql.plan.build.block import Block
    from reclock.sql.statement import Delete, Update


def plan_update(
    statement: Update,
    table: Table,
    catalog: CatalogView,
    parameters: tuple[object, ...],
    defaults: Defaults = DRY,
) -> Written:
    """Return the rows as they are, each with what it becomes."""
    planner = WritePlanner(catalog, parameters, statement.common)
    target = Target(planner, table, statement.name, statement.alias, defaults)
    block, source = _matching(target, statement)
    before = as_it_is(block, table)
    after = after_set(target, block, statement.assignments, before)
    step = Step(block, Action.UPDATE, before, after, source=source)
    return written(target, Form(before=True, after=True), [step], statement.returning)


def plan_delete(
    statement: Delete, table: Table, catalog: CatalogView, parameters: tuple[object, ...]
) -> Written:
    """Return the rows that are deleted."""
    planner = WritePlanner(catalog, parameters, statement.common)
    target = Target(planner, table, statement.name, statement.alias)
    block, source = _matching(target, statement)
    step = Step(block, Action.DELETE, as_it_is(block, table), source=source)
    return written(target, Form(before=True, after=False), [step], statement.returning)


def _matching(target: Target, statement: Update | Delete) -> tuple[Block, Scope]:
    """Return the rows that a statement's condition is true for, and the names of FROM."""
    planner = target.planner
    node = planner.rows_of(statement.name)
    if statement.source is None:
        block = planner.block(node, target.scope())
        planner.where(block, statement.where)
        return block, Scope()
    rows, names = planner.source(statement.source)
    node = numbered(node, target.table)
    source = names.shifted(node.width)
    block = planner.block(Join(JoinKind.INNER, node, rows), target.scope(), source)
    planner.where(block, statement.where)
    block.node = TopK(block.node, identity(target.table), (), 1)
    return block, source
