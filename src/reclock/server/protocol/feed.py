"""Whatever a statement gave, as rows in batches (``session.answer``).

An answer is that already; a result that is there becomes one batch; a subscription is asked for the
next rows when the ones before have been sent, so a slow reader delays only himself.

Tests: tests/server/protocol/test_conversation.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reclock.dataflow.types import arrow_types
from reclock.dataflow.values import from_python
from reclock.rows.result import Result
from reclock.session.answer import Answer
from reclock.sql import types as t
from reclock.sql.schema import Column, Schema

if TYPE_CHECKING:
    from collections.abc import Generator

    from reclock.engine.interrupt import Interrupt
    from reclock.sql.types import Type
    from reclock.subscribe.subscription import Subscription

_AT_ONCE: Final = 4_096


def feed_of(source: Result | Answer | Subscription, interrupt: Interrupt) -> Answer:
    """Return the rows of what a statement gave; a result must have some."""
    if isinstance(source, Answer):
        return source
    assert source.schema is not None
    schema = Schema(tuple(Column(c.name, c.type) for c in source.schema))
    if isinstance(source, Result):
        return Answer(schema, (batch for batch in [batch_of(source.rows, schema)]))
    return Answer(schema, _followed(source, schema, interrupt), tag="SUBSCRIBE")


def _followed(
    subscription: Subscription, schema: Schema, interrupt: Interrupt
) -> Generator[pa.RecordBatch, None, None]:
    """Yield what comes, until it ends or is ended."""
    with subscription:
        while not subscription.closed:
            with interrupt.waking(subscription.close):
                updates = subscription.fetch(None, _AT_ONCE)
            interrupt.check()
            if not updates:
                return  # nothing can come any more
            yield batch_of([subscription.values(update) for update in updates], schema)


def batch_of(rows: list[tuple[Any, ...]], schema: Schema) -> pa.RecordBatch:
    """Return rows of Python values as a batch."""
    columns = [
        from_python([_stored(row[at], column.type) for row in rows], column.type)
        for at, column in enumerate(schema)
    ]
    names = [pa.field(str(at), kind) for at, kind in enumerate(arrow_types(schema))]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(names))


def _stored(value: Any, kind: Type) -> Any:
    """Return a Python value as a column takes it: json is text there."""
    if value is None:
        return None
    match kind:
        case t.Array(element):
            return [_stored(v, element) for v in value]
        case t.Record(fields):
            return tuple(_stored(v, k) for v, (_, k) in zip(value, fields, strict=True))
    return json.dumps(value, ensure_ascii=False) if kind == t.JSON else value
