"""From bytes to lines: which lines begin in a stretch of a file.

Definition. A line begins at 0 and after every newline, and ends before the next newline; a
carriage return before that is not part of it. It belongs to the stretch in which it *begins*,
wherever that was cut, so that the stretches of any division of a file have each line once.
Everything else is data: empty lines, NUL bytes, bytes that are not UTF-8.

A line is *whole* when its newline is there. Only where the file is known to end (``end``) does
the rest after the last newline count as a line.

Cost: each byte is looked at a few times, by numpy. Memory: a chunk and the longest line, which
may have 64 MiB. Tests: tests/connectors/files/test_lines.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.connectors.files.content import BATCH_ROWS, PLACE, parts
from reclock.connectors.files.failure import changed, truncated, unfit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from reclock.connectors.files.content import Stretch

MAX_LINE: Final = 64 << 20
SCHEMA: Final = pa.schema([*PLACE, ("value", pa.binary())])
_NEWLINE, _RETURN = b"\n"[0], b"\r"[0]


def too_long(name: str, start: int) -> Exception:
    """Return the error of a line that has no end in sight."""
    detail = f"the line that begins at offset {start} has more than {MAX_LINE} bytes"
    return unfit(name, "has a line that is too long", detail)


def lines(chunks: Iterator[bytes], at: int, stretch: Stretch) -> Iterator[pa.RecordBatch]:
    """Yield the lines that begin in ``stretch``; ``chunks`` are the bytes from ``at`` on.

    ``at`` is the byte before the stretch, or 0: it tells whether a line begins there.
    """
    blocks = whole_blocks(chunks, at, stretch)
    if stretch.start > 0:
        found = _passed_rest(blocks, stretch)
        if found is None:
            return
        at, block = found
        if block and at < stretch.stop:
            yield from _split(block, at, stretch)
    for at, block in blocks:
        if at >= stretch.stop:
            return
        yield from _split(block, at, stretch)


def whole_blocks(chunks: Iterator[bytes], at: int, stretch: Stretch) -> Iterator[tuple[int, bytes]]:
    """Yield bytes that end with a line, each with its offset, until all of the stretch was."""
    rest: list[bytes] = []
    begin = seen = at
    for chunk in chunks:
        seen += len(chunk)
        cut = chunk.rfind(b"\n") + 1
        if cut:
            block = b"".join([*rest, chunk[:cut]])
            yield begin, block
            begin += len(block)
            rest = []
            if begin >= stretch.stop:
                return
        if cut < len(chunk):
            rest.append(chunk[cut:])
        if seen - begin > MAX_LINE:
            raise too_long(stretch.name, begin)
    if seen < stretch.stop:
        raise truncated(stretch.name, stretch.stop, seen)
    if rest:
        if stretch.end is None:
            raise changed(stretch.name, stretch.stop)
        yield begin, b"".join(rest)


def _passed_rest(blocks: Iterator[tuple[int, bytes]], stretch: Stretch) -> tuple[int, bytes] | None:
    """Return what follows the line in which the stretch begins, and its offset."""
    for at, block in blocks:
        first = block.find(b"\n", stretch.start - 1 - at)
        if first < 0:
            return None  # the last line, which has no newline, began before
        return at + first + 1, block[first + 1 :]
    return None


def _split(block: bytes, at: int, stretch: Stretch) -> Iterator[pa.RecordBatch]:
    """Yield the lines of ``block`` that begin in the stretch, so many at a time."""
    data = np.frombuffer(block, np.uint8)
    stops = np.flatnonzero(data == _NEWLINE)
    if not len(stops) or stops[-1] != len(data) - 1:
        stops = np.append(stops, len(data))
    starts = np.concatenate([[0], stops[:-1] + 1])
    count = int(np.searchsorted(starts, stretch.stop - at))
    for first in range(0, count, BATCH_ROWS):
        some = slice(first, min(first + BATCH_ROWS, count))
        yield _batch(data, starts[some], stops[some], at, stretch.name)


def _batch(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    at: int,
    name: str,
) -> pa.RecordBatch:
    ended = stops < len(data)
    before = data[np.maximum(stops - 1, 0)]
    ends = stops - (ended & (stops > starts) & (before == _RETURN))
    lengths = ends - starts
    longest = int(np.argmax(lengths))
    if lengths[longest] > MAX_LINE:
        raise too_long(name, at + int(starts[longest]))
    begin = int(starts[0])
    kept = np.ones(int(stops[-1]) - begin, bool)
    kept[stops[:-1] - begin] = False
    kept[ends[ends < stops] - begin] = False
    values = data[begin : int(stops[-1])][kept]
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(values)]
    value = pa.Array.from_buffers(pa.binary(), len(starts), buffers)
    columns = [parts(name, len(starts)), pa.array(starts + at, pa.int64()), value]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
