"""Intervals in views, by the model: equal ones are one group and one key, and keep their texts."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pyarrow as pa
import pytest

from reclock.dataflow.values import to_python
from reclock.errors import Error
from reclock.interval import Interval
from reclock.server.pg_catalog.answer import _fitted
from reclock.sql.types import INTERVAL
from strategies.intervals import random_interval

VIEWS = {
    "grouped": "SELECT i, count(*) AS n, sum(k) AS s FROM t GROUP BY i",
    "once": "SELECT DISTINCT i FROM t",
    "united": "SELECT i FROM t UNION SELECT j FROM t",
    "joined": "SELECT a.k, b.k AS l FROM t a JOIN t b ON a.i = b.j",
    "outer_": "SELECT a.k, b.k AS l FROM t a LEFT JOIN t b ON a.i = b.j AND a.k < b.k",
    "inside": "SELECT k FROM t WHERE i IN (SELECT j FROM t)",
    "none": "SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.j = t.i)",
    "least_": "SELECT min(i) AS a, max(i) AS b, count(DISTINCT i) AS c FROM t",
    "first_": "SELECT k FROM t ORDER BY i, k LIMIT 3",
    "top": "SELECT DISTINCT ON (i) k FROM t ORDER BY i, k DESC",
    "ranked": "SELECT k, rank() OVER (PARTITION BY j ORDER BY i) AS r FROM t",
    "less": "SELECT i FROM t EXCEPT SELECT j FROM t",
    "both": "SELECT i FROM t INTERSECT SELECT j FROM t",
    "added": "SELECT sum(i) AS s, avg(i) AS a FROM t",
    "texts": "SELECT k, i::text AS x, (SELECT t.i::text) AS y FROM t",
}


def create(db, name, query):
    cost = "WITH (allow_full_recompute = true)" if name == "added" else ""
    db.execute(f"CREATE MATERIALIZED VIEW {name} {cost} AS {query}")


def spans(values):
    return sorted((v.span for v in values if v is not None), key=lambda v: v)


def expected(rows):
    """Return what some of the views hold, from the definition."""
    by_span: dict[object, list[int]] = {}
    for k, i, _ in rows:
        by_span.setdefault(None if i is None else i.span, []).append(k)
    joined = [(a[0], b[0]) for a in rows for b in rows if a[1] and b[2] and a[1].span == b[2].span]
    joined += [(a[0], b[0]) for a in rows for b in rows if a[1] == b[2] == Interval()]
    order = sorted(rows, key=lambda r: (r[1] is None, r[1].span if r[1] else 0, r[0]))
    return by_span, sorted(joined), [r[0] for r in order[:3]]


def check(db, rows):
    by_span, joined, first = expected(rows)
    grouped = db.execute("SELECT * FROM grouped").rows
    assert sorted((n, s) for _, n, s in grouped) == sorted(
        (len(ks), sum(ks)) for ks in by_span.values()
    )
    given = {r[1] for r in rows}
    assert all(i in given for i, _, _ in grouped)
    assert len(db.execute("SELECT * FROM once").rows) == len(by_span)
    assert sorted(db.execute("SELECT * FROM joined").rows) == joined
    keys = {k for k, _ in joined}
    assert {k for (k,) in db.execute("SELECT * FROM inside").rows} == keys
    assert {k for (k,) in db.execute("SELECT * FROM none").rows} == {r[0] for r in rows} - keys
    assert sorted(k for (k,) in db.execute("SELECT * FROM first_").rows) == sorted(first)
    ((least, most, count),) = db.execute("SELECT * FROM least_").rows
    present = [r[1] for r in rows if r[1] is not None]
    assert count == len({v.span for v in present})
    if present:
        assert (least.span, most.span) == (spans(present)[0], spans(present)[-1])
    assert sorted(db.execute("SELECT * FROM texts").rows) == sorted(
        (k, str(i) if i is not None else None, str(i) if i is not None else None)
        for k, i, _ in rows
    )
    for name, query in VIEWS.items():  # a view is its query
        found, asked = (
            sorted(map(repr, db.execute(f"SELECT * FROM ({q}) AS q").rows))
            for q in (f"SELECT * FROM {name}", query)
        )
        assert found == asked, name


@pytest.mark.parametrize("seed", range(2))
def test_views_follow_writes_and_a_restart(opener, seed):
    random = Random(seed)
    db = opener()
    db.execute("CREATE TABLE t (k int, i interval, j interval)")
    early = list(VIEWS.items())[: len(VIEWS) // 2] if seed else list(VIEWS.items())
    for name, query in early:
        create(db, name, query)
    rows: list[tuple[int, Interval | None, Interval | None]] = []
    for step in range(4):
        new = [
            (10 * step + at, *(random.choice([random_interval(random), None]) for _ in range(2)))
            for at in range(4)
        ]
        db.insert("t", new)
        rows += new
        if step:
            gone = random.choice(rows)
            rows = [r for r in rows if r != gone]
            db.execute("DELETE FROM t WHERE k = $1", [gone[0]])
        if step == 1:
            for name, query in VIEWS.items():
                if (name, query) not in early:
                    create(db, name, query)
        if step == 2:
            db = opener.reopened(db)
        if step:
            check(db, rows)


def test_a_value_is_not_lost(opener):
    db = opener()
    db.execute("CREATE TABLE t (k int, i interval)")
    db.execute("INSERT INTO t VALUES (1, '1 mon'), (2, '30 days'), (3, '1 mon 3 days -4:05')")
    db.execute("INSERT INTO t VALUES (4, $1)", [Interval(2)])
    assert db.execute("SELECT i FROM t ORDER BY k").rows == [
        (Interval(1),), (Interval(0, 30),), (Interval(1, 3, -14_700_000_000),), (Interval(2),),
    ]  # fmt: skip
    assert db.execute("DELETE FROM t WHERE i = interval '720:00'").tag == "DELETE 2"
    assert db.execute("SELECT k FROM t ORDER BY i DESC").rows == [(4,), (3,)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE TABLE u (i interval PRIMARY KEY)", "0A000"),
        ("CREATE TABLE u (i interval year to month)", "0A000"),
        ("SELECT sum(DISTINCT i) FROM t", "0A000"),
        ("SELECT i FROM t EXCEPT ALL SELECT i FROM t", "0A000"),
        ("SELECT i FROM t INTERSECT ALL SELECT i FROM t", "0A000"),
        ("SELECT interval 'infinity'", "0A000"),
        ("SELECT array_to_string(ARRAY[i], ',') FROM t", "0A000"),
        ("SELECT ARRAY[k::text]::interval[] FROM t", "0A000"),
        ("SELECT k::text::interval[] FROM t", "0A000"),
        ("SELECT ARRAY[k]::interval[] FROM t", "42846"),
        ("CREATE TABLE u (i INTERVAL(3)[])", "0A000"),
        ("CREATE TABLE u (i INTERVAL YEAR TO MONTH[])", "0A000"),
        ("SELECT '{1 day}'::interval(2)[]", "0A000"),
        ("SELECT date_trunc('week', i) FROM t", "0A000"),
        ("SELECT make_interval(day => 1)", "42883"),
        ("SET intervalstyle = 'iso_8601'", "22023"),
    ],
)
def test_what_is_not_supported_is_refused(opener, text, code):
    db = opener()
    db.execute("CREATE TABLE t (k int, i interval)")
    with pytest.raises(Error) as raised:
        db.execute(text)
    assert raised.value.code == code


def test_frames_have_structs_and_give_durations(opener):
    db = opener()
    db.execute("CREATE TABLE t (i interval)")
    db.insert("t", pa.table({"i": pa.array([timedelta(hours=25), None])}))
    frame = db.execute("SELECT i FROM t").to_arrow()
    db.insert("t", frame)
    found = db.execute("SELECT i FROM t").rows
    assert sorted(map(str, found)) == ["(Interval(months=0, days=1, microseconds=3600000000),)"] * 2 + ["(None,)"] * 2  # noqa: E501  # fmt: skip
    broken = pa.table({"i": pa.array([{"days": 1, "micros": None, "months": 0}])})
    with pytest.raises(Error, match="does not fit"):
        db.insert("t", broken)
    with pytest.raises(Error, match="but the data is int64"):
        db.insert("t", pa.table({"i": [1]}))


def test_what_the_catalog_computes_has_intervals_too():
    given = pa.chunked_array([pa.array([(1, 2, 3_000_000), None], pa.month_day_nano_interval())])
    assert to_python(_fitted(given, INTERVAL), INTERVAL) == [Interval(1, 2, 3_000), None]
