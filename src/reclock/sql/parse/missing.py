"""Statements that do not exist here, and what to write instead."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from reclock.errors import NotSupported

if TYPE_CHECKING:
    from reclock.errors import StatementError
    from reclock.sql.parse.cursor import Cursor

_SCHEMA = "there is one schema: leave it out, and give objects longer names"
_TEMPORARY = "create the table without it, and DROP it when it is not needed"
_FUNCTION = "write the expression where it is used, or make a view of it"
_MAINTAINED = "leave it out: files are merged and forgotten by themselves"
_TOLD = "use SUBSCRIBE to hear of changes"

_MISSING: Final = {
    "CREATE SCHEMA": _SCHEMA,
    "DROP SCHEMA": _SCHEMA,
    "CREATE DATABASE": "open another directory: reclock.open(path)",
    "CREATE TEMP": _TEMPORARY,
    "CREATE TEMPORARY": _TEMPORARY,
    "CREATE UNLOGGED": "leave it out: every table is durable",
    "CREATE RECURSIVE VIEW": "write as many levels as you need as joins",
    "CREATE FUNCTION": _FUNCTION,
    "CREATE PROCEDURE": _FUNCTION,
    "CREATE TYPE": "use the types there are: text for an enumeration, json for a record",
    "CREATE DOMAIN": "use the types there are; varchar(n) has a length",
    "CREATE TRIGGER": "make a materialized view of what follows from the rows",
    "CREATE EXTENSION": "leave it out: there are no extensions",
    "REFRESH": "leave it out: a materialized view is right at every tick",
    "REINDEX": _MAINTAINED,
    "CLUSTER": _MAINTAINED,
    "CHECKPOINT": _MAINTAINED,
    "LOCK": "leave it out: UPDATE and DELETE read and write under one lock",
    "LISTEN": _TOLD,
    "NOTIFY": _TOLD,
    "CALL": _FUNCTION,
    "DO": "write the statements one by one",
    "DESCRIBE": "use SHOW COLUMNS FROM",
    "USE": _SCHEMA,
}


def missing(cursor: Cursor) -> NotSupported | None:
    """Return the error for a statement that others have; None if it is not one."""
    for words, hint in _MISSING.items():
        if cursor.sees(*words.split()):
            message = f"{words} is not supported"
            return NotSupported(message, hint=hint, position=cursor.position)
    return None


def unknown(cursor: Cursor, known: tuple[str, ...]) -> StatementError:
    """Return the error for a text that begins with no word that a statement begins with."""
    error = cursor.error()
    word = cursor.text[error.position - 1 :].split(maxsplit=1)[0] if error.position else ""
    near = get_close_matches(word.upper(), known, n=1)
    listed = ", ".join(sorted(known))
    error.hint = f"perhaps you meant {near[0]}" if near else f"a statement begins with {listed}"
    return error
