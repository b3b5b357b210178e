"""COPY of more than is kept in memory: pieces on disk, visible at one time or not at all."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from engines.model_engine import ModelEngine
from reclock.errors import ConstraintViolation, Error
from reclock.session import copy_in
from reclock.session.copy_in import CopyIn
from reclock.session.database import Database
from reclock.sql.parse import parse_statements

if TYPE_CHECKING:
    from pathlib import Path

    from reclock.session.session import Session

ROWS = 500


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_in, "PIECE_BYTES", 1_000)
    monkeypatch.setattr(copy_in, "_AT_ONCE", 50)


def begun(session: Session, sql: str = "COPY t FROM STDIN") -> CopyIn:
    (parsed,) = parse_statements(sql)
    copying = session.run(parsed)
    assert isinstance(copying, CopyIn)
    return copying


def lines(first: int, last: int) -> bytes:
    return "".join(f"{n}\tname {n}\n" for n in range(first, last)).encode()


def made(db: Database) -> None:
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, name TEXT NOT NULL, n INT DEFAULT 7)")


@pytest.mark.parametrize("form", ["text", "csv"])
def test_all_pieces_are_visible_at_one_time(db: Database, form: str) -> None:
    made(db)
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS c, sum(n) AS s FROM t")
    copying = begun(db.session(), f"COPY t (id, name) FROM STDIN (FORMAT {form})")
    data = lines(0, ROWS) if form == "text" else lines(0, ROWS).replace(b"\t", b",")
    for at in range(0, len(data), 777):
        copying.write(data[at : at + 777])
    assert db.execute("SELECT count(*) FROM t").rows == [(0,)]
    result = copying.finish()
    assert result.tag == f"COPY {ROWS}"
    assert result.timestamp is not None
    assert db.execute("SELECT count(*), min(n), max(id) FROM t").rows == [(ROWS, 7, ROWS - 1)]
    assert db.execute("SELECT * FROM v").rows == [(ROWS, 7 * ROWS)]
    before = result.timestamp - 1
    assert db.execute(f"SELECT count(*) FROM t AS OF {before}").rows == [(0,)]
    assert db.execute(f"SELECT count(*) FROM t AS OF {result.timestamp}").rows == [(ROWS,)]
    db.execute("UPDATE t SET name = 'x' WHERE id = 3")
    assert db.execute("SELECT name FROM t WHERE id = 3").rows == [("x",)]


def test_a_key_twice_is_refused_wherever_it_is(db: Database) -> None:
    made(db)
    copying = begun(db.session())
    copying.write(lines(0, ROWS).replace(b"\tname", b"\tname", 1).replace(b"\n", b"\t1\n"))
    with pytest.raises(ConstraintViolation) as caught:  # noqa: PT012 - wherever it is found
        copying.write(
            lines(3, 4).replace(b"\n", b"\t1\n") + lines(900, 1_200).replace(b"\n", b"\t1\n")
        )
        copying.finish()
    assert caught.value.code == "23505"
    assert "(id)=(3)" in str(caught.value.detail)
    assert db.execute("SELECT count(*) FROM t").rows == [(0,)]
    db.execute("INSERT INTO t VALUES (450, 'here', 1)")
    copying = begun(db.session(), "COPY t (id, name) FROM STDIN")
    copying.write(lines(0, ROWS))
    with pytest.raises(ConstraintViolation) as caught:
        copying.finish()
    assert "(id)=(450)" in str(caught.value.detail)
    assert db.execute("SELECT count(*) FROM t").rows == [(1,)]


def test_a_null_in_a_late_piece_is_refused(db: Database) -> None:
    made(db)
    copying = begun(db.session(), "COPY t (id, name) FROM STDIN")
    copying.write(lines(0, ROWS))
    with pytest.raises(ConstraintViolation):  # noqa: PT012 - wherever it is found
        copying.write(b"1000\t\\N\n" + lines(2_000, 2_100))
        copying.finish()
    assert db.execute("SELECT count(*) FROM t").rows == [(0,)]


def test_a_table_that_was_made_again_gets_nothing(db: Database) -> None:
    made(db)
    copying = begun(db.session(), "COPY t (id, name) FROM STDIN")
    copying.write(lines(0, ROWS))
    db.execute("DROP TABLE t")
    made(db)
    with pytest.raises(Error):
        copying.finish()
    assert db.execute("SELECT count(*) FROM t").rows == [(0,)]


def test_each_row_has_its_own_number_and_is_checked(db: Database) -> None:
    db.execute("CREATE TABLE g (n INT GENERATED ALWAYS AS IDENTITY, a INT CHECK (a >= 0))")
    copying = begun(db.session(), "COPY g (a) FROM STDIN")
    copying.write("".join(f"{a}\n" for a in range(ROWS)).encode())
    copying.finish()
    assert db.execute("SELECT count(DISTINCT n), count(*) FROM g").rows == [(ROWS, ROWS)]
    copying = begun(db.session(), "COPY g (a) FROM STDIN")
    copying.write("".join(f"{a}\n" for a in range(ROWS)).encode())
    with pytest.raises(ConstraintViolation):
        copying.write("".join(f"{-a}\n" for a in range(ROWS)).encode())


def test_what_is_given_up_leaves_no_files(db: Database) -> None:
    made(db)
    copying = begun(db.session(), "COPY t (id, name) FROM STDIN")
    copying.write(lines(0, ROWS))
    core = db._core
    assert any(name.startswith("copy-") for name in core.segments.names())
    del copying
    db.execute("INSERT INTO t VALUES (1, 'a', 1)")
    with core.writing():
        core.collect_garbage()
    assert not [name for name in core.segments.names() if name.startswith("copy-")]


POINTS = ["arrangement.segment.before_rename", "arrangement.segment.after_rename",
          "write.append.before", "durable.commit.before", "write.append.after"]  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_leaves_all_or_nothing(tmp_path: Path, point: str) -> None:
    path = tmp_path / "state"
    with Database(path, ModelEngine(), background=False) as db:
        made(db)
    script = (
        "import sys; from reclock import failpoints; from reclock.session import copy_in\n"
        "copy_in.PIECE_BYTES, copy_in._AT_ONCE = 1_000, 50\n"
        "from reclock.session.database import Database\n"
        "from engines.model_engine import ModelEngine\n"
        "from reclock.sql.parse import parse_statements\n"
        "db = Database(sys.argv[1], ModelEngine(), background=False)\n"
        "copying = db.session().run(parse_statements('COPY t (id, name) FROM STDIN')[0])\n"
        "data = ''.join(f'{n}\\tname {n}\\n' for n in range(500)).encode()\n"
        "copying.write(data[:4000])\n"
        f"failpoints.arm('{point}', 'exit')\n"
        "copying.write(data[4000:]); copying.finish()\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False, timeout=100)
    assert done.returncode != 0
    with Database(path, ModelEngine(), background=False) as db:
        count = db.execute("SELECT count(*) FROM t").rows
        assert count == [(ROWS if point == "write.append.after" else 0,)]
        made_again = begun(db.session(), "COPY t (id, name) FROM STDIN")
        made_again.write(lines(ROWS, ROWS + 300))
        made_again.finish()
        assert db.execute("SELECT count(*) FROM t").rows == [(count[0][0] + 300,)]
