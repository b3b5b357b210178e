"""Numbers and strings as JSON writes them, against regular expressions."""

from __future__ import annotations

import re

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.connectors.format.lexical import Texts, bare, decimals, integers, numbers, plain

INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
PLAIN = re.compile(r'[^"\\\x00-\x1f]*')

like_numbers = st.lists(
    st.text("00123.-e+", max_size=5)
    | st.from_regex(DECIMAL, fullmatch=True)
    | st.sampled_from(["true", "false", "null", "", "٣", "1\n", "1.2.3", "-1.2.", "1-2"]),
    max_size=6,
)


def texts_of(values: list[str]) -> Texts:
    return Texts.of(
        pa.array(["prefix", *values], pa.string()).take(
            pa.array(range(1, len(values) + 1), pa.int64())
        )
    )


def expected(pattern: re.Pattern[str], values: list[str]) -> list[bool]:
    return [pattern.fullmatch(value) is not None for value in values]


@given(like_numbers)
@settings(max_examples=500)
def test_numbers(values: list[str]) -> None:
    texts = texts_of(values)
    assert integers(texts).tolist() == expected(INTEGER, values)
    assert numbers(texts).tolist() == expected(NUMBER, values)
    words = [v in {"true", "false"} or NUMBER.fullmatch(v) is not None for v in values]
    assert bare(texts).tolist() == words


@given(like_numbers)
@settings(max_examples=500)
def test_decimals(values: list[str]) -> None:
    good, behind, digits = decimals(texts_of(values))
    assert good.tolist() == expected(DECIMAL, values)
    for value, right, count, text in zip(values, good, behind, digits.to_pylist(), strict=True):
        if right:
            assert text == value.replace(".", "")
            assert count == len(value.partition(".")[2])


@given(st.lists(st.text('ab"\\\x00\x1f\x7f é', max_size=4), max_size=5))
def test_plain_strings(values: list[str]) -> None:
    found = plain(texts_of(values))
    assert ([True] * len(values) if found is None else found.tolist()) == expected(PLAIN, values)
