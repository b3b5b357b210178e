"""A write as a query, and what the rows of its answer mean.

A row of the answer has, in this order and as far as the ``Form`` says so,

- what happens (``Action``), the row as it is, and the row as it will be;
- a number that tells equal rows of a table without a key apart;
- the place of a row of VALUES, which decides the order of what is given back;
- what RETURNING gives.

A command that must not affect a row twice is refused whole (21000).

Cost: that of the answer's rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.dataflow.values import rows_of
from reclock.engine.constraints import fitted
from reclock.engine.write import Change
from reclock.errors import StatementError
from reclock.rows.result import Result
from reclock.session.dml.defaults import DRY, Defaults
from reclock.sql.names import NOTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.catalog.item import Table
    from reclock.catalog.unique import UniqueKey
    from reclock.sql.names import CatalogView
    from reclock.sql.plan.relation import QueryPlan
    from reclock.sql.schema import Schema
    from reclock.time.timestamp import Timestamp

    Bools = np.ndarray[Any, np.dtype[np.bool_]]
    Actions = np.ndarray[Any, np.dtype[np.int_]]


class Action(IntEnum):
    """What happens to a row."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2


@dataclass(frozen=True, slots=True)
class Form:
    """Which columns an answer has, and which rows of it count.

    ``once`` begins the message of a command that affects a row twice. With ``first``, of rows to
    add that have one key only the first is; ``arbitrated`` keys were looked up.
    """

    before: bool
    after: bool
    tagged: bool = False
    number: bool = False
    place: bool = False
    once: str | None = None
    first: bool = False
    arbitrated: tuple[UniqueKey, ...] = ()


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a write does; equal ones tell the client the same."""

    change: Change
    count: int
    returned: Sequence[pa.Array] = ()
    schema: Schema | None = None
    """The columns that RETURNING gives; None if it is not written."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outcome) and self._told == other._told

    __hash__ = None  # type: ignore[assignment] # told is compared, never looked up

    @property
    def _told(self) -> tuple[int, Counter[tuple[str, ...]]]:
        return self.count, Counter(zip(*_texts(self.returned), strict=True))

    def result(self, tag: str, timestamp: Timestamp | None) -> Result:
        """Return what the client is told: how many rows, and those it asked for."""
        tag, schema = f"{tag} {self.count}", self.schema
        if schema is None:
            return Result(tag, timestamp=timestamp)
        table = pa.Table.from_arrays(list(self.returned), names=list(schema.names))
        rows = rows_of(table, [c.type for c in schema])
        return Result(tag, schema.names, rows, timestamp, schema)


@dataclass(frozen=True, slots=True)
class Fill:
    """A column that gets numbers of its sequence, in the rows that an action applies to.

    ``returned`` are the columns of RETURNING that give them.
    """

    column: int
    action: Action
    returned: tuple[int, ...] = ()


