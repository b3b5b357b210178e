"""SUBSCRIBE: what it follows, from when to when, how it waits, and how it ends."""

from __future__ import annotations

import gc
import threading
from time import monotonic, sleep

import pytest

from reclock.engine import object_changes as changes
from reclock.errors import (
    ExpressionFailed,
    InvalidSyntax,
    InvalidTransactionState,
    InvalidValue,
    NotSupported,
    TimelineMismatch,
    UndefinedName,
    Unreadable,
)
from reclock.testing.failpoints import FailpointRaised, armed

TOTALS = "SELECT a, count(*) AS n FROM t GROUP BY a"


@pytest.fixture
def shop(db):
    db.execute("ALTER SYSTEM SET logical_compaction_window = '10s'")
    db.execute("CREATE TABLE t (k INT, a INT)")
    db.execute(f"CREATE MATERIALIZED VIEW m AS {TOTALS}")
    db.execute("INSERT INTO t VALUES (1, 10), (2, 10)")
    db.tick()
    return db


def plain(updates):
    return [(u.diff, u.row) for u in updates]


def state(db):
    return next(s for s in db._core.world.timelines.values() if s.shape.graph.tables)


def holds(db):
    return [(r[0], r[1]) for r in db.execute("SELECT * FROM reclock.holds").rows]


def leftovers(db):
    return db._core.world.transients, holds(db), db.check()


NOTHING = ({}, [], [])


@pytest.mark.parametrize("what", ["m", f"({TOTALS})", "v", "(SELECT * FROM v)"])
def test_snapshot_then_changes_each_at_its_own_time(shop, what):
    shop.execute(f"CREATE VIEW v AS {TOTALS}")
    with shop.subscribe(f"SUBSCRIBE TO {what}") as sub:
        assert plain(sub) == [(1, (10, 2))]
        first = shop.execute("INSERT INTO t VALUES (3, 10)").timestamp
        second = shop.execute("INSERT INTO t VALUES (4, 11)").timestamp
        found = sorted(sub, key=lambda u: (u.timestamp, u.diff))
        assert [(u.timestamp, u.diff, u.row) for u in found] == [
            (first, -1, (10, 2)), (first, 1, (10, 3)), (second, 1, (11, 1)),
        ]  # fmt: skip
    assert sub.closed
    assert leftovers(shop) == NOTHING


def test_its_times_may_be_parameters(shop, opener):
    first = shop.execute("INSERT INTO t VALUES (3, 10)").timestamp
    opener.clock.advance(1_000)
    shop.execute("INSERT INTO t VALUES (4, 11)")
    for what in ("m", "(SELECT a, n FROM m WHERE a > $3)"):
        sql = f"SUBSCRIBE {what} AS OF $2 UP TO $1"
        with shop.subscribe(sql, (first + 1, first - 1, 0)) as sub:
            assert sorted(plain(sub), key=str) == [(-1, (10, 2)), (1, (10, 2)), (1, (10, 3))]
        lines = shop.copy(f"COPY ({sql}) TO STDOUT", (first + 1, first - 1, 0))
        assert len(list(lines)) == 3
    assert leftovers(shop) == NOTHING


@pytest.mark.parametrize("what", ["m", f"({TOTALS})"])
def test_it_ends_with_its_session(shop, what):
    session, other = shop.session(), shop.session()
    subs = [session.subscribe(f"SUBSCRIBE {what}") for _ in range(2)]
    lines = session.copy(f"COPY (SUBSCRIBE {what}) TO STDOUT")
    assert plain(subs[0]) == [(1, (10, 2))]
    assert next(lines).endswith("\t1\t10\t2\n")
    with other.subscribe(f"SUBSCRIBE {what}") as kept:
        session.close()
        assert all(sub.closed for sub in subs)
        assert [sub.fetch() for sub in subs] == [[], []]
        assert list(lines) == []
        assert not kept.closed
        assert len(holds(shop)) == 1
    assert leftovers(shop) == NOTHING


