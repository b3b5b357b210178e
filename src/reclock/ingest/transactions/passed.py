"""Transactions that were passed: the keys that later ones have changed out of turn.

Out of turn (``complete``) a transaction may be released before an older one whose rows have not
come yet. So the keys of what was released before its turn are kept, with number and place, until
all older transactions are released: statements with a number and no status, in TEMP. Of an older
row that comes then, what a later one has changed is left out: at every time a key has what the
last of the released transactions says of it (P3).

Cost: vectorised over what is released; kept is one statement for each key that was changed out of
turn (P5). Tests: tests/ingest/test_record_order.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.ingest.transactions.order import Images, Keys, latest
from reclock.ingest.transactions.rows import Columns, Part

if TYPE_CHECKING:
    from reclock.ingest.transactions.rows import Int64s


@dataclass(frozen=True)
class Passing:
    """What passes of statements with these columns."""

    columns: Columns

    def _images(self, found: Part, number: Int64s) -> Images:
        said, width = self.columns.of(found.rows), len(self.columns.row)
        good = said["code"].is_null().to_numpy(zero_copy_only=False)
        return Images(
            [found.rows.column(at) for at in self.columns.key],
            [found.rows.column(width + at) for at in self.columns.key],
            good & said["has_before"].fill_null(False).to_numpy(zero_copy_only=False),
            number,
            said["total_order"].fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64),
        )

    def keys(self, passed: pa.RecordBatch) -> Keys:
        """Return the keys that statements of what passed are about."""
        said = self.columns.of(passed)
        return Keys(
            [passed.column(at) for at in self.columns.key],
            said["number"].to_numpy(zero_copy_only=False),
            said["total_order"].to_numpy(zero_copy_only=False),
        )

    def passing(
        self, found: Part | None, number: Int64s, passed: pa.RecordBatch, least: int
    ) -> tuple[pa.RecordBatch, pa.RecordBatch, pa.RecordBatch]:
        """Return of what had passed what stays and what goes, and what passes now.

        Older ones have to know the last change of each key, if it is of a number beyond
        ``least``, the first that is not released.
        """
        new = self.columns.nothing
        if found is not None:
            keys = self._images(found.filter(~found.loose), number[~found.loose]).keys()
            given = {"number": keys.number, "total_order": keys.place, "order": 0 * keys.place}
            row = dict(zip(self.columns.key, keys.columns, strict=True))
            new = self.columns.statements(len(keys.number), given, row)
        both = pa.concat_batches([passed, new])
        keys = self.keys(both)
        last = np.zeros(both.num_rows, np.bool_)
        last[latest(keys)] = True
        last &= keys.number > least
        stays, comes = np.split(last, [passed.num_rows])
        kept, gone = (passed.filter(pa.array(which)) for which in (stays, ~stays))
        return kept, gone, new.filter(pa.array(comes))

    def not_passed(
        self, found: Part, number: Int64s, passed: pa.RecordBatch
    ) -> tuple[Part, Int64s]:
        """Return released rows without what a later one, released before, has changed."""
        if not passed.num_rows:
            return found, number
        images = self._images(found, number)
        moved = images.moved
        new, old = (some & ~found.loose for some in images.passed(self.keys(passed)))
        said, rows, width = self.columns.of(found.rows), found.rows, len(self.columns.row)
        for name, which, value in (
            ("has_before", ~new & old, False),
            ("has_after", new & moved & ~old, False),
            ("op", new & moved & ~old, "d"),
        ):
            if which.any():
                at = width + self.columns.names.index(name)
                made = pc.if_else(pa.array(which), pa.scalar(value, said[name].type), said[name])
                rows = rows.set_column(at, rows.schema.names[at], made)
        keep = ~new | (moved & ~old)
        return Part(rows, found.codes).filter(keep), number[keep]