@dataclass(frozen=True)
class Written:
    """A table, the query of what happens to it, and what RETURNING gives."""

    table: Table
    plan: QueryPlan
    form: Form
    returned: Schema | None = None
    fills: tuple[Fill, ...] = ()
    defaults: Defaults = field(default=DRY, compare=False)
    catalog: CatalogView = field(default=NOTHING, compare=False)

    def outcome(self, columns: Sequence[pa.Array]) -> Outcome:
        """Return what happens, by the answer of the query."""
        form, width = self.form, len(self.table.columns)
        rest = list(columns)
        size = len(rest[0])
        if form.place:
            at = int(form.tagged) + width * (form.before + form.after) + form.number
            order = pa.array(np.argsort(rest[at].to_numpy(), kind="stable"))
            rest = [column.take(order) for column in rest]
        action = np.full(size, _action(form))
        if form.tagged:
            action = rest.pop(0).to_numpy()
        before = [rest.pop(0) for _ in range(width)] if form.before else []
        after = [rest.pop(0) for _ in range(width)] if form.after else []
        number = rest.pop(0) if form.number else None
        if form.place:
            rest.pop(0)
        adds, removes = action != Action.DELETE, action != Action.INSERT
        if form.once is not None or form.first:
            keep = self._kept(before, after, number, adds & ~removes, removes)
            rest = _chosen(rest, keep)
            size = int(keep.sum())
            after, before = _chosen(after, keep), _chosen(before, keep)
            adds, removes, action = adds[keep], removes[keep], action[keep]
        for fill in self.fills:
            numbers = self._numbers(fill, action)
            after[fill.column] = _replaced(after[fill.column], action == fill.action, numbers)
            for place in fill.returned:
                rest[place] = _replaced(rest[place], action == fill.action, numbers)
        schema = self.table.keying.types
        added = _chosen(after, adds) if form.after else _none(schema)
        removed = _chosen(before, removes) if form.before else None
        change = Change(self.table, added, removed, arbitrated=form.arbitrated)
        return Outcome(change, size, rest, self.returned)

    def _numbers(self, fill: Fill, action: Actions) -> list[int]:
        """Return the numbers that the rows of an action get."""
        count = int((action == fill.action).sum())
        return self.defaults.numbers(self.table, fill.column, count, self.catalog)

    def _kept(
        self,
        before: list[pa.Array],
        after: list[pa.Array],
        number: pa.Array | None,
        inserts: Bools,
        removes: Bools,
    ) -> Bools:
        """Return which rows count; refuse a row that is affected twice."""
        form, table = self.form, self.table
        if before and form.once is not None:
            whole = table.key if table.checks_key else range(len(before))
            parts = [before[i] for i in whole] + ([] if number is None else [number])
            if _repeated(_texts(parts), removes).any():
                raise _twice(form.once)
        if not form.arbitrated:
            return np.ones(len(inserts), np.bool_)
        lasting = fitted(table, _chosen(after, inserts))
        again = np.zeros(len(inserts), np.bool_)
        again[inserts] = _later([_known(key, lasting) for key in form.arbitrated])
        if form.once is not None and again.any():
            raise _twice(form.once)
        return ~again


def _action(form: Form) -> Action:
    if form.before and form.after:
        return Action.UPDATE
    return Action.DELETE if form.before else Action.INSERT


def _texts(columns: Sequence[pa.Array]) -> list[list[str]]:
    return [[repr(value) for value in column.to_pylist()] for column in columns]


def _repeated(columns: list[list[str]], among: Bools) -> Bools:
    """Return which rows, of some, are like one before them."""
    seen: set[tuple[str, ...]] = set()
    found = np.zeros(len(among), np.bool_)
    for at, row in enumerate(zip(*columns, strict=True)):
        if among[at]:
            found[at] = row in seen
            seen.add(row)
    return found


def _known(key: UniqueKey, rows: Sequence[pa.Array]) -> list[tuple[str, ...] | None]:
    """Return the key of each row, None of a row that has none."""
    columns = [rows[i] for i in key.columns]
    texts = list(zip(*_texts(columns), strict=True))
    if not key.nulls_distinct:
        return [*texts]
    null = np.logical_or.reduce([c.is_null().to_numpy(zero_copy_only=False) for c in columns])
    return [None if isnull else text for text, isnull in zip(texts, null, strict=True)]


def _later(keys: list[list[tuple[str, ...] | None]]) -> Bools:
    """Return which rows have a key in common with one before them that has none in common."""
    seen: list[set[tuple[str, ...]]] = [set() for _ in keys]
    found = np.zeros(len(keys[0]), np.bool_)
    for at, row in enumerate(zip(*keys, strict=True)):
        found[at] = any(key in known for key, known in zip(row, seen, strict=True))
        if not found[at]:
            for key, known in zip(row, seen, strict=True):
                if key is not None:
                    known.add(key)
    return found


def _chosen(columns: Sequence[pa.Array], rows: Bools) -> list[pa.Array]:
    mask = pa.array(rows)
    return [column.filter(mask) for column in columns]


def _replaced(column: pa.Array, rows: Bools, numbers: list[int]) -> pa.Array:
    """Return a column with other values in some rows."""
    return pc.replace_with_mask(column, pa.array(rows), pa.array(numbers, column.type))


def _none(types: Sequence[pa.DataType]) -> list[pa.Array]:
    return [pa.array([], kind) for kind in types]


def _twice(command: str) -> StatementError:
    message = f"{command} command cannot affect row a second time"
    hint = "see to it that no two rows of the command are for one row of the table"
    return StatementError(message, code="21000", hint=hint)
