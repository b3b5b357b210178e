"""Column lists of CREATE TABLE and CREATE SOURCE."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.errors import InvalidSyntax, NotSupported
from reclock.sql.parse.fragment import expression_of
from reclock.sql.parse.types import parse_type_text
from reclock.sql.plan.interval_text import has_interval
from reclock.sql.statement.column import ColumnDefinition, ColumnList
from reclock.sql.syntax import expression as s
from reclock.sql.syntax.place import placed_at
from reclock.sql.types import TEXT, IntervalOf, Varchar

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor

_CONSTRAINTS = (
    ("NOT",), ("NULL",), ("PRIMARY", "KEY"), ("DEFAULT",), ("UNIQUE",), ("CHECK",),
    ("REFERENCES",), ("GENERATED",), ("COLLATE",), ("CONSTRAINT",), (",",),
)  # fmt: skip


def parse_columns(cursor: Cursor) -> ColumnList:
    """Read ``(name type constraints, …, PRIMARY KEY (…) [NOT ENFORCED])``."""
    cursor.expect("(")
    columns: list[ColumnDefinition] = []
    key: tuple[str, ...] = ()
    enforced = True
    while True:
        position = cursor.position
        if cursor.accept("PRIMARY", "KEY"):
            if key:
                raise _second_key(position)
            key = cursor.names_in_parens()
            enforced = not cursor.accept("NOT", "ENFORCED")
        elif cursor.sees("UNIQUE") or cursor.sees("CHECK") or cursor.sees("FOREIGN"):
            raise _unsupported(cursor)
        else:
            column, is_key, key_enforced = _column(cursor)
            if is_key and key:
                raise _second_key(position)
            if is_key:
                key, enforced = (column.name,), key_enforced
            columns.append(column)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return _checked(columns, key, enforced)


def _checked(columns: list[ColumnDefinition], key: tuple[str, ...], enforced: bool) -> ColumnList:
    names = [c.name for c in columns]
    for column in columns:
        if names.count(column.name) > 1:
            message = f'column "{column.name}" is specified more than once'
            hint = "give one of them another name"
            raise InvalidSyntax(message, code="42701", hint=hint, position=column.position)
    for name in key:
        if name not in names:
            message = f'column "{name}" named in key does not exist'
            hint = f"the columns are {', '.join(names)}"
            raise InvalidSyntax(message, code="42703", hint=hint, position=columns[0].position)
    for column in columns:
        if column.name in key and has_interval(column.type):
            message = f'column "{column.name}" of type {column.type} cannot be part of a key'
            detail = "equal intervals may be different values: 1 mon and 30 days"
            hint = "use a number of seconds or days as the key"
            raise NotSupported(message, detail=detail, hint=hint, position=column.position)
    made = tuple(replace(c, nullable=c.nullable and c.name not in key) for c in columns)
    return ColumnList(made, key, enforced)


def _column(cursor: Cursor) -> tuple[ColumnDefinition, bool, bool]:
    position = cursor.position
    name = cursor.identifier()
    tokens = cursor.until(*_CONSTRAINTS)
    if not tokens:
        msg = "a type"
        raise cursor.error(msg)
    text = cursor.text[int(tokens[0].start) : int(tokens[-1].end) + 1]
    with placed_at(int(tokens[0].start) + 1):
        declared = parse_type_text(text)
    if isinstance(declared, IntervalOf):
        message = f'a column of type "{declared}" is not supported'
        raise NotSupported(message, hint="use interval; a cast cuts and rounds what is written")
    length = declared.length if isinstance(declared, Varchar) else None
    column_type = TEXT if isinstance(declared, Varchar) else declared
    nullable, default, key, enforced = True, None, False, True
    while not (cursor.sees(",") or cursor.sees(")") or cursor.at_end):
        if cursor.accept("NOT", "NULL"):
            nullable = False
        elif cursor.accept("NULL"):
            pass
        elif cursor.accept("PRIMARY", "KEY"):
            key, nullable = True, False
            enforced = not cursor.accept("NOT", "ENFORCED")
        elif cursor.accept("DEFAULT"):
            default = expression_of(cursor.until(*_CONSTRAINTS), cursor.text)
            if not _is_literal(default):
                message = "a default that is not a literal is not supported"
                hint = "write a literal, or give the value in each INSERT"
                raise NotSupported(message, hint=hint, position=position)
        else:
            raise _unsupported(cursor)
    made = ColumnDefinition(name, column_type, nullable, default, position, length)
    return made, key, enforced


def _is_literal(default: s.Expression) -> bool:
    if isinstance(default, s.CastText):
        cut = isinstance(default.type, Varchar) and not isinstance(default.operand, s.StringText)
        return not cut and _is_literal(default.operand)
    if isinstance(default, s.Operator):
        return default.symbol == "-" and all(_is_literal(o) for o in default.operands)
    return isinstance(
        default, s.NumberText | s.StringText | s.BooleanText | s.NullText | s.IntervalText
    )


def _unsupported(cursor: Cursor) -> NotSupported:
    position = cursor.position
    word = cursor.word_value().upper()
    return NotSupported(
        f"column constraint {word} is not supported",
        hint="supported: NOT NULL, NULL, DEFAULT literal, PRIMARY KEY",
        position=position,
    )


def _second_key(position: int) -> InvalidSyntax:
    message = "multiple primary keys are not allowed"
    hint = "write PRIMARY KEY (a, b) for a key of several columns"
    return InvalidSyntax(message, code="42P16", hint=hint, position=position)
