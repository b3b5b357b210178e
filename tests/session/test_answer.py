"""Answers in batches: all rows, in order, few at a time, and what they hold is let go."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reclock
from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.session.answer import BATCH_ROWS, Answer
from reclock.sql.parse import parse_statements
from reclock.sql.schema import Column, Schema
from reclock.sql.types import TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.session.database import Database
    from reclock.session.session import Session

    from .conftest import Opener


def answer(values: list[str], cuts: int = 1 << 20) -> Answer:
    table = pa.table({"a": pa.array(values, pa.string())})
    return Answer(Schema((Column("a", TEXT),)), (b for b in table.to_batches(cuts)))


@given(
    st.lists(st.text(max_size=3), max_size=20),
    st.integers(1, 5),
    st.lists(st.integers(1, 4), max_size=4),
)
def test_nothing_is_lost(values: list[str], cuts: int, limits: list[int]) -> None:
    given_ = answer(values, cuts)
    found: list[str] = []
    for limit in limits:
        before = len(found)
        found += [v for b in given_.batches(limit) for v in b.column(0).to_pylist()]
        assert len(found) == min(len(values), before + limit)
    assert found + [row for (row,) in given_.rows()] == values
    assert given_.take() is None


def test_batches_are_small() -> None:
    assert max(b.num_rows for b in answer(["x"] * 10_000).batches()) == BATCH_ROWS
    large = answer(["x" * 1_000_000] * 12)
    assert max(b.num_rows for b in large.batches()) <= 4


def test_an_answer_that_is_closed_gives_nothing_more() -> None:
    ended = threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            while True:
                yield pa.record_batch({"a": pa.array(["x"])})
        finally:
            ended.set()

    given_ = Answer(Schema((Column("a", TEXT),)), batches())  # type: ignore[arg-type]
    assert given_.take() is not None
    given_.close()
    given_.close()
    assert ended.is_set()
    assert given_.take() is None


class Streaming(ModelEngine):
    """Gives more than two rows while they are taken."""

    def __init__(self) -> None:
        super().__init__(whole_rows=2)


ALL = "SELECT a FROM t"
HOLDERS = "SELECT holder FROM reclock.holds"


@pytest.fixture
def made(opener: Opener) -> Database:
    opener.engine = Streaming
    db = opener()
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2), (3), (4), (5)")
    return db


def begun(session: Session, sql: str = ALL) -> Answer:
    """Return an answer of which some rows are taken."""
    (parsed,) = parse_statements(sql)
    found = session.run(parsed)
    assert isinstance(found, Answer)
    assert found.take(1) is not None
    return found


def test_its_time_is_held_until_the_last_row(made: Database) -> None:
    with made.session() as session:
        found = begun(session)
        assert [holder.split("/")[0] for (holder,) in made.execute(HOLDERS).rows] == ["select"]
        made.execute("DELETE FROM t")
        for _ in range(3):
            made.execute("INSERT INTO t VALUES (9)")
        assert len(found.rows()) == 4
        assert made.execute(HOLDERS).rows == []


def test_few_rows_hold_nothing(made: Database) -> None:
    with made.session() as session:
        begun(session, "SELECT a FROM t LIMIT 2")
        assert made.execute(HOLDERS).rows == []


def test_closing_lets_go(made: Database) -> None:
    session = made.session()
    begun(session).close()
    assert made.execute(HOLDERS).rows == []
    found = begun(session)
    session.close()
    assert made.execute(HOLDERS).rows == []
    assert found.take() is None


def test_an_answer_that_is_lost_lets_go_with_the_next_tick(made: Database) -> None:
    with made.session() as session:
        begun(session)
        gc.collect()
        made.tick()
        assert made.execute(HOLDERS).rows == []


def test_what_is_dropped_is_read_to_its_end(made: Database) -> None:
    with made.session() as session:
        found = begun(session)
        made.execute("DROP TABLE t; CREATE TABLE t (a INT)")
        made.tick()
        assert len(found.rows()) == 4
        assert made.execute(HOLDERS).rows == []


class Numbers:
    """A database with many rows, whose scans are read from the runs; no Spark."""

    def __init__(self, path: Path, rows: int) -> None:
        self.db = reclock.open(path, clock=ManualClock(1_000), background=False)
        self.db.execute("CREATE TABLE t (a BIGINT, b BIGINT)")
        self.rows = rows
        for half in range(2):
            numbers = range(half, rows, 2)
            self.db.insert("t", pa.table({"a": numbers, "b": [n % 7 for n in numbers]}))
            self.db.tick()


def most_allocated(path: Path, rows: int) -> int:
    """Return how many bytes of Arrow there are at most while an answer is read."""
    with Numbers(path, rows).db as db, db.session() as session:
        gc.collect()
        before = most = pa.total_allocated_bytes()
        found = begun(session, "SELECT a, b, a FROM t")
        counted = 1
        while (batch := found.take()) is not None:
            counted += batch.num_rows
            most = max(most, pa.total_allocated_bytes())
        assert counted == rows
        return most - before


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """In a process of its own: what others have allocated, or keep, does not count."""
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from test_answer import most_allocated\n"
        "print(*(most_allocated(Path(sys.argv[2]) / str(n), n) for n in (40_000, 400_000)))"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    few, many = map(int, said.split())
    assert many < 400_000 * 16  # less than the rows themselves
    assert many < 2 * few


def test_files_that_are_removed_meanwhile_are_read_to_their_end(tmp_path: Path) -> None:
    made = Numbers(tmp_path / "state", 60_000)
    with made.db as db, db.session() as session:
        found = begun(session, "SELECT a FROM t")
        before = set(db._core.segments.names())
        db.execute("DELETE FROM t")
        db.execute("DROP TABLE t")
        db.tick()
        with db._core.lock:
            db._core.collect_garbage()
        assert before
        assert not before & set(db._core.segments.names())
        assert sum(batch.num_rows for batch in found.batches()) == made.rows - 1


def test_cursors_and_copies_hold_what_they_have_not_given(made: Database) -> None:
    with made.session() as session:
        session.execute(f"BEGIN; DECLARE c CURSOR FOR {ALL}")
        assert len(session.execute("FETCH 1 c").rows) == 1
        assert len(made.execute(HOLDERS).rows) == 2  # the transaction, and the cursor
        assert len(session.execute("FETCH ALL c").rows) == 4
        assert len(made.execute(HOLDERS).rows) == 1
        session.execute("COMMIT")
        session.execute(f"DECLARE c CURSOR WITH HOLD FOR {ALL}")
        made.execute("DELETE FROM t")
        assert len(made.execute(HOLDERS).rows) == 1
        assert len(session.execute("FETCH 3 c").rows) == 3
        session.execute("CLOSE c")
        assert made.execute(HOLDERS).rows == []
    made.execute("INSERT INTO t VALUES (1), (2), (3)")
    lines = made.copy(f"COPY ({ALL}) TO STDOUT")
    next(lines)
    assert len(made.execute(HOLDERS).rows) == 1
    lines.close()  # type: ignore[attr-defined] # it is a generator
    assert made.execute(HOLDERS).rows == []
