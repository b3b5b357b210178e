"""Large first loads and large ticks give what small ones give: every arrangement, row for row.

The same statements run in two databases, whose only difference is where state is computed:
in the driver, or in Spark jobs. Random plans at every time are in test_job_tick.py.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

import reclock
from reclock import ManualClock
from reclock.errors import ExpressionFailed
from reclock.spark import job as run

pytestmark = pytest.mark.spark

TABLES = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, x BIGINT, d NUMERIC(10, 2), f DOUBLE PRECISION,"
    " s TEXT)",
    "CREATE TABLE u (k INT, name TEXT, z INT)",
    "CREATE TABLE nothing (a INT, b TEXT)",
)
VIEWS = {
    "joined": "SELECT t.id, t.x, u.name FROM t JOIN u ON t.k = u.k",
    "doubled": "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.k = b.x",
    "outer_joined": "SELECT t.id, u.name FROM t FULL JOIN u ON t.k = u.k AND t.x > u.z",
    "anti": "SELECT id FROM t WHERE k NOT IN (SELECT z FROM u WHERE z IS NOT NULL)",
    "crossed": "SELECT t.id, m.total FROM t, (SELECT sum(z) AS total FROM u) m WHERE t.x > 2",
    "reduced": "SELECT k, count(*) AS n, count(s) AS c, sum(x) AS x, avg(d) AS d, sum(f) AS f,"
    " min(s) AS low, max(d) AS high, count(DISTINCT s) AS different FROM t GROUP BY k",
    "whole": "SELECT count(*) AS n, sum(x) AS x, min(f) AS f FROM t",
    "of_nothing": "SELECT count(*) AS n, sum(a) AS a, max(b) AS b, array_agg(a) AS l FROM nothing",
    "different": "SELECT DISTINCT k, s FROM t",
    "minus": "SELECT k FROM t EXCEPT ALL SELECT k FROM u",
    "top": "SELECT id, x FROM t ORDER BY x DESC, id LIMIT 5",
    "long_top": "SELECT id, f FROM t ORDER BY f LIMIT 120 OFFSET 3",
    "per_group": "SELECT DISTINCT ON (k) k, id FROM t ORDER BY k, d DESC, id",
    "windows": "SELECT id, row_number() OVER (PARTITION BY k ORDER BY x, id) AS n,"
    " sum(x) OVER (PARTITION BY k ORDER BY id) AS r FROM t",
    "general": "SELECT k, string_agg(s, ',' ORDER BY id) AS all_s,"
    " percentile_cont(0.5) WITHIN GROUP (ORDER BY f) AS median FROM t GROUP BY k",
    "computed": "SELECT id, x * 2 + k AS y, upper(s) AS s FROM t WHERE d > 3 AND x % 3 <> 1",
    "grouped_expression": "SELECT x % 4 AS m, sum(d * 2) AS d FROM t GROUP BY x % 4",
    "unnested": "SELECT id, e FROM t, unnest(ARRAY[x, k]) AS l(e) WHERE e IS NOT NULL",
    "constant": "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS v(a, b)",
    "on_views": "SELECT r.k, r.n, j.name FROM reduced r JOIN joined j ON r.n = j.x",
    "failing": "SELECT id, 100 / (x - 3) AS y FROM t WHERE k < 8",
    "failing_sum": "SELECT sum(y) AS y FROM failing",
    "failing_group": "SELECT f.y, count(*) AS n FROM failing f JOIN t ON f.id = t.id GROUP BY f.y",
    "overflowing": "SELECT k, sum(d) AS s, sum((x + 1) * 9000000000000000000) AS big FROM t"
    " WHERE x IN (0, 1) GROUP BY k",
}
CHANGES = (
    "INSERT INTO t VALUES (1001, 3, 3, 1.5, 0.5, 'new'), (1002, NULL, 4, 9.25, 'NaN', NULL)",
    "DELETE FROM t WHERE id % 7 = 0",
    "UPDATE t SET x = x + 1, s = 'changed' WHERE k = 2",
    "INSERT INTO u VALUES (2, 'two', 1), (2, 'two', 1), (NULL, 'none', 7)",
    "DELETE FROM u WHERE k = 4",
    "INSERT INTO nothing VALUES (1, 'x')",
    "DELETE FROM t WHERE x = 3",
)


def rows_of_tables(seed: int) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    random.seed(seed)

    def some(*values):
        return random.choice(values)

    t = [
        (
            i,
            some(None, *range(10)),
            some(None, *range(12)),
            some(None, random.randint(-500, 900) / 100),
            some(None, "NaN", "-0.0", "1e300", random.random()),
            some(None, "", "a", "b", "ß" * 9),
        )
        for i in range(300)
    ]
    u = [(some(None, *range(9)), some("x", "y", None), some(None, 1, 2)) for _ in range(40)]
    return t, u


def filled(db: reclock.Database, seed: int) -> None:
    for statement in TABLES:
        db.execute(statement)
    t, u = rows_of_tables(seed)
    for table, rows in (("t", t), ("u", u)):
        text = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
        db.execute(f"INSERT INTO {table} VALUES {text}")


def literal(value: object) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)


def contents(db: reclock.Database) -> dict[str, Counter[str]]:
    """Every row of every arrangement at the last complete time."""
    found = {}
    for state in db._core.world.timelines.values():
        for name, shard in state.traces.items():
            rows: Counter[str] = Counter()
            for batch in shard.snapshot(state.upper.back()):
                columns = [c.to_pylist() for c in batch.columns[:-2]]
                counts = batch.column(batch.num_columns - 1).to_pylist()
                for *row, count in zip(*columns, counts, strict=True):
                    rows[repr(row)] += count
            found[str(name)] = rows
    return found


@pytest.fixture
def jobs(monkeypatch):
    """Return the titles of the jobs that ran."""
    titles = []
    execute = run.SparkCluster.execute

    def counted(cluster, schedule, errand):
        titles.append(cluster.title)
        made = execute(cluster, schedule, errand)
        assert cluster.load is None or cluster.load.done == cluster.load.total > 0
        return made

    monkeypatch.setattr(run.SparkCluster, "execute", counted)
    monkeypatch.setattr(run, "PART_ROWS", 100)
    return titles


def made(path, execution: str, views: dict[str, str]) -> reclock.Database:
    db = reclock.open(path, clock=ManualClock(1), background=False)
    db.execute("ALTER SYSTEM SET execution = 'driver'")
    filled(db, 7)
    db.execute("ALTER SYSTEM SET execution = 'auto'")  # as many changes, so that ids are the same
    db.execute(f"ALTER SYSTEM SET execution = '{execution}'")
    for name, query in views.items():
        options = "WITH (allow_full_recompute = true)"
        db.execute(f"CREATE MATERIALIZED VIEW {name} {options} AS {query}")
    db.execute("CREATE INDEX by_d ON t (d)")
    return db


SOME_CHANGES = (CHANGES[0], CHANGES[2], CHANGES[3], CHANGES[6])
SOME = (
    "joined",
    "outer_joined",
    "reduced",
    "windows",
    "general",
    "computed",
    "unnested",
    "on_views",
    "failing",
    "failing_sum",
)


def check(path, jobs, views, changes):
    small = made(path / "small", "driver", views)
    assert not jobs
    large = made(path / "large", "spark", views)
    loads = [title for title in jobs if title.startswith("first load")]
    assert len(loads) == len(views) + 1
    with small:
        expected = contents(small)
        assert contents(large) == expected
        assert any(expected[name] for name in expected if name.endswith("!errors"))
        for change in changes:
            for db in (small, large):
                db.execute(change)
                before = len(jobs)
                db.tick()
                assert (len(jobs) > before) == (db is large)
                places = {r for (r,) in db.execute("SELECT place FROM reclock.ticks").rows}
                assert ("spark" in places) == (db is large)
            assert contents(large) == contents(small), change
        expected = contents(small)
        state = next(iter(large._core.world.timelines.values()))
        there = {n for n in large._core.segments.names() if not n.startswith(("merge-", "."))}
        assert there <= set(state.named_segments())
    large.close()
    with reclock.open(path / "large", clock=ManualClock(1), background=False) as again:
        assert contents(again) == expected


def test_jobs_give_what_the_driver_gives(tmp_path, jobs):
    check(tmp_path, jobs, {name: VIEWS[name] for name in SOME}, SOME_CHANGES)


@pytest.mark.slow
def test_more_jobs_give_what_the_driver_gives(tmp_path, jobs):
    check(tmp_path, jobs, VIEWS, CHANGES)


@pytest.mark.usefixtures("jobs")
def test_an_error_is_there_until_its_row_is_gone_and_nothing_is_left_behind(tmp_path):
    with reclock.open(tmp_path, clock=ManualClock(1), background=False) as db:
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, x INT)")
        db.execute("INSERT INTO t VALUES (1, 1), (2, 0), (3, 5)")
        db.execute("ALTER SYSTEM SET execution = 'spark'")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT id, 10 / x AS y FROM t")
        db.execute("CREATE MATERIALIZED VIEW w AS SELECT y, count(*) AS n FROM v GROUP BY y")
        db.execute("CREATE MATERIALIZED VIEW both AS SELECT v.id, w.n FROM v JOIN w ON v.y = w.y")
        db.execute("ALTER SYSTEM SET execution = 'driver'")
        db.execute("CREATE MATERIALIZED VIEW chain AS SELECT n FROM both")
        anyway = "WITH (allow_full_recompute = true)"
        query = "SELECT v.id FROM v JOIN w ON v.y = w.y + 8"
        db.execute(f"CREATE MATERIALIZED VIEW shared {anyway} AS {query}")
        for view in ("v", "w", "both", "chain", "shared"):
            with pytest.raises(ExpressionFailed):
                db.execute(f"SELECT * FROM {view}")
        spent = db.facts.spark()  # what metrics tell
        print(spent)
        assert sum(jobs for jobs, _, _ in spent.values()) >= 1
        assert all(tasks >= jobs for jobs, tasks, _ in spent.values())
        assert "v" in {fault.name for fault in db.facts.faults.look()}
        db.execute("DELETE FROM t WHERE x = 0")
        assert sorted(db.execute("SELECT * FROM w").rows) == [(2, 1), (10, 1)]
        assert sorted(db.execute("SELECT * FROM both").rows) == [(1, 1), (3, 1)]
        assert db.execute("SELECT * FROM chain").rows == [(1,), (1,)]
        assert db.execute("SELECT * FROM shared").rows == [(1,)]
        state = next(iter(db._core.world.timelines.values()))
        assert set(db._core.segments.names()) == set(state.named_segments())
