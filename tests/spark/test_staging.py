"""Reads as Spark jobs: their plans are built once, and they end when they are asked to."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pyarrow as pa
import pytest

from reclock.arrangement.store import LocalStore
from reclock.dataflow.job import errand
from reclock.dataflow.keying import Keying
from reclock.dataflow.stage import Stager
from reclock.engine.interrupt import Interrupt
from reclock.errors import Interrupted
from reclock.remap.batch import Range
from reclock.spark.staging import Readings, stage
from reclock.time.timestamp import Timestamp

pytestmark = pytest.mark.spark

T = Timestamp(0)
PATIENCE = 60.0


class Numbers:
    """Every position is a record."""

    def __call__(self, ranges):
        for part, start, stop, _ in ranges:
            offsets = pa.array(range(start, stop), pa.int64())
            parts = pa.array([part] * len(offsets), pa.int32())
            yield pa.record_batch([parts, offsets, offsets], names=["part", "offset", "x"])


class Slow(Numbers):
    """What would take minutes."""

    def __init__(self, marks):
        self.marks = marks

    def __call__(self, ranges):
        (self.marks / f"{ranges[0].start}").touch()
        time.sleep(300)
        yield from super().__call__(ranges)


def stager(path) -> Stager:
    keying = Keying((pa.int64(),), (0,))
    return Stager(Numbers(), keying, LocalStore(path), "staged-u1.0.1", ())


def test_a_plan_is_built_once_for_whatever_is_read(spark, tmp_path, monkeypatch):
    built = []
    session = type(spark.jobs)
    make = session.range
    monkeypatch.setattr(session, "range", lambda *given: built.append(given) or make(*given))
    readings = Readings(spark)
    for nth in range(3):
        shares = [[Range(0, 0, 10 + nth, T)], [Range(1, 0, nth, T)]]
        pieces = stage(readings, stager(tmp_path), shares, "read")
        assert [(c.range, c.rows) for p in pieces for c in p.covers] == [
            (span, span.stop) for share in shares for span in share if span.stop
        ]
    assert len(built) == 1
    stage(readings, stager(tmp_path), [[Range(0, 0, 4, T)]], "read")
    assert len(built) == 2


def test_ranges_that_are_many_go_through_the_store(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(errand, "INLINE_BYTES", 0)
    pieces = stage(Readings(spark), stager(tmp_path), [[Range(0, 0, 40, T)]], "read")
    assert [piece.rows for piece in pieces] == [40]
    assert set(LocalStore(tmp_path).names()) == {n for p in pieces for n in p.segments}


def test_a_read_ends_when_it_is_asked_to(spark, tmp_path):
    marks, stop, raised = tmp_path / "marks", Interrupt(), []
    marks.mkdir()

    def read():
        slow = replace(stager(tmp_path / "store"), read=Slow(marks))
        with pytest.raises(Interrupted, match="no more") as caught:
            stage(Readings(spark), slow, [[Range(0, 0, 4, T)], [Range(0, 4, 8, T)]], "read", stop)
        raised.append(caught.value)

    (tmp_path / "store").mkdir()
    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    end = time.monotonic() + PATIENCE
    while not list(marks.iterdir()):
        assert time.monotonic() < end, "no task has begun"
        time.sleep(0.05)
    stop.set(Interrupted("no more"))
    thread.join(PATIENCE)
    assert len(raised) == 1
