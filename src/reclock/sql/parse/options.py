"""``WITH (…)``: options by name, each known to the statement or refused."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from reclock.config import parse_duration
from reclock.errors import InvalidSyntax, InvalidValue
from reclock.sql.parse.cursor import Cursor
from reclock.sql.parse.dialect import tokenize

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

BOOLEAN = "boolean"
STRING = "string"
DURATION = "duration"
NUMBER = "number"

TRUE = {"true", "on", "yes", "1"}
_FALSE = {"false", "off", "no", "0"}
_MULTIWORD = ("RETAIN HISTORY FOR", "EVENTS PER TICK")


class Options:
    """The options that were given, read by kind."""

    def __init__(self, given: dict[str, str]) -> None:
        self._given = given

    def text(self, name: str) -> str | None:
        """Return the option as text, or None."""
        return self._given.get(name)

    def boolean(self, name: str, default: bool = False) -> bool:
        """Return the option as a boolean."""
        given = self._given.get(name)
        return default if given is None else given.lower() in TRUE

    def duration(self, name: str) -> int | None:
        """Return the option in milliseconds."""
        given = self._given.get(name)
        return None if given is None else parse_duration(given)

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return all options, in writing order."""
        return tuple(self._given.items())


def parse_options(
    cursor: Cursor,
    known: Mapping[str, str],
    *,
    keyword: bool = True,
    prefixes: tuple[str, ...] = (),
    clause: Callable[[Cursor], bool] | None = None,
) -> Options:
    """Read ``[WITH] (name [=] value, …)`` if it comes next; ``known`` maps names to kinds.

    A boolean option without a value is true. ``RETAIN HISTORY FOR '1 h'`` is the option
    ``retain_history``. Names that begin with one of ``prefixes`` are strings of any name.
    A ``clause`` reads options that have a grammar of their own, if one comes next.
    """
    given: dict[str, str] = {}
    if keyword and not cursor.accept("WITH"):
        return Options(given)
    cursor.expect("(")
    while True:
        position = cursor.position
        if clause is not None and clause(cursor):
            if not cursor.accept(","):
                break
            continue
        name = _option_name(cursor)
        kind = STRING if name.startswith(prefixes) else known.get(name)
        if kind is None:
            raise _unknown(name, known, position)
        if name in given:
            message = f'option "{name}" is given twice'
            raise InvalidSyntax(message, hint="leave out one of them", position=position)
        if cursor.accept("=") or not (cursor.sees(",") or cursor.sees(")")):
            given[name] = _checked(name, cursor.word_value(), kind, position)
        elif kind == BOOLEAN:
            given[name] = "true"
        else:
            msg = "a value"
            raise cursor.error(msg)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return Options(given)


def replaced(text: str, names: Container[str], value: str) -> str:
    """Return a statement's text with ``value`` as the value of every option in ``names``.

    >>> replaced("… WITH (a.b = 'it''s', x = 'it''s')", {"a.b"}, "'***'")
    "… WITH (a.b = '***', x = 'it''s')"
    """
    cursor = Cursor(tokenize(text), text)
    made, done = "", 0
    while not cursor.at_end:
        try:
            name = str(cursor.name())
        except InvalidSyntax:
            cursor.skip()
            continue
        if name in names:
            if not cursor.accept("="):
                cursor.accept("SECRET")
            made += text[done : cursor.position - 1] + value
            cursor.word_value()
            done = cursor.passed
    return made + text[done:]


def with_option(text: str, name: str, value: str) -> str:
    """Return a statement's text in which an option of its WITH has a value; texts are strings.

    >>> with_option("… FORMAT JSON", "on_error", "skip")
    "… FORMAT JSON WITH (on_error = 'skip')"
    >>> with_option("… WITH (a = 1, on_error='report')", "on_error", "skip")
    "… WITH (a = 1, on_error='skip')"
    >>> with_option("… (on_error INT) … WITH (a)", "on_error", "skip")
    "… (on_error INT) … WITH (a, on_error = 'skip')"
    """
    written = "'" + value.replace("'", "''") + "'"
    cursor = Cursor(tokenize(text), text)
    while not cursor.at_end and not cursor.accept("WITH", "("):
        cursor.skip()
    if cursor.at_end:
        end = cursor.passed  # a comment may follow
        return f"{text[:end]} WITH ({name} = {written}){text[end:]}"
    while True:
        found = _option_name(cursor) == name
        cursor.accept("=")
        start = cursor.position - 1
        if not (cursor.sees(",") or cursor.sees(")")):
            cursor.word_value()
        if found:
            return text[:start] + written + text[cursor.passed :]
        end = cursor.passed
        if not cursor.accept(","):
            return f"{text[:end]}, {name} = {written}{text[end:]}"


def _option_name(cursor: Cursor) -> str:
    for words in _MULTIWORD:
        if cursor.accept(*words.split()):
            return words.removesuffix(" FOR").lower().replace(" ", "_")
    return str(cursor.name())


def _unknown(name: str, known: Mapping[str, str], position: int) -> InvalidSyntax:
    near = get_close_matches(name, known, n=1)
    hint = f'perhaps you meant "{near[0]}"' if near else "known options: " + ", ".join(known)
    return InvalidSyntax(
        f'unknown option "{name}"', hint=hint if known else None, position=position
    )


def _checked(name: str, value: str, kind: str, position: int) -> str:
    wrong = None
    if kind == BOOLEAN and value.lower() not in TRUE | _FALSE:
        wrong = "true or false"
    if kind == NUMBER and not value.isdecimal():
        wrong = "a whole number"
    if wrong is not None:
        message = f'invalid value for option "{name}": "{value}"'
        raise InvalidSyntax(message, code="22023", hint=f"write {wrong}", position=position)
    if kind == DURATION:
        try:
            parse_duration(value)
        except InvalidValue as error:
            msg = f'invalid value for option "{name}": {error.message}'
            raise InvalidSyntax(
                msg,
                code="22023",
                hint=error.hint,
                position=position,
            ) from error
    return value
