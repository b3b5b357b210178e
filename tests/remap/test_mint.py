"""Minting: one assignment for all readers, whatever the clock and the source do."""

from __future__ import annotations

import itertools
import threading
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store import MemoryStore
from reclock.durable.remap_store import RemapStore
from reclock.errors import InvalidCompaction, SourceRegressed, TimestampOverflow
from reclock.ids import ObjectId
from reclock.remap.codec import KAFKA
from reclock.remap.follow import time_of
from reclock.remap.mint import Minter
from reclock.testing.remaps import MemoryRemap
from reclock.time.antichain import Antichain
from reclock.time.position import KafkaPosition, offsets_of
from reclock.time.timestamp import Timestamp
from strategies.remaps import PARTITIONS

if TYPE_CHECKING:
    from reclock.remap.handle import RemapHandle

K = KafkaPosition
HOUR = 3_600_000


def minter(handle: RemapHandle[K] | None = None, interval: int = 1_000) -> Minter[K]:
    return Minter("orders", handle or MemoryRemap(KAFKA.origin), interval)


def test_time_is_rounded_up_to_the_interval() -> None:
    m = minter()
    assert m.mint(1_001, K.frontier({0: 1})).bindings[-1].time == 2_000
    assert m.mint(3_000, K.frontier({0: 2})).bindings[-1].time == 3_000
    assert m.remap.upper == Antichain.of(Timestamp(3_001))


def test_a_clock_that_stands_still_or_goes_back_mints_nothing() -> None:
    m = minter()
    before = m.mint(2 * HOUR, K.frontier({0: 1}))
    assert m.mint(2 * HOUR, K.frontier({0: 5})) == before
    assert m.mint(HOUR, K.frontier({0: 9})) == before
    after = m.mint(2 * HOUR + 1, K.frontier({0: 9}))
    assert time_of(after, K.exact(0, 8)) == 2 * HOUR + 1_000


def test_idle_advances_time_without_bindings_even_without_partitions() -> None:
    m = minter()
    for now in range(1_000, 50_000, 1_000):
        m.mint(now, KAFKA.origin)
    assert m.remap.upper == Antichain.of(Timestamp(49_001))
    assert len(m.remap.bindings) == 1


def test_a_partition_that_appears_is_picked_up_where_it_begins() -> None:
    m = minter()
    m.mint(1_000, K.frontier({0: 5}))
    m.mint(2_000, K.frontier({0: 5, 3: 2}))
    assert time_of(m.remap, K.exact(3, 0)) == 2_000
    assert time_of(m.remap, K.exact(3, 2)) is None


@pytest.mark.parametrize(
    "probed", [{0: 4, 1: 7}, {0: 5}, {1: 9}], ids=["truncated", "fewer partitions", "recreated"]
)
def test_a_source_that_goes_back_is_refused_and_nothing_is_bound(probed: dict[int, int]) -> None:
    m = minter()
    before = m.mint(1_000, K.frontier({0: 5, 1: 7}))
    with pytest.raises(SourceRegressed) as caught:
        m.mint(2_000, K.frontier(probed))
    assert 'source "orders" moved backwards' in caught.value.message
    assert "[0] 5" in str(caught.value.detail)
    assert caught.value.hint
    assert m.sync() == before


def test_a_source_that_completes_seals_the_remap() -> None:
    m = minter()
    m.mint(1_000, K.frontier({0: 5}))
    sealed = m.mint(2_000, Antichain())
    assert sealed.is_sealed
    assert time_of(sealed, K.exact(0, 10**9)) == 2_000
    assert sealed.at(Timestamp(10**12)) == Antichain()
    assert m.mint(3_000, Antichain()) == sealed


def test_a_source_that_is_empty_and_complete_is_sealed_too() -> None:
    sealed = minter().mint(1_000, Antichain())
    assert sealed.at(Timestamp(0)) == KAFKA.origin
    assert sealed.at(Timestamp(1_000)) == Antichain()


