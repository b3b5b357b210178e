"""CREATE TABLE, VIEW, MATERIALIZED VIEW and INDEX."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from reclock.errors import NotSupported
from reclock.sql.parse.columns import parse_columns, parse_nulls_distinct
from reclock.sql.parse.connection import parse_create_connection, parse_create_secret
from reclock.sql.parse.connectors import parse_sink, parse_source
from reclock.sql.parse.fragment import expression_of, query_of
from reclock.sql.parse.options import BOOLEAN, DURATION, NUMBER, STRING, parse_options
from reclock.sql.parse.refresh import RefreshOptions
from reclock.sql.parse.role import parse_create_role
from reclock.sql.parse.sequence import parse_create_sequence
from reclock.sql.parse.table_as import is_table_as, parse_table_as
from reclock.sql.statement.index import CreateIndex
from reclock.sql.statement.table import CreateTable
from reclock.sql.statement.view import CreateMaterializedView, CreateView

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

    from reclock.sql.parse.cursor import Cursor
    from reclock.sql.statement import CreateTableAs, Statement

_TABLE = {"timeline": STRING, "retain_history": DURATION, "fillfactor": NUMBER}
_STORAGE = ("autovacuum_", "toast.", "toast_tuple_target", "parallel_workers")
"""How PostgreSQL's storage options begin that tools give; like ``fillfactor`` they say nothing."""
_VIEW = {
    "retain_history": DURATION,
    "allow_full_recompute": BOOLEAN,
}
_OPERATORS: Final = re.compile("(text|varchar|bpchar)(_pattern)?_ops|(int[248]|date|uuid)_ops")
_INDEX = {"retain_history": DURATION}


def parse_create(cursor: Cursor) -> Statement:  # noqa: PLR0911, PLR0912 - one per kind
    """Read what follows CREATE."""
    position = cursor.position
    or_replace = cursor.accept("OR", "REPLACE")
    if cursor.accept("VIEW"):
        return _view(cursor, or_replace)
    if cursor.accept("MATERIALIZED", "VIEW"):
        return _materialized_view(cursor, or_replace)
    if or_replace:
        message = "OR REPLACE is supported for views only"
        hint = "DROP … IF EXISTS it first, then CREATE"
        raise NotSupported(message, hint=hint, position=position)
    if cursor.accept("TABLE"):
        return _table(cursor)
    if cursor.accept("INDEX"):
        return _index(cursor, unique=False)
    if cursor.accept("UNIQUE", "INDEX"):
        return _index(cursor, unique=True)
    if cursor.accept("SOURCE"):
        return parse_source(cursor)
    if cursor.accept("SINK"):
        return parse_sink(cursor)
    if cursor.accept("SECRET"):
        return parse_create_secret(cursor)
    if cursor.accept("CONNECTION"):
        return parse_create_connection(cursor)
    if cursor.accept("SEQUENCE"):
        return parse_create_sequence(cursor)
    if cursor.accept("ROLE"):
        return parse_create_role(cursor, login=False)
    if cursor.accept("USER"):
        return parse_create_role(cursor, login=True)
    msg = "TABLE, VIEW, MATERIALIZED VIEW, [UNIQUE] INDEX, SEQUENCE, SOURCE, SINK, CONNECTION, "
    msg += "SECRET, ROLE or USER after CREATE"
    raise cursor.error(msg)


def _table(cursor: Cursor) -> CreateTable | CreateTableAs:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name()
    if is_table_as(cursor):
        return parse_table_as(cursor, name, if_not_exists=if_not_exists)
    columns = parse_columns(cursor)
    options = parse_options(cursor, _TABLE, prefixes=_STORAGE)
    cursor.end()
    return CreateTable(
        name, columns, if_not_exists, options.text("timeline"), options.duration("retain_history")
    )


def _view(cursor: Cursor, or_replace: bool) -> CreateView:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name()
    columns = cursor.names_in_parens() if cursor.sees("(") else ()
    cursor.expect("AS")
    query = query_of(cursor.rest(), cursor.text)
    return CreateView(name, query, columns, if_not_exists, or_replace)


def _materialized_view(cursor: Cursor, or_replace: bool) -> CreateMaterializedView:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name()
    columns = cursor.names_in_parens() if cursor.sees("(") else ()
    refresh = RefreshOptions()
    options = parse_options(cursor, _VIEW, clause=refresh.accept)
    cursor.expect("AS")
    return CreateMaterializedView(
        name,
        query_of(cursor.rest(), cursor.text),
        columns,
        if_not_exists,
        options.duration("retain_history"),
        options.boolean("allow_full_recompute"),
        refresh.options,
        or_replace,
    )


def _index(cursor: Cursor, *, unique: bool) -> CreateIndex:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = None if cursor.sees("ON") else cursor.name()
    cursor.expect("ON")
    relation = cursor.name()
    if cursor.accept("USING"):
        cursor.expect("BTREE")
    cursor.expect("(")
    keys = []
    while True:
        keys.append(expression_of(_key(cursor.until((",",))), cursor.text))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    distinct = not unique or parse_nulls_distinct(cursor)
    options = parse_options(cursor, _INDEX)
    if cursor.sees("WHERE"):
        message = "an index with WHERE, on some of the rows, is not supported"
        hint = "leave WHERE out, or index a materialized view that has these rows"
        raise NotSupported(message, hint=hint, position=cursor.position)
    cursor.end()
    return CreateIndex(
        name, relation, tuple(keys), if_not_exists, options.duration("retain_history"),
        unique, distinct,
    )  # fmt: skip


def _key(tokens: list[Token]) -> list[Token]:
    """Return a key without its operator class and order, which an index here has no use for."""
    words = [token.text.lower() for token in tokens]
    end = len(words)
    if words[end - 2 : end] in (["nulls", "first"], ["nulls", "last"]):
        end -= 2
    if end and words[end - 1] in {"asc", "desc"}:
        end -= 1
    if end > 1 and _OPERATORS.fullmatch(words[end - 1]):
        end -= 1
    return tokens[:end] or tokens
