"""Intervals by Spark, as PostgreSQL has them: in queries, in views, and after writes."""

from __future__ import annotations

from random import Random

import pytest

import reclock
from reclock.errors import Error
from reclock.interval import Interval
from reclock.testing.postgres import running_postgres
from strategies.intervals import COLUMNS, EXPRESSIONS, random_rows

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

GROUPS = (
    "SELECT count(*), sum(id), sum(i)::text, avg(i)::text, count(DISTINCT j) FROM t GROUP BY i",
    "SELECT a.id, b.id FROM t a JOIN t b ON a.i = b.j",
    "SELECT a.id, b.id FROM t a FULL JOIN t b ON a.i = b.j AND a.id <= b.id",
    "SELECT id FROM t WHERE i IN (SELECT j FROM t WHERE id > 3)",
    "SELECT id, rank() OVER (ORDER BY i), dense_rank() OVER (PARTITION BY j ORDER BY i) FROM t",
    "SELECT id, sum(i) OVER (ORDER BY id)::text, avg(j) OVER (PARTITION BY id % 3)::text FROM t",
    "SELECT DISTINCT ON (i) id FROM t ORDER BY i, id",
    "SELECT extract(epoch FROM min(i - j)) = extract(epoch FROM max(i - j)), id % 3 FROM t"
    " GROUP BY id % 3",
    "SELECT id, x FROM t, generate_series(ts, ts + interval '9 days', interval '2 days 05:00') x",
    "SELECT id, x FROM t, generate_series(ts, ts + interval '7 mons', interval '1 mon 3 days') x",
    "SELECT id, date_bin(interval '3 days 02:00', ts, u) FROM t",
)
FAILING = (
    ("interval '1 day' / 0", "22012"),
    ("interval '2147483647 mons' + interval '1 mon'", "22008"),
    ("-interval '-2147483648 days'", "22008"),
    ("interval '1 year' * 1e10", "22008"),
    ("make_interval(years => 2147483647)", "22008"),
    ("justify_days(interval '2147483647 mons 30 days')", "22008"),
    ("date_bin(interval '1 mon', timestamp '2024-01-01', timestamp '2024-01-01')", "0A000"),
    ("date_bin(interval '0', timestamp '2024-01-01', timestamp '2024-01-01')", "22008"),
    ("(SELECT x FROM (VALUES ('1 parsec')) v(x))::interval", "22007"),
)


def shown(rows):
    return sorted(map(repr, rows))


class Both:
    """Our database and theirs, with the same table ``t``."""

    def __init__(self, ours, theirs):
        self.ours, self.theirs = ours, theirs
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS)
        self.execute(f"CREATE TABLE t ({columns})")

    def execute(self, text):
        self.ours.execute(text)
        self.theirs.execute(text)

    def compare(self, asked, text):
        """Compare what ours has for ``asked`` with what ``text`` is there."""
        found = self.ours.execute(asked)
        wanted = self.theirs.execute(text).fetchall()
        if shown(found.rows) == shown(wanted):
            return
        ours, theirs = dict_of(found.rows), dict_of(wanted)
        for key in ours | theirs:
            for at, pair in enumerate(zip(ours.get(key, ()), theirs.get(key, ()), strict=False)):
                assert pair[0] == pair[1], (found.columns[at], ours[key], theirs[key])
        assert shown(found.rows) == shown(wanted), text


def dict_of(rows):
    return {row[0]: row for row in rows}


@pytest.fixture
def both(tmp_path):
    psycopg = pytest.importorskip("psycopg")
    clock = reclock.ManualClock(1_000)
    with (
        reclock.open(tmp_path, clock=clock, background=False) as ours,
        running_postgres() as url,
        psycopg.connect(url, autocommit=True) as theirs,
    ):
        theirs.execute("SET timezone = 'UTC'")
        yield Both(ours, theirs)


def walk(both, random, rows, steps, groups, *, expressions=EXPRESSIONS):
    """Compare queries, a view made before the data, and one made after, through writes.

    Every write waits for a tick, and Spark plans and compiles the expressions of every level: a
    walk over all groups and all expressions took many minutes.
    """
    outputs = ", ".join(f"{e} AS e{at}" for at, e in enumerate(expressions))
    query = f"SELECT id, {outputs} FROM t"
    both.ours.execute(f"CREATE MATERIALIZED VIEW early AS {query}")
    numbered = [
        (f"g{at}", f"SELECT {', '.join(f'c{n}' for n in range(width(g)))} FROM ({g}) AS q"
         f" ({', '.join(f'c{n}' for n in range(width(g)))})", g)
        for at, g in enumerate(groups)
    ]  # fmt: skip
    option = "WITH (allow_full_recompute = true)"
    for name, named, _ in numbered:
        both.ours.execute(f"CREATE MATERIALIZED VIEW {name} {option} AS {named}")
    for step in range(steps):
        both.execute(f"INSERT INTO t VALUES {', '.join(random_rows(random, rows))}")
        both.execute(f"UPDATE t SET id = id + {1000 * (step + 1)} WHERE id < {rows}")
        both.execute(f"DELETE FROM t WHERE id % 7 = {random.randrange(7)}")
        both.execute("UPDATE t SET i = i + interval '1 mon' - interval '30 days' WHERE id % 5 = 1")
        both.compare("SELECT * FROM early", query)
        for name, _, group in numbered:
            both.compare(f"SELECT * FROM {name}", group)
    both.compare(query, query)
    both.ours.execute(f"CREATE MATERIALIZED VIEW late AS {query}")
    both.compare("SELECT * FROM late", query)
    for group in groups:
        both.compare(group, group)


def width(query):
    """Return how many columns a query of ``GROUPS`` gives."""
    depth, count = 0, 1
    for c in query[: query.index(" FROM t")] if " FROM t" in query else query:
        depth += (c == "(") - (c == ")")
        count += c == "," and depth == 0
    return count


def test_every_expression_is_postgresqls(both):
    walk(both, Random(1), 25, 1, GROUPS[:3])


def test_errors_are_postgresqls(both):
    import psycopg  # noqa: PLC0415

    for text, code in FAILING:
        with pytest.raises(Error) as ours:
            both.ours.execute(f"SELECT {text}")
        with pytest.raises(psycopg.Error) as theirs:
            both.theirs.execute(f"SELECT {text}")
        assert ours.value.code == theirs.value.sqlstate == code, text


def test_python_keeps_months(both):
    both.ours.execute("INSERT INTO t (id, i) VALUES (1, interval '2' month)")
    assert both.ours.execute("SELECT i, i * 1.5, $1 FROM t", [Interval(1, 2, 3)]).rows == [
        (Interval(2), Interval(3), Interval(1, 2, 3))
    ]


@pytest.mark.slow(seconds=30)
@pytest.mark.parametrize("third", range(3))
@pytest.mark.parametrize("seed", range(2))
def test_many_rows_and_writes(both, seed, third):
    walk(both, Random(seed), 120, 2, (), expressions=EXPRESSIONS[third::3])


@pytest.mark.slow(seconds=10)
@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_many_groups_and_writes(both, group):
    walk(both, Random(group), 120, 3, GROUPS[group : group + 1], expressions=EXPRESSIONS[:1])
