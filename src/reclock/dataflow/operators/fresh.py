"""Records that a restarted connector sends again: dropped by their position in the log.

Rule. A record of the envelope DEBEZIUM has a position in the log of its database, compared
part by part (position_1, position_2, position_3), NULL before everything; without a position_1
it has none. In the order of its partition (time, order, place in the batch) a record is
dropped if

* its position is before the greatest seen in the partition; or
* it is at the greatest one, and the same record (rows, operation, fault) was seen there. What is
  included with the row (its offset …) is not what the database said, and does not count.

So records that share a position, as the rows of one statement may, are all kept, and each of
them once however often it is sent. A record without a position, or of a snapshot (operation
``r``), is never dropped, and is not remembered.

State: by partition, the greatest position and the records at it, as the bytes of their rows.
Cost: the change, and a look-up per partition. Keeps P5: what is remembered is durable.

Tests: tests/dataflow/test_envelopes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.column import canonical
from reclock.arrangement.layout import time_of
from reclock.arrangement.row import row_bytes
from reclock.dataflow import delta as deltas
from reclock.dataflow.envelope import DEBEZIUM, envelope_columns
from reclock.dataflow.grouping import group
from reclock.dataflow.keying import Keying
from reclock.dataflow.operators.records import in_order, stored
from reclock.dataflow.ordering import ranks

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from reclock.arrangement.layout import Int64s
    from reclock.dataflow.trace import Trace

POSITION: Final = ("position_1", "position_2", "position_3")
SNAPSHOT: Final = "r"
SAID: Final = ("has_before", "has_after", "op", "code", "message")
"""What makes two records at one position the same, in addition to their rows."""

POSITIONS: Final = Keying(
    (pa.int32(), pa.string(), pa.int64(), pa.int64(), pa.large_binary()), (0,)
)
"""The state by partition: a position, and the bytes of a record there."""

_EVENT: Final = 5  # the place of the bytes in a batch of the state


@dataclass(frozen=True)
class Fresh:
    """The records of rows of these types that were not there before.

    The last ``included`` columns of the row say where and when the record was written.
    """

    row: deltas.Types
    included: int = 0

    def step(self, records: pa.RecordBatch, state: Trace) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return the records that are kept, and the change of the state."""
        columns = envelope_columns(DEBEZIUM, self.row, records)
        at = in_order(columns["order"])
        at = at[_placed(columns)[at]]
        if not len(at):
            return records, POSITIONS.layout.empty()
        partition = columns["partition"].take(pa.array(at))
        kh = deltas.key_hash([partition], len(at))
        groups = group(kh, [partition], time_of(records)[at])
        keys = pa.RecordBatch.from_arrays(
            [pa.array(kh), partition], schema=POSITIONS.layout.key_schema
        )
        owner, known = stored(
            POSITIONS.layout, state.lookup(keys.take(pa.array(groups.first_rows)))
        )
        at = at[groups.order]
        of = np.repeat(groups.group_of, np.diff(np.append(groups.segments, len(at))))
        before, now = _ranked(columns, at, of, known, owner)
        prior, last = _reached(before, now, of)
        kept = now >= prior
        shared = np.isin(now, now[now == prior]) | (now == last[of])
        some = np.flatnonzero(kept & shared)
        event = self._events(columns, records, at[some])
        first = _first(
            np.concatenate((before[owner], now[some])),
            pa.concat_arrays([known.column(_EVENT), event]),
        )[len(owner) :]
        kept[some[~first]] = False
        mask = np.ones(records.num_rows, np.bool_)
        mask[at[~kept]] = False
        greatest = first & (now[some] == last[of[some]])
        new = pa.array(at[some[greatest]])
        added = deltas.build(
            [
                *(columns[name].take(new) for name in ("partition", *POSITION)),
                event.filter(pa.array(greatest)),
            ],
            time_of(records)[new],
            np.ones(len(new), np.int64),
        )
        ends = np.searchsorted(of, np.arange(len(before)), "right") - 1
        moved = np.flatnonzero((last > before)[owner])
        taken = deltas.build(
            POSITIONS.columns(known.take(pa.array(moved))),
            time_of(records)[at[ends[owner[moved]]]],
            np.full(len(moved), -1),
        )
        return records.filter(pa.array(mask)), POSITIONS.arrange(deltas.union([taken, added]))

    def _events(
        self, columns: Mapping[str, pa.Array], records: pa.RecordBatch, at: Int64s
    ) -> pa.Array:
        """Return the bytes of records: equal when both rows, operation and fault are."""
        here = pa.array(at)
        width = len(self.row)
        said = width - self.included
        images = (*records.columns[:said], *records.columns[width : width + said])
        rows = [*images, *(columns[name] for name in SAID)]
        return row_bytes([canonical(column.take(here)) for column in rows])


def _placed(columns: Mapping[str, pa.Array]) -> npt.NDArray[np.bool_]:
    """Return which records have a position by which they can be dropped."""
    snapshot = pc.fill_null(pc.equal(columns["op"], SNAPSHOT), False)
    placed = pc.and_not(pc.is_valid(columns[POSITION[0]]), snapshot)
    made: npt.NDArray[np.bool_] = placed.to_numpy(zero_copy_only=False)
    return made


def _ranked(
    columns: Mapping[str, pa.Array],
    at: Int64s,
    of: Int64s,
    known: pa.RecordBatch,
    owner: Int64s,
) -> tuple[Int64s, Int64s]:
    """Return positions as numbers: what each partition has reached, and that of each record.

    They sort as the positions do, and those of a partition are after those of the one before.
    """
    here = pa.array(at)
    parts = [
        ranks(pa.concat_arrays([old, columns[name].take(here)]), nulls_first=True)
        for name, old in zip(POSITION, known.columns[2:_EVENT], strict=True)
    ]
    order = np.lexsort(parts[::-1])
    new = np.zeros(len(order), np.bool_)
    for part in parts:
        new[1:] |= part[order[1:]] != part[order[:-1]]
    rank = np.empty(len(order), np.int64)
    rank[order] = np.cumsum(new) + 1
    width = len(order) + 1
    reached = np.arange(of[-1] + 1) * width
    reached[owner] += rank[: len(owner)]
    return reached, of * width + rank[len(owner) :]


def _reached(before: Int64s, now: Int64s, of: Int64s) -> tuple[Int64s, Int64s]:
    """Return the greatest position before each record, and that of each partition at last."""
    reached = np.maximum.accumulate(np.maximum(now, before[of]))
    prior = before[of]
    follows = np.flatnonzero(of[1:] == of[:-1]) + 1
    prior[follows] = reached[follows - 1]
    last = np.append(np.flatnonzero(of[1:] != of[:-1]), len(of) - 1)
    return prior, reached[last]


def _first(position: Int64s, event: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which records are the first of their kind at their position."""
    keys = [pa.array(position), event]
    zeros = np.zeros(len(position), np.int64)
    groups = group(deltas.key_hash(keys, len(position)), keys, zeros)
    made = np.zeros(len(position), np.bool_)
    made[groups.first_rows] = True
    return made
