"""Dataflow expiration (P8): what is not stored is never missed, and the guard stops in time.

Real operators over a real state directory (``LocalEngine``), time by hand. Random histories of
writes, restarts, clocks, offsets and renewals: at every probe a view holds what its query gives
from the tables at that time, as if nothing had ever expired.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random
from threading import Event
from time import monotonic, sleep
from typing import TYPE_CHECKING

import pytest

from engines.local_engine import LocalEngine
from engines.task_engine import LoopEngine
from forced import forced
from reclock import ManualClock
from reclock.arrangement import merge as rules
from reclock.arrangement import precedence
from reclock.dataflow import work as works
from reclock.errors import DataflowExpired, Interrupted
from reclock.session.database import Database
from reclock.spark import job as run
from reclock.system.expirations import expiring
from reclock.testing.failpoints import FailpointRaised, armed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OFFSET = "compute_replica_expiration_offset"


class Opened:
    """A database in which every millisecond can be a tick; it can be opened again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = ManualClock(1_000)
        self.open()
        for name, value in (("logical_compaction_window", "1h"), ("timestamp_interval", "1ms")):
            self.set(name, value)

    def open(self) -> None:
        self.db = Database(self.path, LocalEngine(), clock=self.clock, background=False)

    def restart(self) -> None:
        self.db.close()
        self.open()

    def __call__(self, sql: str):
        return self.db.execute(sql)

    def set(self, name: str, value: str) -> None:
        self(f"ALTER SYSTEM SET {name} = '{value}'")

    def rows(self, sql: str) -> list:
        return sorted(self(sql).rows, key=repr)

    def pass_to(self, time: int) -> None:
        self.clock.set(time)
        self.db.tick()

    def pending(self) -> int:
        sql = "SELECT pending FROM reclock.arrangement_sizes WHERE operator = 'temporal'"
        return sum(n for (n,) in self(sql).rows)

    def upper(self, name: str) -> int:
        return dict(self("SELECT object, upper FROM reclock.frontiers").rows)[name]

    def expiration(self, name: str = "v") -> tuple:
        return self(
            f"SELECT expiration, reason, dropped FROM reclock.expirations WHERE object = '{name}'"
        ).rows[0]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Opened]:
    opened = Opened(tmp_path)
    yield opened
    opened.db.close()


def begin(db: Opened, offset: str, width: int = 30_000, *, renewal: bool = False) -> None:
    """Start a process with an offset, and a view whose rows go after ``width``."""
    db.set(OFFSET, offset)
    db.set("expiration_renewal", str(renewal))
    db.restart()
    db("CREATE TABLE t (id bigint)")
    db(f"CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE mz_now() < id + {width}")
    db("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM v")


def fill(db: Opened) -> None:
    db(f"INSERT INTO t VALUES {', '.join(f'({1_000 + n})' for n in range(100))}")
    db.db.tick()


@pytest.mark.parametrize(("offset", "kept"), [("20s", 0), ("40s", 100), ("0", 100)])
def test_retractions_beyond_the_expiration_are_not_stored(db, offset, kept):
    begin(db, offset)
    fill(db)
    assert db.pending() == kept
    assert len(db("SELECT * FROM v").rows) == 100
    expiration, reason, dropped = db.expiration()
    assert dropped == 100 - kept
    assert expiration == (None if offset == "0" else 1_000 + 1_000 * int(offset[:-1]))
    assert offset != "0" or reason == f"{OFFSET} is 0"


def test_the_guard_stops_before_anything_wrong_is_served(db):
    begin(db, "20s")
    fill(db)
    db.pass_to(20_999)
    assert db("SELECT n FROM n").rows == [(100,)]
    for time in (21_000, 31_050, 90_000):
        db.clock.set(time)
        with pytest.raises(DataflowExpired, match="materialized view v expired at 21000") as told:
            db.db.tick()
        assert "restart the process" in told.value.hint
        with pytest.raises(DataflowExpired):
            db("CREATE INDEX i ON v (id)")
        made = db("SELECT n FROM n")
        assert made.rows == [(100,)]
        assert made.timestamp < 21_000
    db.restart()
    db.db.tick()
    assert db("SELECT n FROM n").rows == [(0,)]
    for at in (31_000, 31_050, 31_099, 31_100):
        assert db(f"SELECT n FROM n AS OF {at}").rows == [(max(0, 31_099 - at),)]


