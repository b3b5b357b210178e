"""ENVELOPE UPSERT where KEY is NOT ENFORCED: a key may have several rows, one of which shows.

Definition. Of the rows that a key has at t one *shows*: the greatest by its bytes. The others are
shadowed. The topic's value of the key at t is the row that shows at t, so a message is written
where that changes, and there alone::

    a shadowed row goes or comes         nothing
    the row that shows goes              the one that shows now, or a tombstone
    a greater row comes                  that row

Which one shows depends on the contents alone, not on how they came to be: a restart, with history
compacted, goes on alike. Every time that leaves a key with more than one row is a fault. So the
topic is always a function of the view, and is right again when the view is.

``contents`` gives the rows that the changed keys had before. Keys that never have more than one
row, usually all, are encoded as by ``upsert``, vectorised; for others Python looks at their rows.

Tests: tests/sinks/encode/test_shadow.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from reclock.sinks.encode.encoder import Nothing, Updates
from reclock.sinks.encode.groups import grouped
from reclock.sinks.encode.upsert import Upserts, duplicates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from reclock.sinks.encode.encoder import Encoded, Format, Indices
    from reclock.time.description import Description
    from reclock.time.frontier import Frontier
    from reclock.time.timestamp import Timestamp


class Contents(Protocol):
    """What a view had."""

    def __call__(self, keys: Sequence[pa.Array], lower: Frontier, /) -> pa.RecordBatch:
        """Return the rows with these keys just before ``lower``, as updates of one time."""
        ...


class _Message(NamedTuple):
    time: int
    row: int
    added: bool


@dataclass(frozen=True, slots=True)
class ShadowEncoder:
    """Rows by the key columns at ``key``, which may repeat."""

    format: Format
    key: tuple[int, ...]
    contents: Contents

    def encode(
        self, updates: pa.RecordBatch | None, description: Description[Timestamp]
    ) -> Encoded:
        """Return the messages of all updates with times in ``[lower, upper)``; None for none."""
        if updates is None:
            return Nothing()
        new = Updates.of(updates)
        keys = self._keys(new.columns)
        found = _with(self.contents(_distinct(new, self.key, keys), description.lower), new)
        keys = self._keys(found.columns)
        codes = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
        odd = np.isin(codes, _crowded(found, codes))
        regular = np.flatnonzero(~odd & (found.times >= 0))
        moments, rows, added = _usual(found, keys, regular)
        faults: list[tuple[int, pa.Scalar, int]] = []
        if odd.any():
            said = self._unusual(found, codes, np.flatnonzero(odd), faults, keys)
            moments = np.append(moments, np.array([m.time for m in said], np.int64))
            rows = np.append(rows, np.array([m.row for m in said], np.int64))
            added = np.append(added, np.array([m.added for m in said], np.bool_))
            order = np.argsort(moments, kind="stable")
            moments, rows, added = moments[order], rows[order], added[order]
        made = duplicates(sorted(faults, key=lambda fault: fault[0]))
        return Upserts(self.format, found.columns, keys, moments, rows, added, made)

    def _keys(self, columns: Sequence[pa.Array]) -> pa.Array:
        return self.format.keys([columns[at] for at in self.key])

    def _unusual(
        self,
        found: Updates,
        codes: NDArray[np.int64],
        odd: Indices,
        faults: list[tuple[int, pa.Scalar, int]],
        keys: pa.Array,
    ) -> list[_Message]:
        """Return the messages of keys with several rows, by the definition."""
        order = odd[np.lexsort((found.times[odd], codes[odd]))]
        texts = self.format.rows([column.take(pa.array(order)) for column in found.columns])
        counts: dict[bytes, int] = {}
        places: dict[bytes, int] = {}
        said: list[_Message] = []
        ends = np.append(
            np.flatnonzero(np.diff(codes[order]) | np.diff(found.times[order])), len(order) - 1
        )
        start, key, shown = 0, -1, None
        for end in ends.tolist():
            row = int(order[end])
            time = int(found.times[row])
            if codes[row] != key:
                key, shown = int(codes[row]), None
                counts.clear()
            for at in range(start, end + 1):
                text = texts[at].as_py()
                counts[text] = counts.get(text, 0) + int(found.diffs[order[at]])
                places[text] = int(order[at])
            start = end + 1
            shows = max((text for text, count in counts.items() if count > 0), default=None)
            total = sum(counts.values())
            if time >= 0 and shows != shown:
                said.append(_Message(time, places.get(shows or b"", row), shows is not None))
            if time >= 0 and total > 1:
                faults.append((time, keys[row], total))
            shown = shows
        return said


def _distinct(updates: Updates, key: tuple[int, ...], keys: pa.Array) -> list[pa.Array]:
    """Return the key columns of each key once."""
    _, first = np.unique(keys.dictionary_encode().indices.to_numpy(), return_index=True)
    return [updates.columns[at].take(pa.array(first)) for at in key]


def _with(before: pa.RecordBatch, new: Updates) -> Updates:
    """Return what was there before, at time −1, and what is new."""
    *columns, _, diff = before.columns
    both = [pa.concat_arrays([a, b]) for a, b in zip(columns, new.columns, strict=True)]
    times = np.concatenate([np.full(before.num_rows, -1), new.times])
    return Updates(tuple(both), times, np.concatenate([diff.to_numpy(), new.diffs]))


def _crowded(found: Updates, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the keys that have, at some time, another number of rows than none or one."""
    order = np.lexsort((found.times, codes))
    code, time = codes[order], found.times[order]
    counts = np.cumsum(found.diffs[order])
    firsts = np.flatnonzero(np.diff(code, prepend=-1))
    base = np.repeat((counts - found.diffs[order])[firsts], np.diff(firsts, append=len(code)))
    last = np.append((np.diff(code) != 0) | (np.diff(time) != 0), True)
    there = (counts - base)[last]
    return np.unique(code[last][(there < 0) | (there > 1)])


def _usual(
    found: Updates, keys: pa.Array, regular: Indices
) -> tuple[NDArray[np.int64], Indices, NDArray[np.bool_]]:
    """Return times, rows and whether they are added, of keys with at most one row."""
    part = Updates((), found.times[regular], found.diffs[regular])
    groups = grouped(part, keys.take(pa.array(regular)))
    added = groups.added > 0
    rows = regular[groups.rows[groups.starts + groups.taken * added]]
    return found.times[rows], rows, added
