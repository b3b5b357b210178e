"""Strategies for times, positions, frontiers and timelines.

Values are small on purpose: laws about orders fail where values are equal, adjacent or
comparable, which large random numbers hardly ever are. Part ids are sparse and come in no
order. ``TIMES`` lists every time type with a strategy and a finite universe that is closed
under join and meet, so that a law can also be checked against its definition.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hypothesis import strategies as st

from model.product import Product
from reclock.time.antichain import Antichain
from reclock.time.frontier import Bounds, Frontier, at
from reclock.time.position import AFTER, BEFORE, FilePosition, KafkaPosition
from reclock.time.timeline import EPOCH_MS, Counter, External, Timeline, User
from reclock.time.timestamp import Lsn, Sequence, Timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence as Ordered

    from hypothesis.strategies import SearchStrategy

PARTITIONS: Final = (0, 1, 2, 3, 7, 1_000)
FILES: Final = ("", "a", "a.log", "b", "b/0", "ü")


def timestamps(least: int = 0, greatest: int = 20) -> SearchStrategy[Timestamp]:
    """Return timestamps in a small range."""
    return st.integers(least, greatest).map(Timestamp)


def frontiers(least: int = 0, greatest: int = 20) -> SearchStrategy[Frontier]:
    """Return ``{t}`` for a small t, and sometimes ``{}``."""
    return st.one_of(timestamps(least, greatest).map(at), st.just(Frontier()))


def antichains(elements: SearchStrategy[Any]) -> SearchStrategy[Antichain[Any]]:
    """Return frontiers of the minimal ones of a few ``elements``."""
    return st.lists(elements, max_size=5).map(Antichain)


def kafka_offsets() -> SearchStrategy[dict[int, int]]:
    """Return next offsets of sparse partitions, in no order."""
    return st.dictionaries(st.sampled_from(PARTITIONS), st.integers(0, 5), max_size=5)


def file_offsets() -> SearchStrategy[dict[str, int]]:
    """Return next offsets of a few files, in no order."""
    return st.dictionaries(st.sampled_from(FILES), st.integers(0, 5), max_size=5)


def timelines() -> SearchStrategy[Timeline]:
    """Return timelines of all four kinds, with names that could confuse a parser."""
    name = st.one_of(st.text(max_size=8), st.sampled_from(["a, b", "x)", "User(y)", "(", "\n"]))
    topic = st.from_regex(r"[a-zA-Z0-9._-]{1,8}", fullmatch=True)
    return st.one_of(
        st.just(EPOCH_MS),
        st.builds(Counter, name, topic),
        st.builds(External, name),
        st.builds(User, name),
    )


def bounds(name: str = "input") -> SearchStrategy[Bounds]:
    """Return the bounds of an object: since and upper anywhere, closed included."""
    return st.builds(Bounds, st.just(name), frontiers(), frontiers())


def inputs(max_size: int = 4) -> SearchStrategy[tuple[Bounds, ...]]:
    """Return the bounds of several objects that are not dropped."""
    one = st.tuples(timestamps().map(at), frontiers())
    return st.lists(one, max_size=max_size).map(
        lambda pairs: tuple(Bounds(f"o{i}", since, upper) for i, (since, upper) in enumerate(pairs))
    )


class TimeType(NamedTuple):
    """A time type under test: a strategy, and a universe closed under join and meet."""

    name: str
    strategy: SearchStrategy[Any]
    universe: Ordered[Any]


def _positions(cls: type[Any], parts: Ordered[Any], offsets: range) -> tuple[Any, ...]:
    """Return every non-empty interval between cuts at ``parts``, at every offset."""
    cuts = [None, *((part, side) for part in parts for side in (BEFORE, AFTER))]
    spans = [(low, high) for low in cuts for high in [*cuts[1:], None] if _spans(cls, low, high)]
    return tuple(cls(low, high, offset) for low, high in spans for offset in offsets)


def _spans(cls: type[Any], low: Any, high: Any) -> bool:
    """Return whether some part that can exist lies between the cuts."""
    if cls is FilePosition:
        return low is None or high is None or bool(low < high)
    first = 0 if low is None else low[0] + low[1]
    return high is None or bool(first < high[0] + high[1])


_KAFKA: Final = _positions(KafkaPosition, (0, 1, 3), range(2))
_FILE: Final = _positions(FilePosition, ("a", "b"), range(2))
_PAIRS: Final = tuple(Product(Sequence(a), Sequence(b)) for a, b in product(range(4), repeat=2))
_MIXED: Final = tuple(
    Product(position, Sequence(n))
    for position in _positions(KafkaPosition, (1,), range(2))
    for n in range(2)
)

TIMES: Final = (
    TimeType("Timestamp", timestamps(), tuple(map(Timestamp, range(5)))),
    TimeType("Sequence", st.integers(0, 20).map(Sequence), tuple(map(Sequence, range(5)))),
    TimeType("Lsn", st.integers(0, 2**64 - 1).map(Lsn), tuple(map(Lsn, (0, 1, 2**32, 2**64 - 1)))),
    TimeType("KafkaPosition", st.sampled_from(_KAFKA), _KAFKA),
    TimeType("FilePosition", st.sampled_from(_FILE), _FILE),
    TimeType("Product", st.sampled_from(_PAIRS), _PAIRS),
    TimeType("Product of Kafka and Sequence", st.sampled_from(_MIXED), _MIXED),
)
