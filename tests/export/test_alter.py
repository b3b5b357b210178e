"""ALTER SINK … SET FROM: the topic goes on as a function of the new relation."""

from __future__ import annotations

import json
from collections import Counter
from time import monotonic, sleep

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reclock.errors import Error
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.testing.schema_registry import running_registry

UPSERT = "KEY (k) FORMAT JSON ENVELOPE UPSERT"
REPEATS = "KEY (k) NOT ENFORCED FORMAT JSON ENVELOPE UPSERT"
DEBEZIUM = "FORMAT JSON ENVELOPE DEBEZIUM"


def made(bench, rest=UPSERT, key="PRIMARY KEY (k)"):
    for name in ("a", "b"):
        bench.run(f"CREATE TABLE {name} (k BIGINT, v BIGINT{key and ', ' + key})")
    bench.run("INSERT INTO a VALUES (1, 10), (2, 20)", "INSERT INTO b VALUES (2, 20), (3, 30)")
    bench.run(
        f"CREATE SINK s FROM a INTO KAFKA BROKER 'b:1' TOPIC 'out' {rest} WITH (reuse_topic = true)"
    )


def said(bench):
    """Return what each time says, in order."""
    return [
        (m.time, json.loads(m.key)["k"], m.value and json.loads(m.value)["v"])
        for m in bench.messages()
    ]


def held(bench, until=None):
    """Return the rows that a reader of the topic has when all up to a time is read."""
    rows = Counter()
    upserts = {}
    for message in bench.messages():
        if until is not None and message.time > until:
            break
        value = message.value and json.loads(message.value)
        if message.key is not None:
            upserts[json.loads(message.key)["k"]] = value
            continue
        for side, diff in (("before", -1), ("after", 1)):
            if value[side] is not None:
                rows[tuple(value[side].values())] += diff
    rows.update(tuple(value.values()) for value in upserts.values() if value is not None)
    assert all(count >= 0 for count in rows.values())
    return +rows


def sink_of(bench):
    return next(i for i in bench.db._core.world.catalog.items.values() if i.kind == "sink")


def test_only_what_differs_is_written_at_one_time(bench):
    made(bench)
    bench.tick()
    upper = bench.db._core.world[sink_of(bench).timeline].upper
    bench.run("ALTER SINK s SET FROM b")
    bench.run("INSERT INTO a VALUES (9, 90)", "INSERT INTO b VALUES (4, 40)")
    bench.tick()
    first, *later = sorted(said(bench)[2:])
    assert sorted([first, *later[:1]]) == [(upper, 1, None), (upper, 3, 30)]
    assert [(k, v) for _, k, v in later[1:]] == [(4, 40)]
    bench.run("UPDATE b SET v = 21 WHERE k = 2", "DELETE FROM a")
    bench.tick()
    assert [(k, v) for _, k, v in said(bench)[5:]] == [(2, 21)]


POINTS = [
    "ddl.publish.before", "ddl.publish.after", "durable.commit.before", "durable.commit.after",
    "sink.begin.before", "sink.produce.after", "sink.commit.before", "sink.commit.after",
    "sink.hold.before", "tick.publish.before", "tick.publish.after",
]  # fmt: skip


@pytest.mark.parametrize("rest", [UPSERT, REPEATS])
@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("point", POINTS)
def test_nothing_is_lost_or_written_twice(bench, point, restart, rest):
    bench.run("ALTER SYSTEM SET logical_compaction_window = '1ms'")
    made(bench, rest, "PRIMARY KEY (k)" if rest == UPSERT else "")
    bench.tick()
    bench.opener.clock.advance(1_000)
    with armed({point: "raise"}):
        try:
            bench.run("ALTER SINK s SET FROM b")
            bench.db.tick()
        except FailpointRaised:
            pass
    if restart:
        bench.crash()
    bench.run("ALTER SINK s SET FROM b")
    bench.tick()
    if restart:
        bench.crash()
    bench.run("INSERT INTO b VALUES (4, 40)")
    bench.tick(3)
    assert held(bench) == Counter(bench.rows("SELECT * FROM b"))
    changes = [(k, v) for _, k, v in said(bench)]
    assert Counter(changes) == Counter({(1, 10), (2, 20), (1, None), (3, 30), (4, 40)})
    assert bench.db.check() == []


