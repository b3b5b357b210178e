"""Consistency topics at CREATE SOURCE: the checks, and where the numbers begin.

::

    WITH (consistency_topic = 't')            which rows belong together; or
    ENVELOPE DEBEZIUM (TRANSACTION METADATA TOPIC 't')
    WITH (transaction_order = 'complete')     released out of turn; 'strict' unless said
    WITH (data_collection = 'public.orders')  what the rows are called in that topic
    RECLOCK INTO EPOCH                        into wall-clock time

The number of a transaction depends on where counting began. All sources of one topic, in one
timeline, count from where the first of them began: ``counter_of``. If all of them are gone, and
the topic has forgotten its beginning, the next begins behind the last number that was read there:
no timeline goes back.

Tests: tests/ingest/test_consistency.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.connectors.kafka.source import KafkaSource
from reclock.dataflow.envelope import DEBEZIUM
from reclock.errors import InvalidValue, NotSupported, PositionsLost, StatementError
from reclock.remap.codec import KAFKA
from reclock.sql.statement.source import KafkaConnection
from reclock.time.position import offsets_of

if TYPE_CHECKING:
    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Source
    from reclock.connectors.kafka.cluster import Cluster
    from reclock.durable.keyed import Json
    from reclock.sql.statement import CreateSource

ORDERS: Final = ("strict", "complete")

_OWN: Final[tuple[str, ...]] = ("transaction_order", "data_collection")
_NOT: Final[tuple[str, ...]] = (
    "start_offset",
    "start_timestamp",
    "timestamp_interval",
    "epoch_ms_timeline",
)
"""A transaction cannot be whole if its rows are not read from the beginning."""


def check_transactions(statement: CreateSource) -> None:
    """Refuse what does not go with a consistency topic, or without one."""
    options, position = dict(statement.options), statement.name.position
    topic = statement.consistency_topic
    if topic is None:
        wrong = [name for name in _OWN if name in options]
        clause = f'option "{wrong[0]}"' if wrong else "RECLOCK INTO EPOCH"
        if wrong or statement.reclock_into_epoch:
            message = f"{clause} is for sources with a consistency topic"
            hint = "write WITH (consistency_topic = '…')"
            raise StatementError(message, code="42601", hint=hint, position=position)
        return
    if statement.envelope.kind != DEBEZIUM or not isinstance(statement.connection, KafkaConnection):
        message = "a consistency topic is for sources with ENVELOPE DEBEZIUM"
        raise StatementError(message, code="42601", hint="leave it out", position=position)
    if statement.envelope.transaction_topic not in (None, topic):
        message = "two consistency topics are given"
        raise StatementError(message, code="42601", hint="leave out one", position=position)
    if topic == statement.connection.topic:
        message = f'"{topic}" cannot be the consistency topic of itself'
        hint = "it is the topic that Debezium writes transactions to, not rows"
        raise StatementError(message, code="42601", hint=hint, position=position)
    order = options.get("transaction_order", "strict")
    if order not in ORDERS:
        message = f'invalid value for option "transaction_order": "{order}"'
        raise InvalidValue(message, hint=f"write {' or '.join(ORDERS)}")
    if order == "complete" and not statement.columns.primary_key:
        message = "transaction_order = 'complete' needs a PRIMARY KEY"
        hint = "without one it is unknown which of two rows out of turn is the later"
        raise StatementError(message, code="42P16", hint=hint, position=position)
    wrong = [name for name in _NOT if name in options]
    if statement.reclock_into_epoch and "timeline" in options:
        wrong.append("timeline")
    if wrong:
        message = f'option "{wrong[0]}" does not go with a consistency topic'
        raise StatementError(message, code="42601", hint="leave it out", position=position)
    form = statement.value_format
    if form is not None and (
        form.kind not in ("json", "avro") or (form.kind == "avro" and form.registry is None)
    ):
        message = "a consistency topic is read in JSON, or in Avro with a registry"
        hint = "write FORMAT JSON, or AVRO USING CONFLUENT SCHEMA REGISTRY"
        raise NotSupported(message, hint=hint, position=position)


def discover_counter(cluster: Cluster, topic: str) -> Json:
    """Return what must be known for ever of a consistency topic: its id, and where it begins."""
    source, origin = KafkaSource.create(cluster, topic)
    if len(offsets_of(origin)) != 1:
        message = f'consistency topic "{topic}" has {len(offsets_of(origin))} partitions'
        detail = "transactions are in order in one partition alone"
        raise InvalidValue(message, detail=detail, hint="create it again with one")
    return {"topic_id": source.topic_id, "origin": [KAFKA.encode(e) for e in origin], "base": 0}


def counter_of(catalog: Catalog, read_ts: int | None, made: Source) -> Json:
    """Return where a new source counts from: as those that it shares its numbers with.

    ``read_ts`` is how far reads have gone in its timeline, if anything is there yet.
    """
    statement = made.statement
    own: Json = made.facts["counter"]
    assert isinstance(statement.connection, KafkaConnection)
    for other in catalog.of_kind(type(made)):
        same = (
            other.timeline == made.timeline
            and other.is_transactional
            and other.statement.consistency_topic == statement.consistency_topic
            and isinstance(other.statement.connection, KafkaConnection)
            and other.statement.connection.broker == statement.connection.broker
        )
        found: Json = other.facts.get("counter", {})
        if not same or found["topic_id"] != own["topic_id"]:
            continue
        if _begin(found) < _begin(own):
            message = f'consistency topic "{statement.consistency_topic}" has lost its beginning'
            detail = f'source "{other.name}" counts from offset {_begin(found)} on'
            hint = "drop the sources of that topic, and create them again together"
            raise PositionsLost(message, detail=detail, hint=hint)
        return found
    if read_ts is not None and _begin(own) and made.brings_times:
        return {**own, "base": read_ts}
    return own


def _begin(counter: Json) -> int:
    """Return the offset from which on transactions are counted."""
    return sum(KAFKA.decode(element).offset for element in counter["origin"])
