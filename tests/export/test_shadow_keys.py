"""Keys that may repeat: the topic is a function of the relation, whatever happens between."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.arrangement.shard import Shard
from reclock.engine.tick import tick

SINK = (
    "CREATE SINK s FROM {of} INTO KAFKA BROKER 'b:1' TOPIC 'out' KEY (k) NOT ENFORCED FORMAT JSON "
    "ENVELOPE UPSERT WITH (reuse_topic = true{options})"
)


def made(bench, of="t", options="", rows=()):
    bench.run("CREATE TABLE t (k BIGINT, v TEXT)")
    for row in rows:
        bench.run(f"INSERT INTO t VALUES {row}")
    bench.run("CREATE MATERIALIZED VIEW m AS SELECT k, v FROM t WHERE v <> 'z'")
    bench.run(SINK.format(of=of, options=options))
    return bench


def values(bench):
    return [message.value and json.loads(message.value)["v"] for message in bench.messages()]


def topic(bench):
    held = {}
    for message in bench.messages():
        key = json.loads(message.key)["k"]
        held.pop(key, None)
        if message.value is not None:
            held[key] = json.loads(message.value)["v"]
    return held


def shows(bench, of="t"):
    """Return what the topic has to have: the greatest row of each key."""
    found = {}
    for k, v in bench.db.execute(f"SELECT k, v FROM {of}").rows:
        found[k] = max(found.get(k) or "", v)
    return found


@pytest.mark.parametrize("restart", [True, False])
def test_shadowed_rows_say_nothing_and_revealed_ones_are_said(bench, restart):
    made(bench, rows=["(1, 'b')"])
    said = [["b"], ["b"], ["b"], ["b", "a"], ["b", "a", None], ["b", "a", None, "c"]]
    for statement, expected in zip(
        (
            "INSERT INTO t VALUES (1, 'a')",
            "INSERT INTO t VALUES (1, 'a')",
            "DELETE FROM t WHERE v = 'b'",
            "DELETE FROM t WHERE k = 1",
            "INSERT INTO t VALUES (1, 'c')",
        ),
        said[1:],
        strict=True,
    ):
        bench.tick()
        if restart:
            bench.crash()
        bench.run(statement)
        bench.tick()
        assert values(bench) == expected
    assert bench.db.check() == []


def test_two_rows_of_a_key_are_a_fault_of_the_sink(bench):
    made(bench, rows=["(1, 'a'), (2, 'x')"])
    bench.tick()
    assert bench.status("detail") is None
    bench.run("INSERT INTO t VALUES (1, 'b')")
    bench.tick()
    assert bench.status() == "running"
    detail = bench.status("detail")
    assert 'key {"k":1} has 2 rows; one of them was written' in detail
    assert sorted(values(bench)[:2]) == ["a", "x"]
    assert values(bench)[2:] == ["b"]


def test_a_snapshot_with_a_crowd(bench):
    made(bench, rows=["(1, 'a'), (1, 'c'), (1, 'b'), (2, 'x')"])
    bench.tick()
    assert topic(bench) == {1: "c", 2: "x"}
    assert "has 3 rows" in bench.status("detail")


def test_without_a_snapshot_what_is_there_casts_shadows_all_the_same(bench):
    made(bench, rows=["(1, 'b')"], options=", snapshot = false")
    bench.tick()
    bench.run("INSERT INTO t VALUES (1, 'a')")
    bench.tick()
    assert values(bench) == []
    bench.run("DELETE FROM t WHERE v = 'b'")
    bench.tick()
    assert values(bench) == ["a"]


def test_an_arrangement_that_is_younger_than_the_sink(bench, monkeypatch):
    """Time goes on while the topics are made: the sink begins before its arrangement does."""
    bench.run("ALTER SYSTEM SET logical_compaction_window = '1ms'")
    admin = type(bench.opener.outlets.admin(None))
    create = admin.create

    def slow(self, new):
        bench.opener.clock.advance(50)
        return create(self, new)

    monkeypatch.setattr(admin, "create", slow)
    made(bench, rows=["(1, 'b')"], options=", snapshot = false")
    bench.kafka.running = False
    for statement in ("INSERT INTO t VALUES (1, 'a')", "DELETE FROM t WHERE v = 'b'"):
        bench.run(statement)
        bench.tick()
    bench.crash()
    bench.kafka.running = True
    bench.tick(2)
    assert values(bench) == ["a"]
    assert bench.db.check() == []


def test_a_sink_that_lags_is_looked_up_at_what_it_has_written(bench):
    bench.run("ALTER SYSTEM SET logical_compaction_window = '1ms'")
    made(bench, rows=["(1, 'c'), (1, 'b'), (1, 'a')"])
    bench.tick()
    bench.kafka.running = False
    for v in "cb":
        bench.run(f"DELETE FROM t WHERE v = '{v}'")
        bench.tick(3)
        bench.db._core.merger.wait()
    bench.crash()
    bench.tick(3)
    bench.kafka.running = True
    bench.tick()
    assert values(bench) == ["c", "b", "a"]
    assert bench.db.check() == []


def arrangements(bench):
    query = "SELECT object, operator FROM reclock.arrangement_sizes WHERE operator IN "
    return bench.rows(query + "('sink', 'index')")


def test_the_arrangement_comes_and_goes_with_the_sink(bench):
    made(bench, of="m")
    assert arrangements(bench) == [("m", "sink")]
    bench.crash()
    assert arrangements(bench) == [("m", "sink")]
    assert bench.db.check() == []
    bench.run("DROP SINK s")
    assert arrangements(bench) == []
    assert bench.rows("SELECT * FROM reclock.holds") == []
    assert bench.db.check() == []


def test_an_index_by_the_same_columns_is_shared(bench):
    bench.run("CREATE TABLE t (k BIGINT, v TEXT)", "CREATE INDEX i ON t (k)")
    bench.run(SINK.format(of="t", options=""))
    assert arrangements(bench) == [("i", "index")]
    bench.run("DROP INDEX i")
    assert arrangements(bench) == [("t", "sink")], "it stays for the sink"
    bench.run("INSERT INTO t VALUES (1, 'a'), (1, 'b')")
    bench.tick()
    assert topic(bench) == {1: "b"}
    assert bench.db.check() == []


def test_a_key_that_is_unique_needs_no_arrangement(bench):
    bench.run("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT)")
    bench.run(SINK.format(of="t", options=""))
    assert arrangements(bench) == []


def test_the_contents_are_looked_up_and_never_scanned(bench, monkeypatch):
    made(bench, rows=[f"({n}, 'a'), ({n}, 'b')" for n in range(20)])
    bench.tick()
    timeline = next(iter(bench.db._core.world.timelines))
    bench.run("DELETE FROM t WHERE k = 7 AND v = 'b'")
    bench.opener.clock.advance(1_000)
    tick(bench.db._core, timeline, regular=True)
    scanned = []
    with monkeypatch.context() as patched:
        patched.setattr(Shard, "snapshot", lambda *given: scanned.append(given) or iter(()))
        bench.db._core.exporters.write(timeline)
    assert not scanned
    assert topic(bench) == shows(bench)
    assert topic(bench)[7] == "a"


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 2), st.sampled_from("abcz")),
        st.tuples(st.just("take"), st.integers(0, 2), st.sampled_from("abcz")),
        st.tuples(st.just("clear"), st.integers(0, 2), st.just("")),
        st.tuples(st.sampled_from(["tick", "crash", "down", "up"]), st.just(0), st.just("")),
    ),
    max_size=25,
)


@settings(max_examples=25, deadline=None)
@given(CHANGES, st.sampled_from(["t", "m"]), st.sampled_from(["1ms", "1s"]))
def test_the_topic_is_a_function_of_the_relation(make_bench, changes, of, window):
    bench = make_bench()
    bench.run(f"ALTER SYSTEM SET logical_compaction_window = '{window}'")
    made(bench, of, rows=["(1, 'a')"])
    history = {}
    for what, k, v in changes:
        match what:
            case "add":
                bench.run(f"INSERT INTO t VALUES ({k}, '{v}')")
            case "take":
                bench.run(f"DELETE FROM t WHERE k = {k} AND v = '{v}'")
            case "clear":
                bench.run(f"DELETE FROM t WHERE k = {k}")
            case "tick":
                bench.tick()
            case "crash":
                bench.crash()
            case "down" | "up":
                bench.kafka.running = what == "up"
        result = bench.db.execute(f"SELECT k, v FROM {of}")
        history[result.timestamp] = shows(bench, of)
    bench.kafka.running = True
    bench.tick(3)
    assert topic(bench) == shows(bench, of)
    times = [message.time for message in bench.messages()]
    assert times == sorted(times)
    for time, expected in history.items():
        held = {}
        for message in bench.messages():
            if message.time <= time:
                value = message.value and json.loads(message.value)["v"]
                held[json.loads(message.key)["k"]] = value
        assert {k: v for k, v in held.items() if v is not None} == expected, "at every time"
    assert bench.db.check() == []
