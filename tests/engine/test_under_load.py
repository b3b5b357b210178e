"""A pipeline beside processes that want the whole machine: it becomes ready, and ends when told.

Real processes, a real clock, and sources that never rest; deadlines that a machine with nothing
else to do keeps many times over.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import pytest

import reclock
from reclock.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
BURN = "while True: pass"

PEOPLE = """
ALTER SYSTEM SET timestamp_interval = '1s';
CREATE SOURCE bid FROM LOAD GENERATOR AUCTION (SEED 7, EVENTS PER TICK 50000, RELATION 'bid')
"""
WINDOWS = """
SELECT b.auction, w.begins, count(*) AS num
FROM (SELECT auction, date_bin(INTERVAL '2 seconds', date_time, TIMESTAMP '2000-01-01') AS latest
      FROM bid) b,
     generate_series(b.latest - INTERVAL '8 seconds', b.latest, INTERVAL '2 seconds')
       AS w (begins)
GROUP BY b.auction, w.begins
"""
BUSIEST = f"""
WITH bids AS ({WINDOWS})
SELECT b.auction, b.num FROM bids b
JOIN (SELECT begins, max(num) AS most FROM bids GROUP BY begins) m ON b.begins = m.begins
WHERE b.num >= m.most
"""
"""The fifth query of Nexmark: the auctions with most bids, of each window."""


@contextmanager
def burners() -> Iterator[None]:
    """Keep all processors busy, and one more."""
    count = (os.cpu_count() or 1) + 1
    burning = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for each in burning:
            each.kill()
            each.wait()


@contextmanager
def bank() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-u", "-m", "examples.bank"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.spark
@pytest.mark.slow(seconds=60)
def test_the_bank_is_done_in_time() -> None:
    with burners(), bank() as process:
        said, _ = process.communicate(timeout=160)
    assert process.returncode == 0, said
    assert "the total was 0 at each of" in said


@pytest.mark.spark
@pytest.mark.slow(seconds=40)
def test_an_interrupt_ends_the_bank_soon() -> None:
    with burners(), bank() as process:
        sleep(15)  # views are being made
        assert process.poll() is None
        begun = monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert monotonic() - begun < 30
    assert process.returncode != 0


@pytest.mark.spark
@pytest.mark.slow(seconds=90)
def test_a_view_over_a_source_that_never_rests_becomes_ready(tmp_path: Path) -> None:
    with burners(), reclock.open(tmp_path / "state") as db:
        db.execute(PEOPLE)
        while db.execute("SELECT count(*) FROM bid").rows[0][0] < 100_000:
            sleep(0.2)
        begun = monotonic()
        db.execute(f"CREATE MATERIALIZED VIEW busiest AS {BUSIEST}")
        assert monotonic() - begun < 120
        time = db.execute("SELECT 1 FROM busiest").timestamp
        kept = db.execute(f"SELECT * FROM busiest AS OF {time}").rows
        assert sorted(kept) == sorted(db.execute(f"{BUSIEST} AS OF {time}").rows)


@pytest.mark.spark
@pytest.mark.slow(seconds=60)
def test_what_makes_a_view_is_cancelled_soon(tmp_path: Path) -> None:
    ended: list[float] = []
    with burners(), reclock.open(tmp_path / "state") as db:
        db.execute(PEOPLE)
        while db.execute("SELECT count(*) FROM bid").rows[0][0] < 100_000:
            sleep(0.2)
        session = db.session()

        def make() -> None:
            with pytest.raises(Interrupted):
                session.execute(f"CREATE MATERIALIZED VIEW busiest AS {BUSIEST}")
            ended.append(monotonic())

        thread = threading.Thread(target=make)
        thread.start()
        while not db.preparing:
            sleep(0.01)
        begun = monotonic()
        session.interrupt.set(Interrupted("canceling statement due to user request"))
        thread.join(60)
        assert ended
        assert ended[0] - begun < 30
        assert db.execute("SHOW MATERIALIZED VIEWS").rows == []
