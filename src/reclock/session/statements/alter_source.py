"""ALTER SOURCE … SET (on_error = …).

Decides what happens to records that do not decode from now on. With ``'skip'``, the errors that the
source already has become dead letters (``ingest.unblock``), in the append that makes the change
known. The text of the source has the new value, as SHOW CREATE SOURCE shows.

Tests: tests/ingest/test_letters.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reclock.catalog.item import Source
from reclock.engine.catalog_change import change_catalog
from reclock.engine.tick import settle
from reclock.errors import StatementError
from reclock.ingest.define import check_on_error, define_source
from reclock.ingest.unblock import faults_at, keys_without_rows, place_key, read_again, unblocked
from reclock.rows.result import Result
from reclock.sql.parse.options import with_option
from reclock.sql.statement.source import LoadGenerator

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from reclock.engine.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.ingest.unblock import Fault, Payload
    from reclock.session.statements.context import Context
    from reclock.sql.statement import AlterSource
    from reclock.time.timestamp import Timestamp

ATTEMPTS: Final = 3
"""How often errors are read again that come meanwhile, before they have no bytes."""


def alter_source(context: Context, statement: AlterSource) -> Result:
    """Change what becomes of records that do not decode."""
    core = context.core
    payloads: dict[tuple[str, int], Payload] = {}
    for attempt in range(ATTEMPTS):
        with core.reading() as world:
            source = world.catalog.get(statement.name, Source)
            made = _altered(source, statement)
            known = faults_at(world.of(source), source) if made.skips else []
        payloads |= read_again(made, core.intakes.clusters, known, payloads)
        with context.writing(
            lambda world: [world.pace(world.catalog.get(statement.name, Source))]
        ) as world:
            source = world.catalog.get(statement.name, Source)
            made = _altered(source, statement)
            if made == source:
                return Result("ALTER SOURCE")
            state = settle(core, world.pace(source))
            _check_open(state, source)
            faults = faults_at(state, source) if made.skips else []
            unread = [fault for fault in faults if place_key(fault) not in payloads]
            if unread and attempt < ATTEMPTS - 1:
                continue  # they came meanwhile
            if faults and state.is_own:
                raise _own_times(source)
            unblocking = _Unblocking(source, payloads)
            change_catalog(core, [made], changes=unblocking if made.skips else None)
            return Result("ALTER SOURCE", notices=unblocking.notices)
    raise AssertionError


class _Unblocking:
    """What happens to the errors of a source at the time of the statement."""

    def __init__(self, source: Source, payloads: Mapping[tuple[str, int], Payload]) -> None:
        self._source = source
        self._payloads = payloads
        self.notices: tuple[str, ...] = ()

    def __call__(self, state: TimelineState, time: Timestamp) -> dict[ObjectId, pa.RecordBatch]:
        """Return the changes: of all errors that there are when nothing more can come."""
        faults = faults_at(state, self._source)
        self.notices = _notices(state, self._source, faults)
        return unblocked(state, time, self._source, faults, self._payloads)


def _check_open(state: TimelineState, source: Source) -> None:
    if state.bindings[source.id].remap.is_sealed:
        message = f'source "{source.name}" has ended'
        hint = "drop the source and create it with this option"
        raise StatementError(message, code="55000", hint=hint)


def _own_times(source: Source) -> StatementError:
    message = f'source "{source.name}" has errors that cannot be taken back'
    detail = "its times are not the system's: none can be closed at which they go"
    hint = "drop the source and create it with on_error = 'skip'"
    return StatementError(message, code="55000", detail=detail, hint=hint)


def _altered(source: Source, statement: AlterSource) -> Source:
    """Return the source with another value of the option, if it can have that."""
    position = statement.name.position
    if isinstance(source.statement.connection, LoadGenerator):
        message = "every record of a load generator decodes"
        hint = 'leave it: option "on_error" is for Kafka and files'
        raise StatementError(message, code="42809", hint=hint, position=position)
    options = dict(source.statement.options)
    if "inline" in (statement.on_error, options.get("on_error")):
        message = "on_error = 'inline' cannot be changed: it adds a column to the source"
        hint = "create another source with the option that you want"
        raise StatementError(message, code="0A000", hint=hint, position=position)
    given = {**options, "on_error": statement.on_error}
    asked = replace(source.statement, options=tuple(given.items()))
    check_on_error(asked)
    facts = dict(source.facts)
    if source.keeps_letters:
        facts["dead_letters"] = True
    sql = with_option(source.sql, "on_error", statement.on_error)
    using = source.depends - source.linked.connections
    made = define_source(
        asked, sql, source.id, source.name, facts, using=using, linked=source.linked
    )
    return replace(made, retain_history_ms=source.retain_history_ms, owner=source.owner)


def _notices(state: TimelineState, source: Source, faults: list[Fault]) -> tuple[str, ...]:
    """Say what has become of the errors that there were."""
    if not faults:
        return ()
    count = sum(fault.count for fault in faults)
    said = [
        f"{count} {'record is a dead letter' if count == 1 else 'records are dead letters'} now"
    ]
    if keys := keys_without_rows(state, source, faults):
        said.append(
            f"{keys} {'key has' if keys == 1 else 'keys have'} no row until the next record"
        )
    return tuple(said)
