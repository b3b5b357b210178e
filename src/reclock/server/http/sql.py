"""``POST /api/sql``: statements in, columns with types, rows and a timestamp out.

Each request has a session of its own, of the role that asks, and so all rights and errors of the
PostgreSQL port. Statements of one text run in order, and the answer is that of the last; a
transaction is within one text. Rows are taken until there are enough, and no more are read. A
client that goes away has its statement interrupted. ``as_of`` has every query of the text answered
at one time of the past; a text that is not of queries alone is then refused before any of it runs.

Tests: tests/server/http/test_sql.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reclock.errors import InvalidSyntax, InvalidValue, MalformedMessage, NotSupported
from reclock.rows.result import Result
from reclock.server.http.limits import ANSWER_BYTES, MOST_ROWS, ROWS, checked
from reclock.server.http.values import columns_of, parameter_of, rows_of
from reclock.server.protocol.feed import feed_of
from reclock.session.answer import Answer, CopyOut
from reclock.session.copy_in import CopyIn
from reclock.sql.statement import SelectStatement, Subscribe
from reclock.sql.statement.select import AsOf
from reclock.subscribe.subscription import Subscription

if TYPE_CHECKING:
    from reclock.server.http.values import Json
    from reclock.session.session import Session
    from reclock.sql.statement import Parsed


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request asks for."""

    query: str
    params: tuple[Any, ...] = ()
    limit: int = ROWS
    as_of: int | str | None = None

    @classmethod
    def read(cls, body: bytes) -> Ask:
        """Return what a body asks for, or say what is wrong with it."""
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as cause:
            message = "the request is not JSON"
            raise MalformedMessage(message, hint='send {"query": "SELECT …"}') from cause
        if not isinstance(found, dict) or not isinstance(found.get("query"), str):
            message = "the request has no query"
            raise MalformedMessage(message, hint='send {"query": "SELECT …"}')
        if unknown := found.keys() - {"query", "params", "limit", "as_of"}:
            message = f'"{min(unknown)[:60]}" is no part of a request'
            raise MalformedMessage(message, hint="send query, params, limit and as_of")
        params, limit = found.get("params", []), found.get("limit", ROWS)
        if not isinstance(params, list):
            message = "params is not a list"
            raise MalformedMessage(message, hint="send the values of $1, $2, … in a list")
        if type(limit) is not int or not 0 <= limit <= MOST_ROWS:
            message = f"limit is not between 0 and {MOST_ROWS}"
            raise InvalidValue(message, hint="page through more rows with WHERE and ORDER BY")
        as_of = found.get("as_of")
        if not (as_of is None or isinstance(as_of, str) or (type(as_of) is int and as_of >= 0)):
            message = "as_of is not a time"
            raise InvalidValue(message, hint="send milliseconds, or a date and time as text")
        checked(found)
        return cls(found["query"], tuple(params), limit, as_of)


def answer(session: Session, ask: Ask) -> Json:
    """Run what is asked for; return what the last statement gave."""
    made: Json = {"tag": "", "columns": [], "rows": [], "timestamp": None}
    for parsed in [past(parsed, ask.as_of) for parsed in session.parsed(ask.query)]:
        made = _ran(session, parsed, ask)
    return made


def past(parsed: Parsed, as_of: int | str | None) -> Parsed:
    """Return a statement that reads as of a time, if one is asked for."""
    statement = parsed.statement
    if as_of is None:
        return parsed
    if not isinstance(statement, SelectStatement | Subscribe):
        message = "this statement has no past: only queries of relations have one"
        raise InvalidSyntax(message, code="0A000", hint="leave as_of out; in the console: Now")
    if statement.as_of is not None:
        message = "the query has an AS OF of its own"
        raise InvalidSyntax(message, hint="leave one out; in the console: Now")
    return replace(parsed, statement=replace(statement, as_of=AsOf(as_of)))


def values_for(session: Session, parsed: Parsed, params: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the parameters of a statement, of the types that it needs."""
    if not params:
        return ()
    kinds = session.describe(parsed).parameters
    if len(kinds) != len(params):
        message = f"the statement has {len(kinds)} parameters, and {len(params)} were given"
        raise InvalidValue(message, code="08P01", hint="give one value for each of $1, $2, …")
    return tuple(parameter_of(value, kind) for value, kind in zip(params, kinds, strict=True))


def _ran(session: Session, parsed: Parsed, ask: Ask) -> Json:
    outcome = session.run(parsed, values_for(session, parsed, ask.params))
    if isinstance(outcome, Subscription):
        outcome.close()
        message = "SUBSCRIBE has no end"
        raise NotSupported(message, hint="ask /api/subscribe for it")
    if isinstance(outcome, CopyIn | CopyOut):
        if isinstance(outcome, CopyOut):
            outcome.of.close()
        message = "COPY is for the PostgreSQL port"
        raise InvalidSyntax(message, code="0A000", hint="write SELECT, or INSERT")
    notices = list(outcome.notices) if isinstance(outcome, Result) else []
    made: Json = {
        "tag": outcome.tag, "columns": [], "rows": [], "truncated": False,
        "timestamp": None if outcome.timestamp is None else str(int(outcome.timestamp)),
        "notices": notices,
    }  # fmt: skip
    if outcome.schema is None:
        return made
    made["columns"] = columns_of(outcome.schema)
    feed = feed_of(outcome, session.interrupt)
    try:
        made["rows"], made["truncated"] = _rows(feed, ask.limit, session)
    finally:
        feed.close()
    if not isinstance(outcome, Result):
        made["tag"] = f"{feed.tag} {len(made['rows'])}"
    return made


def _rows(feed: Answer, limit: int, session: Session) -> tuple[list[Any], bool]:
    kinds = [column.type for column in feed.schema]
    rows: list[Any] = []
    size = 0
    while (batch := feed.take(max(1, limit - len(rows)))) is not None:
        session.interrupt.check()
        if len(rows) + batch.num_rows > limit or size > ANSWER_BYTES:
            return rows, True
        size += batch.nbytes
        rows += rows_of(batch, kinds)
    return rows, False
