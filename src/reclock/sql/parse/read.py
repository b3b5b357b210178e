"""SELECT, SUBSCRIBE, COPY and EXPLAIN: the statements that read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import InvalidSyntax, NotSupported
from reclock.sql.parse.copy_format import parse_copy_format
from reclock.sql.parse.cursor import Cursor
from reclock.sql.parse.dialect import tokenize
from reclock.sql.parse.fragment import QUERY_WORDS, query_of, sort_items_of
from reclock.sql.parse.options import BOOLEAN, STRING, parse_options
from reclock.sql.parse.sequence_calls import calls_sequences, with_calls
from reclock.sql.pg.parse import catalog_query
from reclock.sql.statement.copy import Copy, CopyFrom
from reclock.sql.statement.explain import ExplainPlan, ExplainTimestamp
from reclock.sql.statement.index import CreateIndex
from reclock.sql.statement.select import AsOf, SelectStatement
from reclock.sql.statement.subscribe import Subscribe, SubscribeEnvelope
from reclock.sql.statement.view import CreateMaterializedView, CreateView

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.sql.statement import CatalogQuery, Statement
    from reclock.sql.syntax.expression import SortItem

_EXPLAIN = {
    "format": STRING,
    **dict.fromkeys(
        ("analyze", "verbose", "costs", "settings", "generic_plan", "buffers", "wal",
         "timing", "summary", "memory"), BOOLEAN,
    ),
}  # fmt: skip
"""PostgreSQL's; all but ANALYZE and FORMAT say nothing here."""

_SUBSCRIBE = {"snapshot": BOOLEAN, "progress": BOOLEAN}


def parse_query_statement(cursor: Cursor) -> SelectStatement | CatalogQuery:
    """Read a query: of rows, with the time it asks for, or over PostgreSQL's catalog."""
    if calls_sequences(cursor.ahead()):
        return with_calls(parse_select(cursor))
    return catalog_query(cursor) or parse_select(cursor)


def parse_select(cursor: Cursor) -> SelectStatement:
    """Read a query and the time it asks for."""
    tokens = cursor.until(("AS", "OF"))
    query = query_of(tokens, cursor.text)
    as_of = _as_of(cursor)
    cursor.end()
    return SelectStatement(query, as_of)


def _as_of(cursor: Cursor) -> AsOf | None:
    if not cursor.accept("AS", "OF"):
        return None
    at_least = cursor.accept("AT", "LEAST")
    return AsOf(cursor.time(), at_least)


def parse_subscribe(cursor: Cursor) -> Subscribe:
    """Read what follows SUBSCRIBE."""
    cursor.accept("TO")
    relation = query = None
    if cursor.sees("("):
        query = query_of(cursor.inside_parens(), cursor.text)
    elif any(cursor.sees(word) for word in QUERY_WORDS[:3]):
        msg = "a name or a query in parentheses"
        raise cursor.error(msg, hint="write SUBSCRIBE (SELECT …)")
    else:
        relation = cursor.name()
    options = parse_options(cursor, _SUBSCRIBE)
    as_of = _as_of(cursor)
    up_to = cursor.time() if cursor.accept("UP", "TO") else None
    envelope = None
    if cursor.accept("ENVELOPE"):
        kind = cursor.choose("UPSERT", "DEBEZIUM").lower()
        cursor.expect("(", "KEY")
        envelope = SubscribeEnvelope(kind, cursor.names_in_parens())
        cursor.expect(")")
    order: tuple[SortItem, ...] = ()
    if cursor.sees("WITHIN"):
        position = cursor.position
        cursor.expect("WITHIN", "TIMESTAMP", "ORDER", "BY")
        if envelope is not None:
            message = "WITHIN TIMESTAMP ORDER BY cannot be used with ENVELOPE"
            hint = "leave out one of them"
            raise InvalidSyntax(message, hint=hint, position=position)
        if cursor.at_end:
            msg = "an ordering"
            raise cursor.error(msg)
        order = sort_items_of(cursor.rest(), cursor.text)
    cursor.end()
    return Subscribe(
        relation,
        query,
        options.boolean("snapshot", default=True),
        options.boolean("progress"),
        as_of,
        up_to,
        envelope,
        order,
    )


