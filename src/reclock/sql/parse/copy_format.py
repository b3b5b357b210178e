"""The options of COPY, in parentheses or in the words of PostgreSQL before version 9.

Tests: tests/sql/test_copy_format.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.errors import NotSupported, StatementError
from reclock.sql.statement.copy import CopyFormat

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor

_FORMATS: Final = ("text", "csv", "binary")
_TRUE: Final = ("true", "on", "1")
_FALSE: Final = ("false", "off", "0")
_CHARACTERS: Final = ("delimiter", "quote", "escape")
_LISTS: Final = ("force_quote", "force_null", "force_not_null")
_TO: Final = ("force_quote",)
_FROM: Final = ("force_null", "force_not_null")

Value = str | tuple[str, ...] | None


def parse_copy_format(cursor: Cursor, *, to: bool) -> CopyFormat:
    """Read the end of COPY … ``to`` STDOUT, or from STDIN."""
    position = cursor.position
    cursor.accept("WITH")
    found = _listed(cursor) if cursor.sees("(") else _worded(cursor)
    if cursor.sees("WHERE"):
        message = "COPY of those rows alone that a condition names is not supported"
        hint = "copy all rows, and DELETE the others in the same transaction"
        raise NotSupported(message, hint=hint, position=cursor.position)
    cursor.end()
    try:
        return _format(found, to=to)
    except StatementError as error:
        error.position = position
        raise


def _listed(cursor: Cursor) -> dict[str, Value]:
    """Read ``(FORMAT csv, HEADER, …)``."""
    found: dict[str, Value] = {}
    cursor.expect("(")
    while True:
        name = "null" if cursor.accept("NULL") else _name(cursor)
        if name in found:
            message = f'option "{name}" specified more than once'
            raise StatementError(message, code="42601", position=cursor.position)
        found[name] = _value(cursor, name)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return found


def _name(cursor: Cursor) -> str:
    for word in ("DEFAULT", "FORMAT", "ESCAPE", "DELIMITER"):
        if cursor.accept(word):
            return word.lower()
    return cursor.identifier()


def _value(cursor: Cursor, name: str) -> Value:
    if name in _LISTS:
        if cursor.accept("*"):
            return None
        return cursor.names_in_parens()
    if cursor.sees(",") or cursor.sees(")"):
        return "true"
    return cursor.word_value()


def _worded(cursor: Cursor) -> dict[str, Value]:
    """Read ``CSV HEADER DELIMITER ';' …``."""
    found: dict[str, Value] = {}
    while not cursor.at_end and not cursor.sees("WHERE"):
        if cursor.accept("CSV"):
            found["format"] = "csv"
        elif cursor.accept("BINARY"):
            found["format"] = "binary"
        elif cursor.accept("HEADER"):
            found["header"] = "true"
        elif cursor.accept("FORCE", "QUOTE"):
            found["force_quote"] = None if cursor.accept("*") else _columns(cursor)
        elif cursor.accept("FORCE", "NOT", "NULL"):
            found["force_not_null"] = _columns(cursor)
        elif cursor.accept("FORCE", "NULL"):
            found["force_null"] = _columns(cursor)
        else:
            for word in ("DELIMITER", "NULL", "QUOTE", "ESCAPE", "ENCODING"):
                if cursor.accept(word):
                    cursor.accept("AS")
                    found[word.lower()] = cursor.string()
                    break
            else:
                msg = "an option of COPY"
                raise cursor.error(msg, hint="write WITH (FORMAT csv, HEADER, …)")
    return found


def _columns(cursor: Cursor) -> tuple[str, ...]:
    names = [cursor.identifier()]
    while cursor.accept(","):
        names.append(cursor.identifier())
    return tuple(names)


def _format(given: dict[str, Value], *, to: bool) -> CopyFormat:
    known = {"format", "null", "header", "encoding", "freeze", "default", *_CHARACTERS, *_LISTS}
    for option in given.keys() - known:
        message = f'option "{option}" not recognized'
        raise StatementError(message, code="42601", hint="options are those of PostgreSQL 16")
    name = str(given.get("format", "text")).lower()
    if name not in _FORMATS:
        message = f'COPY format "{name}" not recognized'
        raise StatementError(message, code="22023", hint="formats are text, csv and binary")
    _check_fit(given, name, to=to)
    csv = name == "csv"
    quote = str(given.get("quote", '"'))
    made = CopyFormat(
        name,
        str(given.get("delimiter", "," if csv else "\t")),
        str(given.get("null", "" if csv else "\\N")),
        _header(str(given.get("header", "false")).lower(), to=to),
        quote,
        str(given.get("escape", quote)),
        given.get("force_quote", ()),  # type: ignore[arg-type] # a list
        given.get("force_null") or (),  # type: ignore[arg-type]
        given.get("force_not_null") or (),  # type: ignore[arg-type]
        None if "default" not in given else str(given["default"]),
    )
    _check_characters(made)
    return made


def _check_fit(given: dict[str, Value], name: str, *, to: bool) -> None:
    if to and "default" in given:
        message = "COPY DEFAULT only available using COPY FROM"
        raise StatementError(message, code="0A000", hint="leave it out")
    frozen = str(given.get("freeze", "false")).lower()
    if frozen not in _TRUE + _FALSE:
        message = "freeze requires a Boolean value"
        raise StatementError(message, code="42601", hint="write FREEZE, or FREEZE false")
    if to and frozen in _TRUE:
        message = "COPY FREEZE cannot be used with COPY TO"
        raise StatementError(message, code="0A000", hint="leave it out")
    if str(given.get("encoding", "utf8")).lower().replace("-", "") != "utf8":
        message = "COPY in another encoding than UTF8 is not supported"
        raise NotSupported(message, hint="text is UTF-8")
    only_text = ("delimiter", "null", "default", "header")
    binary = [o for o in only_text if name == "binary" and o in given]
    only_csv = [o for o in ("quote", "escape", *_LISTS) if name != "csv" and o in given]
    for option in (*binary, *only_csv):
        where = "BINARY" if option in binary else "any mode but CSV"
        message = f"cannot specify {option.upper()} in {where} mode"
        raise StatementError(message, code="0A000" if option not in binary else "42601")
    for option in _FROM if to else _TO:
        if option in given:
            way = "TO" if to else "FROM"
            message = f"COPY {option.upper()} cannot be used with COPY {way}"
            raise StatementError(message, code="0A000")


def _header(word: str, *, to: bool) -> str:
    if word in _TRUE:
        return "on"
    if word in _FALSE:
        return "off"
    if word == "match" and not to:
        return word
    message = f'header requires a Boolean value or "match", not "{word}"'
    raise StatementError(message, code="42601", hint='"match" is for COPY FROM')


def _check_characters(made: CopyFormat) -> None:
    for option in _CHARACTERS:
        value = getattr(made, option)
        if len(value.encode()) != 1:
            message = f"COPY {option} must be a single one-byte character"
            raise StatementError(message, code="0A000")
    if made.name == "text" and made.delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789":
        message = f'COPY delimiter cannot be "{made.delimiter}"'
        raise StatementError(message, code="22023")
    if any(c in made.delimiter + made.null for c in "\r\n"):
        message = "COPY delimiter and null cannot be newline or carriage return"
        raise StatementError(message, code="22023")
    if made.name == "csv" and made.delimiter == made.quote:
        message = "COPY delimiter and quote must be different"
        raise StatementError(message, code="22023")
    if made.default is not None:
        _check_default(made, made.default)
    if made.delimiter in made.null:
        message = "COPY delimiter character must not appear in the NULL specification"
        raise StatementError(message, code="0A000")


def _check_default(made: CopyFormat, default: str) -> None:
    if any(c in default for c in "\r\n"):
        message = "COPY default representation cannot use newline or carriage return"
        raise StatementError(message, code="22023")
    if made.delimiter in default:
        message = "COPY delimiter character must not appear in the DEFAULT specification"
        raise StatementError(message, code="0A000")
    if made.name == "csv" and made.quote in default:
        message = "CSV quote character must not appear in the DEFAULT specification"
        raise StatementError(message, code="0A000")
    if default == made.null:
        message = "NULL specification and DEFAULT specification cannot be the same"
        raise StatementError(message, code="0A000")