def test_a_database_that_ticks_by_itself_says_that_it_has_stopped(db):
    begin(db, "20s")
    fill(db)
    db.db.close()
    db.db = Database(db.path, LocalEngine(), clock=db.clock, background=True)
    db("SELECT n FROM n")
    db.clock.set(90_000)
    deadline = monotonic() + 30
    while db.db.failure is None and monotonic() < deadline:
        sleep(0.01)
    assert isinstance(db.db.failure, DataflowExpired)
    assert "expired at" in db.db.failure.message


def test_a_regular_tick_closes_what_is_before_the_end(db):
    begin(db, "20s")
    db.set("timestamp_interval", "7s")
    db.pass_to(20_500)
    assert db("SELECT n FROM n").timestamp == 20_999


def test_a_restart_derives_what_is_inside_the_new_window(db):
    begin(db, "20s")
    fill(db)
    assert db.pending() == 0
    db.clock.set(15_000)
    db.restart()
    db.db.tick()
    assert db.pending() == 100
    assert db.expiration()[0] == 35_000
    db("DELETE FROM t WHERE id < 1050")
    db.pass_to(31_060)
    assert len(db("SELECT * FROM v").rows) == 39
    assert not db.db.check()


def test_rows_whose_end_is_beyond_can_be_deleted(db):
    begin(db, "20s")
    fill(db)
    db("DELETE FROM t WHERE id >= 1010")
    db.db.tick()
    db.clock.set(15_000)
    db.restart()
    db.pass_to(15_100)
    assert db.pending() == 10
    db.pass_to(31_005)
    assert len(db("SELECT * FROM v").rows) == 4


def stored(db: Opened, name: str = "v") -> dict:
    sql = (
        f"SELECT operator, records, pending FROM reclock.arrangement_sizes WHERE object = '{name}'"
    )
    return {operator: tuple(counts) for operator, *counts in db(sql).rows}


def test_a_process_that_runs_follows_the_offset(db):
    """Each setting gives what the decision table says for it, once, whatever was stored before."""
    begin(db, "0")
    fill(db)
    db.clock.set(1_100)
    for offset, kept in [("20s", 0), ("40s", 100), ("10s", 0), ("0", 100), ("20s", 0)]:
        db.set(OFFSET, offset)
        db("CREATE MATERIALIZED VIEW w AS SELECT id + 1 AS i FROM t WHERE mz_now() < id + 32000")
        assert stored(db, "w")["temporal"] == (kept, kept)  # at once
        db("DROP MATERIALIZED VIEW w")
        db.pass_to(db.clock.now_ms() + 100)
        assert stored(db) == {"collection": (100, 0), "errors": (0, 0), "temporal": (kept, kept)}
        expected = None if offset == "0" else 1_000 + 1_000 * int(offset[:-1])
        assert db.expiration()[0] == expected
        assert db.expiration()[2] == 100 - kept
    with pytest.raises(DataflowExpired):
        db.pass_to(21_000)
    assert not db.db.check()


def test_what_is_stored_is_told_until_the_next_tick_follows_the_offset(db):
    begin(db, "0")
    fill(db)
    db.set(OFFSET, "20s")
    said = f"{OFFSET} is 20000ms"
    assert db.expiration()[:2] == (None, f"{said}, from the next tick on")
    assert db.pending() == 100
    db.pass_to(1_100)
    assert db.expiration()[:2] == (21_000, said)
    assert db.pending() == 0


def test_a_shorter_window_that_is_over_begins_with_the_change(db):
    begin(db, "0")
    fill(db)
    db.pass_to(15_000)
    db.set(OFFSET, "5s")
    db.pass_to(15_100)
    assert db.expiration()[0] == 20_000
    assert db.pending() == 0
    db.pass_to(19_999)
    assert db("SELECT n FROM n").rows == [(100,)]


