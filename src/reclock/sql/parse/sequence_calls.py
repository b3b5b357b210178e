"""``SELECT nextval('s')`` and ``SELECT setval('s', …)``: queries that do something to sequences.

A query only computes. So each call that is an output becomes what is known without the sequence, 0
or the value to set, and a ``SequenceCall`` says what is done with each row that comes out
(``session.sequence_functions``). A call elsewhere in a query is refused by the planner.

Tests: tests/session/test_sequences.py.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from reclock.errors import UndefinedName
from reclock.sql.statement.select import SelectStatement, SequenceCall
from reclock.sql.syntax import expression as s
from reclock.sql.syntax import query as q
from reclock.sql.types import BIGINT, BOOLEAN

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

NAMES: Final = frozenset({"nextval", "setval", "currval", "lastval"})
_DONE: Final = ("nextval", "setval")


def calls_sequences(tokens: list[Token]) -> bool:
    """Return whether a text calls a function of sequences: then it is not over the catalog."""
    return any(
        str(token.text).lower() in NAMES and after.text == "(" for token, after in pairwise(tokens)
    )


def with_calls(statement: SelectStatement) -> SelectStatement:
    """Return a query with its calls apart."""
    body = statement.query.body
    if not isinstance(body, q.Select) or body.distinct or body.distinct_on:
        return statement
    if any(isinstance(item.expression, s.Star) for item in body.items):
        return statement
    items: list[q.SelectItem] = []
    hidden: list[q.SelectItem] = []
    calls: list[SequenceCall] = []
    for place, item in enumerate(body.items):
        call = item.expression
        if not isinstance(call, s.FunctionText) or call.name not in _DONE:
            items.append(item)
            continue
        _check_count(call)
        called = None
        given: s.Expression = s.NumberText("0", call.position)
        if call.name == "setval":
            given = call.arguments[1]
            if len(call.arguments) > 2:
                called = len(body.items) + len(hidden)
                flag = s.CastText(call.arguments[2], BOOLEAN, call.position)
                hidden.append(q.SelectItem(flag, "is_called"))
        calls.append(SequenceCall(call.name, call.arguments[0], place, called))
        value = s.CastText(given, BIGINT, call.position)
        items.append(q.SelectItem(value, item.alias or call.name))
    if not calls:
        return statement
    made = replace(body, items=(*items, *hidden))
    query = replace(statement.query, body=made)
    return replace(statement, query=query, calls=tuple(calls), hidden=len(hidden))


def _check_count(call: s.FunctionText) -> None:
    wanted = (1,) if call.name == "nextval" else (2, 3)
    if len(call.arguments) not in wanted:
        message = f"function {call.name} does not exist with {len(call.arguments)} arguments"
        hint = "write nextval('name'), or setval('name', value [, is_called])"
        raise UndefinedName(message, code="42883", hint=hint, position=call.position)
