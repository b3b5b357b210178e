"""CREATE SECRET, ALTER SECRET and CREATE CONNECTION.

The name of an option is one of words or one with dots: ``SASL USERNAME`` is ``sasl.username``.

Tests: tests/session/test_connections.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot.tokenizer_core import TokenType

from reclock.errors import InvalidSyntax
from reclock.secret import Secret
from reclock.sql.statement.connection import AlterSecret, CreateConnection, CreateSecret

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor
    from reclock.sql.syntax.expression import Name

_KINDS: Final = {"KAFKA": "kafka", "POSTGRES": "postgres"}


def parse_create_secret(cursor: Cursor) -> CreateSecret:
    """Read what follows CREATE SECRET."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name()
    return CreateSecret(name, _value(cursor), if_not_exists)


def parse_alter_secret(cursor: Cursor, name: Name) -> AlterSecret:
    """Read what follows ALTER SECRET name."""
    return AlterSecret(name, _value(cursor))


def _value(cursor: Cursor) -> Secret:
    cursor.expect("AS")
    value = Secret(cursor.string())
    cursor.end()
    return value


def parse_create_connection(cursor: Cursor) -> CreateConnection:
    """Read what follows CREATE CONNECTION."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name()
    cursor.expect("TO")
    if cursor.accept("CONFLUENT"):
        cursor.expect("SCHEMA", "REGISTRY")
        kind = "registry"
    else:
        kind = _KINDS[cursor.choose(*_KINDS)]
    cursor.expect("(")
    options: dict[str, str | Name] = {}
    while True:
        position = cursor.position
        option = _option(cursor)
        if option in options:
            message = f'option "{option}" is given twice'
            raise InvalidSyntax(message, hint="leave out one of them", position=position)
        options[option] = cursor.name() if cursor.accept("SECRET") else cursor.word_value()
        if not cursor.accept(","):
            break
    cursor.expect(")")
    cursor.end()
    return CreateConnection(name, kind, tuple(options.items()), if_not_exists)


def _option(cursor: Cursor) -> str:
    """Read the name of an option, and what stands between it and its value."""
    words = [cursor.identifier()]
    while not (cursor.sees("=") or cursor.sees("SECRET") or _is_value(cursor)):
        cursor.accept(".")
        words.append(cursor.identifier())
    cursor.accept("=")
    return ".".join(words)


def _is_value(cursor: Cursor) -> bool:
    return cursor.sees_kind(TokenType.STRING) or cursor.sees_kind(TokenType.NUMBER)