@pytest.mark.parametrize("offset", ["0", "40s", "20s"])
def test_an_offset_that_changes_while_it_is_renewed(db, offset):
    begin(db, "20s", renewal=True)
    fill(db)
    gate = Event()
    with armed({"renewal.derive.before": lambda: None if gate.is_set() else gate.wait(60)}):
        db.pass_to(19_500)
        db("INSERT INTO t VALUES (1500)")
        assert db.db._core.expirations.is_busy
        db.set(OFFSET, "30s")
        db.set(OFFSET, offset)
        gate.set()
        db.db._core.expirations.wait()
        db.pass_to(19_600)
        db.pass_to(19_700)
    db.db._core.expirations.wait()
    db.pass_to(19_800)
    assert db.pending() == 101
    for time in (31_500, 60_000):
        db.pass_to(time)
        db.db._core.expirations.wait()
    for at in (30_999, 31_005, 31_098, 31_499, 31_500):
        expected = db(f"SELECT count(*) FROM t WHERE mz_now() < id + 30000 AS OF {at}").rows
        assert db(f"SELECT n FROM n AS OF {at}").rows == expected
    assert not db.db.check()


def test_an_offset_that_was_changed_holds_for_the_next_process(db):
    begin(db, "20s")
    fill(db)
    db.set(OFFSET, "0")
    assert db.expiration()[0] == 21_000  # what is stored, before the next tick
    db.restart()
    db.pass_to(1_200)
    assert db.expiration()[0] is None
    assert db.pending() == 100
    db.set(OFFSET, "10s")
    db.restart()
    db.pass_to(1_300)
    assert db.expiration()[0] == 11_200
    assert db.pending() == 0


def test_what_does_not_expire_says_why(db):
    begin(db, "20s")
    db(
        "CREATE MATERIALIZED VIEW c AS SELECT x FROM (VALUES (1), (900000)) v (x)"
        " WHERE mz_now() < x + 100"
    )
    expiration, reason, _ = db.expiration("c")
    assert expiration is None
    assert "constant" in reason
    assert db.pending() == 1  # 900100, long after the process has expired
    db("CREATE TABLE o (id bigint) WITH (timeline = 'other')")
    db("CREATE MATERIALIZED VIEW p AS SELECT id FROM o WHERE mz_now() < id")
    db("INSERT INTO o VALUES (900000)")
    db.db.tick()
    assert db.expiration("p")[:2] == (None, "its timeline is User(other), not EpochMilliseconds")
    assert db.pending() == 2
    db("CREATE INDEX i ON v (id)")
    assert db.expiration("i")[0] == 21_000
    shown = db("EXPLAIN MATERIALIZED VIEW v").rows[0][0]
    assert shown.startswith("Expiration: 21000;")
    assert "Expiration" not in db("EXPLAIN MATERIALIZED VIEW c").rows[0][0]


def test_a_view_that_comes_after_the_end_expires_one_step_later(db):
    """The inputs' upper is beyond: with it as expiration nothing could ever be published."""
    db.set(OFFSET, "5s")
    db.set("expiration_renewal", "false")
    db.restart()
    db("CREATE TABLE t (id bigint)")
    db.pass_to(9_000)
    db("CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE mz_now() < id")
    assert db.expiration()[0] > 9_001


def test_a_subscription_that_ends_before_does_not_expire(db):
    begin(db, "20s")
    fill(db)
    query = "SELECT id + 1 FROM t WHERE mz_now() < id + 25000"
    ending = db.db.subscribe(f"SUBSCRIBE ({query}) UP TO 15000")
    later = db.db.subscribe(f"SUBSCRIBE ({query}) UP TO 90000")
    names = {int(view.up_to): view.name for view in db.db._core.world.transients.values()}
    shown = [db(f"EXPLAIN SUBSCRIBE ({query}) {end}").rows[0][0] for end in ("", "UP TO 15000")]
    assert ["Expiration: 21000;" in text for text in shown] == [True, False]
    assert db.expiration(names[15_000])[:2] == (None, "it ends at until {15000} already")
    assert db.expiration(names[90_000])[0] == 21_000
    db.pass_to(20_999)
    assert len(list(ending)) == 100
    assert next(iter(later)).diff == 1


