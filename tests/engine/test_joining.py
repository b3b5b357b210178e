"""Sources and sinks that come while a tick computes are there at once, and right at every time.

The gate, the writes and the comparison are those of test_flights.py.
"""

from __future__ import annotations

import json
from collections import Counter
from time import sleep

import pytest

from reclock.testing.failpoints import FailpointRaised, armed
from reclock.testing.kafka_upstream import Record
from reclock.time.timeline import EPOCH_MS

from .test_flights import LONG, Air

FIRST = [Record(json.dumps({"n": n}).encode(), str(n).encode()) for n in range(4)]
MORE = [Record(json.dumps({"n": n}).encode(), str(n).encode()) for n in range(2, 7)]
SOURCES = {
    "none": "(n INT) {from} FORMAT JSON",
    "skip": "(n INT) {from} FORMAT JSON WITH (on_error = 'skip')",
    "upsert": "(k TEXT PRIMARY KEY, n INT) {from} KEY FORMAT TEXT VALUE FORMAT JSON"
    " ENVELOPE UPSERT",
    "grid": "(n INT) {from} FORMAT JSON WITH (timestamp_interval = '3ms')",
}


@pytest.fixture
def air(opener):
    made = Air(opener)
    yield made
    made.engine.going.set()
    made.pool.shutdown()


def now(air, sql):
    """Run a statement that must not wait for the tick under way."""
    return air.pool.submit(air.db.session().execute, sql).result(LONG)


def pass_time(air, times=4):
    for _ in range(times):
        air.opener.clock.advance(2)
        air.db.tick()


def source(air, kind):
    topic = air.opener.kafka.create_topic(1)
    given = SOURCES[kind].replace("{from}", f"FROM KAFKA BROKER 'b:1' TOPIC '{topic}'")
    return topic, f"CREATE SOURCE s {given}"


def agrees(air):
    """A view over a source is what the source says, and has no time before it can be read."""
    state = air.core.world[EPOCH_MS]
    item = air.core.world.catalog.find(("s",))
    since = int(air.core.world.bounds(item).since.element())
    assert since < state.upper
    for time in range(since, int(state.upper)):
        rows = air.db.execute(f"SELECT count(*), sum(n) FROM s AS OF {time}").rows
        assert air.db.execute(f"SELECT * FROM over AS OF {time}").rows == rows, time
        assert rows[0][0] >= len(FIRST), time


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_that_comes(air, kind, crash):
    topic, statement = source(air, kind)
    air.opener.kafka.produce(topic, 0, *FIRST)
    air.insert(1)
    steps = air.engine.steps
    with air.tick() as flying:
        now(air, statement)
        now(air, "CREATE MATERIALIZED VIEW over AS SELECT count(*) AS c, sum(n) AS s FROM s")
        air.insert(2)
        assert not flying.done()
        if crash:
            air.crash()
    if not crash:
        assert flying.exception() is None
        assert air.engine.steps == steps + 1, "the tick was not computed again"
    pass_time(air)
    agrees(air)
    air.opener.kafka.produce(topic, 0, *MORE)
    pass_time(air)
    found = sorted(air.db.execute("SELECT n FROM s").rows)
    upserts = kind == "upsert"
    assert found == sorted((n,) for n in (range(7) if upserts else [*range(4), *range(2, 7)]))
    agrees(air)
    air.compare()
    air.crash()
    air.compare()
    agrees(air)


def test_a_read_of_a_source_that_comes_has_what_was_there(air):
    topic, statement = source(air, "none")
    air.opener.kafka.produce(topic, 0, *FIRST)
    air.insert(1)
    with air.tick():
        now(air, statement)
        found = air.pool.submit(air.db.session().execute, "SELECT n FROM s ORDER BY n")
        sleep(0.1)
        assert not found.done()
    assert found.result(LONG).rows == [(0,), (1,), (2,), (3,)]
    air.compare()


