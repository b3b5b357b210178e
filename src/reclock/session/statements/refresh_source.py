"""ALTER SOURCE … REFRESH: a database's tables get the columns that were added at the server.

What rows have in such a column was not read, so the tables are copied again, at a snapshot of
their own; what the others have is not touched::

    make a temporary slot with a snapshot, at C     nothing durable
    read the log up to C exactly, and no further    as ever
    copy the tables that have grown, into pieces    files that nothing names
    bind the log up to C                            durable, as ever
    publish                                         at one time: the old table goes, and one of the
                                                    same name comes, with the rows at C

So at the time of the change every table shows the database at C, and P4 holds. A crash before the
last step leaves the source as it was. The table is another object with the privileges of the
first: what depends on that must be dropped before. Meanwhile the source stands still.

Tests: tests/ingest/postgres/test_refresh.py.
"""

from __future__ import annotations

from dataclasses import replace
from secrets import token_hex
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, NamedTuple

from reclock.catalog.item import Source, number_of
from reclock.connectors.postgres.describe import described_again
from reclock.connectors.postgres.slot import exported
from reclock.connectors.postgres.table import Table
from reclock.dataflow.changes import Changes, Stamped
from reclock.engine.catalog_change import change_catalog
from reclock.engine.shape import Shape
from reclock.engine.tick import settle
from reclock.errors import DependentObjects, StatementError
from reclock.failpoints import hit
from reclock.ids import ObjectId
from reclock.ingest.postgres.copying import CopyTasks
from reclock.ingest.postgres.define import define_postgres
from reclock.ingest.postgres.intake import PostgresIntake, connected_of
from reclock.rows.result import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from reclock.dataflow.piece import Piece
    from reclock.engine.core import Core
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.session.statements.context import Context
    from reclock.sql.statement import RefreshSource
    from reclock.sql.syntax.expression import Name
    from reclock.time.timestamp import Lsn, Timestamp

_PATIENCE: Final = 60.0
_PAUSE: Final = 0.05
"""Seconds to wait for ticks to bind what was read, and between two looks."""


def refresh_source(context: Context, statement: RefreshSource) -> Result:
    """Take in the columns that the tables of a source have got."""
    core = context.core
    with core.reading() as world:
        source = _source(world, statement.name)
        intake = core.intakes.get(source.id)
        if not isinstance(intake, PostgresIntake):
            message = f'source "{source.name}" has failed, and cannot be refreshed'
            hint = "drop the source and create it again"
            raise StatementError(message, code="55000", hint=hint)
        grown = _grown(intake)
        _check_free(world, grown)
    if not grown:
        return Result("ALTER SOURCE", notices=("no table has a column that is not here",))
    try:
        with exported(intake.connection, f"reclock_{token_hex(6)}", temporary=True) as begun:
            intake.read_to(begun.lsn)
            copies = _copied(core, intake, grown, begun.snapshot)
        try:
            hit("postgres.refresh.copied")
            _replace(context, statement.name, begun.lsn, copies)
        finally:
            for copy in copies:
                copy.reader.discard(name for piece in copy.pieces for name in piece.segments)
    finally:
        intake.go_on()
    return Result("ALTER SOURCE")


def _source(world: World, name: Name) -> Source:
    source = world.catalog.get(name, Source)
    if "slot" not in source.facts:
        message = f'source "{source.name}" is not a PostgreSQL database'
        hint = "only the tables of a database get columns"
        raise StatementError(message, code="42809", hint=hint, position=name.position)
    if not world.of(source).bindings[source.id].remap.bindings:
        message = f'source "{source.name}" is not copied yet'
        raise StatementError(message, code="55000", hint="try again when it is")
    return source


class Grown(NamedTuple):
    """A table that has more columns there than here, and as it is to be."""

    item: Source
    table: Table


class Regrown(NamedTuple):
    """The same, and its rows in pieces that ``reader`` has written or had written."""

    grown: Grown
    reader: CopyTasks
    pieces: tuple[Piece, ...]


def _grown(intake: PostgresIntake) -> list[Grown]:
    """Return the tables that have more columns there than here, as they are to be."""
    found: list[Grown] = []
    for item in intake.items:
        table = Table.of(item.facts["table"])
        now = described_again(intake.connection, table, intake.publication)
        if now is None:
            continue  # the intake says what is wrong with it
        known = {column.name for column in table.columns}
        more = tuple(column for column in now.columns if column.name not in known)
        if more:
            columns = (*table.columns, *more)
            there = replace(table, schema=now.schema, name=now.name, columns=columns)
            found.append(Grown(item, there))
    return found