def test_who_waits_for_it_is_woken_when_its_session_is_closed(opener):
    db = opener(background=True)
    db.execute("CREATE TABLE t (a INT)")
    session = db.session()
    sub = session.subscribe("SUBSCRIBE t")
    got = []
    reader = threading.Thread(target=lambda: got.extend(sub))
    reader.start()
    session.close()
    reader.join(20)
    assert not reader.is_alive()
    assert got == []
    assert sub.closed


def test_rows_are_consolidated_and_have_multiplicities(shop):
    with shop.subscribe("SUBSCRIBE t WITH (SNAPSHOT = false)") as sub:
        shop.execute("INSERT INTO t VALUES (5, 5), (5, 5)")
        shop.execute("DELETE FROM t WHERE k = 5")
        assert plain(sub) == [(2, (5, 5)), (-2, (5, 5))]


def test_first_progress_is_the_as_of_then_every_move_of_time(shop, opener):
    for snapshot in ("true", "false"):
        with shop.subscribe(f"SUBSCRIBE m WITH (SNAPSHOT = {snapshot}, PROGRESS)") as sub:
            *rows, first = list(sub)
            assert plain(rows) == ([(1, (10, 2))] if snapshot == "true" else [])
            assert (first.progressed, first.timestamp) == (True, sub.as_of)
            opener.clock.advance(3_000)
            (moved,) = sub
            assert (moved.progressed, moved.timestamp) == (True, state(shop).upper - 1)
            assert (moved.diff, moved.row) == (None, None)


def test_columns_are_those_of_materialize(shop):
    def columns(sql):
        with shop.subscribe(sql) as sub:
            return sub.columns, [sub.values(u) for u in sub]

    names, rows = columns("SUBSCRIBE m WITH (PROGRESS)")
    assert names == ("mz_timestamp", "mz_progressed", "mz_diff", "a", "n")
    assert [r[1:] for r in rows] == [(False, 1, 10, 2), (True, None, None, None)]
    names, rows = columns("SUBSCRIBE m ENVELOPE UPSERT (KEY (a))")
    assert names == ("mz_timestamp", "mz_state", "a", "n")
    assert [r[1:] for r in rows] == [("upsert", 10, 2)]
    names, rows = columns("SUBSCRIBE m ENVELOPE DEBEZIUM (KEY (a))")
    assert names == ("mz_timestamp", "mz_state", "a", "before_n", "after_n")
    assert [r[1:] for r in rows] == [("insert", 10, None, 2)]


def test_keys_that_are_not_unique_are_reported_also_when_rows_come_one_by_one(shop):
    with shop.subscribe("SUBSCRIBE t ENVELOPE UPSERT (KEY (k))") as sub:
        assert sorted((u.state, u.row) for u in sub) == [("upsert", (1, 10)), ("upsert", (2, 10))]
        for sql, expected in (
            ("INSERT INTO t VALUES (1, 11)", ("key_violation", (1, None))),
            ("DELETE FROM t WHERE k = 1 AND a = 11", ("upsert", (1, 10))),
            ("INSERT INTO t VALUES (1, 10)", ("key_violation", (1, None))),
            ("DELETE FROM t WHERE k = 1", ("delete", (1, None))),
        ):
            shop.execute(sql)
            assert [(u.state, u.row) for u in sub] == [expected]


def test_order_within_a_timestamp(shop):
    shop.execute("INSERT INTO t VALUES (5, NULL), (4, 7), (6, 7)")
    with shop.subscribe("SUBSCRIBE t WITHIN TIMESTAMP ORDER BY a DESC NULLS LAST, k DESC") as sub:
        assert [u.row for u in sub] == [(2, 10), (1, 10), (6, 7), (4, 7), (5, None)]
    with shop.subscribe(
        "SUBSCRIBE t WITH (SNAPSHOT = false) WITHIN TIMESTAMP ORDER BY mz_diff"
    ) as s:
        shop.execute("UPDATE t SET a = 8 WHERE k = 4")
        assert plain(s) == [(-1, (4, 7)), (1, (4, 8))]