def test_what_a_metrics_exporter_reads(db):
    begin(db, "20s")
    db("INSERT INTO t VALUES (1000), (-20000)")
    db("CREATE MATERIALIZED VIEW r WITH (REFRESH EVERY '5 s' ALIGNED TO 0) AS SELECT id FROM t")
    db.pass_to(1_500)
    core = db.db._core
    found = {made.object: made for made in expiring(core, core.world)}
    assert found["v"]._asdict() == {
        "object": "v", "expiration": 21_000, "dropped": 1, "remaining_ms": 19_500, "pending": 1,
        "reason": f"{OFFSET} is 20000ms",
    }  # fmt: skip
    assert found["r"].pending == 3  # two rows, and the end of the error before the first refresh
    assert found["r"].expiration is None
    columns = db("SELECT * FROM reclock.expirations").columns
    assert tuple(columns) == type(found["v"])._fields


def test_renewal_in_the_last_tenth_lets_a_process_live_on(db):
    begin(db, "20s", renewal=True)
    fill(db)
    db.pass_to(18_900)
    assert db.expiration()[0] == 21_000
    db.pass_to(19_100)
    core = db.db._core
    core.expirations.wait()
    db("INSERT INTO t VALUES (19000)")  # written while it is renewed
    db.pass_to(19_200)
    assert db.expiration()[0] == 39_100
    assert db.pending() == 100
    assert not core.expirations.is_busy
    for time in range(20_000, 200_000, 1_700):
        db.pass_to(time)
        core.expirations.wait()
    assert not db("SELECT * FROM v").rows
    for at in (31_000, 31_050, 31_100, 48_999, 49_000):
        expected = db(f"SELECT count(*) FROM t WHERE mz_now() < id + 30000 AS OF {at}").rows
        assert db(f"SELECT n FROM n AS OF {at}").rows == expected
    assert not db.db.check()


@pytest.mark.placed  # a renewal that is a job has parts instead
def test_a_renewal_in_small_pieces_is_one_in_one(db, monkeypatch):
    """Row by row below the filter; and with a join below it, which needs all rows at once."""
    monkeypatch.setattr(works, "PIECE_ROWS", 7)
    begin(db, "20s", renewal=True)
    db("CREATE MATERIALIZED VIEW j AS SELECT a.id FROM t a, t b WHERE a.id = b.id AND "
       "mz_now() < a.id + 31000")  # fmt: skip
    fill(db)
    pieces = []
    sliced = works.sliced
    monkeypatch.setattr(works, "sliced", lambda *a: (pieces.append(p) or p for p in sliced(*a)))
    db.pass_to(19_100)
    db.db._core.expirations.wait()
    db.pass_to(19_200)
    assert db.expiration()[0] == 39_100
    assert db.pending() == 200
    assert len(pieces) > 1
    db.pass_to(33_000)
    for at in (31_000, 31_050, 31_100):
        assert db(f"SELECT n FROM n AS OF {at}").rows == [(max(0, 31_099 - at),)]
        assert len(db(f"SELECT * FROM j AS OF {at + 1_000}").rows) == max(0, 31_099 - at)
    assert not db.db.check()


def test_a_renewal_hurries_when_half_of_the_time_has_passed(db, monkeypatch):
    monkeypatch.setattr(precedence, "REST", 10**9)
    monkeypatch.setattr(works, "PIECE_ROWS", 7)
    begin(db, "20s", renewal=True)
    fill(db)
    db.pass_to(19_100)
    (running,) = db.db._core.expirations._running.values()
    db.pass_to(20_000)
    assert not running.pace._hurried.is_set()
    db.pass_to(20_050)
    assert running.pace._hurried.is_set()
    assert running.future.exception(60) is None


@pytest.mark.parametrize("execution", [None, "loop"])
def test_what_is_written_while_it_is_renewed_is_kept_too(db, execution):
    with forced(execution, None):
        begin(db, "20s", renewal=True)
    fill(db)
    gate = Event()
    with armed({"renewal.derive.before": gate.wait}):
        db.pass_to(19_500)
        db("INSERT INTO t VALUES (1500)")
        db("DELETE FROM t WHERE id < 1010")
        db.pass_to(19_600)
        assert db.db._core.expirations.is_busy
        gate.set()
        db.db._core.expirations.wait()
    db.pass_to(19_700)
    assert not db.db._core.expirations.is_busy
    db.pass_to(38_000)
    assert db.expiration()[0] == 39_500
    for at in (30_999, 31_005, 31_009, 31_011, 31_499, 31_500):
        expected = db(f"SELECT count(*) FROM t WHERE mz_now() < id + 30000 AS OF {at}").rows
        assert db(f"SELECT n FROM n AS OF {at}").rows == expected
    assert not db("SELECT * FROM v").rows


