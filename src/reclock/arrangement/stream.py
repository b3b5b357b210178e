"""Consolidate several sorted sources into one, holding only a few blocks of each.

Definition. ``merged(sources)`` is ``consolidate`` of all updates of all sources, cut into
pieces that follow one another in the same order. A source is a sequence of batches which,
one after the other, are sorted by (kh, fingerprint, time): a run, or a consolidated batch.

How. Each source shows a block of its next rows. The *limit* is the least last (kh,
fingerprint) of the blocks whose source has more to come; every row strictly before it is
present in some block, so those rows are taken from all blocks, consolidated, and given
out. Equal rows share (kh, fingerprint) and so are always taken together. If no row is
before the limit, one row's history fills the block of a source, and that block grows.

``Retime`` changes the times on the way (``advance_to``: compaction to since;
``collapse_to``: a snapshot; ``between``: a range). All three keep the order of times.

Cost: linear in the updates; memory of one block per source, of ``BLOCK_BYTES`` in all,
unless one row alone has a longer history.

Tests: tests/arrangement/test_stream.py.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.fingerprint import fingerprint
from reclock.arrangement.layout import kh_of, time_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from reclock.arrangement.layout import Layout

    Retime = Callable[[pa.RecordBatch], pa.RecordBatch]

BLOCK_BYTES: Final = 256 << 20
BLOCK_ROWS: Final = 1 << 16
"""A block is some milliseconds of work: after it a merge lets ticks pass."""


def advance_to(layout: Layout, since: int) -> Retime:
    """Return the retiming that moves times before ``since`` up to it."""

    def retime(block: pa.RecordBatch) -> pa.RecordBatch:
        return _with_time(layout, block, np.maximum(time_of(block), since))

    return retime


def collapse_to(layout: Layout, as_of: int) -> Retime:
    """Return the retiming that forgets times after ``as_of`` and moves the others to it."""

    def retime(block: pa.RecordBatch) -> pa.RecordBatch:
        due = time_of(block) <= as_of
        kept = block if due.all() else block.filter(pa.array(due))
        return _with_time(layout, kept, np.full(kept.num_rows, as_of, np.int64))

    return retime


def between(lower: int, upper: int | None) -> Retime:
    """Return the retiming that keeps times in ``[lower, upper)``; ``None`` is no end."""

    def retime(block: pa.RecordBatch) -> pa.RecordBatch:
        time = time_of(block)
        inside = time >= lower
        if upper is not None:
            inside &= time < upper
        return block if inside.all() else block.filter(pa.array(inside))

    return retime


def merged(
    layout: Layout,
    sources: Sequence[Iterable[pa.RecordBatch]],
    retime: Retime | None = None,
    *,
    block_rows: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the consolidated updates of all ``sources``, in order, none empty."""
    share = BLOCK_BYTES // max(1, len(sources))
    cursors = [
        _Cursor(layout, source, retime, share, block_rows or BLOCK_ROWS) for source in sources
    ]
    while True:
        cursors = [cursor for cursor in cursors if cursor.fill()]
        if not cursors:
            return
        open_ended = [cursor.last() for cursor in cursors if cursor.has_more]
        limit = min(open_ended, default=None)
        parts = [part for cursor in cursors if (part := cursor.take_before(limit))[0].num_rows]
        if not parts:
            for cursor in cursors:
                if cursor.has_more and cursor.last() == limit:
                    cursor.grow()
            continue
        batch = concat([batch for batch, _ in parts])
        made = consolidate(layout, batch, np.concatenate([prints for _, prints in parts]))
        if made.num_rows:
            yield made


def sliced(
    layout: Layout, sources: Sequence[pa.RecordBatch], rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the same as ``merged`` of batches that are in memory, in pieces of about ``rows`` rows.

    Updates of one ``kh`` are in one piece, however many there are.
    """
    hashes = [kh_of(source) for source in sources]
    every = np.sort(np.concatenate([kh[:: max(1, rows // 16)] for kh in hashes]))
    cuts = np.unique(every[16::16])
    places = [np.searchsorted(kh, cuts, "left") for kh in hashes]
    ends = [[0, *at.tolist(), len(kh)] for at, kh in zip(places, hashes, strict=True)]
    for nth in range(len(cuts) + 1):
        parts = [
            source.slice(at[nth], at[nth + 1] - at[nth])
            for source, at in zip(sources, ends, strict=True)
            if at[nth] < at[nth + 1]
        ]
        made = consolidate(layout, concat(parts)) if parts else layout.empty()
        if made.num_rows:
            yield made


def concat(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches of one schema as one; a single one is not copied."""
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches)


def recut(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the same updates in batches of exactly ``rows`` rows, the last one shorter."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            waiting.append(batch.slice(start, rows - count))
            start += waiting[-1].num_rows
            count += waiting[-1].num_rows
            if count == rows:
                whole, waiting, count = concat(waiting), [], 0
                yield whole
                del whole  # large: not kept while the next one is gathered
    if waiting:
        yield concat(waiting)


class _Cursor:
    """The next rows of a source, with their fingerprints."""

    def __init__(
        self,
        layout: Layout,
        source: Iterable[pa.RecordBatch],
        retime: Retime | None,
        block_bytes: int,
        block_rows: int,
    ) -> None:
        self._layout = layout
        self._block_rows = block_rows
        self._batches = iter(source)
        self._retime = retime
        self._block_bytes = block_bytes
        self._slices: deque[pa.RecordBatch] = deque()
        self._block: pa.RecordBatch = layout.empty()
        self._prints: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self.has_more = True

    def fill(self) -> bool:
        """Show a block if nothing is shown; return whether there is any row left."""
        while self.has_more and self._block.num_rows == 0:
            self.grow()
        return bool(self._block.num_rows)

    def grow(self) -> None:
        """Add the next block of the source to what is shown."""
        while not self._slices:
            batch = next(self._batches, None)
            if batch is None:
                self.has_more = False
                return
            per_block = self._block_bytes * batch.num_rows // max(1, batch.nbytes)
            step = max(1, min(self._block_rows, per_block))
            starts = range(0, batch.num_rows, step)
            self._slices.extend(batch.slice(start, step) for start in starts)
        block = self._slices.popleft()
        if self._retime is not None:
            block = self._retime(block)
        prints = fingerprint(self._layout.rows(block), block.num_rows)
        if self._block.num_rows:
            block = concat([self._block, block])
            prints = np.concatenate((self._prints, prints))
        self._block, self._prints = block, prints

    def last(self) -> tuple[int, int]:
        """Return the (kh, fingerprint) of the last row shown."""
        return int(kh_of(self._block)[-1]), int(self._prints[-1])

    def take_before(
        self, limit: tuple[int, int] | None
    ) -> tuple[pa.RecordBatch, npt.NDArray[np.uint64]]:
        """Return and forget the rows strictly before ``limit``; all for no limit."""
        size = self._block.num_rows
        if limit is not None:
            kh = kh_of(self._block)
            low = int(np.searchsorted(kh, limit[0], "left"))
            high = int(np.searchsorted(kh, limit[0], "right"))
            size = low + int(np.searchsorted(self._prints[low:high], np.uint64(limit[1]), "left"))
        taken = self._block.slice(0, size), self._prints[:size]
        self._block, self._prints = self._block.slice(size), self._prints[size:]
        return taken


def _with_time(
    layout: Layout, block: pa.RecordBatch, time: npt.NDArray[np.int64]
) -> pa.RecordBatch:
    columns = block.columns
    columns[-2] = pa.array(time)
    return pa.RecordBatch.from_arrays(columns, schema=layout.schema)
