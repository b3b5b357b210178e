"""From CREATE SOURCE to a catalog object: what is said is checked before anybody is asked.

The same function makes a source when it is created and when its record is read again. What
only the outside knows (the id of a topic, where the source begins) is asked once, by
``connect.discover``, and is part of the record: ``facts``.

Tests: tests/ingest/test_sources.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.catalog.item import NOT_LINKED, Source, TableColumn
from reclock.catalog.secrets import hidden, secrets_of
from reclock.config import parse_duration
from reclock.connectors.generator.source import GeneratorSource
from reclock.dataflow.envelope import DEBEZIUM, MATERIALIZE, OWN_TIMES, UPSERT
from reclock.errors import InvalidValue, NotSupported, StatementError
from reclock.ingest.columns import decode_of, source_columns
from reclock.ingest.consistency import check_transactions
from reclock.ingest.postgres.define import check_postgres, define_postgres
from reclock.sql.parse.options import TRUE
from reclock.sql.schema import Column
from reclock.sql.statement.source import (
    FileConnection,
    KafkaConnection,
    LoadGenerator,
    PostgresConnection,
)
from reclock.time.timeline import EPOCH_MS, Counter, External, user_timeline

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.catalog.item import Linked
    from reclock.durable.keyed import Json
    from reclock.ids import ObjectId
    from reclock.sql.statement import CreateSource
    from reclock.time.timeline import Timeline

ON_ERROR: Final = ("report", "skip", "inline", "stop", "fail")

_EVERY: Final = {"timestamp_interval", "timeline", "retain_history", "max_rows_per_tick"}
_DECODED: Final = {*_EVERY, "epoch_ms_timeline", "on_error", "unknown_fields", "delimiter"}
_OPTIONS: Final[dict[type, set[str]]] = {
    KafkaConnection: {
        *_DECODED, "start_offset", "start_timestamp", "isolation_level", "group_id_prefix",
        "consistency_topic", "transaction_order", "data_collection",
    },
    FileConnection: {*_DECODED, "tail", "header", "compression"},
    LoadGenerator: _EVERY,
}  # fmt: skip
_KEYED: Final = (UPSERT, DEBEZIUM)
_KEYED_CLAUSES: Final = "KEY FORMAT, INCLUDE, ENVELOPE UPSERT and DEBEZIUM"
_NAMES: Final = {
    KafkaConnection: "a Kafka source",
    FileConnection: "a file",
    LoadGenerator: "a load generator",
}


def define_source(
    statement: CreateSource,
    sql: str,
    item: ObjectId,
    name: str,
    facts: Json,
    *,
    using: frozenset[ObjectId] = frozenset(),
    linked: Linked = NOT_LINKED,
) -> Source:
    """Return the source that the statement makes; ``using`` has what supplies its bindings.

    What ``linked`` says of its statement is the connections'.
    """
    check(statement)
    if isinstance(statement.connection, PostgresConnection):
        return define_postgres(statement, sql, item, name, facts, using=using, linked=linked)
    columns, key = _columns(statement)
    options = dict(statement.options)
    retain = options.get("retain_history")
    formats = (statement.key_format, statement.value_format)
    secrets = secrets_of(statement.options, *formats, but=linked.options)
    depends = using | linked.connections
    return Source(
        item, name, hidden(sql, secrets), timeline_of(statement, facts), depends,
        None if retain is None else parse_duration(retain),
        columns, key, statement.envelope.kind,
        statement=statement, facts=facts, secrets=secrets, linked=linked,
    )  # fmt: skip


def check(statement: CreateSource) -> None:
    """Refuse what is not supported, or contradicts itself, before anything is asked or made."""
    kind = type(statement.connection)
    position = statement.name.position
    if kind is PostgresConnection:
        check_postgres(statement)
        return
    if statement.reclock_using is not None:
        _check_using(statement)
    _check_options(statement)
    check_on_error(statement)
    check_transactions(statement)
    _check_epoch_ms(statement)
    timeline_of(statement)
    if isinstance(statement.connection, LoadGenerator):
        _check_generator(statement)
        return
    if statement.value_format is None:
        message = f'source "{statement.name}" has no format'
        hint = "write FORMAT JSON, AVRO, CSV, TEXT or BYTES after FROM …"
        raise StatementError(message, code="42601", hint=hint, position=position)
    _check_envelope(statement)
    columns, _ = source_columns(statement)
    _check_lengths(statement, columns)
    if statement.value_format.kind != "parquet":
        decode_of(statement, columns)


def timeline_of(statement: CreateSource, facts: Json | None = None) -> Timeline:
    """Return the timeline whose times the source gets.

    That of a sender is named after its source; ``facts`` has another name for it if an earlier
    source had this one: its times may have been others, and no timeline goes back.
    """
    options = dict(statement.options)
    if (named := options.get("timeline")) is not None:
        return user_timeline(named)
    own = _brings_times(statement) and "epoch_ms_timeline" not in options
    if (topic := statement.consistency_topic) is not None and not statement.reclock_into_epoch:
        assert isinstance(statement.connection, KafkaConnection)
        complete = options.get("transaction_order") == "complete"
        return Counter(statement.connection.broker, topic, complete)
    name = (facts or {}).get("external", statement.name.parts[-1])
    return External(name) if own else EPOCH_MS


def _brings_times(statement: CreateSource) -> bool:
    return statement.envelope.kind in OWN_TIMES or statement.reclock_using is not None


def _check_using(statement: CreateSource) -> None:
    """Refuse RECLOCK USING where times come from elsewhere."""
    why = None
    if isinstance(statement.connection, LoadGenerator):
        why = "a load generator: it moves with the clock"
    elif statement.envelope.kind in OWN_TIMES:
        why = "ENVELOPE MATERIALIZE: its records bring their times"
    elif statement.consistency_topic is not None:
        why = "a source with a consistency topic: its transactions are numbered"
    elif "timestamp_interval" in dict(statement.options):
        why = 'the option "timestamp_interval": the bindings say when'
    if why is not None:
        message = f"RECLOCK USING is not for {why}"
        position = statement.name.position
        raise StatementError(message, code="42601", hint="leave one of them out", position=position)


def _check_epoch_ms(statement: CreateSource) -> None:
    """Refuse ``epoch_ms_timeline`` where it does not say which timeline a source is in."""
    options = dict(statement.options)
    given, position = options.get("epoch_ms_timeline"), statement.name.position
    if given is None:
        return
    if not _brings_times(statement) or "timeline" in options:
        message = "unexpected parameters for CREATE SOURCE: epoch_ms_timeline"
        hint = "it is for sources that bring their times, and instead of timeline"
        raise StatementError(message, code="42601", hint=hint, position=position)
    if given not in TRUE:
        message = "unsupported epoch_ms_timeline value"
        hint = "write true, or leave it out: then the source has a timeline of its own"
        raise StatementError(message, code="22023", hint=hint, position=position)


def _columns(statement: CreateSource) -> tuple[tuple[TableColumn, ...], tuple[int, ...]]:
    if isinstance(statement.connection, LoadGenerator):
        generator = GeneratorSource.create(
            statement.connection.kind, dict(statement.connection.options)
        )[0]
        made = (TableColumn(Column(c.name, c.type, nullable=False)) for c in generator.columns)
        return tuple(made), ()
    columns, key = source_columns(statement)
    return columns, key if statement.envelope.kind in _KEYED else ()


def _check_options(statement: CreateSource) -> None:
    kind = type(statement.connection)
    known = _OPTIONS[kind]
    for name, _ in statement.options:
        prefixed = name.startswith(("kafka.", "registry.")) and kind is KafkaConnection
        if name not in known and not prefixed:
            message = f'option "{name}" is not for {_NAMES[kind]}'
            raise StatementError(
                message, code="42601", hint=f"it has {_listed(known)}",
                position=statement.name.position,
            )  # fmt: skip


def check_on_error(statement: CreateSource) -> None:
    """Refuse a way to deal with records that do not decode that the source cannot go."""
    value = dict(statement.options).get("on_error", "report")
    if value not in ON_ERROR:
        message = f'invalid value for option "on_error": "{value}"'
        raise InvalidValue(message, hint=f"write {' or '.join(ON_ERROR[:-1])}")
    why = None
    if value != "skip":
        return
    if statement.envelope.kind in OWN_TIMES:
        why = "ENVELOPE MATERIALIZE: a time without one of its updates would never be complete"
    elif statement.consistency_topic is not None:
        why = "a source with a consistency topic: a transaction without a row is not whole"
    elif statement.envelope.kind == DEBEZIUM and not statement.columns.primary_key:
        why = (
            "ENVELOPE DEBEZIUM without a key: later changes would take away rows that are not there"
        )
    if why is not None:
        message = f"on_error = 'skip' is not for {why}"
        hint = "write 'report' or 'stop'"
        if "without a key" in why:
            hint = "declare a PRIMARY KEY, or write 'report' or 'stop'"
        position = statement.name.position
        raise StatementError(message, code="42601", hint=hint, position=position)


def _check_generator(statement: CreateSource) -> None:
    if (
        statement.columns.columns
        or statement.value_format
        or statement.include
        or statement.envelope.kind != "none"
    ):
        message = "a load generator has its own columns, and no format or envelope"
        hint = "leave out the columns, FORMAT, INCLUDE and ENVELOPE"
        raise StatementError(message, code="42601", hint=hint, position=statement.name.position)


def _check_envelope(statement: CreateSource) -> None:
    kind, key = statement.envelope.kind, statement.columns.primary_key
    position = statement.name.position
    kafka = isinstance(statement.connection, KafkaConnection)
    keyed = kind in _KEYED or statement.include or statement.key_format
    if not kafka and keyed:
        message = f"lines of files have no keys: {_KEYED_CLAUSES} are for Kafka"
        raise StatementError(message, code="42601", hint="leave them out", position=position)
    if kind == "upsert" and not key:
        message = "ENVELOPE UPSERT needs a PRIMARY KEY"
        hint = f"write {statement.name} (id BIGINT PRIMARY KEY, …); it is read from the Kafka key"
        raise StatementError(message, code="42P16", hint=hint, position=position)
    if kind not in _KEYED and key and statement.columns.key_enforced:
        message = "a PRIMARY KEY of records that are only added cannot be checked"
        hint = "write ENVELOPE UPSERT if the last record of a key replaces those before it"
        if kind == MATERIALIZE:
            message, hint = "a PRIMARY KEY of updates cannot be checked", "write NOT ENFORCED"
        raise StatementError(message, code="42P16", hint=hint, position=position)
    if kind == "upsert" and len(key) == len(statement.columns.columns):
        message = "ENVELOPE UPSERT needs columns besides the key"
        raise StatementError(message, code="42P16", hint="declare those of the value",
                             position=position)  # fmt: skip
    if kind == "debezium" and statement.include and not key:
        message = "INCLUDE with ENVELOPE DEBEZIUM needs a PRIMARY KEY"
        hint = "without one a row is deleted by its contents, and those are of an earlier record"
        raise StatementError(message, code="42P16", hint=hint, position=position)
    if kind == MATERIALIZE:
        _check_materialize(statement)
    if kind in (DEBEZIUM, MATERIALIZE) and dict(statement.options).get("on_error") == "inline":
        message = "on_error = 'inline' is for records that are rows: ENVELOPE NONE or UPSERT"
        raise StatementError(message, code="42601", hint="write 'report' or 'stop'",
                             position=position)  # fmt: skip
    assert statement.value_format is not None
    parquet = statement.value_format.kind == "parquet"
    if parquet and dict(statement.options).get("on_error") == "inline":
        message = "on_error = 'inline' is not for FORMAT PARQUET"
        raise StatementError(message, code="42601", hint="write 'report' or 'stop'",
                             position=position)  # fmt: skip
    if not kafka and statement.value_format.registry is not None:
        message = "files are not read with a schema registry"
        hint = "write FORMAT AVRO USING SCHEMA '…': container files have their schemas in them"
        raise StatementError(message, code="42601", hint=hint, position=position)
    if kafka and parquet:
        message = "FORMAT PARQUET is for files"
        raise StatementError(message, code="42601", hint="write JSON or AVRO", position=position)


def _check_materialize(statement: CreateSource) -> None:
    assert statement.value_format is not None
    position = statement.name.position
    if statement.value_format.kind not in ("json", "avro"):
        message = f"ENVELOPE MATERIALIZE in {statement.value_format.kind.upper()} is not supported"
        raise NotSupported(message, hint="write FORMAT JSON or AVRO", position=position)
    if statement.include or statement.key_format:
        message = "INCLUDE and KEY FORMAT are not for ENVELOPE MATERIALIZE"
        raise StatementError(message, code="42601", hint="leave them out", position=position)
    for name in ("timestamp_interval", "header", "delimiter"):
        if name in dict(statement.options):
            message = f'option "{name}" is not for ENVELOPE MATERIALIZE'
            raise StatementError(message, code="42601", hint="leave it out", position=position)


def _check_lengths(statement: CreateSource, columns: Iterable[TableColumn]) -> None:
    for column in columns:
        if column.length is not None:
            message = f'column "{column.column.name}" of a source cannot have a length'
            raise NotSupported(message, hint="write text", position=statement.name.position)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