def test_a_source_that_goes_or_changes_waits(air):
    topic, statement = source(air, "none")
    air.opener.kafka.produce(topic, 0, *FIRST)
    with air.tick():
        now(air, statement)
        altered = air.later("ALTER SOURCE s SET (on_error = 'skip')")
    altered.result(LONG)
    with air.tick():
        dropped = air.later("DROP SOURCE s")
    dropped.result(LONG)
    air.compare()


SINKS = {
    "file": "CREATE SINK out FROM {of} INTO FILE '{path}' FORMAT JSON ENVELOPE MATERIALIZE{more}",
    "shadow": "CREATE SINK out FROM {of} INTO KAFKA BROKER 'b:1' TOPIC 'out' KEY (odd) NOT ENFORCED"
    " FORMAT JSON ENVELOPE UPSERT WITH (reuse_topic = true)",
}


def told(path):
    """Return the updates that a file has, and up to which time it says them all."""
    messages = [json.loads(line) for line in path.read_text().splitlines()]
    updates = [update for message in messages for update in message.get("array", ())]
    uppers = [message["progress"]["upper"][0] for message in messages if "progress" in message]
    return [(u["time"], tuple(u["data"].values()), u["diff"]) for u in updates], max(uppers)


def follows(air, path, of):
    """The file is the relation at every time from its first one on."""
    updates, upper = told(path)
    first = min(time for time, _, _ in updates)
    assert upper > first + 2
    for time in range(first, upper):
        rows = Counter()
        for at, row, diff in updates:
            rows[row] += diff * (at <= time)
        assert +rows == Counter(air.db.execute(f"SELECT * FROM {of} AS OF {time}").rows), time
    return first


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("of", ["t", "v"])
def test_a_sink_that_comes(air, tmp_path, of, crash):
    path = tmp_path / "out.json"
    air.insert(1)
    pass_time(air, 1)
    before = air.insert(2)
    with air.tick() as flying:
        now(air, SINKS["file"].format(of=of, path=path, more=""))
        air.insert(3)
        assert not flying.done()
        if crash:
            air.crash()
    pass_time(air)
    air.insert(4)
    pass_time(air)
    assert follows(air, path, of) < before, "it begins before what was not complete"
    air.compare()
    air.crash()
    pass_time(air)
    follows(air, path, of)


def test_a_sink_that_looks_its_keys_up(air):
    air.insert(1)
    pass_time(air, 1)
    air.insert(2, 3)
    with air.tick() as flying:
        now(air, SINKS["shadow"].format(of="v"))
        air.insert(4)
        assert not flying.done()
    pass_time(air)
    air.delete(1)
    pass_time(air)
    status = air.db.execute("SELECT state, detail FROM reclock.sink_status").rows
    assert status == [("running", None)]
    air.compare()
    air.crash()
    air.compare()


def test_a_sink_without_a_snapshot_waits(air, tmp_path):
    """It has no row that was written before the statement."""
    path = tmp_path / "out.json"
    air.insert(1)
    pass_time(air, 1)
    air.insert(2)
    more = " WITH (snapshot = false)"
    with air.tick():
        made = air.later(SINKS["file"].format(of="t", path=path, more=more))
    made.result(LONG)
    air.insert(3)
    pass_time(air)
    assert [row[0] for _, row, _ in told(path)[0]] == [3]
    air.compare()


@pytest.mark.parametrize("point", ["ddl.publish.before", "ddl.publish.after"])
def test_a_crash_as_a_source_comes(air, point):
    topic, statement = source(air, "none")
    air.opener.kafka.produce(topic, 0, *FIRST)
    air.insert(1)
    with air.tick():
        with armed({point: "raise"}), pytest.raises(FailpointRaised):
            now(air, statement)
        air.crash()
    if air.core.world.catalog.find(("s",)) is None:
        assert point == "ddl.publish.before"
        air.db.execute(statement)
    pass_time(air)
    assert air.db.execute("SELECT n FROM s ORDER BY n").rows == [(0,), (1,), (2,), (3,)]
    air.compare()