def test_a_sink_that_lags_says_what_the_old_relation_had_first(bench):
    bench.run("ALTER SYSTEM SET logical_compaction_window = '1ms'")
    made(bench)
    bench.tick()
    bench.kafka.running = False
    bench.run("INSERT INTO a VALUES (5, 50)")
    bench.tick(3)
    bench.run("ALTER SINK s SET FROM b")
    bench.tick(3)
    bench.crash()
    bench.run("DELETE FROM b WHERE k = 3")
    bench.tick(3)
    with pytest.raises(Error, match="sink s depends on table a"):
        bench.run("DROP TABLE a")
    bench.kafka.running = True
    bench.tick(2)
    assert [(k, v) for _, k, v in said(bench)[2:3]] == [(5, 50)]
    assert {(k, v) for _, k, v in said(bench)[3:6]} == {(1, None), (5, None), (3, 30)}
    assert [(k, v) for _, k, v in said(bench)[6:]] == [(3, None)]
    bench.run("DROP TABLE a")
    assert bench.db.check() == []


def test_the_old_relation_can_go_and_the_new_one_may_be_younger_than_the_sink(bench):
    made(bench)
    bench.run("CREATE MATERIALIZED VIEW young AS SELECT k, v FROM b WHERE k > 2")
    bench.run("ALTER SINK s SET FROM young")
    bench.tick()
    bench.run("DROP TABLE a")
    bench.crash()
    ((_, text),) = bench.rows("SHOW CREATE SINK s")
    assert "FROM young INTO KAFKA" in text
    assert bench.rows("SHOW SINKS") == [("s",)]
    bench.run("INSERT INTO b VALUES (7, 70)")
    bench.tick()
    assert held(bench) == Counter([(3, 30), (7, 70)])
    with pytest.raises(Error, match="depends on"):
        bench.run("DROP MATERIALIZED VIEW young")
    bench.run("DROP SINK s")
    assert bench.rows("SHOW SINKS") == []
    assert bench.rows("SELECT * FROM reclock.holds") == []
    bench.run("DROP MATERIALIZED VIEW young")
    bench.crash()
    assert bench.db.check() == []


def test_a_new_relation_gets_a_sink_past_the_error_of_the_old_one(bench):
    made(bench)
    bench.run("CREATE MATERIALIZED VIEW m AS SELECT k, 100 / v AS v FROM a")
    bench.run("ALTER SINK s SET FROM m")
    bench.tick()
    assert held(bench) == Counter([(1, 10), (2, 5)])
    bench.run("INSERT INTO a VALUES (3, 0)")
    bench.tick()
    assert bench.status() == "stalled"
    bench.run("ALTER SINK s SET FROM b")
    bench.crash()
    bench.tick(2)
    assert bench.status() == "running"
    assert held(bench) == Counter([(2, 20), (3, 30)])


def test_a_new_relation_with_an_error_is_waited_for(bench):
    made(bench)
    bench.run(
        "INSERT INTO b VALUES (4, 0)",
        "CREATE MATERIALIZED VIEW m AS SELECT k, 100 / v AS v FROM b",
    )
    bench.tick()
    bench.run("ALTER SINK s SET FROM m")
    bench.run("INSERT INTO a VALUES (9, 90)")
    bench.tick(2)
    assert bench.status() == "stalled"
    assert held(bench) == Counter([(1, 10), (2, 20)])
    bench.crash()
    bench.run("DELETE FROM b WHERE k = 4")
    bench.tick()
    assert bench.status() == "running"
    assert held(bench) == Counter([(2, 5), (3, 3)])


