from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from model.consolidate import accumulate, consolidate, first_difference
from model.product import Product
from reclock.change.update import Update, advance, advance_time, distinct_times, negate
from reclock.time.antichain import Antichain
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Sequence, Timestamp
from strategies.changes import ALL_TIMES, Log, times, update_logs

pairs = st.builds(Product, st.integers(0, 3).map(Sequence), st.integers(0, 3).map(Sequence))
GRID = [Product(Sequence(a), Sequence(b)) for a in range(5) for b in range(5)]


@given(update_logs(), times)
def test_readers_at_or_beyond_since_cannot_tell_advanced_updates(log: Log, t: Timestamp) -> None:
    advanced = list(advance(log, Antichain.of(t)))
    assert first_difference(log, advanced, [s for s in ALL_TIMES if s >= t]) is None
    assert all(u.time >= t for u in advanced)


@given(pairs, st.lists(pairs, min_size=1, max_size=3))
def test_advance_in_a_partial_order(
    time: Product[Sequence, Sequence], since: list[Product[Sequence, Sequence]]
) -> None:
    frontier = Antichain(since)
    advanced = advance_time(time, frontier)
    assert advanced is not None
    readable = [t for t in GRID if frontier.less_equal(t)]
    assert all(time.less_equal(t) == advanced.less_equal(t) for t in readable)
    latest = [
        other for other in GRID if all(time.less_equal(t) == other.less_equal(t) for t in readable)
    ]
    assert all(other.less_equal(advanced) for other in latest)


@given(update_logs(), times)
def test_advancing_twice_is_advancing_once(log: Log, t: Timestamp) -> None:
    since = Antichain.of(t)
    assert list(advance(advance(log, since), since)) == list(advance(log, since))


@given(update_logs())
def test_nobody_reads_a_closed_collection(log: Log) -> None:
    assert list(advance(log, Antichain())) == []


def test_what_no_reader_can_reach_is_dropped() -> None:
    update = Update("a", KafkaPosition.exact(0, 5), 1)
    assert list(advance([update], Antichain.of(KafkaPosition.exact(1, 0)))) == []


@given(update_logs())
def test_negation_cancels(log: Log) -> None:
    assert consolidate([*log, *negate(log)]) == []


@given(update_logs(), update_logs())
def test_contents_change_only_at_distinct_times(a: Log, b: Log) -> None:
    found = distinct_times(a, b)
    assert found == sorted({*(u.time for u in a), *(u.time for u in b)})
    for before, after in pairwise(ALL_TIMES):
        assert after in found or accumulate(a, before) == accumulate(a, after)
