"""Secrets and connections: how sources and sinks reach the outside, said once.

A *secret* is a text under a name; a *connection* has the address of a Kafka, a PostgreSQL or a
schema registry and its options, whose values may be secrets. The statement of a source or a sink
names connections; ``resolved`` puts what they say in their place, and says what it took from where
(``item.Linked``). Options of the statement itself go first.

Invariants. The value of a secret is in its durable record, under ``secrets``, and in the resolved
statements of what uses it; in no text. The text of both kinds of objects is made here, with ``***``
for secrets, so nothing that a user wrote is kept. A source is resolved again when its secret is
altered, or when its record is read: it has no copy of its own.

Tests: tests/session/test_connections.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, TypeVar

from reclock.catalog.item import CONNECTED, Item, Linked
from reclock.connectors.format.registry import PREFIX as REGISTRY
from reclock.connectors.kafka.options import PREFIX as KAFKA
from reclock.connectors.kafka.options import Connection as Cluster
from reclock.connectors.kafka.options import is_secret
from reclock.errors import StatementError
from reclock.secret import HIDDEN, Secret
from reclock.sql.names import quoted
from reclock.sql.statement import CreateConnection, CreateSink, CreateSource
from reclock.sql.statement.source import FileConnection, KafkaConnection, PostgresConnection
from reclock.sql.syntax.expression import Name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reclock.catalog.catalog import Catalog
    from reclock.durable.keyed import Json
    from reclock.ids import ObjectId
    from reclock.sql.statement.source import Connection, Format

Pairs: TypeAlias = "tuple[tuple[str, str], ...]"
S = TypeVar("S", CreateSource, CreateSink)

_TITLES: Final = {
    "kafka": "KAFKA", "postgres": "POSTGRES", "registry": "CONFLUENT SCHEMA REGISTRY",
}  # fmt: skip
_NEEDED: Final = {"kafka": "broker", "postgres": "host", "registry": "url"}
_LIBPQ: Final = {"user": "user", "port": "port", "database": "dbname", "ssl.mode": "sslmode"}
_USER_INFO: Final = "basic.auth.user.info"


@dataclass(frozen=True)
class SecretItem(Item):
    """A text that is not shown."""

    kind: ClassVar[str] = "secret"
    keeps_state: ClassVar[bool] = False

    value: Secret = field(kw_only=True)

    def record(self) -> Json:
        """Return what the catalog stores."""
        return super().record() | {"v": CONNECTED, "secrets": {"value": self.value.reveal()}}


@dataclass(frozen=True)
class ConnectionItem(Item):
    """How something outside is reached; ``secrets`` are those that are written in it."""

    kind: ClassVar[str] = "connection"
    keeps_state: ClassVar[bool] = False

    statement: CreateConnection = field(kw_only=True, repr=False)
    secrets: Mapping[str, str] = field(kw_only=True, default_factory=dict, repr=False)

    def record(self) -> Json:
        """Return what the catalog stores."""
        made = super().record() | {"v": CONNECTED}
        return made | {"secrets": dict(self.secrets)} if self.secrets else made


def secret_text(name: str) -> str:
    """Return the text of a secret.

    >>> secret_text("pw")
    "CREATE SECRET pw AS '***'"
    """
    return f"CREATE SECRET {quoted(name)} AS '{HIDDEN}'"


def connection_text(statement: CreateConnection) -> str:
    """Return the text of a connection, without secrets."""
    hides = _secrets(statement)
    parts = []
    for name, value in statement.options:
        if isinstance(value, Name):
            shown = f"SECRET {'.'.join(map(quoted, value.parts))}"
        else:
            shown = "'" + (HIDDEN if name in hides else value.replace("'", "''")) + "'"
        parts.append(f"{name} = {shown}")
    name = quoted(statement.name.parts[-1])
    return f"CREATE CONNECTION {name} TO {_TITLES[statement.kind]} ({', '.join(parts)})"


def _secrets(statement: CreateConnection) -> dict[str, str]:
    """Return the options whose values must not be shown and are written out."""
    return {n: v for n, v in statement.options if isinstance(v, str) and is_secret(n)}


def define_connection(item: ObjectId, statement: CreateConnection, catalog: Catalog) -> Item:
    """Return the connection that a statement makes; refuse what it cannot have."""
    needed = [catalog.get(v, SecretItem).id for _, v in statement.options if isinstance(v, Name)]
    made = ConnectionItem(
        item, statement.name.parts[-1], connection_text(statement), None, frozenset(needed),
        statement=statement, secrets=_secrets(statement),
    )  # fmt: skip
    _check(made, catalog)
    return made


def read_connection(
    item: ObjectId, record: Json, statement: CreateConnection, catalog: Catalog
) -> ConnectionItem:
    """Return the connection of a record."""
    known = record.get("secrets", {})
    options = tuple((name, known.get(name, value)) for name, value in statement.options)
    depends = frozenset(catalog.items.keys() & set(record.get("depends", ())))
    return ConnectionItem(
        item, record["name"], record["sql"], None, depends,
        statement=replace(statement, options=options), secrets=known,
    )  # fmt: skip


def _check(made: ConnectionItem, catalog: Catalog) -> None:
    statement, kind = made.statement, made.statement.kind
    position = statement.name.position
    given = values_of(made, catalog)
    if _NEEDED[kind] not in given:
        message = f"a connection to {_TITLES[kind]} needs {_NEEDED[kind].upper()}"
        hint = f"write TO {_TITLES[kind]} ({_NEEDED[kind].upper()} '…', …)"
        raise StatementError(message, code="42601", hint=hint, position=position)
    if kind == "kafka":
        Cluster.of(given["broker"], dict(_kafka(given)))
    if kind == "postgres":
        for name in given.keys() - {"host", "password", *_LIBPQ}:
            message = f'option "{name}" is not for a connection to POSTGRES'
            hint = f"it has HOST, PASSWORD, {', '.join(_LIBPQ).upper().replace('.', ' ')}"
            raise StatementError(message, code="42601", hint=hint, position=position)


def values_of(connection: ConnectionItem, catalog: Catalog) -> dict[str, str]:
    """Return the options of a connection, with the values of its secrets."""
    found = {}
    for name, value in connection.statement.options:
        known = value if isinstance(value, str) else catalog.get(value, SecretItem).value.reveal()
        found[name] = known
    return found


def resolved(statement: S, catalog: Catalog) -> tuple[S, Linked]:
    """Return a statement with what its connections say, and what is theirs."""
    work = _Resolving(catalog)
    connection = work.reached(statement.connection)
    if isinstance(statement, CreateSource):
        key, value = work.form(statement.key_format), work.form(statement.value_format)
        options, linked = work.done(statement.options)
        made = replace(
            statement, connection=connection, key_format=key, value_format=value, options=options
        )
        return made, linked
    assert isinstance(connection, KafkaConnection | FileConnection)
    given = work.form(statement.format)
    assert given is not None
    options, linked = work.done(statement.options)
    return replace(statement, connection=connection, format=given, options=options), linked


class _Resolving:
    """What connections say, while they are looked up."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.used: set[ObjectId] = set()
        self.options: dict[str, str] = {}

    def reached(self, connection: Connection) -> Connection:
        """Return how something is reached, with what a connection says of it."""
        match connection:
            case KafkaConnection(named=Name() as name):
                given = self._values(name, "kafka")
                self.options |= dict(_kafka(given))
                return replace(connection, broker=given["broker"])
            case PostgresConnection(named=Name() as name):
                given = self._values(name, "postgres")
                password = given.get("password")
                return replace(connection, connection=_libpq(given), password=password)
        return connection

    def form(self, given: Format | None) -> Format | None:
        """Return a format, with what a connection says of its registry."""
        if given is None or given.named is None:
            return given
        values = self._values(given.named, "registry")
        self.options |= dict(_registry(values))
        return replace(given, registry=values["url"])

    def done(self, own: Pairs) -> tuple[Pairs, Linked]:
        """Return the options of the statement and of the connections, and what is theirs."""
        known = dict(own)
        theirs = {name: value for name, value in self.options.items() if name not in known}
        return (*own, *theirs.items()), Linked(frozenset(self.used), frozenset(theirs))

    def _values(self, name: Name, kind: str) -> dict[str, str]:
        found = self._catalog.get(name, ConnectionItem)
        if found.statement.kind != kind:
            message = f'"{found.name}" is a connection to {_TITLES[found.statement.kind]}'
            hint = f"name a connection to {_TITLES[kind]}"
            raise StatementError(message, code="42809", hint=hint, position=name.position)
        self.used.add(found.id)
        return values_of(found, self._catalog)


def _kafka(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((f"{KAFKA}{name}", value) for name, value in given.items() if name != "broker")


def _registry(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if name not in {"url", "username", "password"}:
            yield f"{REGISTRY}{name}", value
    if "username" in given or "password" in given:
        user = f"{given.get('username', '')}:{given.get('password', '')}"
        yield f"{REGISTRY}{_USER_INFO}", user


def _libpq(given: Mapping[str, str]) -> str:
    """Return the connection string of libpq, without a password.

    >>> _libpq({"host": "db", "user": "joe", "password": "hunter2", "ssl.mode": "require"})
    "host='db' user='joe' sslmode='require'"
    """
    named = {"host": "host", **_LIBPQ}
    return " ".join(
        f"{named[name]}='" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        for name, value in given.items()
        if name in named
    )
