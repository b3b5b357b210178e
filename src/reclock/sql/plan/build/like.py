"""Patterns of LIKE as Spark reads them: the escape is a backslash, and escapes something.

A pattern that is a literal is rewritten here, when the plan is made; any other by the
functions ``like pattern`` and ``like escape`` (``functions.text``), row by row, where one that
ends with its escape character is an error of the row, 22025.

Tests: tests/sql/test_spark_text.py.
"""

from __future__ import annotations

from reclock.errors import StatementError
from reclock.sql.plan.coerce import convert
from reclock.sql.plan.functions import find_function
from reclock.sql.plan.scalar import Call, Literal, Scalar
from reclock.sql.types import TEXT, UNKNOWN


def like_pattern(pattern: Scalar, position: int | None) -> Scalar:
    """Return a pattern without the backslashes that escape nothing, which Spark refuses."""
    if not _is_text(pattern):
        return pattern
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return _called("like pattern", pattern)
    text, out, at = pattern.value, [], 0
    while at < len(text):
        if text[at] == "\\":
            if at + 1 == len(text):
                raise _unfinished(position)
            at += 1
            out.append(("\\" if text[at] in "%_\\" else "") + text[at])
        else:
            out.append(text[at])
        at += 1
    return Literal("".join(out), TEXT)


def unescaped(pattern: Scalar, escape: Scalar, position: int | None) -> Scalar:
    """Return a LIKE pattern whose escape character is ``escape`` as one of backslashes."""
    if not (_is_text(pattern) and _is_text(escape)):
        return pattern
    by = escape.value if isinstance(escape, Literal) else None
    if isinstance(by, str) and len(by) > 1:
        message = "invalid escape string"
        raise StatementError(
            message, code="22025", hint="ESCAPE takes one character, or none", position=position
        )
    text = pattern.value if isinstance(pattern, Literal) else None
    if not isinstance(by, str) or not isinstance(text, str):
        return _called("like escape", pattern, escape)
    out, at = [], 0
    while at < len(text):
        if by and text[at] == by:
            if at + 1 == len(text):
                raise _unfinished(position)
            at += 1
            out.append("\\" + text[at])
        else:
            out.append("\\\\" if text[at] == "\\" else text[at])
        at += 1
    return Literal("".join(out), TEXT)


def _is_text(scalar: Scalar) -> bool:
    return scalar.type in {TEXT, UNKNOWN}


def _called(name: str, *arguments: Scalar) -> Call:
    texts = tuple(convert(argument, TEXT) for argument in arguments)
    return Call(find_function(name, tuple(a.type for a in texts)), texts, TEXT)


def _unfinished(position: int | None) -> StatementError:
    message = "LIKE pattern must not end with escape character"
    hint = "write the escape character twice to mean itself"
    return StatementError(message, code="22025", hint=hint, position=position)