def _copied(
    core: Core, intake: PostgresIntake, grown: Sequence[Grown], snapshot: str
) -> list[Regrown]:
    """Return the tables as they are at a snapshot, written as the new ones will lie."""
    readers: dict[ObjectId, CopyTasks] = {}
    with core.reading() as world:
        made = _made(world, grown)
        catalog = world.catalog.changed(made, [one.item.id for one in grown])
        for new, (old, _) in zip(made, grown, strict=True):
            shape = Shape.of(catalog, world.pace(old), world.transients.values())
            readers[new.id] = CopyTasks(core, new.id, connected_of(new))
            readers[new.id].graph = shape.graph
    tables = {new.id: one.table for new, one in zip(made, grown, strict=True)}
    pieces = intake.copied_again(tables, readers, snapshot)
    return [
        Regrown(one, readers[new.id], pieces.get(new.id, ()))
        for new, one in zip(made, grown, strict=True)
    ]


def _made(world: World, grown: Sequence[Grown]) -> list[Source]:
    """Return the tables that come, with the next numbers."""
    made = []
    first = number_of(world.catalog.next_id)
    for number, (item, table) in enumerate(grown):
        new = ObjectId(f"u{first + number}")
        facts = {**item.facts, "table": table.record()}
        one = define_postgres(item.statement, item.sql, new, item.name, facts, using=item.depends)
        made.append(replace(one, owner=item.owner, retain_history_ms=item.retain_history_ms))
    return made


def _check_free(world: World, grown: Sequence[Grown]) -> None:
    for table, _ in grown:
        needing = sorted(world.catalog.dependents([table.id]), key=number_of)
        if needing:
            message = f'cannot refresh table "{table.name}" because other objects depend on it'
            detail = "; ".join(f"{world.catalog[by]} depends on {table}" for by in needing)
            hint = "drop these, refresh the source, and create them again"
            raise DependentObjects(message, detail=detail, hint=hint)


def _replace(
    context: Context,
    name: Name,
    reached: Lsn,
    copies: Sequence[Regrown],
) -> None:
    """Publish the tables that take the places of others, when the log is bound so far."""
    core, grown = context.core, [copy.grown for copy in copies]
    deadline = monotonic() + _PATIENCE
    while monotonic() < deadline:
        with context.writing(lambda world: [world.pace(_source(world, name))]) as begun:
            source = _source(begun, name)
            state = settle(core, begun.pace(source), ahead=True)
            core.intakes.settle(state)
            intake = core.intakes.get(source.id)
            is_same = isinstance(intake, PostgresIntake) and all(
                one.item in intake.items for one in grown
            )
            if intake is None or not is_same:
                break
            latest = next(iter(state.bindings[source.id].remap.latest))
            if latest >= reached and not intake.is_ready:
                _check_free(core.world, grown)
                _publish(context, copies)
                return
        sleep(_PAUSE)  # a tick binds only so much, and a source may have an interval of its own
    message = f'source "{name}" was changed meanwhile'
    raise StatementError(message, code="55006", hint="try again")


def _publish(context: Context, copies: Sequence[Regrown]) -> None:
    core = context.core
    world = core.world
    made, roles = _made(world, [copy.grown for copy in copies]), world.roles
    for copy, new in zip(copies, made, strict=True):
        roles = roles.inherited(copy.grown.item.id, new.id)

    def copied(_: TimelineState, time: Timestamp) -> dict[ObjectId, pa.RecordBatch | Changes]:
        return {
            new.id: Changes(runs=_at(copy.pieces, time), store=core.segments)
            for new, copy in zip(made, copies, strict=True)
        }

    gone = [copy.grown.item.id for copy in copies]
    late = frozenset(new.id for new in made)
    change_catalog(core, made, gone, roles=roles, changes=copied, late=late)


def _at(pieces: Sequence[Piece], time: Timestamp) -> tuple[Stamped, ...]:
    """Return copied rows as what comes in at a time."""
    return tuple(
        Stamped.at(run, time, is_rows=piece.is_rows) for piece in pieces for run in piece.runs
    )
