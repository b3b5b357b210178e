"""Numbers and strings as JSON writes them, against regular expressions."""

from __future__ import annotations

import json
import re

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.connectors.format.lexical import Texts, bare, decimals, integers, numbers, unescaped

INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")

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


insides = st.lists(
    st.text('ab"\\\\nu01d8\x00\x1f\x7f é', max_size=6)
    | st.sampled_from(["\\u00e9", "\\ud83d\\ude00", "\\ud800", "\\\\ud800", "\\u12", "\\x", '\\"'])
    | st.text(max_size=3).map(lambda text: json.dumps(text)[1:-1]),
    max_size=5,
)


@given(insides)
@settings(max_examples=500, deadline=None)
def test_insides_of_strings(values: list[str]) -> None:
    made, rows = unescaped(texts_of(values))
    sure = [True] * len(values) if rows is None else rows.tolist()
    assert len(made.column) == len(values)
    for inside, right, found in zip(values, sure, made.column.to_pylist(), strict=True):
        try:
            expected = json.loads(f'"{inside}"')
        except ValueError:
            assert not right
        else:
            assert right or "\\ud" in inside
            assert not right or found == expected
