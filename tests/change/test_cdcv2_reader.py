"""Streams as transports deliver them: shuffled, duplicated, re-cut, truncated, restarted."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cdcv2_codec import decode, encode
from model.cdcv2_reader import Closed, Reader
from model.cdcv2_writer import statements
from model.consolidate import consolidate
from reclock.change.cdcv2.message import Message, Progress, Updates
from reclock.change.update import Update
from reclock.change.value import sort_key
from reclock.errors import ConflictingStatements, InvalidValue
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Timestamp
from strategies.changes import Log, Tick, json_objects, ticks, update_logs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

streams = ticks(update_logs(json_objects))


def at(time: int) -> Antichain[Timestamp]:
    return Antichain.of(Timestamp(time))


def write(stream: list[Tick], at_most: int = 2) -> list[Message]:
    return [m for t in stream for m in statements(t.updates, t.lower, t.upper, at_most=at_most)]


def collection(stream: list[Tick]) -> Log:
    return consolidate(u for tick in stream for u in tick.updates)


def read(reader: Reader, messages: Iterable[Message]) -> list[Closed]:
    return [closed for m in messages if (closed := reader.receive(m)) is not None]


def check_contiguous(closed: list[Closed], start: Antichain[Timestamp]) -> None:
    """Intervals follow each other without gap, and hold their own times only, sorted."""
    uppers = [start, *(c.upper for c in closed)]
    assert [c.lower for c in closed] == uppers[:-1]
    assert all(a.strictly_precedes(b) for a, b in pairwise(uppers))
    for c in closed:
        assert all(c.lower.less_equal(u.time) and not c.upper.less_equal(u.time) for u in c.updates)


def identity(log: Log) -> list[object]:
    return [(sort_key(u.data), u.time, u.diff) for u in log]


def updates_of(closed: list[Closed]) -> Log:
    return [u for c in closed for u in c.updates]


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[list[Tick], list[Message]]:
    """Draw a stream, and its statements shuffled, repeated, and written again in other pieces."""
    stream = draw(streams)
    whole = [Tick(stream[0].lower, stream[-1].upper, [u for t in stream for u in t.updates])]
    messages = write(stream, draw(st.integers(1, 3)))
    for again in (stream, whole):
        if draw(st.booleans()):
            messages += write(again, draw(st.integers(1, 3)))
    return stream, draw(st.permutations(messages))


@given(deliveries())
def test_any_order_and_any_repetition_gives_the_collection(
    delivery: tuple[list[Tick], list[Message]],
) -> None:
    stream, messages = delivery
    reader = Reader()
    closed = read(reader, (decode(encode(m)) for m in messages))
    check_contiguous(closed, at(0))
    assert identity(updates_of(closed)) == identity(collection(stream))
    assert reader.upper == stream[-1].upper
    assert reader.export().statements == ()


@given(deliveries(), st.data())
def test_truncation_closes_a_prefix_and_the_rest_completes_it(
    delivery: tuple[list[Tick], list[Message]], data: st.DataObject
) -> None:
    stream, messages = delivery
    cut = data.draw(st.integers(0, len(messages)))
    reader = Reader()
    first = read(reader, messages[:cut])
    check_contiguous(first, at(0))
    prefix = [u for u in collection(stream) if not reader.upper.less_equal(u.time)]
    assert identity(updates_of(first)) == identity(prefix)
    second = read(reader, messages[cut:])
    check_contiguous(first + second, at(0))
    assert identity(updates_of(first + second)) == identity(collection(stream))


def closes_by_definition(messages: list[Message]) -> Antichain[Timestamp]:
    """Return the upper after ``messages``, by trying every time from 0 on."""
    stated = {(repr(u.data), u.time) for m in messages if isinstance(m, Updates) for u in m.array}
    progress = [m for m in messages if isinstance(m, Progress)]
    for t in map(Timestamp, range(20)):
        covering = [p for p in progress if p.lower.less_equal(t) and not p.upper.less_equal(t)]
        arrived = sum(time == t for _, time in stated)
        if not covering or arrived < dict(covering[0].counts).get(t, 0):
            return Antichain.of(t)
    return Antichain()


@given(deliveries(), st.data())
def test_closes_exactly_what_the_definition_closes(
    delivery: tuple[list[Tick], list[Message]], data: st.DataObject
) -> None:
    _, messages = delivery
    received = messages[: data.draw(st.integers(0, len(messages)))]
    reader = Reader()
    read(reader, received)
    assert reader.upper == closes_by_definition(received)


@given(deliveries(), st.sets(st.integers(0, 20)))
def test_restart_from_exported_state_at_any_point(
    delivery: tuple[list[Tick], list[Message]], crashes: set[int]
) -> None:
    _, messages = delivery
    steady, restarted = Reader(), Reader()
    for number, message in enumerate(messages):
        if number in crashes:
            restarted = Reader.restore(pickle.loads(pickle.dumps(restarted.export())))
        assert restarted.receive(message) == steady.receive(message)
        assert restarted.export() == steady.export()
        assert restarted.waiting_for() == steady.waiting_for()


@given(deliveries(), st.sets(st.integers(0, 20)))
def test_exported_statements_survive_json(
    delivery: tuple[list[Tick], list[Message]], crashes: set[int]
) -> None:
    _, messages = delivery
    reader = Reader()
    for number, message in enumerate(messages):
        reader.receive(decode(encode(message)))
        if number in crashes:
            state = reader.export()
            assert tuple(decode(encode(m)) for m in state.statements) == state.statements


@given(deliveries(), st.data())
def test_state_holds_open_times_only(
    delivery: tuple[list[Tick], list[Message]], data: st.DataObject
) -> None:
    _, messages = delivery
    reader = Reader()
    read(reader, messages[: data.draw(st.integers(0, len(messages)))])
    for statement in reader.export().statements:
        if isinstance(statement, Updates):
            assert all(reader.upper.less_equal(u.time) for u in statement.array)
        else:
            assert reader.upper.precedes(statement.lower)
    assert len(reader._stated.counts) == len(reader._stated._counted)


def test_state_does_not_grow_while_time_passes() -> None:
    reader = Reader()
    row = {"id": 1}
    for t in range(1_000):
        update = Update(row, Timestamp(t), 1 if t % 2 == 0 else -1)
        for message in statements([update], at(t), at(t + 1)):
            reader.receive(message)
    assert reader.upper == at(1_000)
    assert reader.export().statements == ()
    assert not reader._stated._counted


def update(time: int, diff: int = 1, data: Any = None) -> Updates:
    return Updates((Update({"id": 1} if data is None else data, Timestamp(time), diff),))


def progress(lower: int, upper: int | None, **counts: int) -> Progress:
    stated = tuple((Timestamp(int(t[1:])), n) for t, n in counts.items())
    return Progress(at(lower), Antichain() if upper is None else at(upper), stated)


@pytest.mark.parametrize(
    ("before", "conflicting", "message", "detail"),
    [
        (
            [update(3)],
            update(3, -1),
            "two diffs are stated for the same data at time 3",
            "{'id': 1} has diff 1 and diff -1",
        ),
        (
            [],
            Updates((*update(3).array, *update(3, 2).array)),
            "two diffs are stated for the same data at time 3",
            "{'id': 1} has diff 1 and diff 2",
        ),
        (
            [progress(0, 5, t3=1)],
            progress(2, 7, t3=2, t6=1),
            "two counts are stated for time 3",
            "1 updates, and 2",
        ),
        (
            [progress(2, 5)],
            progress(0, 9, t4=1),
            "two counts are stated for time 4",
            "0 updates, and 1",
        ),
        (
            [progress(1, 5, t4=1)],
            progress(0, 9),
            "two counts are stated for time 4",
            "1 updates, and 0",
        ),
        (
            [progress(1, 5, t4=1)],
            progress(4, 9),
            "two counts are stated for time 4",
            "1 updates, and 0",
        ),
        (
            [progress(1, 5, t4=1), update(4)],
            update(4, data={"id": 2}),
            "more updates arrived for time 4 than are counted",
            "2 updates, counted 1",
        ),
        (
            [progress(1, 5)],
            update(4),
            "more updates arrived for time 4 than are counted",
            "1 updates, counted 0",
        ),
        (
            [update(4), update(4, data={"id": 2})],
            progress(1, 5, t4=1),
            "more updates arrived for time 4 than are counted",
            "2 updates, counted 1",
        ),
    ],
)
def test_statements_that_cannot_both_be_true(
    before: list[Message], conflicting: Message, message: str, detail: str
) -> None:
    reader = Reader()
    read(reader, before)
    state = reader.export()
    with pytest.raises(ConflictingStatements) as caught:
        reader.receive(conflicting)
    assert (caught.value.message, caught.value.detail) == (message, detail)
    assert reader.export() == state


def test_data_of_other_json_types_are_other_data() -> None:
    reader = Reader()
    reader.receive(update(3, 1, {"ok": True}))
    reader.receive(update(3, 2, {"ok": 1}))
    closed = reader.receive(progress(0, 4, t3=2))
    assert closed is not None
    assert [u.data for u in closed.updates] == [{"ok": True}, {"ok": 1}]
    assert [u.diff for u in closed.updates] == [1, 2]


def test_closed_times_are_not_looked_at_again() -> None:
    reader = Reader()
    read(reader, [progress(0, 5, t3=1), update(3)])
    assert reader.upper == at(5)
    assert read(reader, [update(3), update(2), progress(0, 5, t3=1), progress(0, 4)]) == []
    assert reader.export().statements == ()
    assert reader.receive(progress(2, 8)) == Closed(at(5), at(8), ())


def test_a_gap_in_progress_closes_nothing() -> None:
    reader = Reader()
    assert reader.receive(progress(5, None)) is None
    assert reader.upper == at(0)
    assert reader.receive(progress(0, 5)) == Closed(at(0), Antichain(), ())


def test_the_last_times_close_too() -> None:
    last = Timestamp(Timestamp.greatest)
    reader = Reader(Antichain.of(last))
    assert reader.receive(Progress(Antichain.of(last), Antichain(), ((last, 1),))) is None
    closed = reader.receive(update(last))
    assert closed is not None
    assert closed.upper == Antichain()
    assert [u.time for u in closed.updates] == [last]


def test_reading_from_a_later_time_forgets_the_earlier() -> None:
    reader = Reader(at(10))
    closed = read(reader, [update(3), progress(0, 12, t3=1, t11=1), update(11)])
    check_contiguous(closed, at(10))
    assert [u.time for u in updates_of(closed)] == [11]


def test_what_it_waits_for_is_said() -> None:
    reader = Reader()
    assert reader.waiting_for() == "no progress statement covers time 0"
    reader.receive(progress(5, 9, t6=2, t8=1))
    expected = "no progress statement covers time 0; progress is stated from 5 on"
    assert reader.waiting_for() == expected
    reader.receive(update(6))
    reader.receive(progress(0, 5))
    assert reader.upper == at(6)
    expected = "time 6 lacks 1 of 2 updates; 1 later times lack updates too"
    assert reader.waiting_for() == expected
    reader.receive(update(6, 5, {"id": 2}))
    assert reader.waiting_for() == "time 8 lacks 1 of 1 updates"
    reader.receive(update(8))
    assert reader.waiting_for() == "no progress statement covers time 9"
    reader.receive(progress(9, None))
    assert reader.waiting_for() == "nothing: the collection is closed"


def test_the_writer_refuses_updates_outside_its_interval() -> None:
    with pytest.raises(InvalidValue, match=r"update at 9 is not in \[\{0\}, \{9\}\)"):
        list(statements([Update({}, Timestamp(9), 1)], at(0), at(9)))
    with pytest.raises(InvalidValue, match=r"update at 2 is not in \[\{3\}, \{9\}\)"):
        list(statements([Update({}, Timestamp(2), 1)], at(3), at(9)))


@given(streams, st.randoms())
def test_a_writer_that_forgot_writes_the_same_statements(
    stream: list[Tick], random: Random
) -> None:
    shuffled = [t._replace(updates=random.sample(t.updates, len(t.updates))) for t in stream]
    assert write(shuffled) == write(stream)