def test_a_sink_made_while_there_is_an_error_waits_for_it_to_go(bench):
    bench.run(
        "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)", "INSERT INTO t VALUES (1, 0), (2, 5)"
    )
    bench.run("CREATE MATERIALIZED VIEW m AS SELECT k, 10 / v AS v FROM t")
    bench.tick()
    bench.run(
        "CREATE SINK s FROM m INTO KAFKA BROKER 'b:1' TOPIC 'out' KEY (k) NOT ENFORCED FORMAT JSON "
        "ENVELOPE UPSERT WITH (reuse_topic = true)"
    )
    bench.tick()
    assert bench.status() == "stalled"
    assert bench.messages() == []
    bench.run("DELETE FROM t WHERE v = 0")
    bench.tick()
    assert held(bench) == Counter([(2, 2)])


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ("k, v::text AS v", 'column "v" is of type text, not bigint'),
        ("k", 'it has no column "v"'),
        ("k, v, v AS w", 'column "w" is one too many'),
        ("v, k", 'column "v" is where "k" has to be'),
        ("k % 2 AS k, v", "may not be unique"),
    ],
)
def test_columns_that_are_not_alike_are_refused_by_name(bench, columns, names):
    made(bench)
    bench.run(f"CREATE MATERIALIZED VIEW m AS SELECT {columns} FROM b")
    before = sink_of(bench)
    with pytest.raises(Error) as caught:
        bench.run("ALTER SINK s SET FROM m")
    assert names in caught.value.message
    assert caught.value.code == "42P17"
    assert caught.value.hint
    assert sink_of(bench) is before


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("ALTER SINK nope SET FROM b", "42P01"),
        ("ALTER SINK a SET FROM b", "42809"),
        ("ALTER SINK s SET FROM nope", "42P01"),
        ("ALTER SINK s SET FROM v", "0A000"),
        ("ALTER SINK s SET FROM elsewhere", "0A000"),
        ("ALTER TABLE a SET FROM b", "42601"),
        ("ALTER SINK s SET (RETAIN HISTORY FOR '1h')", "42809"),
    ],
)
def test_what_cannot_be_altered(bench, statement, code):
    made(bench)
    bench.run(
        "CREATE VIEW v AS SELECT * FROM b",
        "CREATE TABLE elsewhere (k BIGINT PRIMARY KEY, v BIGINT) WITH (timeline = 'x')",
    )
    with pytest.raises(Error) as caught:
        bench.run(statement)
    assert caught.value.code == code


def test_avro_wants_the_same_columns_to_be_nullable(bench):
    with running_registry() as registry:
        made(
            bench,
            f"KEY (k) FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry.url}' ENVELOPE UPSERT",
        )
        bench.run("CREATE TABLE c (k BIGINT PRIMARY KEY, v BIGINT NOT NULL)")
        with pytest.raises(Error, match='column "v" may not be NULL'):
            bench.run("ALTER SINK s SET FROM c")
        bench.run("ALTER SINK s SET FROM b")
        bench.tick()
        assert len(bench.messages()) == 4
        assert not [path for path in registry.asked if path.count("versions") > 1]


def test_to_what_it_is_made_of_already_is_no_change(bench):
    made(bench)
    before = sink_of(bench)
    bench.run("ALTER SINK s SET FROM a")
    assert sink_of(bench) is before


def test_from_rows_that_repeat_to_a_key_that_is_unique(bench):
    bench.run(
        "CREATE TABLE a (k BIGINT, v BIGINT)", "CREATE TABLE b (k BIGINT PRIMARY KEY, v BIGINT)"
    )
    bench.run("INSERT INTO a VALUES (1, 10), (1, 11), (2, 20)", "INSERT INTO b VALUES (1, 10)")
    bench.run(
        f"CREATE SINK s FROM a INTO KAFKA BROKER 'b:1' TOPIC 'out' {REPEATS} "
        "WITH (reuse_topic = true)"
    )
    bench.tick()
    bench.run("ALTER SINK s SET FROM b")
    assert sink_of(bench).shadow, "until what repeats is not needed any more"
    bench.tick()
    assert held(bench) == Counter([(1, 10)])
    assert not sink_of(bench).shadow
    bench.run("UPDATE b SET v = 12")
    bench.tick()
    assert held(bench) == Counter([(1, 12)])
    bench.run("ALTER SINK s SET FROM a")
    bench.crash()
    bench.tick()
    assert held(bench) == Counter([(1, 11), (2, 20)])
    bench.run("DELETE FROM a WHERE v = 11")
    bench.tick()
    assert held(bench) == Counter([(1, 10), (2, 20)])
    assert bench.db.check() == []


