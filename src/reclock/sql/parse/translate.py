"""``reclock.translate``: the bindings of a source, read in either direction, as a table.

::

    reclock.translate('orders', 2000)         partition, "offset": where it was at a time
    reclock.translate('orders', '0:120')      timestamp: when a position became visible
    reclock.translate('orders', 'a.csv', 120) the same, of a part and an offset

It stands for a query over ``reclock.bindings`` with its arguments in it, so it has the moment of
the query around it, AS OF too. A position that is not bound has the timestamp NULL; a name that is
no source is an error. Arguments are constants or parameters: which of the two directions is
meant is seen here.

Tests: tests/sql/test_translate.py; over bindings: tests/ingest/test_translate.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from reclock.errors import StatementError
from reclock.sql.parse.dialect import parse_tokens, tokenize
from reclock.sql.parse.node import position_of

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME: Final = "translate"

_OFFSETS: Final = (
    'SELECT partition, max("offset") AS "offset" FROM reclock.bindings '
    "WHERE source = given_source AND timestamp <= given_time GROUP BY partition"
)
_TIMES: Final = (
    "SELECT min(timestamp) AS timestamp FROM reclock.bindings "
    'WHERE source = given_source AND partition = given_part AND "offset" > given_offset'
)


def translated(call: exp.Expr) -> exp.Expr:
    """Return the query that a call of ``reclock.translate`` stands for."""
    match call.expressions:
        case [source, exp.Literal(is_string=True) as position]:
            part, colon, offset = str(position.this).rpartition(":")
            if not colon or not offset.isdecimal():
                message = f"invalid position '{position.this}'"
                hint = "write 'partition:offset', or partition and offset as two arguments"
                raise StatementError(message, code="22023", hint=hint, position=position_of(call))
            given = exp.Literal.string(part), exp.Literal.number(offset)
            return _filled(_TIMES, {"source": source, "part": given[0], "offset": given[1]})
        case [source, time]:
            return _filled(_OFFSETS, {"source": source, "time": time})
        case [source, part, offset]:
            return _filled(_TIMES, {"source": source, "part": part, "offset": offset})
    message = f"reclock.translate with {len(call.expressions)} arguments does not exist"
    hint = "write (source, timestamp), (source, 'partition:offset') or (source, partition, offset)"
    raise StatementError(message, code="42883", hint=hint, position=position_of(call))


def _filled(text: str, arguments: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return a query with arguments in the place of ``given_…``."""

    def fill(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name.startswith("given_"):
            return arguments[node.name.removeprefix("given_")].copy()
        return node

    return parse_tokens(tokenize(text), text).transform(fill)
