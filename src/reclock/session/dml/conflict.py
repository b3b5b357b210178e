"""INSERT … ON CONFLICT: a row whose key exists already is left out, or updates the existing row.

The proposed rows are joined to the table by the key that is meant, or by each if none is. Rows
without a match are inserted; for the others nothing happens, or DO UPDATE changes the existing row:
it sees that row by the table's name, and the proposed one as ``excluded``. If two proposed rows
have one key, DO NOTHING takes the first; DO UPDATE refuses to affect a row twice (21000).

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
    from reclock.catalog.unique import UniqueKey
    from reclock.session.dml.written import Written
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.statement import Insert
    from reclock.sql.statement.write import OnConflict


def plan_conflict(target: Target, statement: Insert, proposed: Node) -> Written:
    """Return what happens to the proposed rows, whose place follows their columns."""
    conflict, table, planner = statement.conflict, target.table, target.planner
    assert conflict is not None
    arbiters = _arbiters(conflict, target, statement)
    rows, updates = proposed, conflict.assignments is not None
    there = planner.rows_of(statement.name)
    for key in arbiters:
        rows = Join(JoinKind.ANTI, rows, there, (), _same_key(table, key, rows, there))
    block = planner.block(rows)
    place = column(rows, target.width)
    steps = [Step(block, Action.INSERT, after=as_it_is(block, table), place=place)]
    if conflict.assignments is not None:
        (key,) = arbiters
        first = proposed.width
        excluded = scope_of("excluded", Schema(proposed.schema.columns[: target.width]))
        pairs = _same_key(table, key, proposed, there)
        both = Join(JoinKind.INNER, proposed, there, (), pairs)
        block = planner.block(both, target.scope(first), excluded)
        planner.where(block, conflict.where)
        before = as_it_is(block, table, first)
        after = after_set(target, block, conflict.assignments, before)
        place = column(block.node, target.width)
        steps.append(Step(block, Action.UPDATE, before, after, place=place))
    form = Form(
        before=updates, after=True, tagged=updates, place=True, first=not updates,
        arbitrated=arbiters, once="ON CONFLICT DO UPDATE" if updates else None,
    )  # fmt: skip
    return written(target, form, steps, statement.returning)


def _arbiters(conflict: OnConflict, target: Target, statement: Insert) -> tuple[UniqueKey, ...]:
    """Return the keys that decide; refuse columns, or a constraint, that no key is of."""
    position, table = statement.name.position, target.table
    if conflict.constraint is not None:
        for key in target.keys:
            if key.constraint and key.name == conflict.constraint:
                return (key,)
        message = f'constraint "{conflict.constraint}" for table "{table.name}" does not exist'
        hint = "name the columns of a key: ON CONFLICT (…)"
        raise UndefinedName(message, code="42704", hint=hint, position=position)
    names = table.schema.names
    for name in conflict.columns:
        if name not in names:
            message = f'column "{name}" does not exist'
            hint = f"there are the columns {', '.join(names)}"
            raise UndefinedName(message, hint=hint, position=position)
    if not conflict.columns:
        return target.keys
    wanted = {names.index(name) for name in conflict.columns}
    for key in target.keys:
        if set(key.columns) == wanted:
            return (key,)
    message = "there is no unique or exclusion constraint matching the ON CONFLICT "
    message += "specification"
    listed = ["(" + ", ".join(names[i] for i in key.columns) + ")" for key in target.keys]
    hint = f"unique are {', '.join(listed)}" if listed else "the table has no unique key"
    raise StatementError(message, code="42P10", hint=hint, position=position)


def _same_key(table: Table, key: UniqueKey, proposed: Node, there: Node) -> tuple[Scalar, ...]:
    """Return that a proposed row, on the left, and one that is there have the same key."""
    both = Join(JoinKind.INNER, proposed, there)
    width = proposed.width
    equal = "=" if key.nulls_distinct else "is not distinct from"
    return tuple(
        call(equal, (stored(table, i, column(both, i)), column(both, width + i)))
        for i in key.columns
    )
