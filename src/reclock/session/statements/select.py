"""SELECT."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

from reclock.engine.leaves import leaves
from reclock.engine.witness import witness
from reclock.errors import ExpressionFailed, HoldViolation, InvalidValue
from reclock.ids import HolderId
from reclock.rows.result import Result
from reclock.session.answer import Answer
from reclock.session.statements.sequence_calls import called
from reclock.sql.schema import Schema
from reclock.sql.statement import CatalogQuery

if TYPE_CHECKING:
    from collections.abc import Generator

    import pyarrow as pa

    from reclock.session.statements.context import Context
    from reclock.sql.statement import SelectStatement

_numbers: Final = count(1)


def select(context: Context, statement: SelectStatement) -> Result:
    """Answer a query at one timestamp."""
    found = answer(context, statement)
    rows = found.rows()
    return Result(f"SELECT {len(rows)}", found.schema.names, rows, found.timestamp, found.schema)


def answer(context: Context, statement: SelectStatement | CatalogQuery) -> Answer:
    """Answer a query at one timestamp, for a caller that takes the rows in batches.

    If they are read while they are taken, its time is held until the last one is.
    """
    if isinstance(statement, CatalogQuery):
        return context.core.pg.answer(context, statement)
    if statement.calls:
        return called(context, statement)
    session, core = context.session, context.core
    plan_of = partial(core.plans.plan, context.text, statement.query, context.parameters)
    while True:
        with session.readable(plan_of, statement.as_of) as at:
            pieces = at.stream(core, session.interrupt)
            session.interrupt.check()
            schema = Schema(at.plan.root.schema.columns[: at.plan.visible])
            found = Answer(schema, _told(context, pieces.batches), at.timestamp)
            if not pieces.reads_runs:
                return found
            items = [item.id for item in leaves(at.world, at.plan)]
            if at.world.drafted:  # the transaction holds what there was before
                items = [item for item in items if item not in at.world.drafted]
            holder = HolderId(f"select/{next(_numbers)}")
            try:
                found.keep(core.hold(holder, items, at.timestamp), core.lost.append)
            except (HoldViolation, InvalidValue):
                continue  # something was forgotten or dropped just now: the read is repeated
            session.opened(found)
            return found


def _told(
    context: Context, batches: Generator[pa.RecordBatch, None, None]
) -> Generator[pa.RecordBatch, None, None]:
    """Yield batches; an error names a row that has it."""
    try:
        yield from batches
    except ExpressionFailed as error:
        witness(context.core, context.session.role, error, context.session.interrupt)
        raise
