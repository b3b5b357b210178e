"""Timelines: every object has one, no plan has two, and nothing waits for another's time.

The matrix: an object of each kind and timeline, combined in every way a statement can.
"""

from __future__ import annotations

import json
from itertools import product

import pytest

from reclock.errors import InvalidValue, TimelineMismatch
from reclock.testing.kafka_upstream import Record

KINDS = {
    "table": "{t}",
    "view": "{t}_view",
    "view on a view": "{t}_over",
    "materialized view": "{t}_kept",
    "kafka source": "{t}_topic",
    "file source": "{t}_lines",
    "view on a load generator": "{t}_numbers",
    "source with times of its own": "{t}_cdc",
}
COMBINED = (
    "SELECT * FROM {a} x, {b} y",
    "SELECT x.k FROM {a} x LEFT JOIN {b} y ON x.k = y.k",
    "SELECT k FROM {a} UNION ALL SELECT k FROM {b}",
    "SELECT k FROM {a} EXCEPT SELECT k FROM {b}",
    "SELECT k FROM {a} WHERE k IN (SELECT k FROM {b})",
    "SELECT k FROM {a} x WHERE NOT EXISTS (SELECT 1 FROM {b} y WHERE x.k = y.k)",
    "SELECT k, (SELECT max(k) FROM {b}) AS m FROM {a}",
    "WITH c AS (SELECT k FROM {b}) SELECT {a}.k FROM {a}, c",
    "SELECT x.k FROM {a} x, LATERAL (SELECT k FROM {b} y WHERE y.k > x.k) z",
)
STATEMENTS = (
    "{query}",
    "CREATE VIEW made AS {query}",
    "CREATE MATERIALIZED VIEW made WITH (allow_full_recompute = true) AS {query}",
    "EXPLAIN {query}",
    "EXPLAIN TIMESTAMP FOR {query}",
    "SUBSCRIBE ({query})",
    "COPY ({query}) TO STDOUT",
    "INSERT INTO one (k) SELECT k FROM ({query}) AS q (k)",
)


STATED = (
    {"array": [{"data": {"k": k}, "time": 9, "diff": 1} for k in (1, 2)]},
    {"progress": {"lower": [0], "upper": [10_000], "counts": [{"time": 9, "count": 2}]}},
)


@pytest.fixture(scope="module")
def clocks(make_opener):
    """Three timelines, each with an object of every kind; constants beside them."""
    opener = make_opener()
    db = opener()
    topic = opener.kafka.create_topic(1)
    opener.kafka.produce(topic, 0, Record(b'{"k": 1}'), Record(b'{"k": 2}'))
    said = opener.kafka.create_topic(1)
    lines = opener.path.parent / "lines.csv"
    lines.write_text("1\n2\n")
    for name, timeline in (("epoch", None), ("one", "one"), ("two", "two")):
        given = f" WITH (timeline = '{timeline}')" if timeline else ""
        db.execute(
            f"CREATE SOURCE {name}_topic (k INT) FROM KAFKA BROKER 'b:1' TOPIC '{topic}' "
            f"FORMAT JSON{given}"
        )
        db.execute(f"CREATE SOURCE {name}_lines (k INT) FROM FILE '{lines}' FORMAT CSV{given}")
        db.execute(
            f"CREATE SOURCE {name}_counter FROM LOAD GENERATOR COUNTER (EVENTS PER TICK 2, "
            f"max_cardinality 2){given}"
        )
        own = given or " WITH (epoch_ms_timeline = true)"
        db.execute(
            f"CREATE SOURCE {name}_cdc (k INT) FROM KAFKA BROKER 'b:1' TOPIC '{said}' FORMAT JSON "
            f"ENVELOPE MATERIALIZE{own}"
        )
        db.execute(f"CREATE VIEW {name}_numbers AS SELECT counter AS k FROM {name}_counter")
        db.execute(f"CREATE TABLE {name} (k INT){given}")
        db.execute(f"CREATE VIEW {name}_view AS SELECT k + 0 AS k FROM {name}")
        db.execute(f"CREATE VIEW {name}_over AS SELECT k FROM {name}_view")
        db.execute(f"CREATE MATERIALIZED VIEW {name}_kept AS SELECT k FROM {name}_over")
        db.execute(f"INSERT INTO {name} VALUES (1), (2)")
    db.execute("CREATE VIEW fixed AS VALUES (1), (3)")
    db.execute("CREATE MATERIALIZED VIEW fixed_kept AS VALUES (1), (3)")
    opener.clock.advance(1_000)
    opener.kafka.produce(said, 0, *(Record(json.dumps(message).encode()) for message in STATED))
    db.tick()
    return db


def objects(db):
    return db.execute("SHOW OBJECTS").rows, len(db._core.world.stored.items())


def run(db, text):
    if text.startswith("SUBSCRIBE"):
        db.subscribe(text).close()
    elif text.startswith("COPY"):
        list(db.copy(text))
    else:
        db.execute(text)


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_two_timelines_are_refused_wherever_they_meet(clocks, kind, statement):
    before = objects(clocks)
    for first, second in (("epoch", "one"), ("one", "epoch"), ("one", "two")):
        a, b = (KINDS[kind].format(t=t) for t in (first, second))
        for query in COMBINED:
            text = statement.format(query=query.format(a=a, b=b))
            if statement.startswith("INSERT") and "*" in query:
                continue
            with pytest.raises(TimelineMismatch) as caught:
                run(clocks, text)
            error = caught.value
            assert error.message == "multiple timelines within one dataflow are not supported"
            assert f'"{first}' in error.detail, text
            assert f'"{second}' in error.detail, text
            assert error.hint
    assert objects(clocks) == before


