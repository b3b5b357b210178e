"""What every source must do, whatever is behind it: what ``ingest`` relies on.

Each case is a function of an ``Upstream``: a source, where it begins, and a way to make it
grow. Sources in general: `reclock.connectors.source`; what Kafka must do besides is in
``conformance.kafka``.

The cases are run for the log in memory, files of every kind and all load generators:
tests/connectors/test_source.py.
"""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reclock.remap.batch import Range
from reclock.time.position import offsets_of
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from reclock.connectors.source import Reader, Source
    from reclock.time.antichain import Antichain

_GROWTHS: Final = 4


class Upstream(NamedTuple):
    """A source as a test drives it; ``grow`` makes it have more records."""

    source: Source[Any]
    origin: Antichain[Any]
    grow: Callable[[], None]


if TYPE_CHECKING:
    Case: TypeAlias = Callable[[Upstream], None]
    Row: TypeAlias = tuple[Any, ...]


def _ranges(begin: Antichain[Any], end: Antichain[Any]) -> list[Range]:
    begun = offsets_of(begin)
    return [
        Range(part, begun.get(part, 0), stop, Timestamp(0))
        for part, stop in offsets_of(end).items()
    ]


def _rows(reader: Reader, ranges: Iterable[Range]) -> list[Row]:
    """Return what is read, by place; rows of one event keep their order."""
    found = [
        tuple(row)
        for batch in reader.read(list(ranges))
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]
    return sorted(found, key=lambda row: row[:2])


def _grown(upstream: Upstream) -> list[Antichain[Any]]:
    """Return the frontiers of a source that grows, beginning with its origin."""
    frontiers = [upstream.origin]
    for _ in range(_GROWTHS):
        upstream.grow()
        frontiers.append(upstream.source.probe(frontiers[-1]))
    return frontiers


def probes_move_forward(upstream: Upstream) -> None:
    """Check that growth is progress, and that asking twice binds nothing."""
    for before, after in pairwise(_grown(upstream)):
        assert before.strictly_precedes(after)
    assert upstream.source.probe(after) == upstream.source.probe(after)
    assert upstream.source.probe(upstream.origin).precedes(after)


def records_are_where_they_were_bound(upstream: Upstream) -> None:
    """Check that records lie in the ranges that were read, in order within their part."""
    frontiers = _grown(upstream)
    for before, after in pairwise(frontiers):
        ranges = {r.part: r for r in _ranges(before, after)}
        last: dict[Any, int] = {}
        for batch in upstream.source.reader.read(list(ranges.values())):
            places = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
            for part, offset in places:
                assert ranges[part].start <= offset < ranges[part].stop
                assert last.get(part, -1) <= offset
                last[part] = offset
        upstream.source.verify()
    assert _rows(upstream.source.reader, _ranges(frontiers[0], frontiers[-1]))


def any_cut_reads_the_same(upstream: Upstream) -> None:
    """Check ranges as they were bound, in one go, and cut after every record and elsewhere."""
    frontiers = _grown(upstream)
    reader = upstream.source.reader
    whole_ranges = _ranges(frontiers[0], frontiers[-1])
    whole = _rows(reader, whole_ranges)
    bound = [_ranges(before, after) for before, after in pairwise(frontiers)]
    assert sorted(row for each in bound for row in map(repr, _rows(reader, each))) == sorted(
        map(repr, whole)
    )
    for part, start, stop, time in whole_ranges:
        own = [row for row in whole if row[0] == part]
        cuts = {start, stop, *range(start, stop, max(1, (stop - start) // 7))}
        cuts |= {row[1] + 1 for row in own[:20] if row[1] + 1 < stop}
        pieces = [Range(part, a, b, time) for a, b in pairwise(sorted(cuts))]
        assert [row for piece in pieces for row in _rows(reader, [piece])] == own
        assert _rows(reader, pieces) == own, "ranges that follow one another"


def a_reader_travels(upstream: Upstream) -> None:
    """Check that a reader that was pickled reads the same, and again the same."""
    frontiers = _grown(upstream)
    ranges = _ranges(frontiers[0], frontiers[-1])
    reader = upstream.source.reader
    travelled: Reader = pickle.loads(pickle.dumps(reader))
    assert _rows(travelled, ranges) == _rows(reader, ranges) == _rows(reader, ranges)


def a_reading_may_be_given_up(upstream: Upstream) -> None:
    """Check that a reader that stops early is no burden for the next."""
    frontiers = _grown(upstream)
    ranges = _ranges(frontiers[0], frontiers[-1])
    batches = upstream.source.reader.read(ranges)
    assert next(batches).num_rows > 0
    del batches
    assert _rows(upstream.source.reader, ranges)
    assert _rows(upstream.source.reader, []) == []


CASES: Final[tuple[Case, ...]] = (
    probes_move_forward,
    records_are_where_they_were_bound,
    any_cut_reads_the_same,
    a_reader_travels,
    a_reading_may_be_given_up,
)
