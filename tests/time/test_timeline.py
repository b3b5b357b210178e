from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import InvalidValue, TimelineMismatch
from reclock.time.timeline import (
    CONSTANT,
    EPOCH_MS,
    Counter,
    EpochMilliseconds,
    External,
    Timeline,
    TimelineContext,
    User,
    combine_all,
    parse_timeline,
    user_timeline,
)
from strategies.times import timelines

FEW = [EPOCH_MS, Counter("b", "t"), Counter("b", "u"), External("a"), User("a")]


def contexts() -> st.SearchStrategy[TimelineContext]:
    origins = st.sampled_from(["orders", "items", "cdc"])
    some = st.builds(TimelineContext, st.sampled_from(FEW), origins)
    return st.one_of(st.just(CONSTANT), some)


def timeline_of(*all_contexts: TimelineContext) -> Timeline | str | None:
    """The timeline of the combination, or that there is none."""
    try:
        return combine_all(all_contexts).timeline
    except TimelineMismatch:
        return "mismatch"


@given(timelines())
def test_the_text_form_round_trips(timeline: Timeline) -> None:
    assert parse_timeline(str(timeline)) == timeline
    assert pickle.loads(pickle.dumps(timeline)) == timeline


@given(timelines(), timelines())
def test_different_timelines_have_different_texts(a: Timeline, b: Timeline) -> None:
    assert (str(a) == str(b)) == (a == b)


@pytest.mark.parametrize("text", ["", "EpochMillis", "Counter(a)", "User", "user(x)", "User(x"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="invalid timeline"):
        parse_timeline(text)


def test_a_topic_that_kafka_would_refuse_cannot_confuse_two_counters() -> None:
    with pytest.raises(InvalidValue, match="invalid topic name"):
        Counter("a", "b, c")


@given(contexts())
def test_constants_are_neutral(context: TimelineContext) -> None:
    assert context.combine(CONSTANT) == context == CONSTANT.combine(context)
    assert context.combine(context) == context


@given(contexts(), contexts(), contexts())
def test_combining_is_commutative_and_associative(
    a: TimelineContext, b: TimelineContext, c: TimelineContext
) -> None:
    assert timeline_of(a, b) == timeline_of(b, a)
    assert timeline_of(a, b, c) == timeline_of(c, a, b)
    if timeline_of(a, b) != "mismatch" and timeline_of(b, c) != "mismatch":
        left = timeline_of(a.combine(b), c)
        assert left == timeline_of(a, b.combine(c))


@given(st.lists(contexts(), max_size=5))
def test_a_mixture_is_refused_exactly_when_two_timelines_differ(
    all_contexts: list[TimelineContext],
) -> None:
    present = {c.timeline for c in all_contexts if c.timeline is not None}
    expected = "mismatch" if len(present) > 1 else next(iter(present), None)
    assert timeline_of(*all_contexts) == expected


def test_the_error_names_both_objects_and_both_timelines() -> None:
    orders = TimelineContext(EPOCH_MS, "orders")
    counted = TimelineContext(Counter("localhost:9092", "tx"), "payments")
    with pytest.raises(TimelineMismatch) as caught:
        combine_all([CONSTANT, orders, CONSTANT, counted])
    assert caught.value.message == "multiple timelines within one dataflow are not supported"
    assert caught.value.code == "0A000"
    assert caught.value.detail == (
        '"orders" is in timeline EpochMilliseconds, '
        '"payments" is in timeline Counter(localhost:9092, tx)'
    )
    assert caught.value.hint is not None


def test_sources_of_one_consistency_topic_share_their_timeline() -> None:
    a = TimelineContext(Counter("b", "tx"), "a")
    b = TimelineContext(Counter("b", "tx"), "b")
    assert a.combine(b) == a
    assert timeline_of(a, TimelineContext(Counter("b", "other"), "c")) == "mismatch"
    assert EpochMilliseconds() == EPOCH_MS


@pytest.mark.parametrize("name", ["", "mz_epoch_ms", "mz_foo", "reclock_x"])
def test_system_names_are_not_for_users(name: str) -> None:
    with pytest.raises(InvalidValue, match="unacceptable timeline name") as caught:
        user_timeline(name)
    assert caught.value.code == "42602"


def test_a_user_timeline_is_itself_and_nothing_else() -> None:
    mine = TimelineContext(user_timeline("replay"), "a")
    assert mine.combine(TimelineContext(User("replay"), "b")).timeline == User("replay")
    assert timeline_of(mine, TimelineContext(EPOCH_MS, "b")) == "mismatch"
    assert timeline_of(mine, TimelineContext(External("replay"), "b")) == "mismatch"