def test_up_to_is_where_it_ends(shop):
    now = state(shop).upper
    with shop.subscribe(f"SUBSCRIBE t WITH (PROGRESS) UP TO {now + 3}") as sub:
        for n in range(5):
            shop.execute("INSERT INTO t VALUES ($1, 0)", (n,))
        found = list(sub)
        assert sub.closed
        assert max(u.timestamp for u in found) == now + 2
        assert found[-1].progressed
    assert leftovers(shop) == NOTHING


def test_bounds_that_leave_nothing(shop):
    now = int(shop.execute("SELECT * FROM t").timestamp)
    with shop.subscribe(f"SUBSCRIBE t AS OF {now} UP TO {now}") as sub:
        assert list(sub) == []
        assert sub.closed
    with pytest.raises(InvalidValue, match="UP TO"):
        shop.subscribe(f"SUBSCRIBE t AS OF {now} UP TO {now - 1}")
    assert leftovers(shop) == NOTHING


def test_constants_are_complete(shop):
    with shop.subscribe("SUBSCRIBE (SELECT $1 AS a UNION ALL SELECT 2)", (1,)) as sub:
        assert sorted(plain(sub)) == [(1, (1,)), (1, (2,))]
        assert sub.closed


def test_a_materialized_constant_is_complete_too(shop):
    shop.execute("CREATE MATERIALIZED VIEW one AS SELECT 1 AS x")
    with shop.subscribe("SUBSCRIBE one WITH (PROGRESS)") as sub:
        (row, progress) = sub
        assert (row.row, row.diff, progress.timestamp) == ((1,), 1, sub.as_of)
        assert sub.closed


def test_a_time_that_is_forgotten_is_refused_with_every_since(shop, opener):
    opener.clock.advance(60_000)
    shop.execute("CREATE TABLE other (k INT); SELECT * FROM t")
    for what in ("t", "(SELECT t.a FROM t JOIN other ON t.k = other.k)"):
        with pytest.raises(Unreadable) as caught:
            shop.subscribe(f"SUBSCRIBE {what} AS OF 1001")
        assert "t has since" in caught.value.detail
    assert "other has since" in caught.value.detail
    assert leftovers(shop) == NOTHING


def test_a_future_time_is_waited_for(shop, opener):
    later = state(shop).upper + 5_000
    with shop.subscribe(f"SUBSCRIBE t AS OF {later}") as sub:
        assert list(sub) == []
        shop.execute("INSERT INTO t VALUES (9, 9)")
        assert list(sub) == []
        opener.clock.advance(20_000)
        assert sorted(plain(sub)) == [(1, (1, 10)), (1, (2, 10)), (1, (9, 9))]


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SUBSCRIBE nowhere", UndefinedName),
        ("SELECT 1", InvalidSyntax),
        ("SUBSCRIBE t ENVELOPE UPSERT (KEY (x))", UndefinedName),
        ("SUBSCRIBE t ENVELOPE UPSERT (KEY (k, k))", UndefinedName),
        ("SUBSCRIBE t WITHIN TIMESTAMP ORDER BY k + 1", NotSupported),
        ("SUBSCRIBE (SELECT a, row_number() OVER (ORDER BY k) AS r FROM t)", NotSupported),
        ("SUBSCRIBE (SELECT now() AS x FROM t)", Exception),
        ("SUBSCRIBE (SELECT t.a FROM t, far)", TimelineMismatch),
    ],
)
def test_what_cannot_be_followed_is_refused_and_leaves_nothing(shop, sql, error):
    shop.execute("CREATE TABLE far (a INT) WITH (timeline = 'far')")
    with pytest.raises(error):
        shop.subscribe(sql)
    assert leftovers(shop) == NOTHING