def test_the_loser_of_a_race_mints_only_what_is_left() -> None:
    handle = MemoryRemap(KAFKA.origin)
    first, second = minter(handle), minter(handle)
    first.mint(1_000, K.frontier({0: 5}))
    remap = second.mint(1_000, K.frontier({0: 7}))
    assert remap == first.remap, "the time is taken: its positions may not change"
    remap = second.mint(2_000, K.frontier({0: 7}))
    assert time_of(remap, K.exact(0, 4)) == 1_000
    assert time_of(remap, K.exact(0, 5)) == 2_000


def test_a_stale_probe_after_a_lost_race_is_no_regression() -> None:
    handle = MemoryRemap(KAFKA.origin)
    ahead, behind = minter(handle), minter(handle)
    ahead.mint(1_000, K.frontier({0: 9, 1: 1}))
    remap = behind.mint(2_000, K.frontier({0: 3, 2: 4}))
    assert offsets_of(remap.latest) == {0: 9, 1: 1, 2: 4}
    assert time_of(remap, K.exact(0, 8)) == 1_000
    assert time_of(remap, K.exact(2, 3)) == 2_000


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(-3, 6),
            st.dictionaries(PARTITIONS, st.integers(0, 3), max_size=2),
        ),
        max_size=25,
    )
)
def test_racing_minters_with_bad_clocks_agree(
    actions: list[tuple[int, int, dict[int, int]]],
) -> None:
    """P1, P2: whoever mints, an offset keeps the first time anybody gave it."""
    handle = MemoryRemap(KAFKA.origin)
    minters = [minter(handle, interval=2) for _ in range(3)]
    assigned: dict[K, Timestamp] = {}
    offsets: dict[int, int] = {}
    now = 0
    for who, step, grown in actions:
        now = max(0, now + step)
        for partition, by in grown.items():
            offsets[partition] = offsets.get(partition, 0) + by
        probed = K.frontier(offsets) if offsets else KAFKA.origin
        remap = minters[who].mint(now, probed)
        for partition, bound in offsets_of(remap.latest).items():
            for offset in range(bound):
                position = K.exact(int(partition), offset)
                time = time_of(remap, position)
                assert time is not None
                assert assigned.setdefault(position, time) == time
    newest = handle.load()
    for other in minters:
        seen = other.remap
        for t in range(0 if seen.upper.is_closed else seen.upper.element()):
            assert seen.at(Timestamp(t)) == newest.at(Timestamp(t))


STEPS = st.one_of(
    st.tuples(st.just("grow"), PARTITIONS, st.integers(0, 3)),
    st.tuples(st.just("probe"), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("mint"), st.integers(0, 2), st.integers(-3, 6)),
    st.tuples(st.just("compact"), st.integers(0, 2), st.integers(0, 8)),
    st.tuples(st.just("end"), st.just(0), st.just(0)),
)


@given(st.lists(STEPS, max_size=40))
def test_races_with_old_probes_compaction_and_an_end(steps: list[tuple[str, int, int]]) -> None:
    """P1, P2: the first time anybody gave an offset, or since if that was folded."""
    handle = RemapStore(MemoryStore(), ObjectId("u1"), KAFKA)
    minters = [minter(handle, interval=2) for _ in range(3)]
    probes = [KAFKA.origin] * 3
    source, offsets, now = KAFKA.origin, dict[int, int](), 0
    assigned: dict[K, Timestamp] = {}
    for what, who, by in steps:
        if what == "end":
            source = Antichain()
        elif what == "grow" and not source.is_closed:
            offsets[who] = offsets.get(who, 0) + by
            source = K.frontier(offsets)
        elif what == "probe":
            probes[who] = source
        elif what == "mint":
            now = max(0, now + by)
            minters[who].mint(now, probes[who].join(minters[who].remap.latest))
        elif what == "compact" and minters[who].remap.bindings:
            last = minters[who].remap.bindings[-1].time
            minters[who].compact(Timestamp(max(0, last - by)))
        durable = handle.load()
        for m in minters:
            for partition, offset in product((0, 1, 2, 7, 40), range(12)):
                position = K.exact(partition, offset)
                time = time_of(m.remap, position)
                if time is not None:
                    first = assigned.setdefault(position, time)
                    assert time == max(first, m.remap.since)
                    assert time_of(durable, position) == max(first, durable.since)
                if offset < offsets.get(partition, 0) and durable.is_sealed:
                    assert time_of(durable, position) is not None


