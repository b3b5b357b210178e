"""COPY … TO STDOUT: PostgreSQL's text format, read back as PostgreSQL reads it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import InvalidSyntax
from reclock.interval import Interval
from reclock.rows.copy_text import line, text_of
from reclock.sql import types as t


@given(st.lists(st.none() | st.text(), min_size=1))
def test_any_text_is_one_line_that_reads_back(values):
    made = line(values, [t.TEXT] * len(values))
    assert made.endswith("\n")
    assert not set("\n\r") & set(made[:-1])
    fields = made[:-1].split("\t")
    assert [None if f == "\\N" else read(f) for f in fields] == values


def read(field):
    found, at = [], 0
    escapes = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}
    while at < len(field):
        if field[at] == "\\":
            at += 1
            found.append(escapes[field[at]])
        else:
            found.append(field[at])
        at += 1
    return "".join(found)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (True, t.BOOLEAN, "t"),
        (-7, t.BIGINT, "-7"),
        (Decimal("1E+2"), t.Numeric(10, 0), "100"),
        (1.0, t.DOUBLE, "1"),
        (0.1, t.DOUBLE, "0.1"),
        (float("-inf"), t.DOUBLE, "-Infinity"),
        (float("nan"), t.DOUBLE, "NaN"),
        (b"\x00\xff", t.BYTEA, "\\x00ff"),
        (date(2026, 1, 2), t.DATE, "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, 5), t.TIMESTAMP, "2026-01-02 03:04:05"),  # noqa: DTZ001 - has none
        (datetime(2026, 1, 2, 3, 4, 5, 120_000, UTC), t.TIMESTAMPTZ, "2026-01-02 03:04:05.12+00"),
        (Interval(), t.INTERVAL, "00:00:00"),
        (Interval(days=2, microseconds=1), t.INTERVAL, "2 days 00:00:00.000001"),
        (Interval(-14, 1, -1), t.INTERVAL, "-1 years -2 mons +1 day -00:00:00.000001"),
        ({"a": [1]}, t.JSON, '{"a": [1]}'),
        (["a b", 'q"', None, "", "x"], t.Array(t.TEXT), '{"a b","q\\"",NULL,"",x}'),
        ((1, None, "a,b"), t.Record((("x", t.BIGINT), ("y", t.TEXT), ("z", t.TEXT))), '(1,,"a,b")'),
    ],
)
def test_values_are_written_as_postgresql_does(value, kind, text):
    assert text_of(value, kind) == text


def test_queries_and_subscriptions_are_copied(db):
    db.execute("CREATE TABLE t (k INT, s TEXT)")
    db.execute("INSERT INTO t VALUES (1, 'a\tb'), (2, NULL)")
    rows = ["1\ta\\tb\n", "2\t\\N\n"]
    assert list(db.copy("COPY (SELECT * FROM t ORDER BY k) TO STDOUT")) == rows
    assert sorted(db.copy("COPY t TO STDOUT WITH (FORMAT text)")) == sorted(rows)
    keys = [row.partition("\t")[0] + "\n" for row in rows]
    assert sorted(db.copy("COPY t (k) TO STDOUT")) == sorted(keys)
    copied = db.copy("COPY (SUBSCRIBE t WITHIN TIMESTAMP ORDER BY k) TO STDOUT")
    now = db.execute("SELECT * FROM t").timestamp
    assert list(copied) == [f"{now}\t1\t{row}" for row in rows]
    copied = db.copy(f"COPY (SUBSCRIBE t WITH (PROGRESS) UP TO {now + 1}) TO STDOUT")
    assert list(copied)[-1] == f"{now}\tt\t\\N\t\\N\t\\N\n"
    assert db.execute("SELECT * FROM reclock.holds").rows == []
    with pytest.raises(InvalidSyntax):
        db.copy("SELECT 1")
