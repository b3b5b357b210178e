from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cdcv2_codec import decode, encode
from model.cdcv2_writer import statements
from reclock.change.cdcv2.message import Message, Progress, Updates
from reclock.change.update import Update
from reclock.change.value import sort_key
from reclock.errors import InvalidValue, MalformedMessage
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Timestamp
from strategies.changes import Tick, json_objects, ticks, update_logs

if TYPE_CHECKING:
    from collections.abc import Iterable


def at(time: int) -> Antichain[Timestamp]:
    return Antichain.of(Timestamp(time))


@given(ticks(update_logs(json_objects)))
def test_messages_survive_json(stream: list[Tick]) -> None:
    for tick in stream:
        for message in statements(tick.updates, tick.lower, tick.upper):
            line = encode(message)
            decoded = decode(line)
            assert "\n" not in line
            assert decoded == decode(line.encode())
            assert encode(decoded) == line
            if isinstance(message, Updates) and isinstance(decoded, Updates):
                assert identity(decoded.array) == identity(message.array)
            else:
                assert decoded == message


def identity(updates: Iterable[Update[Any, Timestamp]]) -> list[object]:
    return [(sort_key(u.data), u.time, u.diff) for u in updates]


def test_the_spelling_is_the_contract() -> None:
    updates = Updates((Update({"id": 1, "name": None}, Timestamp(5), -2),))
    progress = Progress(at(0), at(6), ((Timestamp(5), 1),))
    end = Progress(at(6), Antichain())
    assert json.loads(encode(updates)) == {
        "array": [{"data": {"id": 1, "name": None}, "time": 5, "diff": -2}]
    }
    assert json.loads(encode(progress)) == {
        "progress": {"lower": [0], "upper": [6], "counts": [{"time": 5, "count": 1}]}
    }
    assert json.loads(encode(end)) == {"progress": {"lower": [6], "upper": [], "counts": []}}


@pytest.mark.parametrize("text", ["0.1", "1e400", "12345678901234567890.123456789", "-0.0"])
def test_numbers_keep_every_digit(text: str) -> None:
    line = f'{{"array": [{{"data": {{"x": {text}}}, "time": 0, "diff": 1}}]}}'
    message = decode(line)
    assert isinstance(message, Updates)
    number = message.array[0].data["x"]
    assert isinstance(number, Decimal)
    assert number.as_tuple() == Decimal(text).as_tuple()
    assert decode(encode(message)) == message


def test_floats_come_back_as_the_decimal_of_their_text() -> None:
    message = decode(encode(Updates((Update({"x": 0.1}, Timestamp(0), 1),))))
    assert message == Updates((Update({"x": Decimal("0.1")}, Timestamp(0), 1),))


@pytest.mark.parametrize("value", [float("nan"), Decimal("Infinity"), b"x", {1: 2}, object()])
def test_values_without_json_are_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match="has no form in JSON"):
        encode(Updates((Update({"x": value}, Timestamp(0), 1),)))


