"""varchar(n): what a column of it takes, what a cast to it gives, and how it is shown."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reclock
from reclock.catalog.item import Table, TableColumn
from reclock.engine.constraints import fitted
from reclock.errors import ConstraintViolation, StatementError
from reclock.ids import ObjectId
from reclock.sql.schema import Column
from reclock.sql.types import TEXT

CREATE = "CREATE TABLE v (k VARCHAR(3) PRIMARY KEY, a CHARACTER VARYING(2) DEFAULT 'zz', b VARCHAR)"


@pytest.fixture
def filled(db):
    db.execute(CREATE)
    return db


def rows(db):
    return sorted(db.execute("SELECT * FROM v").rows)


def test_blanks_beyond_the_length_are_cut_and_the_others_kept(filled):
    filled.execute("INSERT INTO v VALUES ('abc   ', 'x ', 'y   '), ('é😀 ', 'ß😀 ', NULL)")
    assert rows(filled) == [("abc", "x ", "y   "), ("é😀 ", "ß😀", None)]


@pytest.mark.parametrize(
    ("statement", "at"),
    [
        ("INSERT INTO v VALUES ('n', 'x'), ('abcd', 'x')", "'abcd'"),
        ("INSERT INTO v (a, k) VALUES ('😀😀😀', 'n')", "'😀😀😀'"),
        ("INSERT INTO v SELECT 'n', b || 'xyz' FROM v", "v SELECT"),
        ("UPDATE v SET b = a, a = 'x   x' WHERE k = 'old'", "'x   x'"),
        ("UPDATE v SET k = k || 'd'", "k || 'd'"),
    ],
)
def test_longer_text_is_refused_with_its_place(filled, statement, at):
    filled.execute("INSERT INTO v VALUES ('old', 'x', 'y')")
    with pytest.raises(ConstraintViolation) as raised:
        filled.execute(statement)
    error = raised.value
    assert error.code == "22001"
    assert error.message in {f"value too long for type character varying({n})" for n in (2, 3)}
    assert statement[error.position - 1 :].startswith(at)
    assert error.hint
    assert rows(filled) == [("old", "x", "y")]


def test_rows_from_outside_are_checked_too(filled):
    filled.insert("v", [("a   ", "x  ", None)])
    filled.insert("v", pa.table({"k": ["b   ", None][:1], "b": ["long enough"]}))
    assert rows(filled) == [("a  ", "x ", None), ("b  ", "zz", "long enough")]
    for given_rows in ([("c", "x", ""), ("d", "xyz", "")], pa.table({"k": ["c", "d  .  "]})):
        with pytest.raises(ConstraintViolation) as raised:
            filled.insert("v", given_rows)
        assert (raised.value.code, raised.value.row) == ("22001", 1)
    assert len(rows(filled)) == 2


def test_a_key_is_compared_after_it_was_cut(filled):
    filled.execute("INSERT INTO v VALUES ('abc', '', '')")
    with pytest.raises(ConstraintViolation) as raised:
        filled.execute("INSERT INTO v VALUES ('abc ', '', '')")
    assert raised.value.code == "23505"


def test_a_transaction_refuses_at_the_statement_and_cuts(filled):
    filled.execute("BEGIN; INSERT INTO v VALUES ('abc  ', '', ''); COMMIT")
    assert rows(filled) == [("abc", "", "")]
    filled.execute("BEGIN")
    with pytest.raises(ConstraintViolation):
        filled.execute("INSERT INTO v VALUES ('x', 'yyy', '')")
    filled.execute("ROLLBACK")


def test_a_cast_cuts(filled):
    filled.execute("INSERT INTO v VALUES ('abc', '', '')")
    query = "SELECT 'é😀x'::varchar(2), k::varchar(2), 12345::varchar(3), NULL::varchar(1) FROM v"
    assert filled.execute(query).rows == [("é😀", "ab", "123", None)]


def test_columns_are_shown_as_declared_and_views_have_text(filled):
    filled.execute("CREATE VIEW w AS SELECT k, b::varchar(4) AS c FROM v")
    shown = [row[2] for row in filled.execute("SHOW COLUMNS FROM v").rows]
    assert shown == ["character varying(3)", "character varying(2)", "text"]
    assert [row[2] for row in filled.execute("SHOW COLUMNS FROM w").rows] == ["text", "text"]


def test_the_length_survives_a_restart(tmp_path):
    with reclock.open(tmp_path / "state") as db:
        db.execute(CREATE)
    with (
        reclock.open(tmp_path / "state") as db,
        pytest.raises(ConstraintViolation, match="too long"),
    ):
        db.execute("INSERT INTO v VALUES ('abcd', '', '')")


@pytest.mark.parametrize(
    ("declared", "code"),
    [("varchar(0)", "22023"), ("varchar(10485761)", "22023"), ("char(0)", "22023"),
     ("character(10485761)", "22023"), ("varchar(3)[]", "0A000"), ("char(3)[]", "0A000")],
)  # fmt: skip
def test_what_is_not_a_length_is_refused(db, declared, code):
    text = f"CREATE TABLE x (a {declared})"
    with pytest.raises(StatementError) as raised:
        db.execute(text)
    assert (raised.value.code, bool(raised.value.hint)) == (code, True)
    assert text[raised.value.position - 1 :].startswith(declared)


@given(
    st.lists(st.none() | st.text(st.sampled_from("a \t😀é\u00a0"), max_size=6), max_size=8),
    st.integers(1, 4),
)
def test_fitting_is_what_python_says(values, length):
    columns = (TableColumn(Column("c", TEXT), None, length),)
    table = Table(ObjectId("u1"), "t", "", None, columns=columns)
    bad = [v is not None and v[length:].strip(" ") != "" for v in values]
    if any(bad):
        with pytest.raises(ConstraintViolation) as raised:
            fitted(table, [pa.array(values, pa.string())])
        assert raised.value.row == bad.index(True)
    else:
        cut = [None if v is None else v[:length] for v in values]
        assert fitted(table, [pa.array(values, pa.string())])[0].to_pylist() == cut
