"""CDCv2 whose updates wait in files: what the driver has of them, and when files go."""

from __future__ import annotations

from contextlib import suppress

import pytest

from engines.task_engine import LoopEngine
from reclock.catalog.item import Source
from reclock.engine.place import segments_of
from reclock.errors import Error
from reclock.ingest.cdcv2 import closed_times
from reclock.testing.failpoints import NAMES, FailpointRaised, armed

POINTS = [n for n in NAMES if n.startswith(("durable.", "tick.", "ingest.", "arrangement."))]
MANY = [(n, "a") for n in range(40)]


def updates(*rows):
    made = [{"data": {"id": i, "x": x}, "time": t, "diff": d} for i, x, t, d in rows]
    return {"array": made}


def progress(lower, upper, *counts):
    made = [{"time": t, "count": n} for t, n in counts]
    return {"progress": {"lower": [lower], "upper": [upper], "counts": made}}


def at(time, rows, diff=1):
    return [(*row, time, diff) for row in rows]


@pytest.fixture
def tasked(opener, make_feed, monkeypatch):
    """A feed whose messages tasks read, in pieces of a few updates."""
    monkeypatch.setattr("reclock.ingest.shares.SLICE", 3)
    monkeypatch.setattr("reclock.ingest.shares.LEAST", 2)
    opener.engine = lambda: LoopEngine(segments_of(opener.path))
    return make_feed(opener)


def intake(feed):
    (source,) = feed.db._core.world.catalog.of_kind(Source)
    return feed.db._core.intakes[source.id]


def files(feed):
    return {name for name in feed.db._core.segments.names() if name.startswith("staged-")}


def waiting(feed):
    return (
        files(feed)
        & feed.db._core.world.of(*feed.db._core.world.catalog.of_kind(Source))
        .bindings[next(iter(feed.db._core.world.catalog.of_kind(Source))).id]
        .segments
    )


def test_updates_wait_in_files_through_restarts_and_never_come_to_the_driver(tasked):
    tasked.create()
    tasked.send(updates((100, "z", 3, 1)), progress(0, 5, (3, 1)))
    for some in (MANY[:20], MANY[10:25]):  # some of them twice, in other pieces
        tasked.send(updates(*at(7, some)))
    tasked.tick(1_000)
    assert tasked.rows("SELECT count(*) FROM cdc") == [(1,)]
    said = intake(tasked).statements
    assert (said.size, said.waiting) == (0, 35)
    assert waiting(tasked)
    tasked.crash()
    assert (intake(tasked).statements.size, intake(tasked).statements.waiting) == (0, 35)
    tasked.send(progress(5, 9, (7, 40)))
    tasked.tick(1_000)
    assert tasked.status() == ("waiting", "time 7 lacks 5 of 40 updates; 35 updates wait")
    tasked.send(updates(*at(7, MANY[25:35])))  # as many as are counted, but not all of them
    tasked.tick(1_000)
    assert tasked.rows("SELECT count(*) FROM cdc") == [(1,)]
    tasked.send(updates(*at(7, MANY[35:])))
    tasked.tick(1_000)
    assert tasked.rows("SELECT count(*), sum(id) FROM cdc") == [(41, 100 + sum(range(40)))]
    taken = "SELECT rows, driver_rows FROM reclock.ticks WHERE phase = 'gather'"
    every, of_driver = max(tasked.db.execute(taken).rows)
    assert every >= 40
    assert of_driver < 10  # what is said of times
    assert not waiting(tasked)
    assert files(tasked) <= tasked.db._core.named()  # its rows are adopted
    assert tasked.db.check() == []
    tasked.crash()
    assert tasked.rows("SELECT count(*) FROM cdc AS OF 6") == [(1,)]
    assert intake(tasked).statements.waiting == 0