UPDATE = '{"data": {}, "time": 3, "diff": 1}'
PROGRESS = '"lower": [0], "upper": [4]'


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ("", "not JSON: Expecting value"),
        ("{", "not JSON: "),
        (b"\xff\xff", "not JSON: "),
        ("[" * 100_000, "not JSON: "),
        ("1" * 5_000, "not JSON: "),
        ('{"array": [1e99999999999999999999]}', "not JSON: "),
        ("[]", 'the message is an array, not an object with "array" or "progress"'),
        ("null", "the message is null, not an object"),
        ("{}", 'the message is an object, not an object with "array" or "progress"'),
        ('{"array": [], "progress": {}}', 'the message has an unknown field "progress"'),
        ('{"array": [], "array": []}', 'field "array" is given twice in one object'),
        ('{"array": {}}', "array is an object, not an array"),
        ('{"array": [7]}', "array[0] is 7, not an object"),
        (f'{{"array": [{UPDATE}, {{"data": {{}}, "time": 3}}]}}', 'array[1] has no "diff"'),
        (
            '{"array": [{"data": {}, "time": 3, "diff": 1, "x": 0}]}',
            'array[0] has an unknown field "x"',
        ),
        (
            '{"array": [{"data": {"a": 1, "a": 2}, "time": 3, "diff": 1}]}',
            'field "a" is given twice in one object',
        ),
        ('{"array": [{"data": [], "time": 3, "diff": 1}]}', "array[0].data is an array, not an"),
        (
            '{"array": [{"data": {"x": NaN}, "time": 3, "diff": 1}]}',
            "NaN is not a number of JSON",
        ),
        (
            '{"array": [{"data": {"x": ' + "[" * 101 + "]" * 101 + '}, "time": 3, "diff": 1}]}',
            "array[0].data is nested more than 100 deep",
        ),
        (
            '{"array": [{"data": {}, "time": 3.0, "diff": 1}]}',
            "array[0].time is 3.0, not an integer",
        ),
        (
            '{"array": [{"data": {}, "time": "' + "9" * 80 + '", "diff": 1}]}',
            'array[0].time is "' + "9" * 58 + "…, not an integer",
        ),
        (
            '{"array": [{"data": {}, "time": true, "diff": 1}]}',
            "array[0].time is true, not an integer",
        ),
        (
            '{"array": [{"data": {}, "time": -1, "diff": 1}]}',
            "array[0].time is -1, not between 0 and 9223372036854775807",
        ),
        (
            '{"array": [{"data": {}, "time": 9223372036854775808, "diff": 1}]}',
            "array[0].time is 9223372036854775808, not between",
        ),
        (
            '{"array": [{"data": {}, "time": 3, "diff": null}]}',
            "array[0].diff is null, not an integer",
        ),
        (
            '{"array": [{"data": {}, "time": 3, "diff": 0}]}',
            "array[0].diff is 0, not a non-zero 64-bit integer",
        ),
        (
            '{"array": [{"data": {}, "time": 3, "diff": 9223372036854775808}]}',
            "array[0].diff is 9223372036854775808, not a non-zero",
        ),
        ('{"progress": 5}', "progress is 5, not an object"),
        (f'{{"progress": {{{PROGRESS}}}}}', 'progress has no "counts"'),
        (f'{{"progress": {{{PROGRESS}, "counts": {{}}}}}}', "progress.counts is an object, not"),
        (
            f'{{"progress": {{{PROGRESS}, "counts": [{{"time": 3}}]}}}}',
            'progress.counts[0] has no "count"',
        ),
        (
            f'{{"progress": {{{PROGRESS}, "counts": [{{"time": 3, "count": -1}}]}}}}',
            "progress.counts[0].count is -1, and must not be negative",
        ),
        (
            f'{{"progress": {{{PROGRESS}, "counts": [{{"time": 3, "count": 1.5}}]}}}}',
            "progress.counts[0].count is 1.5, not an integer",
        ),
        (
            f'{{"progress": {{{PROGRESS}, "counts": [{{"time": 4, "count": 1}}]}}}}',
            "progress.counts[0].time 4 is not in [{0}, {4})",
        ),
        (
            f'{{"progress": {{{PROGRESS}, "counts": '
            '[{"time": 3, "count": 1}, {"time": 3, "count": 1}]}}',
            "progress.counts[1].time 3 is counted twice",
        ),
        (
            '{"progress": {"lower": [4], "upper": [4], "counts": []}}',
            "progress.lower [4] is not before progress.upper [4]",
        ),
        (
            '{"progress": {"lower": [], "upper": [], "counts": []}}',
            "progress.lower [] is not before progress.upper []",
        ),
        (
            '{"progress": {"lower": [0, 1], "upper": [4], "counts": []}}',
            "progress.lower has 2 times; totally ordered times need one",
        ),
        ('{"progress": {"lower": 0, "upper": [4], "counts": []}}', "progress.lower is 0, not an"),
    ],
)
def test_malformed_messages_say_what_is_wrong_where(line: str | bytes, detail: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        decode(line)
    assert caught.value.message == "malformed CDCv2 message"
    assert (caught.value.detail or "").startswith(detail)
    assert caught.value.code == "22P02"


@given(st.text(max_size=30) | st.binary(max_size=30))
def test_no_input_raises_anything_else(line: str | bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode(line)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 5) | st.floats() | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["array", "progress", "data", "time", "diff", "lower", "upper", "counts", "count"]
            ),
            inner,
            max_size=4,
        )
    ),
)


@given(json_values)
def test_no_json_raises_anything_else(value: object) -> None:
    line = json.dumps(value)
    try:
        message: Message | None = decode(line)
    except MalformedMessage:
        message = None
    assert message is None or decode(encode(message)) == message


def test_counts_of_zero_say_nothing() -> None:
    zero = Progress(at(0), at(4), ((Timestamp(2), 1), (Timestamp(1), 0)))
    assert zero == Progress(at(0), at(4), ((Timestamp(2), 1),))
