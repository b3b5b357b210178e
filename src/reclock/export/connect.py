"""From a sink's statement to where it writes: topics, producer, encoder.

The names of the topics are decided once, when the sink is created, and are in its ``facts``. With
``reuse_topic`` the topic is the one that was named, and what is there must be this sink's own;
without, the name carries the sink's id, the time it begins at and a nonce, so that no two sinks
ever share one. So are the ids of Avro's schemas, which are registered then.

The *identity* of a sink in its consistency topic, and of its producer among all producers, is its
name and topic: another writer under the same names is fenced, on purpose.

Tests: tests/export/test_sinks.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Final, Protocol

from reclock.config import parse_duration
from reclock.connectors.kafka.options import Connection
from reclock.errors import SinkRegressed
from reclock.export.define import place_of, wanted_of
from reclock.export.exporter import Outlet
from reclock.sinks.encode import choose
from reclock.sinks.encode.avro_format import Ids
from reclock.sinks.files import FileLog, Place
from reclock.sinks.gather import Limits
from reclock.sinks.producer import Patience, Target
from reclock.sinks.progress import glimpse
from reclock.sinks.topics import consistency_name, own_name, prepared
from reclock.sql.parse.options import TRUE
from reclock.sql.statement.source import FileConnection, KafkaConnection

if TYPE_CHECKING:
    from reclock.catalog.item import RelationItem, Sink
    from reclock.connectors.kafka.cluster import Cluster
    from reclock.durable.keyed import Json
    from reclock.ids import ObjectId
    from reclock.sinks.consistency import FrontierRecord
    from reclock.sinks.encode.encoder import Encoder
    from reclock.sinks.encode.shadow import Contents
    from reclock.sinks.log import Unfenced
    from reclock.sinks.topics import Admin
    from reclock.sql.statement import CreateSink
    from reclock.time.timestamp import Timestamp

TRANSACTION_MS: Final = 60_000
"""How long a transaction may take, unless ``transaction_timeout`` says otherwise."""


class Outlets(Protocol):
    """How to get at the logs of a connection: real ones, or ones in memory."""

    def cluster(self, connection: Connection) -> Cluster:
        """Return what there is to read."""
        ...

    def admin(self, connection: Connection) -> Admin:
        """Return who makes topics."""
        ...

    def producer(
        self, connection: Connection, target: Target, patience: Patience, compression: str
    ) -> Unfenced:
        """Return a new producer; nothing is asked yet."""
        ...


def decide(
    statement: CreateSink,
    item: ObjectId,
    as_of: Timestamp,
    *,
    own: bool = False,
    root: str | None = None,
) -> Json:
    """Return the facts of a new sink that begins at ``as_of``; its ``own`` topic, if asked.

    ``root`` is the directory that its files must stay in, if there is one.
    """
    options = dict(statement.options)
    topic = place_of(statement)
    named = isinstance(statement.connection, FileConnection)
    if own or (not named and options.get("reuse_topic", "false") not in TRUE):
        topic = own_name(topic, str(item), as_of, token_hex(4))
    made = {
        "as_of": int(as_of),
        "snapshot": options.get("snapshot", "true") in TRUE,
        "topic": topic,
        "consistency_topic": options.get("consistency_topic", consistency_name(topic)),
        "writer": token_hex(8),
    }
    return made if root is None else made | {"root": root}


def prepare(statement: CreateSink, facts: Json, outlets: Outlets) -> None:
    """Make the topics of a new sink, or see that they are as they must be."""
    if (place := files_of(statement, facts)) is not None:
        place.prepare()
        return
    options = dict(statement.options)
    partitions = options.get("partitions", options.get("partition_count"))
    replication = options.get("replication_factor")
    connection = connection_of(statement)
    data = facts["topic"]
    prepared(
        outlets.admin(connection),
        data,
        facts["consistency_topic"],
        keyed=bool(statement.key),
        partitions=None if partitions is None else int(partitions),
        replication=None if replication is None else int(replication),
    )


def refuse_orphans(sink: Sink, outlets: Outlets) -> None:
    """Refuse topics, or files, that already have output."""
    data = sink.facts["topic"]
    if (place := files_of(sink.statement, sink.facts)) is not None:
        if place.is_used():
            message = f'"{data}" has output that this database did not write'
            hint = "name another place, or write ON ORPHAN USE NONCE to get one of its own"
            raise SinkRegressed(message, hint=hint)
        return
    cluster = outlets.cluster(connection_of(sink.statement))
    found = cluster.describe(data)
    marks = cluster.watermarks(data, found.partitions if found else ())
    detail = None
    if written := {p: mark.high for p, mark in marks.items() if mark.high > 0}:
        detail = f"offsets below {written} are there, and no sink here has written them"
    elif (progress := outlet_of(sink, outlets).peek()) is not None:
        detail = f"a sink of this name has written all times before {progress.frontier}"
    if detail is None:
        return
    message = f'topic "{data}" has output that this database did not write'
    hint = (
        "open the state directory of the sink that did; if it is lost, write WITH (recover = "
        "true) to go on from it, or ON ORPHAN USE NONCE to get a topic of its own; or name another"
    )
    raise SinkRegressed(message, detail=detail, hint=hint)


def register(statement: CreateSink, facts: Json, relation: RelationItem) -> Json:
    """Return the facts of a new sink with the schemas of its topic, if it has any, registered."""
    ids = choose.registered(wanted_of(statement, facts["topic"]), relation.schema)
    return facts if ids is None else facts | {"schemas": list(ids)}


def outlet_of(sink: Sink, outlets: Outlets) -> Outlet:
    """Return where a sink writes, and how."""
    statement, facts = sink.statement, sink.facts
    options = dict(statement.options)
    identity = f"{sink.name}@{facts['topic']}"
    if (place := files_of(statement, facts)) is not None:
        log, where = FileLog(place, identity), str(place.progress)
        target = Target(identity, facts["topic"], where, identity)
        return Outlet(lambda: log, target, place.peek, limits_of(statement))
    prefix = options.get("transactional_id_prefix", "")
    target = Target(identity, facts["topic"], facts["consistency_topic"], f"{prefix}{identity}")
    timeout = options.get("transaction_timeout")
    ms = TRANSACTION_MS if timeout is None else parse_duration(timeout)
    patience = Patience(transaction=ms / 1_000)
    connection, compression = connection_of(statement), options.get("compression", "none")

    def new() -> Unfenced:
        return outlets.producer(connection, target, patience, compression)

    def peek() -> FrontierRecord | None:
        committed = outlets.cluster(replace(connection, isolation="read_committed"))
        return glimpse(identity, target.consistency, committed, patience.progress)

    return Outlet(new, target, peek, limits_of(statement))


def files_of(statement: CreateSink, facts: Json) -> Place | None:
    """Return the files that a sink writes, if it writes files."""
    if not isinstance(statement.connection, FileConnection):
        return None
    return Place(Path(facts["topic"]), statement.connection.directory, facts.get("root"))


def limits_of(statement: CreateSink) -> Limits:
    """Return how much one transaction may have; a timestamp that has more is one all the same."""
    options, usual = dict(statement.options), Limits()
    return Limits(
        int(options.get("transaction_rows", usual.rows)),
        int(options.get("transaction_bytes", usual.bytes)),
    )


def encoder_of(sink: Sink, relation: RelationItem, contents: Contents) -> Encoder:
    """Return how the changes of a relation become messages; a registry may be asked."""
    facts = sink.facts
    wanted = replace(
        wanted_of(sink.statement, facts["topic"]),
        contents=contents if sink.shadow else None,
        begins=-1 if "heir_of" in facts else facts["as_of"],
        schemas=Ids(*facts["schemas"]) if "schemas" in facts else None,
    )
    return choose.encoder_of(wanted, relation.schema)


def connection_of(statement: CreateSink) -> Connection:
    """Return how the brokers of a sink are reached."""
    assert isinstance(statement.connection, KafkaConnection)
    return Connection.of(statement.connection.broker, dict(statement.options))
