"""``SELECT nextval('s')`` and ``SELECT setval('s', …)``: what is done with each row of a query.

Tests: tests/session/test_sequences.py.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reclock.catalog.serial.item import Position
from reclock.dataflow.values import from_python
from reclock.session.answer import Answer
from reclock.session.sequence_functions import check_may, sequence_of, set_value, take
from reclock.sql.schema import Schema
from reclock.sql.types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Generator

    from reclock.catalog.serial.item import Sequence
    from reclock.session.statements.context import Context
    from reclock.sql.statement import SelectStatement
    from reclock.sql.statement.select import SequenceCall


def called(context: Context, statement: SelectStatement) -> Answer:
    """Answer the query, and then do to sequences what each row says."""
    session, core = context.session, context.core
    plan_of = partial(core.plans.plan, context.text, statement.query, context.parameters)
    with session.readable(plan_of, statement.as_of) as at:
        table = at.peek(core, session.interrupt)
        visible = at.plan.visible
        schema = Schema(at.plan.root.schema.columns[: visible - statement.hidden])
        timestamp = at.timestamp
    columns = [column.combine_chunks() for column in table.columns]
    for call in statement.calls:
        sequence = sequence_of(call.sequence, context.catalog, context.parameters)
        check_may(session, sequence)
        columns[call.place] = _done(context, call, sequence, columns)
    batch = pa.RecordBatch.from_arrays(columns[: len(schema)], names=list(schema.names))
    return Answer(schema, _one(batch), timestamp)


def _done(context: Context, call: SequenceCall, sequence: Sequence, columns: list[Any]) -> pa.Array:
    """Return what one call gives for all rows."""
    given = columns[call.place]
    if call.function == "nextval":
        return from_python(list(take(context.session, sequence, len(given))), BIGINT)
    flags = [True] * len(given) if call.called is None else columns[call.called].to_pylist()
    values = []
    for value, flag in zip(given.to_pylist(), flags, strict=True):
        known = value is not None and flag is not None
        if known:
            set_value(context.session, sequence, Position(value, called=flag))
        values.append(value if known else None)
    return from_python(values, BIGINT)


def _one(batch: pa.RecordBatch) -> Generator[pa.RecordBatch, None, None]:
    if batch.num_rows:
        yield batch
