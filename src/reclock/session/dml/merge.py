"""MERGE: matches the rows of a source with those of the table.

Three kinds of rows are told apart: pairs for which ON is true, rows of the source that are in no
pair (not matched by target), and rows of the table that are in none (not matched by source). For
each row, the first WHEN of its kind applies whose condition is true. It is an error if a row of the
table would be updated or deleted twice (21000).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import NotSupported, StatementError
from reclock.session.dml.defaults import DRY, Defaults
from reclock.session.dml.insert import places_of
from reclock.session.dml.rows import (
    NOT_DEFAULT,
    Step,
    Target,
    after_set,
    always,
    as_it_is,
    new_row,
    numbered,
    written,
)
from reclock.session.dml.written import Action, Form
from reclock.sql.plan.build.conjunct import conjuncts, reads_subquery
from reclock.sql.plan.build.functions import call
from reclock.sql.plan.build.write import WritePlanner
from reclock.sql.plan.relation import Filter, Join, JoinKind, Project, column
from reclock.sql.plan.scalar import FALSE, Literal
from reclock.sql.syntax.expression import DefaultText
from reclock.sql.syntax.place import place_of

if TYPE_CHECKING:
    from reclock.catalog.item import Table
    from reclock.session.dml.written import Written
    from reclock.sql.names import CatalogView
    from reclock.sql.plan.build.block import Block
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.statement import Merge
    from reclock.sql.statement.write import When


def plan_merge(
    statement: Merge,
    table: Table,
    catalog: CatalogView,
    parameters: tuple[object, ...],
    defaults: Defaults = DRY,
) -> Written:
    """Return what happens to the rows of a table."""
    planner = WritePlanner(catalog, parameters, statement.common)
    target = Target(planner, table, statement.name, statement.alias, defaults)
    planned = _Merge(target, statement)
    steps = [planned.step(at) for at in range(len(statement.whens))]
    number = not table.checks_key
    form = Form(before=True, after=True, tagged=True, number=number, once="MERGE")
    return written(target, form, steps, statement.returning)


class _Merge:
    """The rows of one MERGE: those of the source first, then those of the table."""

    def __init__(self, target: Target, statement: Merge) -> None:
        self._target = target
        self._planner = target.planner
        self._table = target.table
        self._statement = statement
        self._there = numbered(self._planner.rows_of(statement.name), self._table)
        self._rows, self._names = self._planner.source(statement.source)
        self._own = target.scope(self._rows.width)

    def step(self, at: int) -> Step:
        """Return what one WHEN does to the rows that come to it."""
        when = self._statement.whens[at]
        block = self._block(when.case)
        for earlier in self._statement.whens[:at]:
            if earlier.case == when.case and earlier.condition is not None:
                test = self._planner.condition(block, earlier.condition, "MERGE WHEN")
                block.node = Filter(block.node, (call("not", (call("is true", (test,)),)),))
        if when.condition is not None:
            test = self._planner.condition(block, when.condition, "MERGE WHEN")
            block.node = Filter(block.node, (test,))
        if when.action == "nothing":
            block.node = Filter(block.node, (FALSE,))
        if when.case == "target":
            return self._insert(block, when)
        first = self._rows.width
        before = as_it_is(block, self._table, first)
        after = []
        action = Action.DELETE
        if when.action == "update":
            action = Action.UPDATE
            after = after_set(self._target, block, when.assignments, before)
        number = None
        if not self._table.checks_key:
            number = column(block.node, first + len(self._table.columns))
        return Step(block, action, before, after, number, source=self._names, source_first=True)

    def _block(self, case: str) -> Block:
        """Return the rows of one kind, with the names that are seen there."""
        planner, on = self._planner, self._statement.on
        both: Node = Join(JoinKind.INNER, self._rows, self._there)
        if case == "matched":
            block = planner.block(both, self._names, self._own)
            planner.where(block, on)
            return block
        if reads_subquery(on):
            message = "a subquery in ON of a MERGE with WHEN NOT MATCHED is not supported"
            hint = "compute it as a column of the source: USING (SELECT …)"
            raise NotSupported(message, hint=hint, position=place_of(on))
        if case == "target":
            tests = self._tests(planner.block(both, self._names, self._own))
            return planner.block(
                Join(JoinKind.ANTI, self._rows, self._there, (), tests), self._names
            )
        turned = Join(JoinKind.INNER, self._there, self._rows)
        tests = self._tests(
            planner.block(turned, self._target.scope(), self._names.shifted(self._there.width))
        )
        rest = Join(JoinKind.ANTI, self._there, self._rows, (), tests)
        nulls = [(c.name, Literal(None, c.type)) for c in self._rows.schema]
        kept = [(c.name, column(rest, i)) for i, c in enumerate(rest.schema)]
        return planner.block(Project(rest, (*nulls, *kept)), self._own)

    def _tests(self, block: Block) -> tuple[Scalar, ...]:
        parts = conjuncts(self._statement.on)
        return tuple(self._planner.condition(block, part, "MERGE ON") for part in parts)

    def _insert(self, block: Block, when: When) -> Step:
        table, planner = self._table, self._planner
        places = places_of(when.columns, self._statement.name, table)
        if len(when.values) > len(places) or (when.columns and len(when.values) < len(places)):
            message = "INSERT has another number of expressions than target columns"
            hint = f"there are {len(when.values)} values for {len(places)} columns"
            raise StatementError(message, code="42601", hint=hint, position=place_of(when.values))
        cells = dict(zip(places, when.values, strict=False))
        given = {
            at: planner.value(block, cell)
            for at, cell in cells.items()
            if not isinstance(cell, DefaultText)
        }
        for at in given:
            column = table.columns[at]
            if column.identity == "always":
                raise always(column, NOT_DEFAULT, when.values)
        after = new_row(self._target, given, cells)
        return Step(block, Action.INSERT, after=after, source=self._names, source_first=True)
