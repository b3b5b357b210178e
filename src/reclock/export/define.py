"""From CREATE SINK to a catalog object: what is said is checked before anybody is asked.

The same function makes a sink when it is created and when its record is read again. What was
decided then (the time it begins at, the names of its topics) is in the record: ``facts``.

Tests: tests/export/test_sinks.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from reclock.catalog.item import NOT_LINKED, MaterializedView, RelationItem, Sink, View
from reclock.catalog.secrets import hidden, secrets_of
from reclock.catalog.system_relation import SystemRelation
from reclock.errors import InvalidDefinition, NotSupported, StatementError
from reclock.ids import ObjectId
from reclock.sinks.encode import choose
from reclock.sinks.encode.choose import Wanted
from reclock.sql.statement.source import FileConnection, KafkaConnection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Linked
    from reclock.durable.keyed import Json
    from reclock.sql.statement import CreateSink
    from reclock.sql.syntax.expression import Name


_FILE_OPTIONS: Final = ("on_orphan", "snapshot", "transaction_bytes", "transaction_rows")


def define_sink(
    statement: CreateSink,
    sql: str,
    item: ObjectId,
    relations: Sequence[RelationItem],
    facts: Json,
    *,
    linked: Linked = NOT_LINKED,
) -> Sink:
    """Return the sink that the statement makes, of the last of ``relations``.

    The others are those that it was made of before, while they are not written yet. What ``linked``
    says of its statement is the connections'.
    """
    shadows = [key_of(statement, relation).shadow for relation in relations]
    secrets = secrets_of(statement.options, statement.format, but=linked.options)
    relation = relations[-1]
    return Sink(
        item, statement.name.parts[-1], hidden(sql, secrets), relation.timeline,
        linked.connections | {relation.id for relation in relations},
        relation=relation.id, statement=statement, facts=facts, secrets=secrets,
        shadow=next(filter(None, shadows), ()), linked=linked,
    )  # fmt: skip


def relations_of(facts: Json, catalog: Catalog) -> list[RelationItem]:
    """Return what a sink with these facts was made of before."""
    found = [catalog[ObjectId(relation)] for relation, _ in facts.get("past", ())]
    return [relation for relation in found if isinstance(relation, RelationItem)]


def relation_of(name: Name, catalog: Catalog) -> RelationItem:
    """Return what a sink is made of; its rows must be kept."""
    relation = catalog.get(name, RelationItem)
    position = name.position
    if isinstance(relation, View | SystemRelation):
        message = f'cannot sink "{relation.name}": its rows are not kept'
        hint = "create a materialized view of it and sink that"
        raise NotSupported(message, hint=hint, position=position)
    if isinstance(relation, MaterializedView) and relation.plan.timeline.timeline is None:
        message = f'cannot sink "{relation.name}": it is constant'
        raise NotSupported(message, hint="it never changes: write it once", position=position)
    return relation


class Key(NamedTuple):
    """The columns of a sink's key; those to look up its rows by, if it may repeat."""

    columns: tuple[int, ...]
    shadow: tuple[int, ...]


def key_of(statement: CreateSink, relation: RelationItem) -> Key:
    """Return the positions of the key's columns; refuse what cannot be written."""
    position = statement.name.position
    if isinstance(statement.connection, FileConnection):
        _check_files(statement)
    try:
        key = choose.key_of(wanted_of(statement, place_of(statement)), relation.schema)
    except StatementError as error:
        error.position = position
        raise
    unique = any(found <= set(key) for found in relation.relation().unique_keys)
    if unique or statement.envelope != "upsert":
        return Key(key, ())
    if not statement.key_not_enforced:
        message = f'KEY ({", ".join(statement.key)}) may not be unique in "{relation.name}"'
        detail = "two rows with one key would overwrite each other"
        hint = (
            "choose a key that is unique, or sink a view that groups by it; "
            "or write NOT ENFORCED after it if you know that it is"
        )
        raise InvalidDefinition(message, detail=detail, hint=hint, position=position)
    return Key(key, key)


def place_of(statement: CreateSink) -> str:
    """Return the topic that a statement names, or the path, which is the same wherever it is run.

    >>> from reclock.sql.parse import parse_statement
    >>> place_of(parse_statement("CREATE SINK s FROM t INTO KAFKA BROKER 'b' TOPIC 'x' FORMAT "
    ...                          "JSON ENVELOPE MATERIALIZE"))
    'x'
    """
    match statement.connection:
        case KafkaConnection(topic=topic):
            return topic
        case FileConnection(path):
            return os.path.abspath(path)


def _check_files(statement: CreateSink) -> None:
    """Refuse what files cannot have: they have no transactions, no keys and no brokers."""
    position = statement.name.position
    if statement.envelope != "materialize":
        message = f"ENVELOPE {statement.envelope.upper()} into files is not supported"
        hint = "write ENVELOPE MATERIALIZE: it alone is exact without transactions"
        raise NotSupported(message, hint=hint, position=position)
    if statement.format.kind != "json":
        message = f"FORMAT {statement.format.kind.upper()} into files is not supported"
        hint = "write FORMAT JSON: messages are lines"
        raise NotSupported(message, hint=hint, position=position)
    for name, _ in statement.options:
        if name not in _FILE_OPTIONS:
            message = f'option "{name}" is not for a sink into files'
            hint = f"it has {', '.join(_FILE_OPTIONS)}"
            raise StatementError(message, code="42601", hint=hint, position=position)


def wanted_of(statement: CreateSink, topic: str) -> Wanted:
    """Return what the statement says about the messages of a topic."""
    options = dict(statement.options)
    return Wanted(topic, statement.format, statement.envelope, statement.key, options)