def test_statements_that_need_a_method_of_their_own_say_so(shop):
    for sql in ("SUBSCRIBE t", "COPY (SELECT 1) TO STDOUT"):
        with pytest.raises(NotSupported) as caught:
            shop.execute(sql)
        assert "(…)" in caught.value.hint
    with shop.session() as session:
        session.execute("BEGIN")
        with pytest.raises(InvalidTransactionState):
            session.subscribe("SUBSCRIBE t")


def test_an_error_ends_it_after_all_times_before(shop):
    for what in ("e", "(SELECT 10 / a AS x FROM t)"):
        shop.execute("CREATE MATERIALIZED VIEW e AS SELECT 10 / a AS x FROM t")
        sub = shop.subscribe(f"SUBSCRIBE {what} WITH (PROGRESS)")
        assert [u.row for u in sub][:-1] == [(1,)]
        fine = shop.execute("INSERT INTO t VALUES (3, 5)").timestamp
        shop.execute("INSERT INTO t VALUES (4, 0)")
        got = []
        with pytest.raises(ExpressionFailed) as caught:
            got.extend(iter_into(sub, got))
        assert caught.value.code == "22012"
        assert [(u.timestamp, u.diff, u.row) for u in got if not u.progressed] == [(fine, 1, (2,))]
        assert sub.closed
        shop.execute("DELETE FROM t WHERE a IN (0, 5); DROP MATERIALIZED VIEW e")
        assert leftovers(shop) == NOTHING


def iter_into(sub, got):
    for u in sub:
        got.append(u)
    return []


def test_an_error_at_the_beginning_is_told(shop):
    shop.execute("INSERT INTO t VALUES (4, 0)")
    with pytest.raises(ExpressionFailed):
        list(shop.subscribe("SUBSCRIBE (SELECT 10 / a AS x FROM t) WITH (SNAPSHOT = false)"))
    assert leftovers(shop) == NOTHING


@pytest.mark.parametrize("what", ["m", "(SELECT * FROM m WHERE n > 0)", "v"])
def test_dropping_what_is_followed_ends_it_with_an_error(shop, what):
    shop.execute("CREATE VIEW v AS SELECT sum(n) AS s FROM m")
    sub = shop.subscribe(f"SUBSCRIBE {what}")
    assert len(list(sub)) == 1
    shop.execute("DROP MATERIALIZED VIEW m CASCADE")
    with pytest.raises(UndefinedName, match="dropped") as caught:
        list(sub)
    assert "m" in caught.value.message
    assert leftovers(shop) == NOTHING


def test_identical_queries_are_kept_once(shop):
    first = shop.subscribe("SUBSCRIBE (SELECT sum(a) AS x FROM t)")
    second = shop.subscribe("SUBSCRIBE (SELECT sum(a) AS y FROM t)")
    assert len(shop._core.world.transients) == 1
    first.close()
    assert len(shop._core.world.transients) == 1
    assert plain(second) == [(1, (20,))]
    second.close()
    second.close()
    assert leftovers(shop) == NOTHING


def test_a_hold_follows_the_reader_and_nothing_else(shop, opener):
    sub = shop.subscribe("SUBSCRIBE t")
    list(sub)
    for n in range(30):
        opener.clock.advance(1_000)
        shop.execute("INSERT INTO t VALUES ($1, 1)", (100 + n,))
        shop.tick()
        shop._core.merger.wait()
    item = shop._core.world.catalog.find(("t",)).id
    assert state(shop).sinces[item].element() <= sub.as_of + 2
    assert len(list(sub)) == 30
    opener.clock.advance(60_000)
    shop.tick()
    assert state(shop).sinces[item].element() > sub.as_of + 2
    assert shop.check() == []


