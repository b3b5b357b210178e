from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import MalformedMessage, NewerFormat
from reclock.sinks.consistency import (
    FrontierRecord,
    TransactionRecord,
    frontier_record,
    read,
    transaction_records,
)
from reclock.time.frontier import CLOSED, at
from reclock.time.timestamp import INT64_MAX, Timestamp

TIMES = st.integers(0, INT64_MAX)
POSITIONS = st.dictionaries(
    st.text(), st.integers() | st.none() | st.dictionaries(st.text(), st.integers())
)


@given(st.text(), TIMES.map(at) | st.just(CLOSED), POSITIONS)
def test_a_frontier_reads_back(sink: str, frontier: object, positions: dict[str, object]) -> None:
    record = frontier_record(sink, frontier, positions)  # type: ignore[arg-type]
    assert read(*record, "here") == FrontierRecord(sink, frontier, positions)


@given(TIMES, st.text(), st.integers(0))
def test_a_transaction_reads_back(time: int, topic: str, count: int) -> None:
    begin, end = transaction_records(time, topic, count)
    assert read(*begin, "here") == TransactionRecord(Timestamp(time), "BEGIN", {})
    assert read(*end, "here") == TransactionRecord(Timestamp(time), "END", {topic: count})
    assert begin.key != end.key


def test_the_spelling_is_a_contract() -> None:
    assert frontier_record("u9", at(8), {"u1": {"0": 3}}) == (
        b'{"sink": "u9"}',
        b'{"frontier": [8], "positions": {"u1": {"0": 3}}, "version": 1}',
    )
    assert frontier_record("u9", CLOSED, {}).value.startswith(b'{"frontier": []')
    _, end = transaction_records(7, "sales", 2)
    assert json.loads(end.key) == {"id": "7", "status": "END"}
    assert json.loads(end.value) == {
        "status": "END",
        "id": "7",
        "event_count": 2,
        "data_collections": [{"data_collection": "sales", "event_count": 2}],
    }


@pytest.mark.parametrize(
    "key",
    [None, b"", b"x", b"[]", b'{"sink": 1}', b'{"sink": "a", "b": 1}', b'{"id": "1"}', b"\xff"],
)
def test_records_of_others_say_nothing(key: bytes | None) -> None:
    assert read(key, b"anything", "here") is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"{}",
        b'{"frontier": null, "positions": {}, "version": 1}',
        b'{"frontier": [1, 2], "positions": {}, "version": 1}',
        b'{"frontier": ["1"], "positions": {}, "version": 1}',
        b'{"frontier": [true], "positions": {}, "version": 1}',
        b'{"frontier": [-1], "positions": {}, "version": 1}',
        b'{"frontier": [1.0], "positions": {}, "version": 1}',
        b'{"frontier": [1], "version": 1}',
        b'{"frontier": [1], "positions": {}}',
        b'{"frontier": [1], "positions": {}, "version": 0}',
    ],
)
def test_progress_that_is_none_is_loud(value: bytes | None) -> None:
    with pytest.raises(MalformedMessage) as raised:
        read(b'{"sink": "u9"}', value, 'offset 4 of topic "c"')
    assert 'offset 4 of topic "c"' in str(raised.value.detail)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"id": "x", "status": "END"}', b"{}"),
        (b'{"id": "1", "status": "END"}', b'{"status": "BEGIN", "id": "1"}'),
        (b'{"id": "1", "status": "END"}', b'{"status": "END", "id": "2", "data_collections": []}'),
        (b'{"id": "1", "status": "END"}', b'{"status": "END", "id": "1", "data_collections": [1]}'),
        (b'{"id": "1", "status": "MIDDLE"}', b'{"status": "MIDDLE", "id": "1"}'),
    ],
)
def test_transactions_that_are_none_are_loud(key: bytes, value: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read(key, value, "here")


def test_a_later_version_is_not_guessed_at() -> None:
    with pytest.raises(NewerFormat):
        read(b'{"sink": "u9"}', b'{"frontier": [1], "positions": {}, "version": 2}', "here")
