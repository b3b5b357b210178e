"""Texts that are too deep, too long or too large are refused in words, whatever they nest."""

from __future__ import annotations

import pytest

from reclock.errors import Error
from reclock.sql import depth
from reclock.sql.parse import parse_statements

KINDS = {
    "parentheses": lambda n: f"SELECT {'(' * n}a{')' * n} AS x FROM t",
    "functions": lambda n: f"SELECT {'abs(' * n}a{')' * n} AS x FROM t",
    "case": lambda n: f"SELECT {'CASE WHEN true THEN ' * n}a{' END' * n} AS x FROM t",
    "arrays": lambda n: f"SELECT {'ARRAY[' * n}a{']' * n} AS x FROM t",
    "subqueries": lambda n: f"SELECT * FROM {'(SELECT * FROM ' * n}t{') x' * n}",
    "not": lambda n: f"SELECT {'NOT ' * n}(a = 1) AS x FROM t",
    "minus": lambda n: f"SELECT {'- ' * n}a AS x FROM t",
    "or": lambda n: f"SELECT {' OR '.join(['a = 1'] * n)} AS x FROM t",
    "plus": lambda n: f"SELECT {' + '.join(['a'] * n)} AS x FROM t",
    "casts": lambda n: f"SELECT a{'::int' * n} AS x FROM t",
    "unions": lambda n: " UNION ALL ".join(["SELECT a FROM t"] * n),
    "joins": lambda n: "SELECT 1 AS x FROM " + " CROSS JOIN ".join(f"t t{i}" for i in range(n)),
}


TYPES = {
    "arrays": ("ARRAY[", "]"), "structs": ("STRUCT(", ")"), "dates": ("date(", ")"),
    "decimals": ("decimal(", ")"), "mixed": ("date((ARRAY[abs(", ")]))"),
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def room() -> None:
    depth.allow()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_deep_is_read(kind: str) -> None:
    parse_statements(KINDS[kind](depth.TYPES if kind in TYPES else 60))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_too_deep_is_refused(kind: str) -> None:
    with pytest.raises(Error) as caught:
        parse_statements(KINDS[kind](5_000))
    assert caught.value.code == "54001"
    assert caught.value.hint


@pytest.mark.parametrize("kind", ["or", "plus"])
def test_hundreds_of_operators_in_a_row_are_read(kind: str) -> None:
    parse_statements(KINDS[kind](390))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT '" + "a" * depth.MAX_LENGTH + "'", "54000"),
        ("SELECT " + "9" * 100_000, "22003"),
        ("SELECT 1e99999999999999999999", "22003"),
        ("SELECT $" + "9" * 5_000, "22003"),
        ("SELECT $99999999, oid FROM pg_class", "54000"),
        ("FETCH " + "9" * 5_000 + " c", "22003"),
        ("SELECT " + '"' * 100_001, "42601"),
        ("/*" * 50_000, "42601"),
    ],
    ids=["long", "digits", "exponent", "parameter", "parameters", "count", "quotes", "comments"],
)
def test_other_excesses(text: str, code: str) -> None:
    with pytest.raises(Error) as caught:
        parse_statements(text)
    assert caught.value.code == code


@pytest.mark.parametrize("kind", TYPES)
def test_what_takes_twice_as_long_with_every_level_is_refused(kind: str) -> None:
    opens, closes = TYPES[kind]
    with pytest.raises(Error) as caught:
        parse_statements(f"SELECT {opens * 40}1{closes * 40}")
    assert caught.value.code == "54001"
