"""``reclock.translate`` as text: which query a call stands for."""

from __future__ import annotations

import re

import pytest

from reclock.errors import StatementError
from reclock.sql.parse import parse_query

TIMES = (
    "SELECT min(timestamp) AS timestamp FROM reclock.bindings WHERE source = 's' "
    'AND partition = {part} AND "offset" > {offset}'
)


def placeless(text):
    """A query as it is shown, without where its words stand."""
    return re.sub(r"position=\w+", "", repr(parse_query(text)))


@pytest.mark.parametrize(
    ("call", "meant", "alias"),
    [
        (
            "reclock.translate('s', $1)",
            'SELECT partition, max("offset") AS "offset" FROM reclock.bindings '
            "WHERE source = 's' AND timestamp <= $1 GROUP BY partition",
            "translate",
        ),
        ("reclock.translate('s', '0:120')", TIMES.format(part="'0'", offset=120), "translate"),
        ("reclock.translate('s', 'a:b:7')", TIMES.format(part="'a:b'", offset=7), "translate"),
        ("reclock.translate('s', 'x', $2)", TIMES.format(part="'x'", offset="$2"), "translate"),
        ("reclock.translate('s', 'x', 5) AS t (at)", TIMES.format(part="'x'", offset=5), "t"),
    ],
)  # fmt: skip
def test_a_call_is_a_query_over_bindings(call, meant, alias):
    made = placeless(f"SELECT * FROM {call}")
    assert f"DerivedTable(query={placeless(meant)}, alias=Alias(name='{alias}'" in made


@pytest.mark.parametrize("call", ["('s')", "('s', '120')", "('s', '0:x')", "('s', 1, 2, 3)", "()"])
def test_what_means_nothing_is_refused(call):
    with pytest.raises(StatementError):
        parse_query(f"SELECT * FROM reclock.translate{call}")
