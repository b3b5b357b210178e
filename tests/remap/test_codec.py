"""The durable text of positions: stable, readable, and loud when wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import Corrupt, InvalidValue
from reclock.remap.codec import FILES, KAFKA, LSN, SEQUENCE
from reclock.time.position import FilePosition, KafkaPosition
from reclock.time.timestamp import Lsn, Sequence


@given(st.dictionaries(st.integers(0, 10_000), st.integers(0, 2**62)))
def test_kafka_round_trip(offsets: dict[int, int]) -> None:
    for element in KafkaPosition.frontier(offsets):
        assert KAFKA.decode(KAFKA.encode(element)) == element


@given(st.dictionaries(st.text(), st.integers(0, 2**62)))
def test_file_round_trip(offsets: dict[str, int]) -> None:
    for element in FilePosition.frontier(offsets):
        assert FILES.decode(FILES.encode(element)) == element


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**64 - 1))
def test_counters_round_trip(sequence: int, lsn: int) -> None:
    assert SEQUENCE.decode(SEQUENCE.encode(Sequence(sequence))) == sequence
    assert LSN.decode(LSN.encode(Lsn(lsn))) == lsn


def test_the_format_is_written_down() -> None:
    """A durable format: changing any of these lines needs a new version and a migration."""
    written = [KAFKA.encode(e) for e in KafkaPosition.frontier({0: 5, 2: 9})]
    assert written == [
        '{"partition":0,"offset":5}',
        '{"after":0,"before":2,"offset":0}',
        '{"partition":2,"offset":9}',
        '{"after":2,"before":null,"offset":0}',
    ]
    assert FILES.encode(FilePosition.exact("a.csv", 7)) == '{"file":"a.csv","offset":7}'
    assert SEQUENCE.encode(Sequence(7)) == '{"sequence":7}'
    assert LSN.encode(Lsn.parse("16/B374D848")) == '{"lsn":"16/B374D848"}'


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", "{}", '{"partition":0}', '{"partition":"0","offset":1}',
     '{"partition":0,"offset":-1}', '{"partition":-1,"offset":1}', '{"partition":0,"offset":1.5}',
     '{"partition":true,"offset":1}', '{"partition":0,"offset":true}',
     '{"after":5,"before":2,"offset":0}', "\x00"],
)  # fmt: skip
def test_corrupt_records_are_reported_with_their_text(text: str) -> None:
    with pytest.raises(Corrupt) as caught:
        KAFKA.decode(text)
    assert repr(text) in str(caught.value.detail)


def test_what_is_no_part_of_a_frontier_is_not_stored() -> None:
    hull = KafkaPosition.exact(1, 5).meet(KafkaPosition.exact(3, 7))
    with pytest.raises(InvalidValue, match="is not stored"):
        KAFKA.encode(hull)
