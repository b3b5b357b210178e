"""Shares: the ranges of a reading, dealt out to tasks.

Rule. One job reads at most ``most`` records, and ``SLICE`` for each task. Where there is more, the
parts with the longest way come first, and none gets less than ``LEAST`` of what it has. Every task
gets about the same number of records; a part is cut where that makes it so. Shares are in order:
of a part, what comes first is in an earlier share, or earlier in the same one.

How many positions a record has is the reader's to say (``connectors.source.Reader.grain``). A
part that can only be read from its beginning, a compressed file, is read whole, by one task.

Tests: tests/ingest/test_shares.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.dataflow.stage import SLICE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.remap.batch import Range

    Grain = Callable[[int | str], int | None]

LEAST: Final = 10_000
"""How many records of a part are worth opening it for."""

_UNKNOWN: Final = 64
"""How many positions a record of a compressed file has, about: bytes."""


def records_of(ranges: Sequence[Range], grain: Grain) -> int:
    """Return how many records ranges have, about."""
    return sum(-(-(r.stop - r.start) // (grain(r.part) or _UNKNOWN)) for r in ranges)


def shares(ranges: Sequence[Range], grain: Grain, tasks: int, most: int) -> list[list[Range]]:
    """Return what each task reads, of one range for each part; the rest is for another job.

    >>> from reclock.remap.batch import Range
    >>> from reclock.time.timestamp import Timestamp
    >>> spans = [Range(0, 5, 35, Timestamp(0)), Range(1, 0, 10, Timestamp(0))]
    >>> [[r[:3] for r in share] for share in shares(spans, lambda part: 1, 2, 100)]
    [[(0, 5, 25)], [(0, 25, 35), (1, 0, 10)]]
    """
    chosen = _chosen(ranges, grain, min(tasks * SLICE, max(1, most)))
    size = -(-records_of(chosen, grain) // tasks)
    made: list[list[Range]] = [[]]
    room = size
    for span in chosen:
        width = grain(span.part)
        rest = span
        while rest.start < rest.stop:
            if not room:
                made.append([])
                room = size
            stop = rest.stop if width is None else min(rest.stop, rest.start + room * width)
            part = rest._replace(stop=stop)
            made[-1].append(part)
            room = max(0, room - records_of([part], grain))
            rest = rest._replace(start=stop)
    return made


def _chosen(ranges: Sequence[Range], grain: Grain, most: int) -> list[Range]:
    """Return the beginnings of ranges: about ``most`` records in all."""
    least = max(min(LEAST, most), most // max(1, len(ranges)))
    found: dict[int | str, Range] = {}
    left = most
    longest = sorted(ranges, key=lambda r: records_of([r], grain), reverse=True)
    for span in longest:
        if left <= 0:
            break
        width = grain(span.part)
        stop = span.stop if width is None else min(span.stop, span.start + min(least, left) * width)
        found[span.part] = span._replace(stop=stop)
        left -= records_of([found[span.part]], grain)
    return [found[r.part] for r in ranges if r.part in found]
