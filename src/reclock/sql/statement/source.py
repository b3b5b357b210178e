"""CREATE SOURCE: where data comes from, how it is decoded, what it does to the collection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.statement.column import ColumnList
    from reclock.sql.syntax.expression import Name


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """``KAFKA BROKER '…' | CONNECTION name TOPIC '…'``."""

    broker: str
    topic: str
    named: Name | None = None


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table of a publication, ``[schema.]name [AS alias]``."""

    schema: str | None
    name: str
    alias: str
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PostgresConnection:
    """``POSTGRES CONNECTION '…' [PASSWORD SECRET '…'] | name PUBLICATION '…' FOR TABLES (…)``.

    ``tables`` None is ``FOR ALL TABLES``.
    """

    connection: str
    publication: str
    tables: tuple[PostgresTable, ...] | None = None
    password: str | None = field(default=None, repr=False)
    named: Name | None = None


@dataclass(frozen=True, slots=True)
class FileConnection:
    """``FILE '…'``, or ``DIRECTORY '…'``."""

    path: str
    directory: bool = False


@dataclass(frozen=True, slots=True)
class LoadGenerator:
    """``LOAD GENERATOR kind (SEED 7, EVENTS PER TICK 1000)``; options in writing order."""

    kind: str
    options: tuple[tuple[str, str], ...] = ()


Connection = KafkaConnection | PostgresConnection | FileConnection | LoadGenerator


@dataclass(frozen=True, slots=True)
class Format:
    """``JSON``, ``TEXT``, ``BYTES``, ``CSV``, ``PARQUET``; ``AVRO`` with its schema or registry."""

    kind: str
    schema: str | None = None
    registry: str | None = None
    named: Name | None = None
    """The connection to the registry."""


@dataclass(frozen=True, slots=True)
class Include:
    """``INCLUDE KEY | PARTITION | OFFSET | TIMESTAMP | HEADERS [AS name]``."""

    what: str
    name: str


@dataclass(frozen=True, slots=True)
class SourceEnvelope:
    """``NONE``, ``UPSERT``, ``DEBEZIUM`` or ``MATERIALIZE``."""

    kind: str
    transaction_topic: str | None = None


@dataclass(frozen=True, slots=True)
class AlterSource:
    """``ALTER SOURCE name SET (on_error = '…')``."""

    name: Name
    on_error: str


@dataclass(frozen=True, slots=True)
class RefreshSource:
    """``ALTER SOURCE name REFRESH``."""

    name: Name


@dataclass(frozen=True, slots=True)
class CreateSource:
    """``CREATE SOURCE name (columns) FROM … FORMAT … INCLUDE … ENVELOPE … RECLOCK … WITH (…)``."""

    name: Name
    columns: ColumnList
    connection: Connection
    key_format: Format | None = None
    value_format: Format | None = None
    include: tuple[Include, ...] = ()
    envelope: SourceEnvelope = SourceEnvelope("none")
    reclock_using: Name | None = None
    options: tuple[tuple[str, str], ...] = ()
    if_not_exists: bool = False
    reclock_into_epoch: bool = False

    @property
    def consistency_topic(self) -> str | None:
        """The topic that says which rows belong to which transaction."""
        given = dict(self.options).get("consistency_topic")
        return given if given is not None else self.envelope.transaction_topic
