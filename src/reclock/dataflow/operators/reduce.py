"""Aggregates with accumulators: count, sum, avg, variance, bool_and, … per group.

Rule. The terms of the aggregates (``accumulate``) are linear: after a change they are the
stored totals plus the sums over the changed rows. For each changed group and each changed
time::

    − result of the totals before + result of the totals after      nothing if equal

A group exists while it has rows (NULL is a key like others). Without keys and with
``global_``, there is one group from the first tick on, also over no rows at all: the state
tells whether the first tick has been. ::

    row of the result = key columns, then one column per aggregate

State: an arrangement by the key with one row of totals per group that exists: the number
of rows, then the terms, each once however many aggregates use it. The change of the state
has −1 for the old totals and +1 for the new ones at the group's last changed time; its
history has no meaning, so it may be compacted to the present.

Totals are linear, so parts of the changes can be added up apart (``partial``) and put
together afterwards (``combined``): what first loads and ticks of many rows do.

A result that its type cannot hold is an error update (code, message, time, diff) in the
place of the row, gone when the totals are back in range. A group with fewer rows than zero,
or with none and something left in its totals, was no multiset: ``NegativeCount``.

Cost: a look-up per changed group, and the changed rows, whatever the size of the groups.
Keeps P3 and P5.

Tests: tests/dataflow/test_reduce.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from reclock.arrangement.column import canonical
from reclock.arrangement.layout import Layout, diff_of, kh_of, time_of
from reclock.arrangement.row import rows_equal
from reclock.dataflow import delta as deltas
from reclock.dataflow.grouping import counted, group
from reclock.dataflow.operators.accumulate.exact import (
    Exact,
    joined,
    running_totals,
    segment_sums,
)
from reclock.dataflow.operators.accumulate.term import Count
from reclock.errors import InvalidValue, NegativeCount

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from reclock.arrangement.layout import Int64s
    from reclock.arrangement.probe import Matches
    from reclock.dataflow.grouping import Groups
    from reclock.dataflow.operators.accumulate.aggregate import Aggregate
    from reclock.dataflow.operators.accumulate.term import Term
    from reclock.dataflow.trace import Trace

    Mask = npt.NDArray[np.bool_]

ROWS: Final = Count()
ERROR_TYPES: Final = (pa.string(), pa.string())
OUT_OF_RANGE: Final = "22003"


class Reduced(NamedTuple):
    """The change of the result, that of its errors, and that of the state (keyed)."""

    delta: pa.RecordBatch
    errors: pa.RecordBatch
    state: pa.RecordBatch


@dataclass(frozen=True)
class Reduce:
    """Aggregates over columns of these types, by the columns of ``key``."""

    types: deltas.Types
    key: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]
    global_: bool = False

    def __post_init__(self) -> None:
        """Refuse a group that always exists together with others."""
        if self.global_ and self.key:
            message = "an aggregate with keys has no group that always exists"
            raise InvalidValue(message)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The number of rows, then what the aggregates need, each once."""
        needed = (term for aggregate in self.aggregates for term in aggregate.terms)
        return tuple(dict.fromkeys([ROWS, *needed]))

    @cached_property
    def layout(self) -> Layout:
        """The columns of the state: the key, then a total per term."""
        fields = list(deltas.schema_of(self.types))
        totals = [pa.field(f"t{i}", term.storage) for i, term in enumerate(self.terms)]
        return Layout(tuple(fields[i] for i in self.key), tuple(totals))

    @property
    def result_types(self) -> deltas.Types:
        """The types of the result's columns."""
        keys = tuple(self.types[i] for i in self.key)
        return keys + tuple(aggregate.type for aggregate in self.aggregates)

    def step(self, delta: pa.RecordBatch, state: Trace, lower: int) -> Reduced:
        """Return the changes of a tick that begins at ``lower``."""
        if self.global_:
            delta = self._begun(delta, state, lower)
        if delta.num_rows == 0:
            return self._nothing()
        keys = self._keys(delta)
        groups = group(kh_of(keys), self.layout.keys(keys), time_of(delta))
        return self._reduced(keys, groups, time_of(delta), self._sums(delta, groups), state)

    def partial(self, delta: pa.RecordBatch, state: Trace, lower: int) -> pa.RecordBatch:
        """Return the totals of a part of the changes per time, in the form of the state.

        A part need not be a multiset: only all of them together, ``combined``, are.
        """
        if self.global_:
            delta = self._begun(delta, state, lower)
        if delta.num_rows == 0:
            return self.layout.empty()
        keys, time = self._keys(delta), time_of(delta)
        groups = group(kh_of(keys), self.layout.keys(keys), time)
        sums = zip(self.terms, self._sums(delta, groups), strict=True)
        heads = keys.take(pa.array(groups.segment_rows))
        rows = [*self.layout.keys(heads), *(term.store(total) for term, total in sums)]
        once = np.ones(len(groups.segments), np.int64)
        return self.layout.batch(kh_of(heads), rows, time[groups.segment_rows], once)

    def combined(self, partials: pa.RecordBatch, state: Trace) -> Reduced:
        """Return what ``step`` gives for the changes of all parts."""
        if partials.num_rows == 0:
            return self._nothing()
        keys = partials.select(range(1 + len(self.key)))
        times = time_of(partials)
        groups = group(kh_of(keys), self.layout.keys(keys), times)
        diff = diff_of(partials)[groups.order]
        sums = []
        for term, column in zip(self.terms, partials.columns[1 + len(self.key) :], strict=False):
            stored = term.load(column)
            units = segment_sums(stored.units[groups.order], diff, groups.segments)
            sums.append(Exact(units, stored.exponent))
        return self._reduced(keys, groups, times, sums, state)

    def _nothing(self) -> Reduced:
        errors = deltas.empty(ERROR_TYPES)
        return Reduced(deltas.empty(self.result_types), errors, self.layout.empty())

    def _keys(self, delta: pa.RecordBatch) -> pa.RecordBatch:
        """Return ``kh, <key…>`` of each update."""
        rows = deltas.rows_of(delta)
        keys = [canonical(rows[i]) for i in self.key]
        kh = deltas.key_hash(keys, delta.num_rows)
        return pa.RecordBatch.from_arrays([pa.array(kh), *keys], schema=self.layout.key_schema)

    def _reduced(
        self,
        keys: pa.RecordBatch,
        groups: Groups,
        times: Int64s,
        sums: Sequence[Exact],
        state: Trace,
    ) -> Reduced:
        """Return the changes, from the sums of the terms over each segment."""
        asked = keys.take(pa.array(groups.first_rows))
        versions = self._versions(sums, groups, state.lookup(asked))
        versions.check(asked)
        time = times[groups.segment_rows]
        made, errors = self._results(versions, self.layout.keys(asked), time)
        return Reduced(made, errors, self._state(versions, asked.columns, time))

    def _begun(self, delta: pa.RecordBatch, state: Trace, lower: int) -> pa.RecordBatch:
        """Return the delta with an update of diff 0 at ``lower`` if nothing is stored yet."""
        kh = deltas.key_hash([], 1)
        only = pa.RecordBatch.from_arrays([pa.array(kh)], schema=self.layout.key_schema)
        if diff_of(state.lookup(only).updates).sum():
            return delta
        nothing = [pa.nulls(1, kind) for kind in self.types]
        begin = deltas.build(nothing, np.array([lower]), np.array([0]))
        return deltas.union([begin, delta])

    def _sums(self, delta: pa.RecordBatch, groups: Groups) -> list[Exact]:
        """Return the sum of each term over the rows of each segment."""
        needed = {c for term in self.terms for c in (term.column, term.filter)}
        order = pa.array(groups.order)
        rows = [
            column.take(order) if i in needed else column
            for i, column in enumerate(deltas.rows_of(delta))
        ]
        diff = diff_of(delta)[groups.order]
        return [term.sums(rows, diff, groups.segments) for term in self.terms]

    def _versions(self, sums: Sequence[Exact], groups: Groups, found: Matches) -> _Versions:
        """Return the totals before the tick and after each segment."""
        old = _Stored(found, len(groups.groups))
        totals = []
        for i, (term, more) in enumerate(zip(self.terms, sums, strict=True)):
            stored = term.load(found.updates.column(1 + len(self.key) + i))
            base = old.totals(stored)
            totals.append(joined(base, running_totals(more, groups.groups, base)))
        return _Versions(groups, tuple(totals), old.present, self.global_)

    def _results(
        self, versions: _Versions, keys: list[pa.Array], time: Int64s
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return the change of the results and of the errors."""
        place = {term: i for i, term in enumerate(self.terms)}
        before, after = versions.before, versions.after
        there = versions.there.copy()
        differs = there[before] != there[after]
        values, errors = [], []
        for aggregate in self.aggregates:
            answer = aggregate.read([versions.totals[place[term]] for term in aggregate.terms])
            column = canonical(answer.values)
            values.append(column)
            one, other = column.take(pa.array(before)), column.take(pa.array(after))
            differs |= ~rows_equal([one], [other])
            if answer.failed is not None:
                failed = answer.failed & versions.there
                there &= ~failed
                errors.append(_errors(aggregate, failed[before], failed[after], time))
        differs |= there[before] != there[after]
        taken = np.flatnonzero(differs & there[before])
        added = np.flatnonzero(differs & there[after])
        segment = np.concatenate((taken, added))
        version = pa.array(np.concatenate((before[taken], after[added])))
        owner = pa.array(versions.groups.group_of[segment])
        made = deltas.build(
            [*(k.take(owner) for k in keys), *(v.take(version) for v in values)],
            time[segment],
            np.repeat([-1, 1], [len(taken), len(added)]),
        )
        return made, deltas.union(errors) if errors else deltas.empty(ERROR_TYPES)

    def _state(self, versions: _Versions, key_rows: list[pa.Array], time: Int64s) -> pa.RecordBatch:
        """Return the change of the stored totals."""
        groups = versions.groups
        size = len(groups.groups)
        last = size + groups.last_segments
        first = np.arange(size)
        there = versions.there
        same = np.ones(size, np.bool_)
        for totals in versions.totals:
            same &= (totals.units[first] == totals.units[last]).astype(np.bool_)
        changed = ~same | (there[first] != there[last])
        taken = np.flatnonzero(changed & there[first])
        added = np.flatnonzero(changed & there[last])
        owner = np.concatenate((taken, added))
        version = np.concatenate((first[taken], last[added]))
        stored = [
            term.store(totals.take(version))
            for term, totals in zip(self.terms, versions.totals, strict=True)
        ]
        columns = [
            *(column.take(pa.array(owner)) for column in key_rows),
            *stored,
            pa.array(time[groups.last_segments[owner]]),
            pa.array(np.repeat([-1, 1], [len(taken), len(added)])),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.layout.schema)


class _Stored:
    """What a look-up of groups in the state found: sums of stored updates, per group."""

    def __init__(self, found: Matches, size: int) -> None:
        diff = diff_of(found.updates)
        self.present: Mask = counted(found.probe, diff, size) > 0
        self._order = np.argsort(found.probe, kind="stable")
        owner = found.probe[self._order]
        self._diff = diff[self._order]
        self._starts = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])[: len(owner)])
        self._owner = owner[self._starts]
        self._size = size

    def totals(self, stored: Exact) -> Exact:
        """Return the totals of each group, 0 where nothing is stored."""
        sums = segment_sums(stored.units[self._order], self._diff, self._starts)
        units = np.zeros(self._size, sums.dtype)
        units[self._owner] = sums
        return Exact(units, stored.exponent)


@dataclass(frozen=True)
class _Versions:
    """The totals of the groups before the tick, then those after each segment."""

    groups: Groups
    totals: tuple[Exact, ...]
    stored: Mask
    always: bool

    @cached_property
    def after(self) -> Int64s:
        """The version after each segment."""
        return len(self.groups.groups) + np.arange(len(self.groups.segments))

    @cached_property
    def before(self) -> Int64s:
        """The version before each segment."""
        return np.where(self.groups.is_first, self.groups.group_of, self.after - 1)

    @cached_property
    def there(self) -> Mask:
        """Whether the group exists in each version."""
        made: Mask = (self.totals[0].units > 0).astype(np.bool_)
        if self.always:
            made[:] = True
            made[: len(self.stored)] = self.stored
        return made

    def check(self, keys: pa.RecordBatch) -> None:
        """Refuse a version that is not one of a multiset."""
        rows = self.totals[0].units
        wrong = (rows < 0).astype(np.bool_)
        none = np.flatnonzero(rows == 0)
        for totals in self.totals[1:]:
            wrong[none[~totals.take(none).is_zero()]] = True
        if wrong.any():
            version = int(np.flatnonzero(wrong)[0])
            size = len(self.stored)
            owner = version if version < size else int(self.groups.group_of[version - size])
            key = tuple(column[owner].as_py() for column in keys.columns[1:])
            message = f"more rows were taken away from group {key!r} than were there"
            raise NegativeCount(message, detail=f"it would have {rows[version]} rows")


def _errors(aggregate: Aggregate, before: Mask, after: Mask, time: Int64s) -> pa.RecordBatch:
    """Return the change of one aggregate's errors."""
    segment = np.concatenate((np.flatnonzero(before & ~after), np.flatnonzero(after & ~before)))
    taken = int((before & ~after).sum())
    kind = aggregate.type
    decimal = pa.types.is_decimal(kind)
    name = f"numeric({kind.precision},{kind.scale})" if decimal else "bigint"
    text = f"{name} out of range"
    columns = [pa.array([x] * len(segment), pa.string()) for x in (OUT_OF_RANGE, text)]
    diff = np.repeat([-1, 1], [taken, len(segment) - taken])
    return deltas.build(columns, time[segment], diff)
