"""Errors and notices as clients see them: SQLSTATE, message, detail, hint and position.

An error that is not one of reclock's is a bug: clients get XX000 and nothing of its text, which
goes to the log.

Tests: tests/server/protocol/test_conversation.py.
"""

from __future__ import annotations

from reclock.errors import ConstraintViolation, Error, StatementError
from reclock.server.codec.backend import ErrorResponse, NoticeResponse


def error_response(error: BaseException, *, fatal: bool = False) -> ErrorResponse:
    """Return an error as a message; ``fatal`` ones end the connection.

    >>> error_response(StatementError("no", hint="try", position=3)).parts[2:]
    (('C', '42000'), ('M', 'no'), ('H', 'try'), ('P', '3'))
    """
    severity = "FATAL" if fatal else "ERROR"
    head = (("S", severity), ("V", severity))
    if not isinstance(error, Error):
        text = "internal error"
        return ErrorResponse((*head, ("C", "XX000"), ("M", text), ("H", "the log says more")))
    position = None
    if isinstance(error, StatementError | ConstraintViolation):
        position = error.position
    more = {
        "D": error.detail, "H": error.hint, "P": None if position is None else str(position),
    }  # fmt: skip
    if isinstance(error, ConstraintViolation):
        schema = None if error.table is None else "public"
        more |= {"s": schema, "t": error.table, "c": error.column, "n": error.constraint}
    rest = tuple((letter, text) for letter, text in more.items() if text)
    return ErrorResponse((*head, ("C", error.code), ("M", error.message), *rest))


def notice(
    message: str, *, code: str = "00000", hint: str | None = None, severity: str = "NOTICE"
) -> NoticeResponse:
    """Return something to know as a message."""
    more = () if hint is None else (("H", hint),)
    parts = (("S", severity), ("V", severity), ("C", code), ("M", message), *more)
    return NoticeResponse(parts)
