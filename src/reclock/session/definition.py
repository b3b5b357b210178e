"""From statements to objects: what CREATE says, checked against the catalog.

The same functions make an object when it is created and when its record is read again, so
what was accepted once reads the same ever after.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.catalog.catalog import Catalog
from reclock.catalog.connections import SecretItem, read_connection, resolved
from reclock.catalog.item import (
    VERSION,
    Index,
    Item,
    MaterializedView,
    RelationItem,
    Sink,
    Table,
    View,
    article,
    in_order,
)
from reclock.catalog.recording import Recording
from reclock.catalog.roles import is_role
from reclock.catalog.secrets import restored
from reclock.catalog.seen import Seen, SeenCatalog
from reclock.catalog.serial.define import read_sequence, sequence_of
from reclock.catalog.settings import is_setting
from reclock.catalog.system_relation import SystemRelation
from reclock.dataflow.render.build import key_of
from reclock.engine.system_answer import refuse_maintained
from reclock.errors import Corrupt, Error, NewerFormat, NotSupported, StatementError
from reclock.export.define import define_sink, relations_of
from reclock.ids import ObjectId
from reclock.ingest.define import define_source
from reclock.secret import Secret
from reclock.session.define_table import table_of, with_sequences
from reclock.sql.as_of import time_of
from reclock.sql.cost import check_cost
from reclock.sql.parse import parse_statement
from reclock.sql.parse.columns import check_keyable
from reclock.sql.plan.build import plan_query
from reclock.sql.plan.relation import Get, Project, column
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite
from reclock.sql.statement import (
    CreateConnection,
    CreateIndex,
    CreateMaterializedView,
    CreateSecret,
    CreateSequence,
    CreateSink,
    CreateSource,
    CreateTable,
    CreateView,
)
from reclock.sql.syntax.expression import Name
from reclock.sql.syntax.place import place_of
from reclock.time.refresh import Every, Schedule
from reclock.time.timeline import EPOCH_MS, parse_timeline
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.durable import catalog_store
    from reclock.durable.keyed import Json
    from reclock.sql.plan.node import Node
    from reclock.sql.statement import Refresh


def load_catalog(
    stored: catalog_store.Catalog, system: Mapping[ObjectId, SystemRelation] | None = None
) -> Catalog:
    """Return the catalog that the durable records describe, with the system relations."""
    known = system or {}
    catalog = Catalog(system=known)
    objects = [
        (i, record)
        for i, record in stored.items().items()
        if not (is_setting(record) or is_role(record))
    ]
    records = dict(objects)
    order = in_order({i: needed_by(record) for i, record in objects})
    for item in sorted(order, key=lambda i: records[i].get("kind") == Sink.kind):
        made = read_item(item, records[item], catalog)
        catalog = Catalog(0, {**catalog.items, item: made}, system=known)
    return Catalog(int(stored.version), catalog.items, system=known)


def needed_by(record: Json) -> list[ObjectId]:
    """Return what an object is read after: all that it depends on."""
    facts = record.get("facts")
    past = facts.get("past", ()) if isinstance(facts, dict) else ()
    of = (record.get("on"), record.get("relation"), *(relation for relation, _ in past))
    return [ObjectId(i) for i in (*record.get("depends", ()), *of) if i is not None]


def read_item(item: ObjectId, record: Json, catalog: Catalog) -> Item:
    """Return the object of a record; what it depends on is in ``catalog``."""
    if record.get("v", 0) > VERSION:
        message = f"catalog object {item} has format {record['v']}, newer than {VERSION}"
        raise NewerFormat(message, hint="open the state with a later reclock")
    try:
        statement = parse_statement(record["sql"])
        made = _read(item, record, statement, catalog)
        return replace(made, owner=record.get("owner"), comments=record.get("comments", {}))
    except (KeyError, TypeError, ValueError, Error) as error:
        message = f"catalog object {item} cannot be read"
        shown = {name: value for name, value in record.items() if name != "secrets"}
        raise Corrupt(message, detail=f"{shown!r}: {error}") from error


def _read(  # noqa: PLR0911 - one per kind
    item: ObjectId, record: Json, statement: object, catalog: Catalog
) -> Item:
    name, sql, retain = record["name"], record["sql"], record.get("retain_history_ms")
    timeline = record.get("timeline")
    at = None if timeline is None else parse_timeline(timeline)
    depends = frozenset(map(ObjectId, record.get("depends", ())))
    match statement:
        case CreateTable():
            table = table_of(item, name, sql, at, statement)
            return with_sequences(table, record.get("sequences", {}))
        case CreateSequence():
            return read_sequence(
                replace(sequence_of(item, name, statement.options), sql=sql), record
            )
        case CreateSource():
            written = restored(statement, record.get("secrets", {}))
            source, linked = resolved(written, catalog)
            made = define_source(
                source, sql, item, name, record["facts"],
                using=depends - linked.connections, linked=linked,
            )  # fmt: skip
            return replace(made, retain_history_ms=retain)
        case CreateSink():
            given, linked = resolved(restored(statement, record.get("secrets", {})), catalog)
            relation = catalog[ObjectId(record["relation"])]
            assert isinstance(relation, RelationItem)
            relations = [*relations_of(record["facts"], catalog), relation]
            return define_sink(given, sql, item, relations, record["facts"], linked=linked)
        case CreateSecret():
            return SecretItem(item, name, sql, None, value=Secret(record["secrets"]["value"]))
        case CreateConnection():
            return read_connection(item, record, statement, catalog)
        case CreateView():
            seen = Seen.read(record.get("seen", ()))
            plan, _ = plan_view(statement, catalog, seen)
            return View(item, name, sql, at, depends, retain, plan=plan, seen=seen)
        case CreateMaterializedView():
            seen = Seen.read(record.get("seen", ()))
            plan = rewrite(plan_view(statement, catalog, seen)[0], RewriteContext())
            key = tuple(record["key"])
            schedule = None
            if statement.refresh is not None:
                schedule = schedule_of(statement.refresh).begun(Timestamp(record["created"]))
            return MaterializedView(
                item, name, sql, at, depends, retain,
                plan=plan, key=key, schedule=schedule, seen=seen,
                revision=record.get("revision", 0),
            )  # fmt: skip
        case CreateIndex():
            on, key = ObjectId(record["on"]), tuple(record["key"])
            kept, rows = kept_by_index(catalog[on])
            return Index(
                item, name, sql, at, depends, retain, on=on, key=key, plan=kept, rows=rows,
                unique=statement.unique, nulls_distinct=statement.nulls_distinct,
                constraint=record.get("constraint", False),
            )  # fmt: skip
    message = f"a {type(statement).__name__} makes no object"
    raise ValueError(message)


def define_view(statement: CreateView, sql: str, catalog: Catalog) -> View:
    """Return the view that the statement makes."""
    name = catalog.check_new(statement.name)
    plan, depends = plan_view(statement, catalog)
    return View(catalog.next_id, name, sql, plan.timeline.timeline, depends, plan=plan)


def define_materialized_view(
    statement: CreateMaterializedView,
    sql: str,
    catalog: Catalog,
    old: MaterializedView | None = None,
) -> MaterializedView:
    """Return the materialized view that the statement makes, or makes of one that is there."""
    name = catalog.check_new(statement.name) if old is None else old.name
    written, depends = plan_view(statement, catalog)
    refuse_maintained(written, catalog.system, "a materialized view")
    plan = rewrite(written, RewriteContext())
    check_cost(plan, allowed=statement.allow_full_recompute, position=statement.name.position)
    timeline = written.timeline.timeline or EPOCH_MS
    if statement.refresh is not None and timeline != EPOCH_MS:
        message = f"REFRESH in timeline {timeline} is not supported"
        hint = "leave it out: only the times of EpochMilliseconds are those of a clock"
        raise NotSupported(message, hint=hint, position=statement.name.position)
    return MaterializedView(
        catalog.next_id, name, sql, timeline, depends, statement.retain_history_ms,
        plan=plan, key=key_of(plan),
        schedule=None if statement.refresh is None else schedule_of(statement.refresh),
    )  # fmt: skip


def schedule_of(refresh: Refresh) -> Schedule:
    """Return the schedule that a statement asks for; when it begins is decided later."""
    every = tuple(
        Every(e.interval_ms, None if e.aligned_to is None else time_of(e.aligned_to, EPOCH_MS))
        for e in refresh.every
    )
    at = tuple(int(time_of(time, EPOCH_MS)) for time in refresh.at)
    return Schedule(every, at, refresh.at_creation)


def define_index(statement: CreateIndex, sql: str, catalog: Catalog) -> Index:
    """Return the index that the statement makes."""
    on = catalog.get(statement.relation, RelationItem)
    if isinstance(on, SystemRelation):
        message = f'cannot index "{on.name}", a system relation'
        hint = "INSERT … SELECT keeps what it shows in a table, which can be indexed"
        raise NotSupported(message, hint=hint, position=statement.relation.position)
    if statement.unique and not isinstance(on, Table):
        message = f"a unique index on {article(on.kind)} is not supported"
        hint = "leave UNIQUE out: rows are refused where they are written, in tables"
        raise NotSupported(message, hint=hint, position=statement.relation.position)
    plan, rows = kept_by_index(on)
    if isinstance(on, View):
        refuse_maintained(on.plan, catalog.system, "an index")
    if plan is not None:
        check_cost(plan, allowed=False, position=statement.relation.position)
    key = tuple(_position(on, expression) for expression in statement.keys)
    for at in key if statement.unique else ():
        check_keyable(on.schema[at].name, on.schema[at].type, statement.relation.position)
    if statement.name is None:
        names = "_".join(on.schema[k].name for k in key)
        name = catalog.free_name(f"{on.name}_{names}_idx")
    else:
        name = catalog.check_new(statement.name)
    timeline = on.timeline if plan is None else on.timeline or EPOCH_MS
    return Index(
        catalog.next_id, name, sql, timeline, frozenset({on.id}),
        statement.retain_history_ms, on=on.id, key=key, plan=plan, rows=rows,
        unique=statement.unique, nulls_distinct=statement.nulls_distinct,
    )  # fmt: skip


def kept_by_index(on: Item) -> tuple[Node | None, ObjectId | None]:
    """Return the plan that an index on an object keeps, or the relation that a view just names."""
    if not isinstance(on, View):
        return None, None
    plan = rewrite(on.plan, RewriteContext())
    return (None, plan.item) if isinstance(plan, Get) else (plan, None)


def _position(on: RelationItem, expression: object) -> int:
    """Return the column that an index key names."""
    if not isinstance(expression, Name):
        message = "an index on an expression is not supported"
        hint = "index a materialized view that has the expression as a column"
        raise NotSupported(message, hint=hint, position=place_of(expression))
    names = on.schema.names
    if expression.parts[-1] not in names:
        message = f'column "{expression}" does not exist'
        hint = f"there are the columns {', '.join(names)}"
        raise StatementError(message, code="42703", hint=hint, position=expression.position)
    return names.index(expression.parts[-1])


def plan_view(
    statement: CreateView | CreateMaterializedView, catalog: Catalog, seen: Sequence[Seen] = ()
) -> tuple[Node, frozenset[ObjectId]]:
    """Return the rows of a view's query under the view's column names, and what it reads.

    ``seen`` are relations that the text calls by names of another time.
    """
    recording = Recording(SeenCatalog(catalog, seen) if seen else catalog)
    node = plan_query(statement.query, recording, maintained=True).relation
    names = [*statement.columns, *node.schema.names[len(statement.columns) :]]
    if len(statement.columns) > node.width:
        message = "CREATE VIEW specifies more column names than columns"
        raise StatementError(message, code="42601", position=statement.name.position)
    for at, name in enumerate(names):
        if name in names[:at]:
            message = f'column "{name}" specified more than once'
            raise StatementError(message, code="42701", position=statement.name.position)
    if tuple(names) != node.schema.names:
        node = Project(node, tuple((name, column(node, i)) for i, name in enumerate(names)))
    return node, frozenset(recording.found)