def query_or_subscribe(cursor: Cursor) -> SelectStatement | CatalogQuery | Subscribe:
    """Read a query, or SUBSCRIBE and what follows it."""
    return parse_subscribe(cursor) if cursor.accept("SUBSCRIBE") else parse_query_statement(cursor)


def parse_copy(cursor: Cursor) -> Copy | CopyFrom:
    """Read what follows COPY."""
    if not cursor.sees("("):
        return _copy_table(cursor)
    inside = Cursor(cursor.inside_parens(), cursor.text)
    cursor.expect("TO", "STDOUT")
    return Copy(query_or_subscribe(inside), parse_copy_format(cursor, to=True))


def _copy_table(cursor: Cursor) -> Copy | CopyFrom:
    before = cursor.ahead()
    name = cursor.name()
    called = before[: len(before) - len(cursor.ahead())]
    listed = tokenize("*")
    columns: tuple[str, ...] = ()
    if cursor.sees("("):
        listed = Cursor(cursor.ahead(), cursor.text).inside_parens()
        columns = cursor.names_in_parens()
    if cursor.accept("TO", "STDOUT"):
        written = parse_copy_format(cursor, to=True)
        query = [*tokenize("SELECT"), *listed, *tokenize("FROM"), *called]
        return Copy(parse_query_statement(Cursor(query, cursor.text)), written)
    if not cursor.accept("FROM", "STDIN"):
        msg = "FROM STDIN or TO STDOUT"
        raise cursor.error(msg, hint="files are the client's: psql has \\copy")
    return CopyFrom(name, columns, parse_copy_format(cursor, to=False))


def parse_explain(cursor: Cursor, inner: Callable[[Cursor], Statement]) -> Statement:
    """Read what follows EXPLAIN; ``inner`` reads what follows CREATE."""
    if cursor.accept("TIMESTAMP"):
        cursor.expect("FOR")
        of = parse_subscribe(cursor) if cursor.accept("SUBSCRIBE") else parse_select(cursor)
        return ExplainTimestamp(of)
    analyze = _explain_options(cursor)
    cursor.accept("PLAN")
    cursor.accept("FOR")
    at, materialized = cursor.position, cursor.accept("MATERIALIZED", "VIEW")
    if materialized or cursor.accept("VIEW"):
        name = cursor.name()
        cursor.end()
        if analyze and not materialized:
            raise _not_run(at)
        return ExplainPlan(name, analyze)
    if analyze and (cursor.sees("CREATE") or cursor.sees("SUBSCRIBE")):
        raise _not_run(at)
    if cursor.accept("CREATE"):
        position = cursor.position
        made = inner(cursor)
        if not isinstance(made, CreateView | CreateMaterializedView | CreateIndex):
            message = "EXPLAIN of this statement is not supported"
            hint = "explain a query, SUBSCRIBE, CREATE … VIEW or CREATE INDEX"
            raise NotSupported(message, hint=hint, position=position)
        return ExplainPlan(made)
    return ExplainPlan(query_or_subscribe(cursor), analyze)


def _explain_options(cursor: Cursor) -> bool:
    """Read the options of EXPLAIN as PostgreSQL writes them; return whether it is ANALYZE."""
    if cursor.sees("(") and not _opens_query(cursor):
        position = cursor.position
        options = parse_options(cursor, _EXPLAIN, keyword=False)
        form = options.text("format") or "text"
        if form.lower() != "text":
            message = f"EXPLAIN with FORMAT {form.upper()} is not supported"
            hint = "leave FORMAT out: a plan is a text of several lines"
            raise NotSupported(message, hint=hint, position=position)
        return options.boolean("analyze")
    analyze = cursor.accept("ANALYZE")
    cursor.accept("VERBOSE")
    return analyze


def _opens_query(cursor: Cursor) -> bool:
    """Return whether a parenthesis that comes next begins a query."""
    after = Cursor(cursor.ahead(), cursor.text)
    while after.accept("("):
        pass
    return any(after.sees(word) for word in QUERY_WORDS)


def _not_run(position: int) -> NotSupported:
    message = "EXPLAIN ANALYZE of this statement is not supported"
    hint = "leave ANALYZE out, or analyze a query or a MATERIALIZED VIEW that is there"
    return NotSupported(message, hint=hint, position=position)
