"""COPY (SELECT … | SUBSCRIBE …) TO STDOUT: lines of PostgreSQL's text format.

Tests: tests/session/test_copy.py.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from reclock.dataflow.values import rows_of
from reclock.errors import NotSupported
from reclock.rows.copy_csv import csv_line
from reclock.rows.copy_text import line
from reclock.session.statements.select import answer
from reclock.session.statements.subscribe import open_subscription
from reclock.sql.statement import Subscribe
from reclock.sql.types import TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reclock.session.answer import Answer
    from reclock.session.statements.context import Context
    from reclock.sql.schema import Schema
    from reclock.sql.statement import Copy, CopyFrom
    from reclock.sql.statement.copy import CopyFormat
    from reclock.sql.types import Type
    from reclock.subscribe.subscription import Subscription


def copy(context: Context, statement: Copy) -> NoReturn:
    """Refuse: what COPY gives are lines, not rows."""
    del context, statement
    message = "COPY cannot be executed for a result"
    raise NotSupported(message, hint="use copy(…)")


def copy_from(context: Context, statement: CopyFrom) -> NoReturn:
    """Refuse: what is copied comes after the statement."""
    del context, statement
    message = "COPY FROM STDIN cannot be executed for a result"
    raise NotSupported(message, hint="use insert(…), or a client of a server")


def copy_lines(context: Context, statement: Copy, timeout: float | None) -> Iterator[str]:
    """Run what is copied, and return its rows as lines."""
    form = statement.format
    if form.name == "binary":
        message = "COPY in the binary format gives no lines"
        raise NotSupported(message, hint="use text or csv, or a client of a server")
    if not isinstance(statement.of, Subscribe):
        return _answered(answer(context, statement.of), form)
    return _followed(open_subscription(context, statement.of, timeout), form)


def _answered(found: Answer, form: CopyFormat) -> Iterator[str]:
    kinds = [c.type for c in found.schema]
    with closing(found):
        yield from _header(found.schema, form)
        for batch in found.batches():
            for row in rows_of(pa.Table.from_batches([batch]), kinds):
                yield _line(row, kinds, form, found.schema.names)


def _followed(subscription: Subscription, form: CopyFormat) -> Iterator[str]:
    kinds = [c.type for c in subscription.schema]
    with subscription:
        yield from _header(subscription.schema, form)
        for update in subscription:
            yield _line(subscription.values(update), kinds, form, subscription.schema.names)


def _header(schema: Schema, form: CopyFormat) -> Iterator[str]:
    if form.header != "off":
        yield _line(schema.names, [TEXT] * len(schema), form, schema.names)


def _line(row: Sequence[Any], kinds: Sequence[Type], form: CopyFormat, names: Sequence[str]) -> str:
    if form.name == "csv":
        return csv_line(row, kinds, form, names)
    return line(row, kinds, form.delimiter, form.null)