def test_threads_write_settle_and_end(opener):
    db = opener(background=True)
    for name in ("a", "b"):
        db.execute(f"CREATE TABLE {name} (k BIGINT, v BIGINT)")
        db.execute(f"INSERT INTO {name} VALUES (1, {ord(name)})")
    db.execute(
        f"CREATE SINK s FROM a INTO KAFKA BROKER 'b:1' TOPIC 'out' {REPEATS} "
        "WITH (reuse_topic = true)"
    )
    for name in "baba":
        db.execute(f"ALTER SINK s SET FROM {name}")
        opener.clock.advance(1_000)
    deadline = monotonic() + 60
    while len(db._core.world.catalog[db._core.world.catalog.find(("s",)).id].phases) > 1:
        assert monotonic() < deadline, db.execute("SELECT * FROM reclock.sink_status").rows
        opener.clock.advance(1_000)
        sleep(0.05)
    db.execute("DROP TABLE b")
    db.execute("DROP SINK s")
    assert db.execute("SELECT * FROM reclock.holds").rows == []


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 3)),
        st.tuples(st.just("take"), st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 3)),
        st.tuples(st.just("alter"), st.sampled_from("abm"), st.just(0), st.just(0)),
        st.tuples(
            st.sampled_from(["tick", "tick", "crash", "down", "up"]),
            st.just(""), st.just(0), st.just(0),
        ),
    ),
    max_size=25,
)  # fmt: skip


def shown(rows, rest):
    """Return what the topic has to have of the rows of a relation."""
    if rest != REPEATS:
        return Counter(rows)
    found = {}
    for k, v in rows:
        found[k] = max(found.get(k, v), v, key=lambda value: f"{value}}}")  # by its bytes
    return Counter(found.items())


@settings(max_examples=20, deadline=None)
@example([("alter", "b", 0, 0), ("tick", "", 0, 0), ("alter", "b", 0, 0)], UPSERT, "1ms")
@given(STEPS, st.sampled_from([UPSERT, REPEATS, DEBEZIUM]), st.sampled_from(["1ms", "1s"]))
def test_the_topic_is_a_function_of_the_relation_of_each_time(make_bench, steps, rest, window):
    bench = make_bench()
    bench.run(f"ALTER SYSTEM SET logical_compaction_window = '{window}'")
    made(bench, rest, "PRIMARY KEY (k)" if rest == UPSERT else "")
    bench.run("CREATE MATERIALIZED VIEW m AS SELECT k, max(v) AS v FROM a GROUP BY k")
    phases, seen = {0: "a"}, {}
    for what, name, k, v in steps:
        match what:
            case "put" if rest == UPSERT:
                bench.run(
                    f"DELETE FROM {name} WHERE k = {k}", f"INSERT INTO {name} VALUES ({k}, {v})"
                )
            case "put":
                bench.run(f"INSERT INTO {name} VALUES ({k}, {v})")
            case "take":
                bench.run(f"DELETE FROM {name} WHERE k = {k}")
            case "alter":
                bench.run(f"ALTER SINK s SET FROM {name}")
                if name != phases[max(phases)]:  # the same relation again: nothing begins
                    phases[int(sink_of(bench).phases[-1].start)] = name
            case "tick":
                bench.tick()
            case "crash":
                bench.crash()
            case "down" | "up":
                bench.kafka.running = what == "up"
        for of in "abm":
            result = bench.db.execute(f"SELECT k, v FROM {of}")
            seen[int(result.timestamp), of] = result.rows
    bench.kafka.running = True
    bench.tick(12)
    name = [name for start, name in sorted(phases.items())][-1]
    assert held(bench) == shown(bench.rows(f"SELECT k, v FROM {name}"), rest)
    for (time, of), rows in seen.items():
        if [name for start, name in sorted(phases.items()) if start <= time][-1] == of:
            assert held(bench, time) == shown(rows, rest), "at every time"
    times = [m.time for m in bench.messages()]
    assert times == sorted(times)
    assert len(sink_of(bench).phases) == 1
    assert bench.db.check() == []


