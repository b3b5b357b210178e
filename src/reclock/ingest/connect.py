"""From a source's statement to what reads it: the connector, and how its records decode.

Connecting sends nothing: what had to be found out once, the id of a topic and where the source
begins, was found when it was created (``facts``), and is the same ever after (P2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reclock.config import parse_duration
from reclock.connectors import letters
from reclock.connectors.files.avro_container import AvroContainer
from reclock.connectors.files.parquet import Parquet
from reclock.connectors.files.source import DirectorySource, FileSource
from reclock.connectors.files.text import Header, Text
from reclock.connectors.generator.source import GeneratorSource
from reclock.connectors.kafka.cluster import Cluster
from reclock.connectors.kafka.consistent import ConsistentSource
from reclock.connectors.kafka.options import Connection
from reclock.connectors.kafka.source import KafkaSource
from reclock.connectors.kafka.start import Earliest, Start, StartTimestamp, parse_start_offset
from reclock.connectors.reading import Reading
from reclock.connectors.records import Decode, Typed
from reclock.dataflow import delta as deltas
from reclock.dataflow.envelope import OWN_TIMES, input_types
from reclock.dataflow.error_rows import told
from reclock.dataflow.types import arrow_type
from reclock.engine.first_time import first_facts
from reclock.errors import Error, InvalidValue, SourceStopped
from reclock.ingest.columns import decode_of, extra_columns, field_of, source_columns
from reclock.ingest.consistency import discover_counter
from reclock.ingest.postgres.define import discover_postgres
from reclock.remap.codec import FILES, KAFKA
from reclock.sql.as_of import time_of
from reclock.sql.parse.options import TRUE
from reclock.sql.statement.source import (
    FileConnection,
    KafkaConnection,
    LoadGenerator,
    PostgresConnection,
)
from reclock.time.timeline import EPOCH_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.catalog.item import Source, TableColumn
    from reclock.connectors.files.content import Content
    from reclock.connectors.reading import AnyDecode
    from reclock.connectors.source import Source as Connector
    from reclock.durable.keyed import Json
    from reclock.sql.statement import CreateSource
    from reclock.time.timestamp import Timestamp

PLACES: Final = 2
"""The part and the offset come before a row's columns."""


@dataclass(frozen=True)
class Connected:
    """A source that can be read: its connector, and the decoding of its records."""

    source: Connector[Any]
    decode: AnyDecode
    types: deltas.Types
    """Of what ``decode`` makes, without the places."""
    width: int
    """How many of them are the row's."""
    key: tuple[int, ...]
    name: str
    upserts: bool = False
    on_error: str = "report"
    """What becomes of records that do not decode."""
    paced: bool = False
    """Whether it moves with the ticks, and not by itself."""
    parts_have_names: bool = False

    @property
    def skips(self) -> bool:
        """Whether records that do not decode are dead letters."""
        return self.on_error == "skip"

    @property
    def code_at(self) -> int:
        """Where the code of a fault is among the columns of records."""
        return PLACES + len(self.types) - 2

    @property
    def faults_at(self) -> tuple[int, ...]:
        """Where something is, among the columns of records, if one of them does not decode."""
        inline = isinstance(self.decode, Decode) and self.decode.inline
        return (PLACES + self.width - 1, self.code_at) if inline else (self.code_at,)

    @property
    def key_at(self) -> tuple[int, ...]:
        """Where the key is among the columns of records."""
        return tuple(PLACES + at for at in self.key)

    @property
    def order_at(self) -> int:
        """Where the order of records of a key is among the columns of records."""
        return PLACES + self.width

    @property
    def read(self) -> Reading:
        """What yields the records of ranges, decoded, here or in another process."""
        return Reading(self.source.reader, self.decode, self.types, self.skips)

    @property
    def schema(self) -> pa.Schema:
        """The columns of decoded records."""
        part = pa.string() if self.parts_have_names else pa.int32()
        kinds = [part, pa.int64(), *self.types]
        if self.skips:
            kinds += [field.type for field in letters.PAYLOAD]
        fields = [pa.field(f"c{at}", kind) for at, kind in enumerate(kinds)]
        return pa.schema([*fields, pa.field("diff", pa.int64())] if self.paced else fields)

    def stopped(self, made: pa.RecordBatch) -> tuple[int, SourceStopped] | None:
        """Return where a source that is told to stop at a bad record has to, and what it says."""
        codes = made.column(self.code_at)
        if self.on_error != "stop" or codes.null_count == len(codes):
            return None
        at = int(np.flatnonzero(codes.is_valid().to_numpy(zero_copy_only=False))[0])
        return at, self.stopped_by(made.column(self.code_at + 1)[at].as_py())

    def stopped_by(self, detail: str) -> SourceStopped:
        """Return what a source says that stopped at a record, which is wrong as ``detail`` says."""
        message = f'source "{self.name}" stopped at a record that cannot be decoded'
        hint = "drop the source and create it again, beyond that record or with on_error"
        return SourceStopped(message, detail=detail, hint=hint)

    def failed(self, failure: Error, time: Timestamp) -> pa.RecordBatch:
        """Return the change that a lasting failure is: one error row."""
        text = told(failed_text(self.name, failure.message), failure.detail, failure.hint)
        given = {len(self.types) - 2: failure.code, len(self.types) - 1: text}
        columns = [pa.array([given.get(at)], kind) for at, kind in enumerate(self.types)]
        return deltas.build(columns, np.array([time], np.int64), np.ones(1, np.int64))


