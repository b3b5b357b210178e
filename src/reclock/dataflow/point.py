"""Look-ups of few rows, one key at a time, as Python values.

What ``direct`` does for any query by its arrays, this does for the smallest ones: columns of one
collection, of which those of some arrangement's key equal constants. One key is searched in each
run, and the rows found are read value by value: no array is made, so it costs some microseconds for
each run, where arrays cost hundreds. The answer is the same; where that could not be told, because
equality of Python is not that of SQL (floats, nested values), or where there are many rows, or they
do not add up, it is None: for ``direct``, or another way to answer.

It blocks for nothing if it must not: what was not read before is ``COLD`` to who has no patience.

Tests: tests/dataflow/test_point.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from reclock.arrangement.column import canonical
from reclock.arrangement.fingerprint import fingerprint_of_integers
from reclock.dataflow.delta import key_hash
from reclock.dataflow.direct import shape_of
from reclock.dataflow.values import from_python
from reclock.sql import types as t
from reclock.sql.plan import scalar
from reclock.sql.plan.late import Late, Undecided
from reclock.sql.plan.relation import Get

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.arrangement.shard import Shard
    from reclock.dataflow.keying import Keying
    from reclock.ids import ObjectId
    from reclock.sql.plan.relation import QueryPlan
    from reclock.sql.types import Type
    from reclock.time.timestamp import Timestamp

    Row = tuple[Any, ...]

COLD: Final = "cold"
"""What is asked for is not in memory yet."""

FEW: Final = 256
"""Updates of more than this are not read one by one."""

_SAME: Final = frozenset({
    t.BOOLEAN, *t.INTEGERS, t.TEXT, t.BYTEA, t.DATE, t.TIMESTAMP, t.TIMESTAMPTZ,
})  # fmt: skip
"""Types whose values are equal in SQL exactly if they are in Python."""


_BYTES: Final[dict[Type, int]] = {t.SMALLINT: 2, t.INTEGER: 4, t.BIGINT: 8}


@dataclass(frozen=True, eq=False, slots=True)
class Point:
    """Columns of the rows of ``item`` in which some have a value, which may be late."""

    item: ObjectId
    equal: Mapping[int, object]
    kinds: Mapping[int, Type]
    """Of the columns that have a value."""
    columns: tuple[int, ...]
    adds_up: bool
    """Whether rows of these columns can be told apart by their Python values."""

    def by_key(self, keying: Keying) -> bool:
        """Return whether an arrangement by these columns can be asked."""
        return bool(keying.key) and all(column in self.equal for column in keying.key)


def point_of(plan: QueryPlan) -> Point | None:
    """Return a query as a look-up; None if it is not one, or not of this simple kind."""
    try:
        shape = shape_of(plan.root)
    except Undecided:
        return None
    if shape is None or not isinstance(shape.leaf, Get) or shape.places is not None:
        return None
    moves = shape.moves
    if moves is None or plan.order or shape.impossible or not shape.equal:
        return None
    columns = [at for at in moves[: plan.visible] if not isinstance(at, scalar.Literal)]
    if len(columns) < plan.visible:
        return None
    kinds = {column: literal.type for column, literal in shape.equal.items()}
    if not _SAME.issuperset(kinds.values()):
        return None
    equal = {column: literal.value for column, literal in shape.equal.items()}
    adds_up = all(shape.leaf.schema[at].type in _SAME for at in columns)
    return Point(shape.leaf.item, equal, kinds, tuple(columns), adds_up)


def look_up(
    point: Point,
    values: Sequence[object],
    keying: Keying,
    shard: Shard,
    as_of: Timestamp,
    *,
    patient: bool,
) -> list[Row] | Literal["cold"] | None:
    """Return the rows at ``as_of``; ``values`` are those of the parameters."""
    equal = {
        column: values[value.index] if isinstance(value, Late) else value
        for column, value in point.equal.items()
    }
    kh = _hash([(equal[at], point.kinds[at]) for at in keying.key])
    if not patient and not all(run.is_read(kh) for run in shard.sources):
        return COLD
    wanted = [(keying.place(column), value) for column, value in equal.items()]
    places = [keying.place(column) for column in point.columns]
    shard.check_readable(as_of)
    parts = [part for run in shard.sources for part in run.of_hash(kh)]
    count = sum(high - low for _, low, high in parts)
    if count > FEW or (count > 1 and not point.adds_up):
        return None
    found: dict[Row, tuple[Row, int]] = {}
    try:
        for batch, low, high in parts:
            columns = batch.columns
            for at in range(low, high):
                if columns[-2][at].as_py() <= as_of and all(
                    columns[place][at].as_py() == value for place, value in wanted
                ):
                    row = tuple([columns[place][at].as_py() for place in places])
                    key = row if point.adds_up else ()
                    before = found.get(key, (row, 0))[1]
                    found[key] = (row, before + columns[-1][at].as_py())
    except (OverflowError, ValueError):  # a time that Python has not
        return None
    if any(times < 0 for _, times in found.values()):
        return None
    return [row for row, times in found.values() for _ in range(times)]


def _hash(key: list[tuple[Any, Type]]) -> int:
    """Return the hash by which a key is stored."""
    if all(kind in _BYTES for _, kind in key):
        whole = fingerprint_of_integers([(value, _BYTES[kind]) for value, kind in key])
        return whole - (1 << 64) if whole >> 63 else whole
    return int(key_hash([canonical(from_python([value], kind)) for value, kind in key], 1)[0])
