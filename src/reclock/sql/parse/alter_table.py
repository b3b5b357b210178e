"""ALTER TABLE, and ALTER … RENAME TO.

Tests: tests/session/test_alter_table.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.errors import NotSupported
from reclock.sql.parse.columns import parse_added_column, parse_table_constraint
from reclock.sql.parse.fragment import expression_of
from reclock.sql.statement.alter_table import (
    AddColumn,
    AddConstraint,
    AlterTable,
    DropColumn,
    DropConstraint,
    Rename,
    RenameColumn,
    SetDefault,
    SetNullable,
)

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor
    from reclock.sql.statement.alter_table import Alteration
    from reclock.sql.syntax.expression import Name

_CONSTRAINTS: Final = (
    ("CONSTRAINT",), ("PRIMARY", "KEY"), ("CHECK", "("), ("UNIQUE",), ("FOREIGN", "KEY"),
)  # fmt: skip
_ACTIONS: Final = ("ADD", "DROP", "ALTER", "RENAME")


def is_action(cursor: Cursor) -> bool:
    """Return whether an action on columns or constraints, or RENAME, comes next."""
    return any(cursor.sees(word) for word in _ACTIONS)


def parse_rename(cursor: Cursor, kind: str, name: Name, *, if_exists: bool) -> Rename:
    """Read what follows RENAME."""
    cursor.expect("TO")
    to = cursor.identifier()
    cursor.end()
    return Rename(kind, name, to, if_exists)


def parse_alter_table(cursor: Cursor, name: Name, *, if_exists: bool) -> AlterTable | Rename:
    """Read the actions of ALTER TABLE."""
    if cursor.accept("RENAME"):
        if cursor.sees("TO"):
            return parse_rename(cursor, "table", name, if_exists=if_exists)
        cursor.accept("COLUMN")
        column = cursor.identifier()
        cursor.expect("TO")
        action = RenameColumn(column, cursor.identifier())
        cursor.end()
        return AlterTable(name, (action,), if_exists)
    actions = [_action(cursor)]
    while cursor.accept(","):
        actions.append(_action(cursor))
    cursor.end()
    return AlterTable(name, tuple(actions), if_exists)


def _action(cursor: Cursor) -> Alteration:
    if cursor.accept("ADD"):
        if any(cursor.sees(*words) for words in _CONSTRAINTS):
            return AddConstraint(parse_table_constraint(cursor))
        cursor.accept("COLUMN")
        if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
        return AddColumn(parse_added_column(cursor), if_not_exists)
    if cursor.accept("DROP", "CONSTRAINT") or cursor.accept("DROP CONSTRAINT"):
        there = cursor.accept("IF", "EXISTS")
        made = DropConstraint(cursor.identifier(), there)
        _cascade(cursor)
        return made
    if cursor.accept("DROP"):
        cursor.accept("COLUMN")
        there = cursor.accept("IF", "EXISTS")
        return DropColumn(cursor.identifier(), there, _cascade(cursor))
    if cursor.accept("ALTER"):
        cursor.accept("COLUMN")
        return _column(cursor, cursor.identifier())
    msg = "ADD, DROP, ALTER or RENAME"
    raise cursor.error(msg)


def _column(cursor: Cursor, column: str) -> Alteration:
    if cursor.accept("DROP", "DEFAULT"):
        return SetDefault(column)
    if cursor.accept("DROP", "NOT", "NULL"):
        return SetNullable(column, nullable=True)
    if cursor.accept("SET", "NOT", "NULL"):
        return SetNullable(column, nullable=False)
    if cursor.accept("SET", "DEFAULT"):
        tokens = cursor.until((",",))
        if not tokens:
            msg = "a value"
            raise cursor.error(msg)
        text = cursor.text[int(tokens[0].start) : int(tokens[-1].end) + 1]
        return SetDefault(column, expression_of(tokens, cursor.text), text)
    message = "this form of ALTER COLUMN is not supported"
    hint = "supported: SET DEFAULT, DROP DEFAULT, SET NOT NULL, DROP NOT NULL; for another type "
    hint += "add a column, and UPDATE"
    raise NotSupported(message, hint=hint, position=cursor.position)


def _cascade(cursor: Cursor) -> bool:
    if cursor.accept("CASCADE"):
        return True
    cursor.accept("RESTRICT")
    return False
