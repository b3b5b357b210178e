"""CREATE SEQUENCE, ALTER SEQUENCE, and the options of identity columns.

Tests: tests/sql/test_parse.py, tests/session/test_sequences.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reclock.errors import InvalidSyntax
from reclock.sql.parse.types import parse_type_text
from reclock.sql.statement.sequence import AlterSequence, CreateSequence, SequenceOptions
from reclock.sql.types import INTEGERS

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor


def parse_create_sequence(cursor: Cursor) -> CreateSequence:
    """Read what follows CREATE SEQUENCE."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name()
    options = parse_sequence_options(cursor)
    cursor.end()
    return CreateSequence(name, options, if_not_exists)


def parse_alter_sequence(cursor: Cursor, name: Any, *, if_exists: bool) -> AlterSequence:
    """Read what follows ALTER SEQUENCE and its name."""
    options = parse_sequence_options(cursor)
    cursor.end()
    if options == SequenceOptions():
        msg = "an option, such as RESTART"
        raise cursor.error(msg)
    return AlterSequence(name, options, if_exists)


def parse_sequence_options(cursor: Cursor) -> SequenceOptions:
    """Read ``[AS type] [INCREMENT [BY] n] [MINVALUE n | NO MINVALUE] …``, in any order."""
    given: dict[str, Any] = {}
    defaults: set[str] = set()
    while not (cursor.at_end or cursor.sees(")")):
        position = cursor.position
        found = _option(cursor, defaults)
        if any(name in given for name in found) or (not found and len(defaults) > 2):
            message = "conflicting or redundant options"
            raise InvalidSyntax(message, hint="give each option once", position=position)
        given |= found
    return SequenceOptions(**given, defaults=frozenset(defaults))


def _option(cursor: Cursor, defaults: set[str]) -> dict[str, Any]:  # noqa: PLR0911 - one per option
    if cursor.accept("AS"):
        return {"type": _type(cursor)}
    if cursor.accept("INCREMENT"):
        cursor.accept("BY")
        return {"increment": _number(cursor)}
    for word, name in (("MINVALUE", "minimum"), ("MAXVALUE", "maximum")):
        if cursor.accept(word):
            return {name: _number(cursor)}
        if cursor.accept("NO", word):
            defaults.add(name)
            return {}
    if cursor.accept("START"):
        cursor.accept("WITH")
        return {"start": _number(cursor)}
    if cursor.accept("RESTART"):
        cursor.accept("WITH")
        there = not (cursor.at_end or cursor.sees(")"))
        value = _number(cursor) if there and _sees_number(cursor) else None
        return {"restarts": True, "restart": value}
    if cursor.accept("CACHE"):
        return {"cache": _number(cursor)}
    if cursor.accept("NO", "CYCLE"):
        return {"cycle": False}
    if cursor.accept("CYCLE"):
        return {"cycle": True}
    if cursor.accept("OWNED", "BY"):
        parts = cursor.name().parts
        return {"owned_by": () if parts == ("none",) else parts}
    msg = "AS, INCREMENT, MINVALUE, MAXVALUE, START, RESTART, CACHE, CYCLE or OWNED BY"
    raise cursor.error(msg)


def _type(cursor: Cursor) -> Any:
    position = cursor.position
    found = parse_type_text(cursor.identifier())
    if found not in INTEGERS:
        message = "sequence type must be smallint, integer, or bigint"
        hint = "leave it out for bigint"
        raise InvalidSyntax(message, code="22023", hint=hint, position=position)
    return found


def _sees_number(cursor: Cursor) -> bool:
    text = str(cursor.ahead()[0].text)
    return text in {"-", "+"} or text.isdecimal()


def _number(cursor: Cursor) -> int:
    negative = cursor.accept("-")
    if not negative:
        cursor.accept("+")
    found = cursor.number()
    return -found if negative else found
