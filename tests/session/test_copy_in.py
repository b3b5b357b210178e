"""COPY … FROM STDIN: lines in pieces of any size, all of them or none."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reclock.errors import Error, Forbidden
from reclock.rows.copy_text import line
from reclock.session.copy_in import CopyIn
from reclock.sql.parse import parse_statements
from reclock.sql.types import BIGINT, TEXT

if TYPE_CHECKING:
    from reclock.session.database import Database
    from reclock.session.session import Session

TABLE = (
    "CREATE TABLE t (id BIGINT, name TEXT DEFAULT 'none', price NUMERIC(6,2), day DATE,"
    " tags TEXT[], data JSON)"
)


def begun(session: Session, sql: str) -> CopyIn:
    (parsed,) = parse_statements(sql)
    copying = session.run(parsed)
    assert isinstance(copying, CopyIn)
    return copying


def copy_all(copying: CopyIn, data: bytes) -> None:
    copying.write(data)
    copying.finish()


def test_lines_become_rows(db: Database) -> None:
    db.execute(TABLE)
    copying = begun(db.session(), "COPY t FROM STDIN")
    data = (
        b'1\ta\\tb\\\\\t1.5\t2026-01-31\t{x,"y,z"}\t{"k": 1}\r\n2\t\\N\t\\N\t\\N\t\\N\t\\N\n\\.\n'
    )
    for at in range(0, len(data), 3):
        copying.write(data[at : at + 3])
    result = copying.finish()
    assert result.tag == "COPY 2"
    assert result.timestamp is not None
    assert db.execute("SELECT * FROM t ORDER BY id").rows == [
        (1, "a\tb\\", Decimal("1.50"), date(2026, 1, 31), ["x", "y,z"], {"k": 1}),
        (2, None, None, None, None, None),
    ]


def test_escapes_are_bytes(db: Database) -> None:
    db.execute("CREATE TABLE t (name TEXT)")
    copying = begun(db.session(), "COPY t FROM STDIN")
    copy_all(copying, rb"\303\251\xc3\xa9\x41\q" + b"\n")
    assert db.execute("SELECT * FROM t").rows == [("ééAq",)]


def test_columns_that_are_left_out_have_their_default(db: Database) -> None:
    db.execute(TABLE)
    copying = begun(db.session(), "COPY t (price, id) FROM STDIN")
    copying.write(b"2\t7")
    assert copying.finish().tag == "COPY 1"
    assert db.execute("SELECT id, name, price FROM t").rows == [(7, "none", Decimal("2.00"))]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"1\n", "22P04"),
        (b"1\ta\tb\n", "22P04"),
        (b"x\ta\n", "22P02"),
        (b"1\t\xff\n", "22021"),
        (b"1\t\0\n", "22021"),
        (b"1\t\\x00\n", "22021"),
        (b"1\t\\303\n", "22021"),
        (b"99999999999999999999\ta\n", "22003"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_written(db: Database, data: bytes, code: str) -> None:
    db.execute("CREATE TABLE t (id BIGINT, name TEXT)")
    copying = begun(db.session(), "COPY t FROM STDIN")
    with pytest.raises(Error) as caught:
        copy_all(copying, b"1\tok\n" + data)
    assert caught.value.code == code
    assert "line" in (caught.value.detail or "")
    assert db.execute("SELECT * FROM t").rows == []


def test_in_a_transaction_and_without_rows(db: Database) -> None:
    db.execute("CREATE TABLE t (id BIGINT)")
    session = db.session()
    session.execute("BEGIN")
    copying = begun(session, "COPY t FROM STDIN")
    copying.write(b"1\n2\n")
    assert copying.finish().tag == "COPY 2"
    assert db.execute("SELECT * FROM t").rows == []
    session.execute("COMMIT")
    assert len(db.execute("SELECT * FROM t").rows) == 2
    assert begun(session, "COPY t FROM STDIN").finish().tag == "COPY 0"


DEFAULTS = (
    "CREATE TABLE t (id BIGSERIAL, name TEXT DEFAULT 'none', n NUMERIC(4,1) DEFAULT 7,"
    " tags TEXT[] DEFAULT '{x}', bare TEXT)"
)


@pytest.mark.parametrize("pieces", [1, 7, 1_000])
@pytest.mark.parametrize(
    ("options", "data"),
    [
        (
            r"DEFAULT '\D'",
            b"\\D\ta\t1\t{y}\tb\n\\D\t\\D\t\\D\t\\D\t\\N\n9\t\\\\D\t2\t\\N\tD\n\\D\tc\t\\D\t{}\t\n",
        ),
        (
            "FORMAT csv, DEFAULT 'D', NULL '-'",
            b'D,a,1,{y},b\nD,D,D,D,-\n9,\\D,2,-,"D"\nD,c,D,{},""\n',
        ),
    ],
)
def test_a_mark_stands_for_the_default(
    db: Database, pieces: int, options: str, data: bytes
) -> None:
    db.execute(DEFAULTS)
    copying = begun(db.session(), f"COPY t FROM STDIN ({options})")
    for at in range(0, len(data), pieces):
        copying.write(data[at : at + pieces])
    assert copying.finish().tag == "COPY 4"
    rows = db.execute("SELECT id, name, n::float, tags, bare FROM t ORDER BY bare NULLS LAST").rows
    ids = [row[0] for row in rows if row[0] != 9]
    assert sorted(ids) == [1, 2, 3], "each has a number of its own"
    assert [row[1:] for row in rows] == [
        ("c", 7.0, [], ""),
        ("\\D", 2.0, None, "D"),
        ("a", 1.0, ["y"], "b"),
        ("none", 7.0, ["x"], None),
    ]


@pytest.mark.parametrize(
    ("options", "data"), [("DEFAULT 'D'", b"D\n"), ("FORMAT csv, DEFAULT 'D'", b"D\n")]
)
def test_a_mark_for_a_column_without_a_default_is_refused(
    db: Database, options: str, data: bytes
) -> None:
    db.execute(DEFAULTS)
    copying = begun(db.session(), f"COPY t (bare) FROM STDIN ({options})")
    with pytest.raises(Error, match="unexpected default marker") as caught:
        copy_all(copying, data)
    assert caught.value.code == "22P04"
    assert 'Column "bare" has no default value' in (caught.value.detail or "")


def test_rights_are_asked_for_again_at_the_end(db: Database) -> None:
    db.execute("CREATE TABLE t (id BIGINT); CREATE USER joe; GRANT INSERT ON t TO joe")
    copying = begun(db.session("joe"), "COPY t FROM STDIN")
    copying.write(b"1\n")
    db.execute("REVOKE INSERT ON t FROM joe")
    with pytest.raises(Forbidden):
        copying.finish()
    with pytest.raises(Forbidden):
        begun(db.session("joe"), "COPY t FROM STDIN")


def test_what_cannot_be_copied_into(db: Database) -> None:
    db.execute("CREATE VIEW v AS SELECT 1 AS a")
    for sql, code in (
        ("COPY v FROM STDIN", "42809"),
        ("COPY nothing FROM STDIN", "42P01"),
        ("COPY v (b) FROM STDIN", "42809"),
    ):
        with pytest.raises(Error) as caught:
            begun(db.session(), sql)
        assert caught.value.code == code


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-9, 9),
            st.none()
            | st.text(
                st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4
            ),
        ),
        max_size=4,
    )
)
def test_what_copy_writes_copy_reads(
    db: Database, rows: list[tuple[int | None, str | None]]
) -> None:
    db.execute("DROP TABLE IF EXISTS t; CREATE TABLE t (n BIGINT, s TEXT)")
    copying = begun(db.session(), "COPY t FROM STDIN")
    copying.write("".join(line(row, (BIGINT, TEXT)) for row in rows).encode())
    copying.finish()
    assert sorted(db.execute("SELECT * FROM t").rows, key=repr) == sorted(rows, key=repr)
