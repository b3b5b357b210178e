"""A sink that goes on where another database left it: clean-host recovery.

The old state is gone. What is left is the output: its data topic holds the relation as of the
frontier F, and the record of F in the consistency topic has where each source stood (P). From
those and the sources alone ``recover = true`` goes on, exactly::

    CREATE SINK     fence the old writer, read the record, check that the sources are the same,
                    begin at the same places and still have what follows P; write the record
                    again as ours, so that the old database can never come back
    wait            until some time T ≥ F at which every source is at P or beyond is complete
    the first step  read back the topic (``read_back``); the rows at T less those, at time T
    from then on    like any other sink

What was bound after P is bound again here, so its times are new ones, later than F; whatever
changed between P and T is one change at T. No row is written twice and none is lost, whatever the
bindings of this database are.

Refused: inputs whose rows are nowhere but in the state (tables), naming them; sources that are
others, or lost what the sink was made of; a topic that does not hold the relation.

Why this way: docs/design/0005-recovery-reads-the-output.md. Keeps P4.
Tests: tests/export/test_recover.py; on the broker: test_kafka_crash.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reclock.catalog.item import MaterializedView, Source, View
from reclock.engine.source_bindings import codec_of
from reclock.errors import Error, InvalidDefinition, NotSupported, SinkRegressed
from reclock.export.read_back import Topic
from reclock.ingest.connect import connect
from reclock.sinks.consistency import frontier_record
from reclock.sinks.export import Will
from reclock.sql.parse.options import TRUE
from reclock.sql.statement.source import (
    FileConnection,
    KafkaConnection,
    LoadGenerator,
    PostgresConnection,
)
from reclock.time.frontier import at
from reclock.time.position import offsets_of
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import RelationItem, Sink
    from reclock.durable.keyed import Json
    from reclock.engine.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.ingest.connect import Clusters
    from reclock.remap.trace import Remap
    from reclock.sinks.consistency import FrontierRecord
    from reclock.sinks.log import Unfenced
    from reclock.sinks.topics import Admin
    from reclock.sql.statement import CreateSink


def is_asked(statement: CreateSink) -> bool:
    """Return whether a sink is to go on from what is there."""
    return dict(statement.options).get("recover", "false") in TRUE


def check(statement: CreateSink, relation: RelationItem, catalog: Catalog) -> None:
    """Refuse what could never be recovered, before it is needed."""
    options, position = dict(statement.options), statement.name.position
    if options.get("reuse_topic", "false") not in TRUE:
        message = "recover needs reuse_topic"
        hint = "write WITH (reuse_topic = true, recover = true)"
        raise InvalidDefinition(message, hint=hint, position=position)
    if options.get("snapshot", "true") not in TRUE:
        message = "a sink without a snapshot cannot be recovered"
        detail = "its topic does not hold the relation"
        hint = "leave out snapshot, or recover"
        raise InvalidDefinition(message, detail=detail, hint=hint, position=position)
    if relation.timeline != EPOCH_MS:
        message = f'sink "{statement.name}" cannot be recovered: its times are not those of a clock'
        detail = f"timeline {relation.timeline} would start over, before what is written"
        raise NotSupported(message, detail=detail, hint="leave out recover", position=position)
    if statement.envelope == "upsert" and not _is_keyed(statement, relation):
        message = "a sink whose key may repeat cannot be recovered"
        detail = "its topic does not have the rows that are in the shadow of others"
        hint = "choose a key that is unique, or ENVELOPE DEBEZIUM"
        raise NotSupported(message, detail=detail, hint=hint, position=position)
    for item in sorted(catalog.inputs(relation.id) | {relation.id}):
        found = catalog[item]
        if isinstance(found, Source) and isinstance(found.statement.connection, PostgresConnection):
            message = f'sink "{statement.name}" cannot be recovered: it reads PostgreSQL'
            detail = "another database has another replication slot, which begins elsewhere"
            raise NotSupported(message, detail=detail, hint="leave out recover", position=position)
        if not isinstance(found, Source | View | MaterializedView):
            message = (
                f'sink "{statement.name}" cannot be recovered: "{found.name}" is a {found.kind}'
            )
            detail = "its rows are in the state directory and nowhere else"
            hint = "leave out recover, or feed it from a source"
            raise NotSupported(message, detail=detail, hint=hint, position=position)


def topic_of(sink: Sink, relation: RelationItem) -> Topic:
    """Return what the topic of a sink has in it."""
    return Topic(sink.statement, relation.schema, _is_keyed(sink.statement, relation))


def _is_keyed(statement: CreateSink, relation: RelationItem) -> bool:
    """Return whether the key of a sink is known to be unique."""
    key = frozenset(map(relation.schema.names.index, statement.key))
    return any(found <= key for found in relation.relation().unique_keys)


def check_whole(admin: Admin, topic: str, *, sums: bool) -> None:
    """Refuse a topic that has lost what it must be read back from: sums need every record."""
    if sums and "compact" in admin.settings(topic).get("cleanup.policy", ""):
        message = f'topic "{topic}" is compacted, and does not say what was in it'
        hint = "give the sink a KEY that is unique"
        raise SinkRegressed(message, hint=hint)


def sources_of(catalog: Catalog, relation: ObjectId) -> dict[str, Source]:
    """Return the sources that a relation is made of, by their names; of tables their database."""
    items = (catalog[item] for item in sorted(catalog.inputs(relation) | {relation}))
    return {i.name: i for i in items if isinstance(i, Source) and i.parent is None}


def described(source: Source) -> Json:
    """Return what a source is, wherever it is read: which log, from where on."""
    match source.statement.connection:
        case KafkaConnection():
            origin = offsets_of(codec_of(source).origin)
            begins = {str(part): offset for part, offset in origin.items() if offset}
            return {"topic": source.facts["topic_id"], "origin": begins}
        case FileConnection():
            return {"path": source.facts["path"]}
        case LoadGenerator(kind, options):
            return {"generator": kind, "options": dict(options)}
        case PostgresConnection():
            return {"system": source.facts["system"]["id"], "slot": source.facts["slot"]}
    raise AssertionError(source.statement.connection)


@dataclass(frozen=True)
class Legacy:
    """What is taken over: the frontier, who wrote it, and where the sources stood."""

    will: Will
    positions: Mapping[str, Mapping[str, int]]

    def facts(self) -> Json:
        """Return it as part of a sink's record."""
        frontier = int(self.will.frontier.element())
        positions = {name: dict(parts) for name, parts in self.positions.items()}
        return {
            "heir_of": {"writer": self.will.writer, "frontier": frontier, "positions": positions}
        }

    @classmethod
    def of(cls, sink: Sink) -> Legacy | None:
        """Return what a sink took over, or is to."""
        told = sink.facts.get("heir_of")
        if told is None:
            return None
        return cls(Will(told["writer"], at(told["frontier"])), told["positions"])

    def moment(self, state: TimelineState, catalog: Catalog, sink: Sink) -> Timestamp | str:
        """Return the first time at which everything is at least where it was; or what is not."""
        time = Timestamp(max(sink.facts["as_of"], int(self.will.frontier.element())))
        for name, source in sources_of(catalog, sink.relation).items():
            remap = state.bindings[source.bound_by].remap
            reached = _reached(remap, self.positions.get(name, {}))
            if reached is None:
                stands, goal = _listed(offsets_of(remap.latest)), _listed(self.positions[name])
                return f'waits for source "{name}" to be read up to {goal}; it is at {stands}'
            time = max(time, reached)
        if time >= state.upper:
            behind = time - state.upper + 1
            return f"waits for time {time}: this host is {behind} ms behind the one that wrote"
        return time