def test_a_renewal_in_parts_is_published_as_one(db, monkeypatch):
    monkeypatch.setattr(run, "PART_ROWS", 5)
    with forced("loop", None):
        begin(db, "20s", renewal=True)
    db("INSERT INTO t SELECT 1000 + i FROM generate_series(1, 40) AS g(i)")
    db.pass_to(2_000)
    loads = []
    real = LoopEngine.run

    def noted(engine, work):
        if work.hydrating:
            loads.append(work)
        return real(engine, work)

    monkeypatch.setattr(LoopEngine, "run", noted)
    db.pass_to(20_000)
    db.db._core.expirations.wait()
    assert len(loads) == 1, "the renewal beside the tick"
    db.pass_to(20_100)
    assert db.expiration()[0] > 21_000
    for at in (20_100, 31_000, 31_010, 31_041):
        db.pass_to(at)
        expected = db.rows("SELECT id FROM t WHERE mz_now() < id + 30000")
        assert db.rows("SELECT id FROM v") == expected
    db.db._core.merger.wait()
    db.restart()
    assert db.rows("SELECT id FROM v") == expected
    assert db.db.check() == []


@pytest.mark.placed  # it waits in a piece of the driver's
def test_closing_ends_a_renewal_under_way(db, monkeypatch):
    begin(db, "20s", renewal=True)
    begun = Event()

    def endless(*_, stop=None, **__):
        begun.set()
        over = Event()
        with stop.waking(over.set):
            assert over.wait(60)
        stop.check()

    monkeypatch.setattr(db.db._engine, "hydrate", endless)
    db.pass_to(20_000)
    assert begun.wait(20)
    (running,) = db.db._core.expirations._running.values()
    db.db.close()
    assert isinstance(running.future.exception(0), Interrupted)


def test_a_clock_that_jumps_past_the_end_is_renewed_first(db):
    begin(db, "20s", renewal=True)
    fill(db)
    db.pass_to(500_000)
    assert not db("SELECT * FROM v").rows
    for at in (31_000, 31_050, 31_100):
        assert db(f"SELECT n FROM n AS OF {at}").rows == [(max(0, 31_099 - at),)]


@pytest.mark.parametrize(
    "failpoint", ["renewal.derive.before", "renewal.derive.after", "tick.publish.before"]
)
@pytest.mark.parametrize("background", [False, True])
def test_a_crash_while_renewing_loses_nothing(db, failpoint, background):
    begin(db, "20s", renewal=True)
    fill(db)
    if background:
        with armed({failpoint: "raise"}):
            with suppress(FailpointRaised):  # of the tick itself
                db.pass_to(19_500)
            db.db._core.expirations.wait()
        db("INSERT INTO t VALUES (19000)")
    else:
        with armed({failpoint: "raise"}), pytest.raises(FailpointRaised):
            db.pass_to(500_000)
    db.restart()
    db.pass_to(30_000)
    db.pass_to(600_000)
    for at in (31_000, 31_050, 31_100, 48_999, 49_000):
        expected = db(f"SELECT count(*) FROM t WHERE mz_now() < id + 30000 AS OF {at}").rows
        assert db(f"SELECT n FROM n AS OF {at}").rows == expected
    assert not db.db.check()


def test_a_world_that_is_read_again_while_renewing_renews_again(db):
    begin(db, "20s", renewal=True)
    fill(db)
    db.pass_to(19_500)
    db("INSERT INTO t VALUES (19000)")
    with armed({"durable.commit.after": "raise"}), pytest.raises(FailpointRaised):
        db.pass_to(19_600)
    db.db._core.expirations.wait()
    for time in (19_700, 19_800, 25_000, 60_000):
        db.pass_to(time)
        db.db._core.expirations.wait()
    for at in (31_000, 31_050, 48_999, 49_000):
        expected = db(f"SELECT count(*) FROM t WHERE mz_now() < id + 30000 AS OF {at}").rows
        assert db(f"SELECT n FROM n AS OF {at}").rows == expected


