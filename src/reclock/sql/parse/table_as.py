"""CREATE TABLE … AS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.sql.parse.cursor import Cursor
from reclock.sql.parse.fragment import query_of
from reclock.sql.statement.table import CreateTableAs

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Name

_DATA: Final = {("WITH", "NO", "DATA"): False, ("WITH", "DATA"): True}


def is_table_as(cursor: Cursor) -> bool:
    """Return whether AS comes, perhaps after names of columns: these have no types."""
    ahead = Cursor(cursor.ahead(), cursor.text)
    if ahead.sees("("):
        ahead.inside_parens()
    return ahead.sees("AS")


def parse_table_as(cursor: Cursor, name: Name, *, if_not_exists: bool) -> CreateTableAs:
    """Read what follows the name of a table that is made of a query."""
    columns = cursor.names_in_parens() if cursor.sees("(") else ()
    cursor.expect("AS")
    tokens = cursor.rest()
    with_data = True
    for words, value in _DATA.items():
        end = tuple(str(token.text).upper() for token in tokens[-len(words) :])
        if end == words:
            tokens, with_data = tokens[: -len(words)], value
            break
    return CreateTableAs(name, query_of(tokens, cursor.text), columns, if_not_exists, with_data)