def inherited(sink: Sink, record: FrontierRecord, catalog: Catalog, clusters: Clusters) -> Legacy:
    """Return what a new sink takes over by ``record``, if its sources can go on from there."""
    if record.frontier.is_closed:
        message = f'sink "{sink.name}" is complete: nothing more is to be written'
        raise SinkRegressed(message, hint="name another topic")
    sources = sources_of(catalog, sink.relation)
    if sources.keys() != record.positions.keys():
        raise _others(
            sink, f"it was made of {_named(record.positions)}; this one is of {_named(sources)}"
        )
    for name, source in sources.items():
        before, now = record.sources.get(name), described(source)
        if before != now:
            raise _others(sink, f'source "{name}" was {before}; here it is {now}')
        _check_there(sink, source, record.positions[name], clusters)
    return Legacy(Will(record.writer, record.frontier), record.positions)


def claim(sink: Sink, unfenced: Unfenced, identity: str, look: Look) -> Legacy | None:
    """Take over what is there, in the name of a new sink; None if there is nothing."""
    fenced = unfenced.fence()
    try:
        record = fenced.progress()
        if record is None:
            return None
        legacy = inherited(sink, record, look.catalog, look.clusters)
        mine = (record.positions, sink.facts["writer"], record.sources)
        fenced.send([], [frontier_record(identity, record.frontier, *mine)])
        return legacy
    finally:
        fenced.close()


@dataclass(frozen=True)
class Look:
    """Where to look up the sources of a sink."""

    catalog: Catalog
    clusters: Clusters


def _check_there(
    sink: Sink, source: Source, positions: Mapping[str, int], clusters: Clusters
) -> None:
    """Refuse a source that has lost what follows ``positions``, or never got there."""
    connected = connect(source, clusters)
    if connected.paced:
        return
    kind: Any = type(next(iter(codec_of(source).origin)))
    parts = {name if connected.parts_have_names else int(name): n for name, n in positions.items()}
    try:
        connected.source.probe(kind.frontier(parts))
    except Error as error:
        detail = error.message if error.detail is None else f"{error.message}: {error.detail}"
        message = f'sink "{sink.name}" cannot go on from where source "{source.name}" was'
        raise SinkRegressed(message, detail=detail, hint=_ANEW, code=error.code) from error


def _reached(remap: Remap[Any], positions: Mapping[str, int]) -> Timestamp | None:
    """Return the first time at which a source is at ``positions`` or beyond."""
    wanted = {part: offset for part, offset in positions.items() if offset}
    known = ((Timestamp(0), remap.origin), *((b.time, b.frontier) for b in remap.bindings))
    for time, frontier in known:
        offsets = {str(part): offset for part, offset in offsets_of(frontier).items()}
        if all(offsets.get(part, 0) >= offset for part, offset in wanted.items()):
            return time
    return None


_ANEW = "what follows is not what the topic has: drop it, or name another topic"


def _others(sink: Sink, detail: str) -> SinkRegressed:
    message = f'the output of sink "{sink.name}" was made of other sources'
    hint = "create the sources as they were, or name another topic"
    return SinkRegressed(message, detail=detail, hint=hint)


def _named(names: Mapping[str, object]) -> str:
    return ", ".join(f'"{name}"' for name in sorted(names)) or "none"


def _listed(offsets: Mapping[Any, int]) -> str:
    return ", ".join(f"{part}: {offset}" for part, offset in sorted(offsets.items())) or "nothing"
