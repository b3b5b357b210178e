"""INSERT … ON CONFLICT: a row whose key exists already is left out, or updates the existing row.

The proposed rows are joined to the table by its key. Rows without a match are inserted; for the
others nothing happens, or DO UPDATE changes the existing row: it sees that row by the table's name,
and the proposed one as ``excluded``. If two proposed rows have one key, DO NOTHING takes the first;
DO UPDATE refuses to affect a row twice (21000).

The decision is made at the time of the write, so it is correct under concurrent sessions; in a
transaction it is made again at COMMIT if the table has changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import StatementError, UndefinedName
from reclock.session.dml.rows import Step, Target, after_set, as_it_is, stored, written
from reclock.session.dml.written import Action, Form
from reclock.sql.plan.build.functions import call
from reclock.sql.plan.build.write import scope_of
from reclock.sql.plan.relation import Join, JoinKind, column
from reclock.sql.schema import Schema

if TYPE_CHECKING:
    from reclock.catalog.item import Table
    from reclock.session.dml.written import Written
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.statement import Insert
    from reclock.sql.statement.write import OnConflict


def plan_conflict(target: Target, statement: Insert, proposed: Node) -> Written:
    """Return what happens to the proposed rows, whose place follows their columns."""
    conflict, table, planner = statement.conflict, target.table, target.planner
    assert conflict is not None
    _check_arbiter(conflict, table, statement)
    rows, updates = proposed, conflict.assignments is not None
    if table.checks_key:
        there = planner.rows_of(statement.name)
        pairs = _same_key(table, proposed, there)
        rows = Join(JoinKind.ANTI, proposed, there, (), pairs)
    block = planner.block(rows)
    place = column(rows, target.width)
    steps = [Step(block, Action.INSERT, after=as_it_is(block, table), place=place)]
    if conflict.assignments is not None:
        first = proposed.width
        excluded = scope_of("excluded", Schema(proposed.schema.columns[: target.width]))
        both = Join(JoinKind.INNER, proposed, there, (), pairs)
        block = planner.block(both, target.scope(first), excluded)
        planner.where(block, conflict.where)
        before = as_it_is(block, table, first)
        after = after_set(target, block, conflict.assignments, before)
        place = column(block.node, target.width)
        steps.append(Step(block, Action.UPDATE, before, after, place=place))
    form = Form(
        before=updates, after=True, tagged=updates, place=True, first=not updates, arbitrated=True,
        once="ON CONFLICT DO UPDATE" if updates else None,
    )  # fmt: skip
    return written(target, form, steps, statement.returning)


def _check_arbiter(conflict: OnConflict, table: Table, statement: Insert) -> None:
    """Refuse columns, or a constraint, that no key is of."""
    position = statement.name.position
    if conflict.constraint is not None:
        if table.checks_key and conflict.constraint == f"{table.name}_pkey":
            return
        message = f'constraint "{conflict.constraint}" for table "{table.name}" does not exist'
        hint = "name the columns of the primary key: ON CONFLICT (…)"
        raise UndefinedName(message, code="42704", hint=hint, position=position)
    names = table.schema.names
    for name in conflict.columns:
        if name not in names:
            message = f'column "{name}" does not exist'
            hint = f"there are the columns {', '.join(names)}"
            raise UndefinedName(message, hint=hint, position=position)
    key = {names[i] for i in table.key} if table.checks_key else set()
    if conflict.columns and set(conflict.columns) != key:
        message = "there is no unique constraint matching the ON CONFLICT specification"
        listed = ", ".join(names[i] for i in table.key)
        hint = f"the primary key is ({listed})" if key else "the table has no primary key"
        raise StatementError(message, code="42P10", hint=hint, position=position)


def _same_key(table: Table, proposed: Node, there: Node) -> tuple[Scalar, ...]:
    """Return that a proposed row, on the left, and one that is there have the same key."""
    both = Join(JoinKind.INNER, proposed, there)
    width = proposed.width
    return tuple(
        call("=", (stored(table, i, column(both, i)), column(both, width + i))) for i in table.key
    )