def test_a_slow_subscriber_gets_bounded_pieces_of_whole_times(shop, monkeypatch):
    monkeypatch.setattr(changes, "STEP_ROWS", 4)
    sub = shop.subscribe("SUBSCRIBE t WITH (PROGRESS)")
    list(sub)
    expected = []
    for n in range(12):
        rows = [(n, i) for i in range(1 + n % 7)]
        shop.insert("t", rows)
        expected.append(sorted(rows))
        if n % 2:
            shop.tick()
            shop._core.merger.wait()
    found, size = {}, 0
    while got := sub.fetch():
        times = {u.timestamp for u in got if not u.progressed}
        assert len(times) <= 1 or len(got) <= 5
        size = max(size, len(got))
        for u in got:
            if not u.progressed:
                found.setdefault(u.timestamp, []).append(u.row)
    assert [sorted(rows) for _, rows in sorted(found.items())] == expected
    assert list(found) == sorted(found)
    assert size < 10


def test_fetch_gives_what_is_there_in_parts_if_asked(shop):
    with shop.subscribe("SUBSCRIBE t") as sub:
        assert len(sub.fetch(limit=1)) == 1
        assert len(sub.fetch()) == 1
        assert sub.fetch() == []
        assert not sub.closed


@pytest.mark.parametrize("progress", [False, True])
def test_fetch_never_divides_a_time(shop, monkeypatch, progress):
    monkeypatch.setattr(changes, "STEP_ROWS", 4)
    pieces = in_pieces(monkeypatch)
    shop.insert("t", [(n, n) for n in range(10, 20)])
    shop.tick()
    sub = shop.subscribe(f"SUBSCRIBE t WITH (PROGRESS = {progress})")
    found = sub.fetch(10)
    assert len([u for u in found if not u.progressed]) == 12
    assert [u for u in found if u.progressed] == found[12:]
    assert len(found[12:]) == progress
    while sub.fetch():
        pass
    shop.insert("t", [(n, n) for n in range(30, 40)])
    shop.tick()
    assert len([u for u in sub.fetch(10) if not u.progressed]) == 10
    assert pieces  # it did come in pieces


@pytest.mark.placed  # it counts on pieces of one run
def test_a_limit_divides_a_time_and_the_rest_comes_next(shop, monkeypatch):
    in_pieces(monkeypatch)
    shop.insert("t", [(n, n) for n in range(10, 20)])
    with shop.subscribe("SUBSCRIBE t") as sub:
        assert len(sub.fetch(10, 5)) == 3  # what is there of it
        assert len(sub.fetch(10, 2)) == 2
        assert len(sub.fetch(10)) == 7


def test_a_time_that_is_closed_before_its_end_is_not_there(shop, monkeypatch):
    shop.insert("t", [(n, n) for n in range(10, 20)])
    sub = shop.subscribe("SUBSCRIBE t")
    in_pieces(monkeypatch, sub.close)
    assert sub.fetch(10) == []
    assert sub.closed
    assert holds(shop) == []


def test_what_one_does_with_a_list_is_not_seen_by_others(shop):
    subs = [shop.subscribe("SUBSCRIBE t WITH (SNAPSHOT = false)") for _ in range(2)]
    for sub in subs:
        assert sub.fetch() == []
    shop.execute("INSERT INTO t VALUES (3, 3)")
    shop.tick()
    subs[0].fetch(10).clear()
    assert plain(subs[1].fetch(10)) == [(1, (3, 3))]


def in_pieces(monkeypatch, after=lambda: None):
    """Have batches of at most three rows, and ``after`` called after each; return their sizes."""
    pieces = []
    for name in ("snapshot", "streamed"):
        whole = getattr(changes.Followed, name)

        def small(self, state, time, whole=whole):
            for batch in whole(self, state, time):
                for begin in range(0, len(batch), 3):
                    pieces.append(len(batch[begin : begin + 3]))
                    yield batch[begin : begin + 3]
                    after()

        monkeypatch.setattr(changes.Followed, name, small)
    return pieces