@pytest.mark.parametrize("point", ["ddl.prepare.before", "ddl.prepare.after"])
def test_what_it_looks_up_is_arranged_while_others_write(bench, point, monkeypatch):
    made(bench, REPEATS, key="")
    bench.tick()
    session, left = bench.db.session(), iter(["INSERT INTO b VALUES (3, 99), (5, 1), (5, 7)"])
    monkeypatch.setattr("reclock.engine.catalog_change._hydrate", None)  # nothing is under the lock

    def go_on():
        for sql in left:
            session.execute(sql)
            bench.tick()

    with armed({point: go_on}):
        bench.run("ALTER SINK s SET FROM b")
    assert not list(left), "it was not on the way"
    bench.tick()
    bench.run("DELETE FROM b WHERE v = 99", "DELETE FROM b WHERE v = 7")
    bench.tick()
    assert held(bench) == Counter({(2, 20): 1, (3, 30): 1, (5, 1): 1})
    assert bench.db.check() == []


REUSE = "WITH (reuse_topic = true)"
REPLACE = "CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT k, "


def of_view(bench, rest=UPSERT):
    bench.run("CREATE TABLE a (k BIGINT, v BIGINT, PRIMARY KEY (k))")
    bench.run("INSERT INTO a VALUES (1, 10), (2, 20)")
    bench.run("CREATE MATERIALIZED VIEW m AS SELECT k, v FROM a")
    bench.run(f"CREATE SINK s FROM m INTO KAFKA BROKER 'b:1' TOPIC 'out' {rest} {REUSE}")


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("point", POINTS)
def test_a_view_that_is_replaced_goes_on_in_its_topic(bench, point, restart):
    of_view(bench)
    bench.tick()
    bench.opener.clock.advance(1_000)
    with armed({point: "raise"}):
        try:
            bench.run(REPLACE + "CASE WHEN k = 1 THEN 11 ELSE v END AS v FROM a WHERE k < 5")
            bench.db.tick()
        except FailpointRaised:
            pass
    if restart:
        bench.crash()
    bench.run(REPLACE + "CASE WHEN k = 1 THEN 11 ELSE v END AS v FROM a WHERE k < 5")
    bench.run("INSERT INTO a VALUES (4, 40), (5, 50)")
    bench.tick(3)
    assert [(k, v) for _, k, v in said(bench)[2:]] == [(1, 11), (4, 40)]
    assert held(bench) == Counter(bench.rows("SELECT * FROM m"))
    assert bench.db.check() == []


@pytest.mark.parametrize(
    ("rest", "query"),
    [
        (UPSERT, "a.v FROM a JOIN a AS b ON a.v = b.v"),
        (REPEATS, "v FROM a UNION ALL SELECT k, v FROM a"),
    ],
)
def test_a_key_that_is_unique_no_more_is_refused(bench, rest, query):
    of_view(bench, rest)
    with pytest.raises(Error) as caught:
        bench.run(f"CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT a.k, {query}")
    assert caught.value.code == "42P17"
    bench.run("INSERT INTO a VALUES (4, 40)")
    bench.tick(2)
    assert held(bench) == Counter({(1, 10): 1, (2, 20): 1, (4, 40): 1})
