"""The offsets that ranges cover, without their times: what a reader has to go through.

Ranges of a part that follow one another are one span, because readers are better off with
long ways; those that do not touch stay apart. Tests: tests/connectors/test_spans.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.remap.batch import Range


class Span(NamedTuple):
    """Offsets ``[start, stop)`` of a part."""

    part: int | str
    start: int
    stop: int


def spans_of(ranges: Iterable[Range]) -> list[Span]:
    """Return the spans of ``ranges``, by part and offset.

    >>> from reclock.remap.batch import Range
    >>> from reclock.time.timestamp import Timestamp
    >>> spans_of([Range("a", 5, 7, Timestamp(1)), Range("a", 7, 9, Timestamp(2))])
    [Span(part='a', start=5, stop=9)]
    """
    spans: list[Span] = []
    for part, start, stop, _ in sorted(ranges):
        if start >= stop:
            continue
        if spans and spans[-1].part == part and spans[-1].stop == start:
            spans[-1] = spans[-1]._replace(stop=stop)
        else:
            spans.append(Span(part, start, stop))
    return spans
