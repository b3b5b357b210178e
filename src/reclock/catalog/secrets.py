"""Secrets of sources and sinks: taken out of the text before anything keeps or shows it.

The text of an object, which ``SHOW CREATE``, ``reclock.objects`` and errors show, has ``'***'``
where a secret was. The values are in the object's durable record alone, next to the text, and come
back into the statement when that is read again.

Tests: tests/ingest/test_sources.py.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from reclock.connectors.kafka.options import is_secret
from reclock.errors import StatementError
from reclock.secret import HIDDEN
from reclock.sql.parse.options import replaced
from reclock.sql.statement import CreateSink, CreateSource
from reclock.sql.statement.source import PostgresConnection

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from reclock.sql.statement.source import Format

S = TypeVar("S", CreateSource, CreateSink)


def secrets_of(
    options: Iterable[tuple[str, str]],
    *formats: Format | None,
    but: Container[str] = (),
) -> dict[str, str]:
    """Return the secret options of a statement, ``but`` those that are a connection's.

    A URL with a password in it is refused: there is an option for that.
    """
    for given in formats:
        if given is not None and given.registry and re.search(r"//[^/]*@", given.registry):
            message = "the address of a schema registry must not contain a password"
            hint = "write WITH (registry.basic.auth.user.info = 'user:password')"
            raise StatementError(message, code="22023", hint=hint)
    return {name: value for name, value in options if is_secret(name) and name not in but}


def hidden(sql: str, secrets: Mapping[str, str]) -> str:
    """Return the text of a statement without its secrets.

    >>> hidden("WITH (kafka.sasl.password = 'it''s', x = 'y')", {"kafka.sasl.password": "it's"})
    "WITH (kafka.sasl.password = '***', x = 'y')"
    """
    return replaced(sql, secrets, f"'{HIDDEN}'") if secrets else sql


def restored(statement: S, secrets: Mapping[str, str]) -> S:
    """Return the statement with its secrets, as it was given."""
    options = tuple((name, secrets.get(name, value)) for name, value in statement.options)
    connection = statement.connection
    if isinstance(connection, PostgresConnection) and "password" in secrets:
        connection = replace(connection, password=secrets["password"])
        return replace(statement, options=options, connection=connection)
    return replace(statement, options=options)