@pytest.mark.parametrize("name", ["epoch", "one", "two"])
@pytest.mark.parametrize("constant", ["fixed", "fixed_kept", "(VALUES (1), (3)) AS c (column1)"])
def test_constants_meet_anything(clocks, name, constant):
    for kind in KINDS.values():
        query = f"SELECT k FROM {kind.format(t=name)} WHERE k IN (SELECT column1 FROM {constant})"
        assert clocks.execute(query).rows == [(1,)]


@pytest.mark.parametrize("name", ["epoch", "one"])
@pytest.mark.parametrize(("first", "second"), [*product(KINDS, KINDS)])
def test_kinds_of_one_timeline_meet(clocks, name, first, second):
    a, b = KINDS[first].format(t=name), KINDS[second].format(t=name)
    rows = clocks.execute(f"SELECT x.k FROM {a} x JOIN {b} y ON x.k = y.k ORDER BY 1").rows
    assert rows == [(1,), (2,)]


@pytest.mark.parametrize("name", ["epoch", "one"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_view_is_kept_over_kinds_of_one_timeline(clocks, name, kind):
    a, b = KINDS[kind].format(t=name), f"{name}_cdc"
    query = f"SELECT x.k FROM {a} x JOIN {b} y ON x.k = y.k"
    clocks.execute(f"CREATE MATERIALIZED VIEW together AS {query}")
    clocks.execute("SET transaction_isolation = 'serializable'")
    try:
        assert sorted(clocks.execute("SELECT k FROM together").rows) == [(1,), (2,)]
    finally:
        clocks.execute("SET transaction_isolation = 'strict serializable'")
        clocks.execute("DROP MATERIALIZED VIEW together")


@pytest.mark.parametrize("kind", [*KINDS.values()])
def test_system_relations_meet_anything(clocks, kind):
    for name in ("epoch", "one", "two"):
        query = f"SELECT DISTINCT o.kind FROM {kind.format(t=name)} x, reclock.objects o"
        assert len(clocks.execute(query).rows) == 4


@pytest.mark.parametrize("name", ["", "mz_epoch_ms", "mz_x", "reclock_own"])
@pytest.mark.parametrize(
    "made",
    [
        "TABLE refused (k INT)",
        "SOURCE refused (k INT) FROM KAFKA BROKER 'b:1' TOPIC 'none' FORMAT JSON",
        "SOURCE refused (k INT) FROM FILE 'none' FORMAT CSV",
        "SOURCE refused FROM LOAD GENERATOR COUNTER",
    ],
)
def test_names_of_the_system_are_refused(clocks, made, name):
    before = objects(clocks)
    with pytest.raises(InvalidValue) as caught:
        clocks.execute(f"CREATE {made} WITH (timeline = '{name}')")
    assert caught.value.message == f'unacceptable timeline name "{name}"'
    assert objects(clocks) == before


def test_constants_keep_what_they_say(clocks):
    assert clocks.execute("SELECT * FROM fixed_kept ORDER BY 1").rows == [(1,), (3,)]
    assert clocks.execute("SELECT * FROM fixed, fixed_kept").tag == "SELECT 4"


def test_the_same_name_is_the_same_timeline(db):
    db.execute("CREATE TABLE a (k INT) WITH (timeline = 'x')")
    db.execute("CREATE TABLE b (k INT) WITH (timeline = 'x')")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT a.k FROM a JOIN b ON a.k = b.k")
    db.execute("INSERT INTO a VALUES (1), (2)")
    db.execute("INSERT INTO b VALUES (2), (3)")
    assert db.execute("SELECT * FROM v").rows == [(2,)]


def test_a_timeline_moves_by_itself(db, opener):
    db.execute("CREATE TABLE a (k INT) WITH (timeline = 'x')")
    db.execute("CREATE TABLE b (k INT)")
    first = db.execute("INSERT INTO a VALUES (1)").timestamp
    for _ in range(5):
        opener.clock.advance(1_000_000)
        db.execute("INSERT INTO b VALUES (1)")
        db.tick()
    assert db.execute("INSERT INTO a VALUES (2)").timestamp < first + 10
    assert db.execute("SELECT count(*) FROM a").rows == [(2,)]


def test_timelines_outlive_their_objects_and_restarts(db, opener):
    db.execute("CREATE TABLE a (k INT) WITH (timeline = 'x')")
    last = [db.execute("INSERT INTO a VALUES (1)").timestamp for _ in range(9)][-1]
    db.execute("DROP TABLE a")
    db = opener.reopened(db)
    db.execute("CREATE TABLE a (k INT) WITH (timeline = 'x')")
    assert db.execute("INSERT INTO a VALUES (1)").timestamp > last
    assert db.execute("SELECT k FROM a").timestamp > last


def test_a_transaction_stays_in_one_timeline_and_says_so_at_once(clocks):
    with clocks.session() as session:
        session.execute("BEGIN")
        assert session.execute("SELECT k FROM one ORDER BY k").rows == [(1,), (2,)]
        with pytest.raises(TimelineMismatch) as caught:
            session.execute("SELECT k FROM epoch_kept")
        assert '"one"' in caught.value.detail
        assert '"epoch_kept"' in caught.value.detail
        session.execute("ROLLBACK")
