"""DuckDB's errors as ours: with an SQLSTATE, and without its hints about itself.

An error while rows are being read comes through Arrow, as an OSError: its text says what it is.

Tests: tests/server/pg_catalog/test_answer.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import duckdb

from reclock.errors import InvalidValue, NotSupported, UndefinedName

if TYPE_CHECKING:
    from reclock.errors import Error

_RAISED: Final = re.compile(r"\b([0-9A-Z]{5}):(.*? does not exist)", re.DOTALL)
_COLUMN: Final = re.compile(
    r'column "?([\w.$]+)"? not found|table "(\w+)" not found', re.IGNORECASE
)
_HINT: Final = "queries over the catalog can have what tools of PostgreSQL ask for"


def is_interrupt(error: duckdb.Error | OSError) -> bool:
    """Return whether a query ended because it was told to."""
    return isinstance(error, duckdb.InterruptException) or str(error).startswith("INTERRUPT Error")


def translated(error: duckdb.Error | OSError) -> Error:
    """Return the error that a user is told."""
    text = str(error)
    raised = _RAISED.search(text)
    if raised is not None:
        return UndefinedName(raised[2], code=raised[1], hint="check the name")
    missing = _COLUMN.search(text)
    if missing is not None:
        message = f'column "{missing[1] or missing[2]}" does not exist'
        return UndefinedName(message, code="42703", hint="check the name")
    first = text.split("\n", maxsplit=1)[0].partition(": ")[2] or text.split("\n", maxsplit=1)[0]
    if text.startswith("Conversion Error"):
        return InvalidValue(first.lower(), code="22P02", hint="write a value of that type")
    if text.startswith("Out of Memory Error"):
        message = "the query over the catalog needs too much memory"
        return NotSupported(message, code="53200", hint="ask for less")
    message = "the query over the catalog is not supported"
    return NotSupported(message, detail=first, hint=_HINT)
