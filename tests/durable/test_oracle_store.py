"""What oracles remember only advances, and survives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from conformance.store.kit import at, fresh, up
from reclock.durable.oracle_store import OracleRecord, OracleStore
from reclock.durable.store import Append, UpperMismatch
from reclock.errors import Corrupt, InvalidValue
from reclock.ids import CollectionId
from reclock.time.timeline import EPOCH_MS, Counter, External, User
from reclock.time.timestamp import INT64_MAX, Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.durable.store import Store
    from reclock.time.timeline import Timeline

TIMELINES = [EPOCH_MS, Counter("host:9092", "tx/1"), External("cdc"), User("a/b, (c)")]


def record(timeline: Timeline, read: int, write: int) -> OracleRecord:
    return OracleRecord(timeline, Timestamp(read), Timestamp(write))


def test_every_timeline_is_remembered_apart(reopen: Callable[[], Store]) -> None:
    oracles = OracleStore(reopen())
    assert oracles.load_all() == {}
    for n, timeline in enumerate(TIMELINES):
        oracles.advance(record(timeline, n, 2 * n))
        oracles.advance(record(timeline, n + 1, INT64_MAX))
    expected = {t: record(t, n + 1, INT64_MAX) for n, t in enumerate(TIMELINES)}
    assert oracles.load_all() == expected
    assert OracleStore(reopen()).load_all() == expected


@pytest.mark.parametrize(("read", "write"), [(4, 9), (5, 8), (4, 10), (6, 8)])
def test_a_number_that_goes_back_refuses_both(store: Store, read: int, write: int) -> None:
    oracles = OracleStore(store)
    oracles.advance(record(EPOCH_MS, 5, 9))
    oracles.advance(record(EPOCH_MS, 5, 9))
    with pytest.raises(InvalidValue, match="may not go back"):
        oracles.advance(record(EPOCH_MS, read, write))
    with pytest.raises(InvalidValue, match="may not go back"):
        OracleStore(store).advance(record(EPOCH_MS, read, write))
    assert oracles.load_all() == {EPOCH_MS: record(EPOCH_MS, 5, 9)}


def test_what_the_caller_knows_is_not_read_but_compared(store: Store) -> None:
    oracles = OracleStore(store)
    oracles.advance(record(EPOCH_MS, 5, 9))
    five, six = record(EPOCH_MS, 5, 9), record(EPOCH_MS, 6, 9)
    assert oracles.appends(six, five) == oracles.appends(six)
    assert store.append(oracles.appends(six, five)) is None
    assert store.append(oracles.appends(record(EPOCH_MS, 7, 9), five)) is not None
    assert oracles.load_all() == {EPOCH_MS: six}


def test_an_oracle_advances_with_the_data_or_not_at_all(store: Store) -> None:
    oracles = OracleStore(store)
    (c,) = fresh(store, "c")
    advance = oracles.appends(record(EPOCH_MS, 5, 9))
    wrong = Append(c, (up("x", 5),), at(5), at(6))
    assert store.append([*advance, wrong]) == UpperMismatch(c, at(0))
    assert oracles.load_all()[EPOCH_MS] == record(EPOCH_MS, 0, 0)
    assert store.append([*advance, Append(c, (up("x", 5),), at(0), at(6))]) is None
    assert oracles.load_all()[EPOCH_MS] == record(EPOCH_MS, 5, 9)


def test_threads_that_race_all_advance(store: Store) -> None:
    oracles = OracleStore(store)

    def advance(n: int) -> None:
        try:
            oracles.advance(record(EPOCH_MS, n, n))
        except InvalidValue:
            assert oracles.load_all()[EPOCH_MS].read_ts > n

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(advance, range(20)))
    assert oracles.load_all() == {EPOCH_MS: record(EPOCH_MS, 19, 19)}


def test_nothing_accumulates(store: Store) -> None:
    oracles = OracleStore(store)
    for n in range(10):
        oracles.advance(record(EPOCH_MS, n, n))
    names = [state.collection for state in store.collections("oracle/")]
    assert names == ["oracle/read/EpochMilliseconds", "oracle/write/EpochMilliseconds"]
    assert not any(store.snapshot(name).updates for name in names)


@pytest.mark.parametrize("name", ["oracle/read/Sundial", "oracle/read/User(alone)"])
def test_half_an_oracle_is_corrupt(store: Store, name: str) -> None:
    store.open(CollectionId(name), 1)
    with pytest.raises(Corrupt, match="is not readable"):
        OracleStore(store).load_all()