@pytest.mark.slow(seconds=2)
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_anywhere_changes_nothing(tasked, point, waits):
    """In the tick that publishes that updates wait, or in the one that closes their time."""
    tasked.create()
    messages = [
        [updates((100, "z", 3, 1)), progress(0, 5, (3, 1)), updates(*at(7, MANY[:25]))],
        [updates(*at(7, MANY[20:])), updates((100, "z", 8, -1)), progress(5, 9, (7, 40), (8, 1))],
    ]
    for dies, some in zip((waits, not waits), messages, strict=True):
        tasked.send(*some)
        with suppress(FailpointRaised, Error), armed({point: "raise"} if dies else {}):
            tasked.tick(1_000)
        if dies:
            tasked.crash()
            tasked.tick(1_000)
            tasked.tick(1_000)
    counts = [tasked.rows(f"SELECT count(*), max(id) FROM cdc AS OF {time}") for time in range(9)]
    assert counts == [[(0, None)]] * 3 + [[(1, 100)]] * 4 + [[(41, 100)], [(40, 39)]]
    tasked.crash()
    tasked.tick(1_000)
    assert tasked.db.check() == []
    assert not waiting(tasked)
    assert files(tasked) <= tasked.db._core.named()


def test_a_time_may_lie_in_files_and_in_memory(tasked, monkeypatch):
    tasked.create()
    tasked.send(updates(*at(3, MANY[:20])))
    tasked.tick(1_000)
    monkeypatch.setattr(LoopEngine, "least", 1_000)  # the driver reads the rest
    tasked.send(updates(*at(3, MANY[15:])), b"garbage", progress(0, 5, (3, 40)))
    tasked.tick(1_000)
    assert intake(tasked).statements.waiting == 0
    with pytest.raises(Error, match="offset"):
        tasked.rows("SELECT * FROM cdc")
    assert tasked.rows("SELECT upper FROM reclock.frontiers WHERE object = 'cdc'") == [(5,)]


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        (
            [updates((1, "a", 5, 1)), updates((1, "a", 5, 2)), progress(4, 6, (5, 2))],
            (
                "two diffs are stated for the same data at time 5",
                "the data is (1, 'a')",
            ),
        ),
        (
            [updates((8, "a", 5, 1)), updates((9, "a", 5, 1)), progress(4, 6, (5, 1))],
            (
                "more updates are stated for time 5 than are counted",
                "2 updates, counted 1",
            ),
        ),
        (
            [updates((7, "b", 5, -1)), updates((1, "a", 5, -1)), progress(4, 6, (5, 2))],
            (
                "a row is taken away at time 5 that is not there",
                "the row is (7, 'b'); it would be there -1 times",
            ),
        ),
        (
            [updates((1, "a", 3, 1)), updates((9, "a", 3, 1)), updates((5, "a", 9, 1))],
            (
                "an update is stated for time 3 after it was complete",
                "it was complete with 1 others; the data is (9, 'a'); "
                'source "cdc", partition 0, offset 3',
            ),
        ),
        (
            [updates((9, "a", 2, 1)), updates((5, "a", 9, 1))],
            (
                "an update is stated for time 2 after it was complete",
                "it was complete without updates; the data is (9, 'a'); "
                'source "cdc", partition 0, offset 2',
            ),
        ),
        (
            [progress(4, 6, (5, 1)), updates((5, "a", 9, 1)), progress(5, 6, (5, 2))],
            (
                "two counts are stated for time 5",
                '1 updates, and 2; source "cdc", partition 0, offset 4',
            ),
        ),
    ],
)
def test_a_contradiction_ends_the_source_as_that_of_the_driver(
    tasked, make_opener, make_feed, messages, told
):
    said, facts = told
    found = []
    for feed in (tasked, make_feed(make_opener())):
        feed.create()
        feed.send(updates((1, "a", 3, 1)), progress(0, 4, (3, 1)))
        feed.tick(1_000)
        feed.send(*messages)
        for _ in range(2):
            feed.tick(1_000)
            with pytest.raises(Error) as caught:
                feed.rows("SELECT * FROM cdc")
            error = caught.value
            found.append((error.code, error.message, error.detail, error.hint, feed.status()))
            assert feed.rows("SELECT * FROM cdc AS OF 3") == [(1, "a")]
            feed.crash()
        assert feed.db.check() == []
    assert len(set(found)) == 1
    assert found[0][1] == f'source "cdc" contradicts itself: {said}'
    assert found[0][2].startswith(facts)
    assert not waiting(tasked)