VIEWS = {
    "v": "SELECT id, b, e FROM t WHERE mz_now() BETWEEN b AND e",
    "a": "SELECT id, count(*) AS n, max(e) AS m FROM t WHERE mz_now() < e GROUP BY id",
    "j": "SELECT t.id, u.e FROM t JOIN u ON t.id = u.id AND mz_now() >= t.b AND mz_now() <= u.e",
    "o": "SELECT id FROM t WHERE mz_now() < b OR mz_now() >= e",
    "w": "SELECT id, e FROM v WHERE mz_now() >= b + 3",
}


def check(seed: int, path: Path) -> None:
    random = Random(seed)
    db = Opened(path)
    db("CREATE TABLE t (id int, b bigint, e bigint)")
    db("CREATE TABLE u (id int, e bigint)")
    waiting = list(VIEWS)
    created: dict[str, int] = {}
    probes: set[int] = set()
    time = 1_000

    def act() -> None:
        match random.randrange(9):
            case 0 | 1 if waiting:
                name = waiting[0]
                db(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
                created[waiting.pop(0)] = db(f"SELECT 1 FROM {name}").timestamp
            case 2 | 3:
                bounds = [random.choice(["NULL", time + random.randint(-9, 90)]) for _ in range(3)]
                db(f"INSERT INTO t VALUES ({random.randint(0, 2)}, {bounds[0]}, {bounds[1]})")
                db(f"INSERT INTO u VALUES ({random.randint(0, 2)}, {bounds[2]})")
                probes.update(b + more for b in bounds if b != "NULL" for more in (0, 1))
            case 4:
                db(f"DELETE FROM {random.choice('tu')} WHERE id = {random.randint(0, 2)}")
            case 5:
                db.set(OFFSET, random.choice(["0", "15ms", "40ms", "120ms"]))
                db.set("expiration_renewal", random.choice(["true", "true", "false"]))
                if random.random() < 0.5:
                    db.restart()
            case 6 if random.random() < 0.5:
                db.restart()
            case _:
                db.db.tick()
                if random.random() < 0.5:
                    db.db._core.expirations.wait()

    while waiting or time < 1_200:
        time += random.choice([1, 2, 10, 30])
        db.clock.set(time)
        try:
            act()
        except DataflowExpired:
            db.restart()
    db.restart()
    db.pass_to(time + 1)
    db.set("expiration_renewal", "true")
    db.restart()
    db.pass_to(time + 100)
    for name, text in VIEWS.items():
        kept = sorted({t for t in probes if created[name] < t < time + 100} | {created[name]})
        for at in random.sample(kept, min(len(kept), 12)):
            expected = db.rows(f"{text} AS OF {at}")
            assert db.rows(f"SELECT * FROM {name} AS OF {at}") == expected, (seed, name, at)
    assert not db.db.check()
    db.db.close()


@pytest.mark.parametrize("seed", range(6))
def test_random_histories_with_expiration_are_those_without(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(works, "PIECE_ROWS", 2 + seed)
    check(seed, tmp_path)


@pytest.mark.parametrize("seed", range(100, 104))
def test_random_histories_in_parts_are_those_without(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "PART_ROWS", 3)
    monkeypatch.setattr(rules, "PART_ROWS", 3)
    with forced("loop", None):
        check(seed, tmp_path)


@pytest.mark.slow(seconds=3)
@pytest.mark.parametrize("seed", range(6, 120))
def test_more_random_histories_with_expiration_are_those_without(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(works, "PIECE_ROWS", 2 + seed % 5)
    check(seed, tmp_path)


BOUNDS = {
    "until": ("mz_now() < id + {1}", (1,)),
    "from": ("mz_now() >= id + {0}", (0,)),
    "between": ("mz_now() >= id + {0} AND mz_now() < id + {1}", (0, 1)),
}


class Waiting:
    """A view with temporal bounds, or an index on one, and what must be stored for it.

    ``due`` are the times of the updates that wait for each row, by when the row came.
    """

    def __init__(self, db: Opened, name: str, random: Random, given: dict[int, int]) -> None:
        self.db, self.name = db, name
        condition, which = BOUNDS[random.choice(sorted(BOUNDS))]
        alone = random.randrange(500)  # views with equal filters share what waits
        widths = (
            random.choice([0, 2_000, 20_000]) + alone,
            random.choice([20_500, 50_000]) + alone,
        )
        self.widths = [widths[n] for n in which]
        kind = random.choice(["MATERIALIZED VIEW", "VIEW"])
        self.kept = name if kind == "MATERIALIZED VIEW" else f"{name}_id"
        self.kind = kind
        db(f"CREATE {kind} {name} AS SELECT id FROM t WHERE {condition.format(*widths)}")
        if kind == "VIEW":
            db(f"CREATE INDEX {self.kept} ON {name} (id)")
        self.came = dict.fromkeys(given, db.upper(self.kept) - 1)

    def drop(self) -> None:
        self.db(f"DROP {self.kind} {self.name}{' CASCADE' if self.kind == 'VIEW' else ''}")

    def check(self, given: dict[int, int], where: object) -> None:
        """What waits is there once; of what has come, no more than had to wait."""
        upper, end = self.db.upper(self.kept), self.db.expiration(self.kept)[0] or 2**62
        due = [(came, n + width) for n, came in self.times(given) for width in self.widths]
        waiting = sum(upper <= time < end for _, time in due)
        passed = sum(came < time < upper for came, time in due)
        records, pending = stored(self.db, self.kept).get("temporal", (0, 0))
        assert pending == waiting, (where, self.name, end)
        assert records - pending <= passed, (where, self.name, end)

    def times(self, given: dict[int, int]) -> list[tuple[int, int]]:
        return [(n, max(came, self.came.get(n, came))) for n, came in given.items()]


def check_stored(seed: int, path: Path) -> None:
    """Whatever was set, with one bound and with two, each update that waits is there once.

    Those are the bounds of every row that have not come, before the end that the table gives; of
    views and of indexes on views, made before and after rows and settings.
    """
    random = Random(seed)
    db = Opened(path)
    db("CREATE TABLE t (id bigint)")
    given: dict[int, int] = {}
    views = [Waiting(db, f"v{n}", random, given) for n in range(2)]
    db.set("expiration_renewal", random.choice(["true", "false"]))

    def act() -> None:
        match random.choice(["settings", "settings", "insert", "restart", "view", "pass"]):
            case "settings":
                for _ in range(random.choice([1, 1, 3])):
                    db.set(OFFSET, random.choice(["0", "3s", "20s", "40s", "10min"]))
            case "insert":
                now = db.clock.now_ms()
                new = {now + random.randint(-2_000, 3_000) for _ in range(20)} - given.keys()
                written = db(f"INSERT INTO t VALUES {', '.join(f'({n})' for n in new)}").timestamp
                given.update(dict.fromkeys(new, int(written)))
            case "restart":
                db.restart()
            case "view":
                if len(views) == 4:
                    views.pop(random.randrange(4)).drop()
                views.append(Waiting(db, f"w{db.clock.now_ms()}", random, given))
        db.pass_to(db.clock.now_ms() + random.choice([1, 100, 2_500]))
        db.db._core.expirations.wait()
        db.pass_to(db.clock.now_ms() + 1)

    for step in range(14):
        try:
            act()
        except DataflowExpired:
            db.restart()
            db.pass_to(db.clock.now_ms() + 1)
        for view in views:
            view.check(given, (seed, step))
    assert not db.db.check()
    db.db.close()


@pytest.mark.parametrize("seed", range(3))
def test_what_waits_is_stored_once_whatever_was_set(seed, tmp_path):
    check_stored(seed, tmp_path)


@pytest.mark.parametrize("seed", range(100, 102))
def test_what_waits_is_stored_once_by_jobs_too(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "PART_ROWS", 3)
    with forced("loop", None):
        check_stored(seed, tmp_path)


@pytest.mark.slow(seconds=2)
@pytest.mark.parametrize("seed", range(3, 60))
def test_what_waits_is_stored_once_more_often(seed, tmp_path):
    check_stored(seed, tmp_path)
