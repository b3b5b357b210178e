"""The relation in which a user supplies bindings: its rows, as they come and go.

Definition. A relation ``(timestamp, partition, offset, …)`` supplies, at each moment, the rows that
are in it at its own last complete time. Times before the greatest of its timestamps are complete:
a row with a later timestamp says that no more rows follow for the earlier ones. The relation has
*ended* if it can get no more rows, as a source that its sender has ended, or files that are
complete (``tail = false``) and have been read. Then all that it has is complete.

Only rows about times that are not bound yet are kept here; for earlier times the remap has what was
bound. Cost: what changed in the relation since the last look; all of it after a restart.

Tests: tests/ingest/test_using.py.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from reclock.catalog.item import MaterializedView, RelationItem, Source, Table
from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import collection_of, errors_of
from reclock.errors import InvalidValue, SourceUnavailable, StatementError, Unreadable
from reclock.remap.supplied import SuppliedBinding, check_supplied
from reclock.sql.types import BIGINT, INTEGER, SMALLINT, TEXT
from reclock.time.frontier import at
from reclock.time.position import offsets_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from reclock.arrangement.run import RunRef
    from reclock.arrangement.shard import Shard
    from reclock.catalog.catalog import Catalog
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.remap.trace import Remap
    from reclock.sql.syntax.expression import Name
    from reclock.time.timestamp import Timestamp

COLUMNS: Final = ("timestamp", "partition", "offset")
_INTEGERS: Final = (SMALLINT, INTEGER, BIGINT)


def check_relation(catalog: Catalog, name: Name, *, named: bool) -> RelationItem:
    """Return the relation of that name; refuse one that cannot supply bindings.

    The parts of the source that they are for are ``named``, or have numbers.
    """
    item = catalog.get(name, RelationItem)
    if not isinstance(item, Table | Source | MaterializedView):
        message = f'"{item.name}" cannot supply bindings: it keeps no rows'
        hint = "use a table, a source or a materialized view"
        raise StatementError(message, code="42809", hint=hint, position=name.position)
    types = {column.name: column.type for column in item.schema}
    wanted = dict.fromkeys(COLUMNS, _INTEGERS) | ({"partition": (TEXT,)} if named else {})
    for column, kinds in wanted.items():
        if types.get(column) not in kinds:
            message = f'"{item.name}" cannot supply bindings: column "{column}" does not fit'
            noun = "text" if TEXT in kinds else "integer"
            given = f"it has {types[column]}" if column in types else "there is none"
            hint = f"it has timestamp, partition and offset; {column} is {noun}"
            raise StatementError(
                message, code="42804", detail=given, hint=hint, position=name.position
            )
    return item


class Given:
    """What a relation supplies about times that are not bound yet."""

    def __init__(self, relation: ObjectId) -> None:
        self._relation = relation
        self._rows: Counter[SuppliedBinding] = Counter()
        self._seen: tuple[RunRef, ...] | None = None
        self._upper: Timestamp | None = None
        self.ended = False

    def look(self, world: World) -> bool:
        """Take what has changed; return whether anything has."""
        item = world.catalog[self._relation]
        assert isinstance(item, Table | Source | MaterializedView)
        state = world.of(item)
        runs = state.arrangements.runs[collection_of(item.id)]
        ended = has_ended(state, item)
        if runs == self._seen and ended == self.ended:
            self._upper = state.upper
            return False
        _check_errors(state, item)
        name = collection_of(item.id)
        keying, trace = state.shape.graph.arrangements[name].keying, state.traces[name]
        places = [item.schema.names.index(column) for column in COLUMNS]
        upper = state.upper
        for batch in self._changes(trace, upper):
            for row, diff in _rows(keying.restore(batch), places, item.name):
                self._rows[row] += diff
        self._seen, self._upper, self.ended = runs, upper, ended
        return True

    def _changes(self, trace: Shard, upper: Timestamp) -> Iterator[pa.RecordBatch]:
        """Return what changed since the last look; all rows, if that cannot be told."""
        if self._upper is not None:
            with suppress(Unreadable):
                return trace.changes(self._upper, at(upper))
        self._rows.clear()
        return trace.snapshot(upper.back())

    def ordered(self, remap: Remap[Any]) -> list[SuppliedBinding]:
        """Return the rows about times that are not bound, in order; refuse what cannot be."""
        found = check_supplied(remap, (row for row, count in self._rows.items() if count > 0))
        self._rows = Counter({row: self._rows[row] for row in found})
        return found


def has_ended(state: TimelineState, item: RelationItem) -> bool:
    """Return whether the rows of a relation are what they will be for ever."""
    if not isinstance(item, Source):
        return False
    remap = state.bindings[item.bound_by].remap
    ends = item.facts.get("ends")
    if ends is not None:
        whole = {name: end for name, (end, *_) in ends.items() if end}
        return offsets_of(remap.latest) == whole
    return remap.is_sealed and remap.latest.is_closed


def _check_errors(state: TimelineState, item: RelationItem) -> None:
    """Refuse to bind anything by an unreadable relation."""
    name = errors_of(item.id)
    if name not in state.arrangements.runs:
        return
    keying = state.shape.graph.arrangements[name].keying
    for batch in state.traces[name].snapshot(state.upper.back()):
        for code, text in zip(*(c.to_pylist() for c in keying.columns(batch)), strict=True):
            message = f'the bindings in "{item.name}" cannot be read'
            raise SourceUnavailable(message, code=code, detail=text)


def _rows(
    delta: pa.RecordBatch, places: Iterable[int], name: str
) -> Iterator[tuple[SuppliedBinding, int]]:
    rows = deltas.rows_of(delta)
    columns = [rows[place].to_pylist() for place in places]
    diffs = delta.column(delta.num_columns - 1).to_pylist()
    for timestamp, partition, offset, diff in zip(*columns, diffs, strict=True):
        row = SuppliedBinding(timestamp, partition, offset)
        if None in row and diff > 0:
            message = f'invalid binding in "{name}": {row}'
            detail = "timestamp, partition and offset must not be NULL"
            raise InvalidValue(message.replace("None", "NULL"), detail=detail)
        if None not in row:
            yield row, diff
