"""From CREATE SINK to a catalog object: what is said is checked before anybody is asked.

The same function makes a sink when it is created and when its record is read again. What was
decided then (the time it begins at, the names of its topics) is in the record: ``facts``.

Tests: tests/coordinator/sink/test_sinks.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.coordinator.item import MaterializedView, RelationItem, Sink, View
from reclock.coordinator.source.secrets import hidden, secrets_of
from reclock.coordinator.system.relation import SystemRelation
from reclock.errors import NotSupported, StatementError
from reclock.sql.statement.source import KafkaConnection

if TYPE_CHECKING:
    from reclock.coordinator.catalog import Catalog
    from reclock.durable.keyed import Json
    from reclock.ids import ObjectId
    from reclock.sql.statement import CreateSink

KEYED: Final = ("upsert",)
"""Envelopes that cannot do without a key."""


def define_sink(
    statement: CreateSink, sql: str, item: ObjectId, relation: RelationItem, facts: Json
) -> Sink:
    """Return the sink that the statement makes."""
    key_of(statement, relation)
    secrets = secrets_of(statement.options, statement.format)
    return Sink(
        item, statement.name.parts[-1], hidden(sql, secrets), relation.timeline,
        frozenset({relation.id}),
        relation=relation.id, statement=statement, facts=facts, secrets=secrets,
    )  # fmt: skip


def relation_of(statement: CreateSink, catalog: Catalog) -> RelationItem:
    """Return what a sink is made of; its rows must be kept."""
    relation = catalog.get(statement.relation, RelationItem)
    position = statement.relation.position
    if isinstance(relation, View | SystemRelation):
        message = f'cannot sink "{relation.name}": its rows are not kept'
        hint = "create a materialized view of it and sink that"
        raise NotSupported(message, hint=hint, position=position)
    if isinstance(relation, MaterializedView) and relation.plan.timeline.timeline is None:
        message = f'cannot sink "{relation.name}": it is constant'
        raise NotSupported(message, hint="it never changes: write it once", position=position)
    return relation


def key_of(statement: CreateSink, relation: RelationItem) -> tuple[int, ...]:
    """Return the positions of the key's columns; refuse one that does not tell rows apart."""
    position = statement.name.position
    if not isinstance(statement.connection, KafkaConnection):
        message = "INTO FILE is not supported"
        raise NotSupported(message, hint="write INTO KAFKA BROKER … TOPIC …", position=position)
    if statement.format.kind != "json":
        message = f"FORMAT {statement.format.kind.upper()} is not supported in sinks"
        raise NotSupported(message, hint="write FORMAT JSON", position=position)
    if statement.envelope == "materialize":
        message = "ENVELOPE MATERIALIZE is not supported"
        raise NotSupported(message, hint="use UPSERT or DEBEZIUM", position=position)
    names = relation.schema.names
    for name in statement.key:
        if name not in names:
            message = f'column "{name}" of relation "{relation.name}" does not exist'
            hint = f"there are the columns {', '.join(names)}"
            raise StatementError(message, code="42703", hint=hint, position=position)
    key = tuple(names.index(name) for name in statement.key)
    if not key and statement.envelope in KEYED:
        message = f"ENVELOPE {statement.envelope.upper()} needs a key"
        hint = "write KEY (column, …) before FORMAT"
        raise StatementError(message, code="42P16", hint=hint, position=position)
    unique = any(found <= set(key) for found in relation.relation().unique_keys)
    if statement.envelope in KEYED and not unique:
        message = f'KEY ({", ".join(statement.key)}) may not be unique in "{relation.name}"'
        detail = "two rows with one key would overwrite each other"
        hint = "choose a key that is unique, or sink a view that groups by it; or ENVELOPE DEBEZIUM"
        if statement.key_not_enforced:
            message = f"{message}, and NOT ENFORCED is not supported"
            raise NotSupported(message, detail=detail, hint=hint, position=position)
        raise StatementError(message, code="42P16", detail=detail, hint=hint, position=position)
    return key