def test_compaction_is_monotone_and_repeatable() -> None:
    m = minter()
    for i in range(1, 6):
        m.mint(i * 1_000, K.frontier({0: i}))
    compacted = m.compact(Timestamp(4_000))
    assert [b.time for b in compacted.bindings] == [4_000, 5_000]
    assert m.compact(Timestamp(3_000)) == m.compact(Timestamp(4_000)) == compacted
    assert m.sync() == compacted, "the durable remap was not folded"


def test_a_minter_that_is_behind_compacts_what_is_durable() -> None:
    handle = MemoryRemap(KAFKA.origin)
    ahead, behind = minter(handle), minter(handle)
    for i in range(1, 6):
        ahead.mint(i * 1_000, K.frontier({0: i}))
    assert behind.compact(Timestamp(3_000)) == handle.load(), "others have extended it"
    ahead.compact(Timestamp(4_000))
    assert behind.compact(Timestamp(3_500)) == handle.load(), "others have folded it"
    assert handle.load().since == 4_000
    with pytest.raises(InvalidCompaction):
        behind.compact(Timestamp(9_000))
    assert time_of(behind.mint(6_000, K.frontier({0: 9})), K.exact(0, 8)) == 6_000


def test_a_sealed_remap_ignores_whatever_comes_after() -> None:
    handle = MemoryRemap(KAFKA.origin)
    behind = minter(handle)
    ahead = minter(handle)
    ahead.mint(1_000, K.frontier({0: 5}))
    sealed = ahead.mint(2_000, Antichain())
    assert ahead.mint(3_000, K.frontier({0: 4})) == sealed
    assert behind.mint(3_000, K.frontier({0: 9})) == sealed
    assert behind.compact(Timestamp(10**12)).at(Timestamp(10**12)) == Antichain()
    assert ahead.mint(4_000, K.frontier({1: 1})) == sealed


def test_clocks_at_the_ends_of_time() -> None:
    m = minter()
    first = m.mint(0, K.frontier({0: 1}))
    assert first.upper == Antichain.of(Timestamp(1))
    assert time_of(first, K.exact(0, 0)) == 0
    with pytest.raises(TimestampOverflow):
        m.mint(2**63 - 1, K.frontier({0: 2}))
    assert m.sync() == first, "nothing is bound at a time that does not exist"


def test_the_interval_may_change_between_lives() -> None:
    handle = MemoryRemap(KAFKA.origin)
    minter(handle, interval=1_000).mint(1_500, K.frontier({0: 1}))
    shorter = minter(handle, interval=300)
    assert shorter.mint(1_750, K.frontier({0: 2})).upper == Antichain.of(Timestamp(2_001))
    assert time_of(shorter.mint(1_900, K.frontier({0: 2})), K.exact(0, 1)) == 2_100
    longer = minter(handle, interval=60_000)
    assert time_of(longer.mint(2_200, K.frontier({0: 3})), K.exact(0, 2)) == 60_000


def test_threads_racing_on_one_remap_never_bind_twice() -> None:
    lock = threading.Lock()

    class Locked(MemoryRemap[K]):
        def append(self, updates, expected, upper):  # type: ignore[no-untyped-def]
            with lock:
                return super().append(updates, expected, upper)

    handle = Locked(KAFKA.origin)
    arrived = itertools.count(1)

    def run() -> None:
        m = minter(handle, interval=1)
        for _ in range(50):
            m.sync()
            with lock:
                end = next(arrived)
            m.mint(end, K.frontier({0: end}))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    remap = handle.load()
    assert offsets_of(remap.latest) == {0: 200}
    assert [b.time for b in remap.bindings] == sorted({b.time for b in remap.bindings})