def test_what_comes_while_a_tick_looks_is_checked_when_it_is_published(tasked):
    """Against what was published: a repetition says nothing, another update is a contradiction."""
    tasked.create()
    tasked.send(updates((1, "a", 3, 1)), progress(0, 4, (3, 1)))
    own = intake(tasked)
    own.pull()
    look, came = own._look, []

    def looking(*given):
        taken = look(*given)
        if not came:
            came.append(None)
            tasked.send(updates((1, "a", 3, 1)), updates((2, "b", 3, 1)))
            own.pull()
        return taken

    own._look = looking
    tasked.tick(1_000)
    assert tasked.rows("SELECT * FROM cdc") == [(1, "a")]
    tasked.tick(1_000)
    with pytest.raises(Error, match="an update is stated for time 3 after it was complete"):
        tasked.rows("SELECT * FROM cdc")


def test_reading_stops_where_ticks_have_enough_but_a_large_time_is_read_whole(tasked):
    tasked.create(options="max_rows_per_tick = 10, RETAIN HISTORY FOR '1 h'")
    tasked.send(progress(0, 20, (3, 40), *((t, 5) for t in range(5, 15))))
    tasked.send(*(updates(*at(3, MANY[n : n + 4])) for n in range(0, 40, 4)))
    tasked.send(*(updates(*at(t, [(100 * t + n, "b") for n in range(5)])) for t in range(5, 15)))
    most = []
    for _ in range(14):
        while intake(tasked).pull():
            pass
        most.append(intake(tasked).statements.waiting)
        tasked.tick(1_000)
    assert most[0] >= 40
    assert max(most[1:]) <= 40
    assert tasked.rows("SELECT count(*) FROM cdc") == [(90,)]
    assert tasked.rows("SELECT count(*) FROM cdc AS OF 5") == [(45,)]
    assert tasked.status() == ("running", None)


def test_messages_of_many_updates_are_much(tasked, monkeypatch):
    monkeypatch.setattr(LoopEngine, "least", 30)
    tasked.create()
    for first, by_tasks in ((0, False), (20, True)):
        for n in range(first, first + 20):
            tasked.send(updates(*at(3, [(100 * n + i, "b") for i in range(5)])))
        tasked.tick(1_000)
        assert bool(intake(tasked).statements.staged.pieces) == by_tasks
    tasked.send(progress(0, 5, (3, 200)))
    tasked.tick(1_000)
    assert tasked.rows("SELECT count(*) FROM cdc") == [(200,)]


def test_tasks_go_on_where_the_driver_finds_out_that_there_is_much(tasked, monkeypatch):
    monkeypatch.setattr(LoopEngine, "least", 30)
    monkeypatch.setattr("reclock.ingest.intake.PULL_BYTES", 1)
    tasked.create()
    for n in range(20):
        tasked.send(updates(*at(3, [(100 * n + i, "b") for i in range(5)])), partition=n % 2)
    own = intake(tasked)
    assert own.pull()
    of_driver = own.statements.waiting
    assert 0 < of_driver < 100
    assert own._reading is None
    while own.pull():
        pass
    assert own.statements.staged.waiting >= 30
    assert own.statements.waiting == 100
    tasked.send(progress(0, 5, (3, 100)))
    tasked.tick(1_000)
    assert tasked.rows("SELECT count(*) FROM cdc") == [(100,)]


def test_a_source_that_is_dropped_leaves_no_file(tasked):
    tasked.create()
    tasked.send(updates((100, "z", 3, 1)), progress(0, 5, (3, 1)), updates(*at(7, MANY)))
    tasked.tick(1_000)
    assert waiting(tasked)
    tasked.db.execute("DROP SOURCE cdc")
    tasked.db.execute("CREATE TABLE t (a INT)")
    tasked.db.execute("INSERT INTO t VALUES (1)")
    tasked.tick(1_000)
    assert not files(tasked)
    tasked.crash()
    assert [c.collection for c in tasked.db._store.collections("held/")] == []


def test_what_tasks_have_read_too_late_to_be_checked_is_said(tasked, monkeypatch):
    monkeypatch.setattr(closed_times, "TIMES", 3)
    tasked.create()
    for time in range(8):
        tasked.send(updates(*at(time, [MANY[time]])), progress(time, time + 1, (time, 1)))
        tasked.tick(1_000)
    tasked.send(updates(*at(1, MANY[:20])))
    tasked.tick(1_000)
    state, said = tasked.status()
    assert state == "running"
    assert said.startswith("20 late updates were left out unchecked")
    tasked.send(updates(*at(6, MANY[:20])))
    tasked.tick(1_000)
    assert tasked.status()[0] == "failed"