def test_an_interrupt_in_the_middle_ends_it_rather_than_repeat(shop, monkeypatch):
    sub = shop.subscribe("SUBSCRIBE t")
    assert len(list(sub)) == 2
    for n in (3, 4):
        shop.execute(f"INSERT INTO t VALUES ({n}, {n})")
    assert plain(sub.fetch(10)) == [(1, (3, 3))]

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sub, "_told", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sub.fetch()
    monkeypatch.undo()
    assert sub.closed
    assert (sub.fetch(), holds(shop)) == ([], [])


def test_a_lost_handle_lets_go(shop):
    sub = shop.subscribe("SUBSCRIBE (SELECT max(a) AS x FROM t)")
    next(sub)
    assert holds(shop)
    assert shop._core._readers
    del sub
    gc.collect()
    shop.tick()
    assert leftovers(shop) == NOTHING
    assert shop._core._readers == []


@pytest.mark.parametrize("point", ["ddl.publish.before", "ddl.publish.after"])
def test_a_failure_while_a_query_begins_to_be_kept_leaves_nothing_to_read(shop, point, opener):
    with armed({point: "raise"}), pytest.raises(FailpointRaised):
        shop.subscribe("SUBSCRIBE (SELECT max(a) AS x FROM t)")
    shop.execute("INSERT INTO t VALUES (7, 77)")
    with shop.subscribe("SUBSCRIBE (SELECT max(a) AS x FROM t)") as sub:
        assert plain(sub) == [(1, (77,))]
        shop.execute("INSERT INTO t VALUES (7, 78)")
        assert sorted(plain(sub)) == [(-1, (77,)), (1, (78,))]
    assert leftovers(shop) == NOTHING
    again = opener.reopened(shop)
    assert leftovers(again) == NOTHING


def nth(number):
    """Return an action that raises only the so-manieth time."""
    hits = iter(range(1, 100))

    def act():
        if next(hits) == number:
            message = f"the {number}th time"
            raise FailpointRaised(message)

    return act


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("step", ["begin", "end", "drop"])
def test_views_that_came_or_went_without_anybody_knowing(shop, step, number, opener):
    query = "SUBSCRIBE (SELECT max(a) AS x FROM t)"
    sub = None if step == "begin" else shop.subscribe(query)
    opener.clock.advance(1_000)
    shop.execute("INSERT INTO t VALUES (7, 77)")
    with armed({"durable.commit.after": nth(number)}):  # of the tick, of the change
        if step == "end":
            sub.close()
        else:
            with pytest.raises(FailpointRaised):
                shop.subscribe(query) if step == "begin" else shop.execute("DROP TABLE t CASCADE")
    if step == "drop":
        if number == 1:
            shop.execute("DROP TABLE t CASCADE")
        with pytest.raises(UndefinedName):
            list(sub)
        shop.execute("CREATE TABLE t (k INT, a INT); INSERT INTO t VALUES (1, 77)")
    shop.execute("INSERT INTO t VALUES (8, 70)")
    shop.tick()
    with shop.subscribe(query) as again:
        assert plain(again) == [(1, (77,))]
    assert leftovers(shop) == NOTHING


def test_a_crash_leaves_state_that_the_next_opening_removes(shop, opener):
    sub = shop.subscribe("SUBSCRIBE (SELECT max(a) AS x FROM t)")
    list(sub)
    shop.execute("INSERT INTO t VALUES (7, 77)")
    again = opener.reopened(shop)
    assert leftovers(again) == NOTHING
    assert again.execute("SELECT * FROM m ORDER BY a").rows == [(10, 2), (77, 1)]
    with again.subscribe("SUBSCRIBE (SELECT max(a) AS x FROM t)") as sub:
        assert plain(sub) == [(1, (77,))]


# With the background loop.


