"""Column lists of CREATE TABLE and CREATE SOURCE."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from reclock.errors import InvalidSyntax, NotSupported
from reclock.sql.parse.fragment import expression_of
from reclock.sql.parse.sequence import parse_sequence_options
from reclock.sql.parse.types import parse_type_text
from reclock.sql.plan.interval_text import has_interval
from reclock.sql.statement.column import (
    CheckDefinition,
    ColumnDefinition,
    ColumnList,
    UniqueDefinition,
)
from reclock.sql.statement.sequence import SequenceOptions
from reclock.sql.syntax import expression as s
from reclock.sql.syntax.place import placed_at
from reclock.sql.types import BIGINT, INTEGER, INTEGERS, SMALLINT, TEXT, Char, IntervalOf, Varchar

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor
    from reclock.sql.types import Type

_CONSTRAINTS = (
    ("NOT",), ("NULL",), ("PRIMARY", "KEY"), ("DEFAULT",), ("UNIQUE",), ("CHECK",),
    ("REFERENCES",), ("GENERATED",), ("COLLATE",), ("CONSTRAINT",), (",",),
)  # fmt: skip
_SERIALS: Final[dict[str, Type]] = {
    "serial": INTEGER, "serial4": INTEGER, "bigserial": BIGINT, "serial8": BIGINT,
    "smallserial": SMALLINT, "serial2": SMALLINT,
}  # fmt: skip
_OF_TABLE: Final = (
    ("CONSTRAINT",), ("PRIMARY", "KEY"), ("FOREIGN", "KEY"), ("UNIQUE", "("), ("CHECK", "("),
    ("UNIQUE", "NULLS"), ("EXCLUDE",),
)  # fmt: skip


@dataclass
class _Read:
    """What was read so far."""

    columns: list[ColumnDefinition] = field(default_factory=list)
    key: tuple[str, ...] = ()
    enforced: bool = True
    key_name: str | None = None
    checks: list[CheckDefinition] = field(default_factory=list)
    uniques: list[UniqueDefinition] = field(default_factory=list)

    def add_key(self, key: tuple[str, ...], name: str | None, cursor: Cursor, at: int) -> None:
        """Note the primary key, whose words have been read."""
        if self.key:
            raise _second_key(at)
        self.key, self.key_name = key, name
        self.enforced = not cursor.accept("NOT", "ENFORCED")


def parse_columns(cursor: Cursor, *, plain: bool = False) -> ColumnList:
    """Read ``(name type constraints, …, PRIMARY KEY (…) [NOT ENFORCED], CHECK (…))``.

    ``plain`` columns have no more than literals as defaults, and a key: those of sources.
    """
    cursor.expect("(")
    read = _Read()
    while True:
        if any(cursor.sees(*words) for words in _OF_TABLE):
            _of_table(cursor, read)
        else:
            read.columns.append(_column(cursor, read, plain=plain))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    if plain and (read.checks or read.uniques):
        if read.checks:
            msg = "CHECK"
            raise _not_plain(msg, read.checks[0].position)
        msg = "UNIQUE"
        raise _not_plain(msg, read.uniques[0].position)
    return _checked(read)


def parse_added_column(cursor: Cursor) -> ColumnList:
    """Read one column with its constraints: that of ALTER TABLE … ADD COLUMN."""
    read = _Read()
    read.columns.append(_column(cursor, read, plain=False))
    return _checked(read)


def parse_table_constraint(cursor: Cursor) -> ColumnList:
    """Read one constraint of a table: that of ALTER TABLE … ADD."""
    read = _Read()
    _of_table(cursor, read)
    return ColumnList(
        (), read.key, read.enforced, read.key_name, tuple(read.checks), tuple(read.uniques)
    )


def _of_table(cursor: Cursor, read: _Read) -> None:
    name = cursor.identifier() if cursor.accept("CONSTRAINT") else None
    position = cursor.position
    if cursor.accept("PRIMARY", "KEY"):
        read.add_key(cursor.names_in_parens(), name, cursor, position)
    elif cursor.accept("CHECK"):
        read.checks.append(_check(cursor, name, position))
    elif cursor.accept("UNIQUE"):
        distinct = parse_nulls_distinct(cursor)
        columns = cursor.names_in_parens()
        read.uniques.append(UniqueDefinition(columns, distinct, name, position))
    else:
        raise _unsupported(cursor)


def parse_nulls_distinct(cursor: Cursor) -> bool:
    """Read ``[NULLS [NOT] DISTINCT]``; return whether NULLs differ from each other."""
    if cursor.accept("NULLS", "NOT", "DISTINCT"):
        return False
    cursor.accept("NULLS", "DISTINCT")
    return True


def _check(cursor: Cursor, name: str | None, position: int) -> CheckDefinition:
    tokens = cursor.inside_parens()
    if not tokens:
        msg = "a condition"
        raise cursor.error(msg)
    text = cursor.text[int(tokens[0].start) : int(tokens[-1].end) + 1]
    cursor.accept("NO", "INHERIT")
    return CheckDefinition(expression_of(tokens, cursor.text), text, name, position)


def _checked(read: _Read) -> ColumnList:
    columns, key = read.columns, read.key
    names = [c.name for c in columns]
    for column in columns:
        if names.count(column.name) > 1:
            message = f'column "{column.name}" specified more than once'
            hint = "give one of them another name"
            raise InvalidSyntax(message, code="42701", hint=hint, position=column.position)
    for keyed in (key, *(unique.columns for unique in read.uniques)):
        for name in keyed:
            if name not in names:
                message = f'column "{name}" named in key does not exist'
                hint = f"the columns are {', '.join(names)}"
                raise InvalidSyntax(message, code="42703", hint=hint, position=columns[0].position)
            if keyed.count(name) > 1:
                kind = "primary key" if keyed is key else "unique"
                message = f'column "{name}" appears twice in {kind} constraint'
                hint = "name it once"
                raise InvalidSyntax(message, code="42701", hint=hint, position=columns[0].position)
        for column in columns:
            if column.name in keyed:
                check_keyable(column.name, column.type, column.position)
    made = tuple(replace(c, nullable=c.nullable and c.name not in key) for c in columns)
    return ColumnList(
        made, key, read.enforced, read.key_name, tuple(read.checks), tuple(read.uniques)
    )


def check_keyable(name: str, kind: Type, position: int | None = None) -> None:
    """Refuse a column in a key whose equal values may differ."""
    if has_interval(kind):
        message = f'column "{name}" of type {kind} cannot be part of a key'
        detail = "equal intervals may be different values: 1 mon and 30 days"
        hint = "use a number of seconds or days as the key"
        raise NotSupported(message, detail=detail, hint=hint, position=position)


def _column(cursor: Cursor, read: _Read, *, plain: bool) -> ColumnDefinition:
    position = cursor.position
    name = cursor.identifier()
    tokens = cursor.until(*_CONSTRAINTS)
    if not tokens:
        msg = "a type"
        raise cursor.error(msg)
    text = cursor.text[int(tokens[0].start) : int(tokens[-1].end) + 1]
    serial = _SERIALS.get(text.lower())
    if serial is not None and not plain:
        options = SequenceOptions(serial)
        made = ColumnDefinition(name, serial, False, None, position, sequence=options)
    else:
        made = _of_type(name, text, int(tokens[0].start) + 1, position)
    while not (cursor.sees(",") or cursor.sees(")") or cursor.at_end):
        made = _constrained(cursor, made, read, plain=plain)
    if made.sequence is not None and made.type not in INTEGERS:
        message = "identity column type must be smallint, integer, or bigint"
        raise InvalidSyntax(message, code="22023", hint="declare it bigint", position=position)
    return made


def _of_type(name: str, text: str, start: int, position: int) -> ColumnDefinition:
    with placed_at(start):
        declared = parse_type_text(text)
    if isinstance(declared, IntervalOf):
        message = f'a column of type "{declared}" is not supported'
        raise NotSupported(message, hint="use interval; a cast cuts and rounds what is written")
    if isinstance(declared, Varchar | Char):
        fixed = isinstance(declared, Char)
        return ColumnDefinition(name, TEXT, position=position, length=declared.length, fixed=fixed)
    return ColumnDefinition(name, declared, position=position)


def _constrained(
    cursor: Cursor, made: ColumnDefinition, read: _Read, *, plain: bool
) -> ColumnDefinition:
    """Return a column after one more constraint of it was read."""
    position = cursor.position
    name = cursor.identifier() if cursor.accept("CONSTRAINT") else None
    if cursor.accept("NOT", "NULL"):
        return replace(made, nullable=False)
    if cursor.accept("NULL"):
        if made.sequence is not None or not made.nullable:
            message = f'conflicting NULL/NOT NULL declarations for column "{made.name}"'
            raise InvalidSyntax(message, hint="leave out NULL", position=position)
        return made
    if cursor.accept("PRIMARY", "KEY"):
        read.add_key((made.name,), name, cursor, position)
        return replace(made, nullable=False)
    if cursor.accept("DEFAULT"):
        return _with_default(cursor, made, position, plain=plain)
    if plain:
        raise _unsupported(cursor, plain=True)
    if cursor.accept("CHECK"):
        read.checks.append(_check(cursor, name, position))
    elif cursor.accept("UNIQUE"):
        distinct = parse_nulls_distinct(cursor)
        read.uniques.append(UniqueDefinition((made.name,), distinct, name, position))
    elif cursor.accept("GENERATED"):
        return _generated(cursor, made, position)
    else:
        raise _unsupported(cursor)
    return made


def _with_default(
    cursor: Cursor, made: ColumnDefinition, position: int, *, plain: bool
) -> ColumnDefinition:
    if made.default is not None or made.sequence is not None:
        raise _twice(made.name, "default values", position)
    tokens = cursor.until(*_CONSTRAINTS)
    if not tokens:
        msg = "a value"
        raise cursor.error(msg)
    text = cursor.text[int(tokens[0].start) : int(tokens[-1].end) + 1]
    default = expression_of(tokens, cursor.text)
    if plain and not is_literal(default):
        msg_0 = "a DEFAULT that is not a literal"
        raise _not_plain(msg_0, position)
    return replace(made, default=default, default_text=text)


def _generated(cursor: Cursor, made: ColumnDefinition, position: int) -> ColumnDefinition:
    always = cursor.accept("ALWAYS")
    if not always:
        cursor.expect("BY", "DEFAULT")
    if not cursor.accept("AS", "IDENTITY"):
        if always and cursor.sees("AS"):
            message = "generated columns are not supported"
            hint = "compute it in a view over the table"
            raise NotSupported(message, hint=hint, position=position)
        cursor.expect("AS", "IDENTITY")
    if made.default is not None:
        raise _twice(made.name, "default and identity", position)
    if made.sequence is not None:
        raise _twice(made.name, "identity specifications", position)
    options = SequenceOptions()
    if cursor.accept("("):
        options = parse_sequence_options(cursor)
        cursor.expect(")")
    identity = "always" if always else "by default"
    return replace(made, nullable=False, sequence=options, identity=identity)


def is_literal(default: s.Expression) -> bool:
    """Return whether a default is a constant as it stands."""
    if isinstance(default, s.CastText):
        cut = isinstance(default.type, Varchar | Char) and not isinstance(
            default.operand, s.StringText
        )
        return not cut and is_literal(default.operand)
    if isinstance(default, s.Operator):
        return default.symbol == "-" and all(is_literal(o) for o in default.operands)
    return isinstance(
        default, s.NumberText | s.StringText | s.BooleanText | s.NullText | s.IntervalText
    )


def _twice(column: str, what: str, position: int) -> InvalidSyntax:
    message = f'multiple {what} specified for column "{column}"'
    if what.startswith("default and"):
        message = f'both {what} specified for column "{column}"'
    return InvalidSyntax(message, hint="leave out one of them", position=position)


def _not_plain(what: str, position: int | None) -> NotSupported:
    message = f"{what} is not supported in a source"
    hint = "filter and complete what it brings in a view over it"
    return NotSupported(message, hint=hint, position=position)


_HINTS: Final = {
    "REFERENCES": "leave it out: rows of two tables can be compared in a view over both",
    "FOREIGN": "leave it out: rows of two tables can be compared in a view over both",
}


def _unsupported(cursor: Cursor, *, plain: bool = False) -> NotSupported:
    position = cursor.position
    word = cursor.word_value().upper().partition(" ")[0]  # FOREIGN KEY is one
    known = "NOT NULL, NULL, DEFAULT, PRIMARY KEY" + ("" if plain else ", UNIQUE, CHECK, GENERATED")
    what = "FOREIGN KEY constraints are" if word in {"REFERENCES", "FOREIGN"} else None
    return NotSupported(
        f"{what or f'column constraint {word} is'} not supported",
        hint=_HINTS.get(word, f"supported: {known}"),
        position=position,
    )


def _second_key(position: int) -> InvalidSyntax:
    message = "multiple primary keys are not allowed"
    hint = "write PRIMARY KEY (a, b) for a key of several columns"
    return InvalidSyntax(message, code="42P16", hint=hint, position=position)
