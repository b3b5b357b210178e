from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import InvalidValue, Unreadable
from reclock.time.frontier import CLOSED, Bounds, at
from reclock.time.select import AsOf, AsOfAtLeast, Choice, Isolation, select
from reclock.time.timestamp import Timestamp
from strategies.times import inputs, timestamps

END = 40
"""Beyond every since, upper and time that the strategies draw."""

STRICT, SERIALIZABLE = Isolation.STRICT_SERIALIZABLE, Isolation.SERIALIZABLE


def readable(objects: tuple[Bounds, ...]) -> set[int]:
    return {t for t in range(END) if all(b.kept_at(Timestamp(t)) for b in objects)}


def complete(objects: tuple[Bounds, ...]) -> set[int]:
    return {t for t in range(END) if all(b.complete_at(Timestamp(t)) for b in objects)}


def all_closed(objects: tuple[Bounds, ...]) -> bool:
    return all(b.upper.is_closed for b in objects)


def check_common_rules(choice: Choice, objects: tuple[Bounds, ...]) -> None:
    assert choice.timestamp in readable(objects)
    assert choice.ready == (choice.timestamp in complete(objects))
    lagging = {b.object for b in objects if not b.complete_at(choice.timestamp)}
    assert {lag.object for lag in choice.waiting_for} == lagging
    for lag in choice.waiting_for:
        assert lag.wanted == choice.timestamp
        assert lag.behind >= 1
        (bounds,) = (b for b in objects if b.object == lag.object)
        moved = Bounds(lag.object, bounds.since, at(lag.upper + lag.behind))
        assert moved.complete_at(choice.timestamp)
        assert not Bounds("", at(0), at(lag.upper + lag.behind - 1)).complete_at(choice.timestamp)
    text = choice.explain()
    assert f"timestamp: {choice.timestamp}" in text
    assert all(f"input {b.object}" in text for b in objects)
    assert all(lag.object in text and str(lag.behind) in text for lag in choice.waiting_for)
    assert ("can answer: now" in text) == (choice.ready and not choice.linearize)
    assert pickle.loads(pickle.dumps(choice)) == choice


@given(inputs(), timestamps())
def test_strict_serializable_is_the_later_of_since_and_the_oracle(
    objects: tuple[Bounds, ...], read_ts: Timestamp
) -> None:
    choice = select(objects, isolation=STRICT, read_ts=read_ts)
    check_common_rules(choice, objects)
    assert choice.timestamp == max(read_ts, min(readable(objects)))
    assert choice.linearize == (choice.timestamp > read_ts)


@given(inputs(), st.one_of(st.none(), timestamps()))
def test_serializable_is_the_freshest_time_that_needs_no_wait(
    objects: tuple[Bounds, ...], read_ts: Timestamp | None
) -> None:
    choice = select(objects, isolation=SERIALIZABLE, read_ts=read_ts)
    check_common_rules(choice, objects)
    assert not choice.linearize
    candidates = readable(objects) & complete(objects)
    if all_closed(objects):
        assert choice.timestamp == max(read_ts or 0, min(candidates))
    elif candidates:
        assert choice.timestamp == max(candidates)
    else:
        assert choice.timestamp == min(readable(objects))
    assert choice.ready == bool(candidates)


@given(inputs(), timestamps(), st.sampled_from(Isolation), timestamps())
def test_as_of_is_that_time_or_an_error_that_lists_every_since(
    objects: tuple[Bounds, ...], time: Timestamp, isolation: Isolation, read_ts: Timestamp
) -> None:
    if time in readable(objects):
        choice = select(objects, isolation=isolation, read_ts=read_ts, as_of=AsOf(time))
        check_common_rules(choice, objects)
        assert choice.timestamp == time
        assert not choice.linearize
    else:
        with pytest.raises(Unreadable) as caught:
            select(objects, isolation=isolation, read_ts=read_ts, as_of=AsOf(time))
        assert caught.value.code == "22023"
        detail = caught.value.detail or ""
        assert all(f"{b.object} has since {b.since}" in detail for b in objects)
        assert str(min(readable(objects))) in (caught.value.hint or "")


@given(inputs(), timestamps(), st.sampled_from(Isolation), st.one_of(st.none(), timestamps()))
def test_as_of_at_least_never_goes_below_and_waits_only_when_it_must(
    objects: tuple[Bounds, ...],
    time: Timestamp,
    isolation: Isolation,
    read_ts: Timestamp | None,
) -> None:
    choice = select(objects, isolation=isolation, read_ts=read_ts, as_of=AsOfAtLeast(time))
    check_common_rules(choice, objects)
    allowed = {t for t in readable(objects) if t >= time}
    candidates = allowed & complete(objects)
    if all_closed(objects):
        assert choice.timestamp == max(read_ts or 0, min(allowed))
    else:
        assert choice.timestamp == (max(candidates) if candidates else min(allowed))
    assert choice.ready == bool(candidates)


def test_constants_need_neither_wait_nor_oracle() -> None:
    for isolation in Isolation:
        choice = select([], isolation=isolation)
        assert choice.ready
        assert choice.timestamp == 0
    assert select([], read_ts=Timestamp(7)).timestamp == 7
    assert select([], as_of=AsOf(Timestamp(7))).ready
    finished = Bounds("values", at(0), CLOSED)
    assert select([finished]).ready


def test_a_finished_object_is_read_as_of_now_not_at_the_end_of_time() -> None:
    finished = Bounds("file", at(3), CLOSED)
    for isolation in Isolation:
        choice = select([finished], isolation=isolation, read_ts=Timestamp(50))
        assert (choice.timestamp, choice.ready) == (50, True)
    assert select([finished], as_of=AsOf(Timestamp(10**18))).ready


def test_an_object_without_complete_times_is_named() -> None:
    objects = [Bounds("orders", at(0), at(0)), Bounds("items", at(0), at(90))]
    choice = select(objects, isolation=SERIALIZABLE, read_ts=Timestamp(80))
    assert [lag.object for lag in choice.waiting_for] == ["orders"]
    assert "no complete timestamps yet" in choice.explain()


def test_a_strict_read_of_live_objects_without_an_oracle_is_refused() -> None:
    with pytest.raises(InvalidValue, match="needs its timeline's oracle"):
        select([Bounds("orders", at(0), at(9))])


def test_a_dropped_object_is_unreadable_at_every_time() -> None:
    gone = Bounds("orders", CLOSED, at(9))
    for as_of in (None, AsOf(Timestamp(5)), AsOfAtLeast(Timestamp(5))):
        with pytest.raises(Unreadable, match="orders cannot be read any more"):
            select([gone], read_ts=Timestamp(5), as_of=as_of)