@pytest.fixture
def live(opener):
    db = opener(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '20ms'")
    db.execute("CREATE TABLE t (k INT, a INT)")
    db.execute("INSERT INTO t VALUES (1, 10)")
    opener.clock.advance(1_000)
    return db


class Follower(threading.Thread):
    """Iterates in a thread, and keeps what comes."""

    def __init__(self, sub):
        super().__init__(daemon=True)
        self.sub, self.got, self.error = sub, [], None
        self.start()

    def run(self):
        try:
            for u in self.sub:
                self.got.append(u)
        except Exception as error:
            self.error = error


def until(condition, seconds=10):
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "waited in vain"
        sleep(0.005)


@pytest.mark.parametrize("what", ["t", "(SELECT k, a FROM t WHERE a > 0)"])
def test_a_blocked_reader_is_woken_by_changes_and_by_close(live, opener, what):
    follower = Follower(live.subscribe(f"SUBSCRIBE {what}"))
    until(lambda: len(follower.got) == 1)
    opener.clock.advance(1_000)
    live.execute("INSERT INTO t VALUES (2, 20)")
    until(lambda: len(follower.got) == 2)
    sleep(0.1)
    assert follower.is_alive()
    follower.sub.close()
    follower.join(60)
    assert not follower.is_alive()
    assert follower.error is None
    until(lambda: leftovers(live) == NOTHING)


def test_iteration_stops_after_timeout_and_goes_on_later(live, opener):
    sub = live.subscribe("SUBSCRIBE t", timeout=0.5)
    began = monotonic()
    assert plain(sub) == [(1, (1, 10))]
    assert monotonic() - began >= 0.5
    opener.clock.advance(1_000)
    live.execute("INSERT INTO t VALUES (2, 20)")
    assert plain(sub) == [(1, (2, 20))]


def test_closing_the_database_ends_everything(live):
    followers = [
        Follower(live.subscribe(s)) for s in ("SUBSCRIBE t", "SUBSCRIBE (SELECT a FROM t)")
    ]
    until(lambda: all(f.got for f in followers))
    live.close()
    for follower in followers:
        follower.join(60)
        assert not follower.is_alive()
        assert follower.error is None
        assert follower.sub.closed


def test_a_database_closed_with_open_subscriptions_opens_without_them(shop, opener):
    sub = shop.subscribe("SUBSCRIBE (SELECT max(a) AS x FROM t)")
    shop.close()
    assert list(sub) == []
    assert leftovers(opener()) == NOTHING


def test_a_drop_wakes_a_blocked_reader(live):
    follower = Follower(live.subscribe("SUBSCRIBE t"))
    until(lambda: follower.got)
    live.execute("DROP TABLE t")
    follower.join(60)
    assert isinstance(follower.error, UndefinedName)


def test_many_followers_see_the_same_while_writes_go_on(live, opener):
    sums = "SUBSCRIBE (SELECT count(*) AS n, sum(a) AS s FROM t)"
    followers = [Follower(live.subscribe(s)) for s in ["SUBSCRIBE t"] * 4 + [sums] * 4]
    for n in range(40):
        opener.clock.advance(7)
        live.execute("INSERT INTO t VALUES ($1, 1)", (n,))
        if n % 3 == 0:
            live.execute("DELETE FROM t WHERE k = $1", (n,))
    count, total = live.execute("SELECT count(*), sum(a) FROM t").rows[0]
    opener.clock.advance(1_000)
    for follower in followers[:4]:
        until(lambda f=follower: sum(u.diff for u in f.got) == count)
        assert [u.timestamp for u in follower.got] == sorted(u.timestamp for u in follower.got)
        assert follower.got[1:] == followers[0].got[1:]
    for follower in followers[4:]:
        until(lambda f=follower: f.got[-1:] and (1, (count, total)) in plain(f.got[-2:]))
    for follower in followers:
        follower.sub.close()
        follower.join(60)
    until(lambda: leftovers(live) == NOTHING)


def test_a_lost_handle_lets_go_with_the_loop_too(live, opener):
    sub = live.subscribe("SUBSCRIBE (SELECT max(a) AS x FROM t)", timeout=0.01)
    list(sub)
    del sub
    gc.collect()
    opener.clock.advance(1_000)
    until(lambda: leftovers(live) == NOTHING)
