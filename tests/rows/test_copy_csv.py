"""CSV in pieces of any size; what is written reads back the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.rows.copy_csv import Records, csv_line, read_csv
from reclock.session.copy_in import CopyIn
from reclock.sql.parse import parse_statements
from reclock.sql.statement.copy import CopyFormat
from reclock.sql.types import TEXT

CSV = CopyFormat("csv", ",", "")
FORMATS = [
    CSV,
    CopyFormat("csv", ";", "NULL", quote="'", escape="'"),
    CopyFormat("csv", ",", "", escape="\\"),
    CopyFormat("csv", "|", "-", force_quote=None),
]
_text = st.text(st.sampled_from("ab,;|\"'\\\n\r -NUL."), max_size=6)
_row = st.tuples(st.none() | _text, st.none() | _text)


@pytest.mark.parametrize("form", FORMATS)
@given(rows=st.lists(_row, min_size=1, max_size=6), size=st.integers(1, 7))
def test_what_is_written_reads_back(form, rows, size):
    data = "".join(csv_line(row, [TEXT, TEXT], form, ["a", "b"]) for row in rows).encode()
    records = Records(form)
    pieces = [records.cut(data[at : at + size]) for at in range(0, len(data), size)]
    found = []
    for piece in (*pieces, records.end()):
        if piece:
            batch = read_csv(piece, form, ["a", "b"], 0)
            found += list(zip(*(c.to_pylist() for c in batch.columns), strict=True))
    assert found == rows


def copied(db, options, data, *, size=5):
    session = db.session()
    (parsed,) = parse_statements(f"COPY t FROM STDIN {options}")
    copying = session.run(parsed)
    assert isinstance(copying, CopyIn)
    for at in range(0, len(data), size):
        copying.write(data[at : at + size])
    return copying.finish().tag


@pytest.fixture
def table(db):
    db.execute("CREATE TABLE t (a INT, b TEXT, c DOUBLE PRECISION)")
    return db


@pytest.mark.parametrize(
    ("options", "data", "rows"),
    [
        ("CSV", b'1,x,1.5\n 2 ,,\n3,"",-0\n', [(1, "x", 1.5), (2, None, None), (3, "", 0.0)]),
        ("CSV", b'1,"a\nb",1\r\n', [(1, "a\nb", 1.0)]),
        ("CSV HEADER", b"a,b,c\n1,x,2\n", [(1, "x", 2.0)]),
        ("CSV HEADER", b"a,b,c", []),
        ("(FORMAT csv, HEADER match)", b"a,b,c\n1,x,2", [(1, "x", 2.0)]),
        ("(FORMAT csv, FORCE_NOT_NULL (b))", b"1,,2", [(1, "", 2.0)]),
        ("(FORMAT csv, FORCE_NULL (b))", b'1,"",2', [(1, None, 2.0)]),
        ("(DELIMITER '|', NULL '-')", b"1|x\\|y|2\n2|-|-\n", [(1, "x|y", 2.0), (2, None, None)]),
        ("(HEADER)", b"a\tb\tc\n1\tx\t2\n", [(1, "x", 2.0)]),
    ],
)
def test_rows(table, options, data, rows):
    assert copied(table, options, data) == f"COPY {len(rows)}"
    assert table.execute("SELECT * FROM t ORDER BY a").rows == rows


@pytest.mark.parametrize(
    ("options", "data", "code"),
    [
        ("CSV", b"1,x\n", "22P04"),
        ("CSV", b"1,x,2,3\n", "22P04"),
        ("CSV", b'1,"x,2\n', "22P04"),
        ("CSV", b"one,x,2\n", "22P02"),
        ("CSV", b"99999999999,x,2\n", "22003"),
        ("CSV", b"1,\xff,2\n", "22021"),
        ("(FORMAT csv, HEADER match)", b"a,c,b\n1,x,2\n", "22P04"),
        ("BINARY", b"no such thing, for sure", "22P04"),
    ],
)
def test_what_is_wrong(table, options, data, code):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its code is compared
        copied(table, options, data)
    assert getattr(caught.value, "code", None) == code, caught.value
    assert table.execute("SELECT * FROM t").rows == []