def failed_text(name: str, message: str) -> str:
    """Return the message of the error row that a source ends with: it names the source, once."""
    own = f'source "{name}"'
    return message if message.startswith(own) else f"{own}: {message}"


Clusters = Callable[[Connection], Cluster]
"""How to get at the cluster of a connection: a real one, or one in memory."""


def discover(statement: CreateSource, clusters: Clusters, root: str | None = None) -> Json:
    """Ask the outside, once, what a new source must know for ever.

    ``root`` is the directory that its files must stay in, if there is one.
    """
    match statement.connection:
        case KafkaConnection(_, topic):
            cluster = clusters(_connection(statement))
            source, origin = KafkaSource.create(cluster, topic, _start(statement))
            facts: Json = {
                "topic_id": source.topic_id, "origin": [KAFKA.encode(e) for e in origin],
            }  # fmt: skip
            if _has_first(statement):
                facts |= first_facts(source, origin, KAFKA)
            if (consistency := statement.consistency_topic) is not None:
                facts["counter"] = discover_counter(cluster, consistency)
            return facts
        case FileConnection(path, directory):
            content = content_of(statement, source_columns(statement)[0])
            tail = dict(statement.options).get("tail", "true") in TRUE
            kind = DirectorySource if directory else FileSource
            made = kind.create(path, content, tail=tail, root=root)[0]
            if not _has_first(statement):
                return made.facts
            return made.facts | first_facts(made, FILES.origin, FILES)
        case LoadGenerator(kind, options):
            return GeneratorSource.create(kind, dict(options))[0].facts
        case PostgresConnection():
            return discover_postgres(statement)
    raise AssertionError(statement.connection)


def _has_first(statement: CreateSource) -> bool:
    """Return whether the system times the records of a source as they come."""
    waits = statement.envelope.kind in OWN_TIMES or statement.consistency_topic is not None
    return not waits and statement.reclock_using is None


def connect(item: Source, clusters: Clusters) -> Connected:
    """Return a source that can be read."""
    source, decode = _source(item, clusters)
    types = decode.types
    return Connected(
        source,
        decode,
        input_types(item.records, types),
        len(types),
        item.primary_key,
        item.name,
        upserts=item.envelope == "upsert",
        on_error=item.on_error,
        paced=isinstance(item.statement.connection, LoadGenerator),
        parts_have_names=item.is_transactional
        or isinstance(item.statement.connection, FileConnection),
    )


def _source(item: Source, clusters: Clusters) -> tuple[Connector[Any], AnyDecode]:
    statement = item.statement
    match statement.connection:
        case KafkaConnection(_, topic):
            cluster = clusters(_connection(statement))
            extra = extra_columns(statement)
            source = KafkaSource(cluster, topic, item.facts["topic_id"], extra)
            decode = decode_of(statement, item.columns)
            if (consistency := statement.consistency_topic) is None:
                return source, decode
            metadata = KafkaSource(cluster, consistency, item.facts["counter"]["topic_id"])
            return ConsistentSource(source, metadata), decode
        case LoadGenerator(kind, options):
            made = GeneratorSource.open(kind, dict(options), item.facts)
            return made, Typed(tuple(arrow_type(c.column.type) for c in item.columns))
        case FileConnection(_, directory):
            content = content_of(statement, item.columns)
            files = (DirectorySource if directory else FileSource).open(content, item.facts)
            if isinstance(content, Parquet):
                types = tuple(arrow_type(c.column.type) for c in item.columns)
                return files, Typed(types, f'source "{item.name}", file')
            return files, decode_of(statement, item.columns, "file")
    raise AssertionError(statement.connection)


def content_of(statement: CreateSource, columns: Sequence[TableColumn]) -> Content:
    """Return what the files of a source have in them."""
    assert statement.value_format is not None
    options = dict(statement.options)
    if statement.value_format.kind == "parquet":
        return Parquet(tuple(map(field_of, columns)))
    if statement.value_format.kind == "avro":
        assert statement.value_format.schema is not None
        return AvroContainer(statement.value_format.schema)
    header = None
    if options.get("header", "false") in TRUE:
        names = tuple(c.name for c in statement.columns.columns)
        header = Header(names, options.get("delimiter", ","))
    return Text(header, options.get("compression"))


def interval_of(item: Source) -> int | None:
    """Return the interval of a source's own, in milliseconds."""
    given = dict(item.statement.options).get("timestamp_interval")
    return None if given is None else parse_duration(given)


def _connection(statement: CreateSource) -> Connection:
    assert isinstance(statement.connection, KafkaConnection)
    options = dict(statement.options)
    return Connection.of(
        statement.connection.broker,
        options,
        options.get("isolation_level", "read_committed"),
        options.get("group_id_prefix", ""),
    )


def _start(statement: CreateSource) -> Start:
    options = dict(statement.options)
    offset, timestamp = options.get("start_offset"), options.get("start_timestamp")
    if offset is not None and timestamp is not None:
        message = "a source begins at start_offset or at start_timestamp, not at both"
        raise InvalidValue(message, hint="leave out one of them")
    if timestamp is not None:
        return StartTimestamp(time_of(timestamp, EPOCH_MS))
    return Earliest() if offset is None else parse_start_offset(offset)
