"""What sinks write is read back: every format and envelope, from tables, sources and views."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

from model.cdcv2_codec import decode
from model.cdcv2_reader import Reader
from reclock.errors import Error, SourceUnavailable
from reclock.testing.kafka_upstream import Record
from reclock.testing.schema_registry import running_registry

COLUMNS = (
    "k BIGINT NOT NULL, b BOOLEAN, i INTEGER, n NUMERIC(12,3), d DOUBLE PRECISION, "
    "x TEXT, y BYTEA, j JSON, day DATE, at TIMESTAMP, tz TIMESTAMPTZ, a INTEGER[]"
)
ROWS = [
    "1, true, -5, 12.500, 0.1, 'it''s \"so\"', '\\x00ff', '{\"a\": [1, null]}', '2026-01-31', "
    "'2026-01-31 13:37:00.000001', '2026-01-31 13:37:00+02', ARRAY[1, NULL, 3]",
    "2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
    "3, false, 7, -0.001, 'NaN', '', '', '[]', '1969-12-31', '1969-12-31 23:59:59', "
    "'1970-01-01 00:00:00Z', NULL",
]


@pytest.fixture
def registry():
    with running_registry("alice:s3cret") as served:
        yield served


LOGIN = ", registry.basic.auth.user.info = 'alice:s3cret'"


def formats(name: str, registry) -> tuple[str, str]:
    if name == "json":
        return "FORMAT JSON", ""
    return f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry.url}'", LOGIN


def sink(bench, relation, rest, options=""):
    bench.run(
        f"CREATE SINK s FROM {relation} INTO KAFKA BROKER 'b:1' TOPIC 'out' {rest} "
        f"WITH (reuse_topic = true{options})"
    )


@pytest.mark.parametrize("form", ["json", "avro"])
@pytest.mark.parametrize("envelope", ["UPSERT", "DEBEZIUM"])
@pytest.mark.parametrize("relation", ["t", "m"])
def test_what_a_sink_writes_a_source_reads_back(bench, registry, relation, envelope, form):
    given, options = formats(form, registry)
    bench.run(
        f"CREATE TABLE t ({COLUMNS}, PRIMARY KEY (k))",
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM t",
    )
    bench.run(*(f"INSERT INTO t VALUES ({row})" for row in ROWS[:2]))
    sink(bench, relation, f"KEY (k) {given} ENVELOPE {envelope}", options)
    bench.tick()
    bench.run(
        f"CREATE SOURCE back ({COLUMNS}, PRIMARY KEY (k)) FROM KAFKA BROKER 'b:1' TOPIC 'out' "
        f"{given} ENVELOPE {envelope} WITH (on_error = 'stop'{options})"
    )
    for statement in (
        f"INSERT INTO t VALUES ({ROWS[2]})",
        "UPDATE t SET x = 'other', n = 1 WHERE k <> 2",
        "DELETE FROM t WHERE k = 1",
        "UPDATE t SET k = 9 WHERE k = 2",
    ):
        bench.run(statement)
        bench.tick(2)
        there, back = (bench.rows(f"SELECT * FROM {name}") for name in (relation, "back"))
        assert str(back) == str(there), "NaN too"
    assert len(bench.rows("SELECT * FROM back")) == 2


@pytest.mark.parametrize("form", ["json", "avro"])
def test_the_round_trip_of_cdcv2_is_the_identity_at_every_time(bench, registry, form):
    given, options = formats(form, registry)
    kept = "RETAIN HISTORY FOR '1 h'"
    bench.run(f"CREATE TABLE t ({COLUMNS}) WITH ({kept})", f"INSERT INTO t VALUES ({ROWS[0]})")
    sink(bench, "t", f"{given} ENVELOPE MATERIALIZE", options)
    begun = int(bench.opener.clock.now_ms())
    for statement in (
        f"INSERT INTO t VALUES ({ROWS[2]}), ({ROWS[1]}), ({ROWS[1]})",
        "UPDATE t SET x = 'other', n = 1 WHERE k <> 2",
        "DELETE FROM t WHERE k = 1",
    ):
        bench.run(statement)
        bench.tick()
    bench.crash()
    bench.run(
        f"CREATE SOURCE back ({COLUMNS}) FROM KAFKA BROKER 'b:1' TOPIC 'out' {given} ENVELOPE "
        f"MATERIALIZE WITH (epoch_ms_timeline = true, on_error = 'stop', {kept}{options})"
    )
    bench.tick()
    (upper,) = bench.db.execute("SELECT upper FROM reclock.frontiers WHERE object = 'back'").rows[0]
    assert upper > begun + 3_000
    for time in range(begun, upper, 500):
        there, back = (bench.rows(f"SELECT * FROM {n} AS OF {time}") for n in ("t", "back"))
        assert str(back) == str(there), time


def test_a_sink_of_a_source(bench):
    bench.kafka.recreate_topic("in", 2)
    bench.run(
        "CREATE SOURCE c (k BIGINT, v TEXT, PRIMARY KEY (k)) FROM KAFKA BROKER 'b:1' TOPIC 'in' "
        "FORMAT JSON ENVELOPE UPSERT"
    )
    sink(bench, "c", "KEY (k) FORMAT JSON ENVELOPE UPSERT")
    for n in range(4):
        key, value = json.dumps({"k": n % 3}).encode(), json.dumps({"v": f"v{n}"}).encode()
        bench.kafka.produce("in", n % 2, Record(value, key))
        bench.tick()
        bench.crash()
    bench.kafka.produce("in", 1, Record(None, b'{"k": 1}'))
    bench.tick(2)
    held = {}
    for message in bench.messages():
        held[json.loads(message.key)["k"]] = message.value and json.loads(message.value)
    there = sorted((v["k"], v["v"]) for v in held.values() if v)
    assert there == bench.rows("SELECT * FROM c") == [(0, "v3"), (2, "v2")]
    positions = [m.value for m in bench.messages("out-consistency") if b'"sink"' in m.key]
    assert json.loads(positions[-1])["positions"] == {"c": {"0": 2, "1": 3}}


def test_materialize_says_what_changed_and_that_it_is_all(bench):
    bench.run("CREATE TABLE t (k BIGINT, v TEXT)", "INSERT INTO t VALUES (1, 'a'), (1, 'a')")
    sink(bench, "t", "FORMAT JSON ENVELOPE MATERIALIZE")
    bench.tick()
    bench.run("INSERT INTO t VALUES (2, NULL)")
    bench.tick()
    bench.crash()
    bench.run("DELETE FROM t WHERE k = 1")
    bench.tick(12)
    reader, held = Reader(), {}
    for message in bench.messages():
        closed = reader.receive(decode(message.value.decode()))
        for update in closed.updates if closed else ():
            row = tuple(update.data.values())
            held[row] = held.get(row, 0) + update.diff
    assert {row: n for row, n in held.items() if n} == {(2, None): 1}
    assert [*reader.upper] == [bench.status("frontier")], "a reader knows what is complete"
    assert all(m.key is None for m in bench.messages())


def test_a_source_reads_cdcv2_back_at_the_very_times(bench):
    bench.run("CREATE TABLE t (k BIGINT, v TEXT)", "INSERT INTO t VALUES (1, 'a'), (1, 'a')")
    sink(bench, "t", "FORMAT JSON ENVELOPE MATERIALIZE")
    bench.tick()
    bench.run(
        "CREATE SOURCE back (k BIGINT, v TEXT) FROM KAFKA BROKER 'b:1' TOPIC 'out' FORMAT JSON "
        "ENVELOPE MATERIALIZE WITH (retain_history = '1h')"
    )
    seen = {}
    for statement in ("INSERT INTO t VALUES (2, NULL)", "DELETE FROM t WHERE k = 1"):
        bench.run(statement)
        bench.tick(2)
        result = bench.db.execute("SELECT * FROM t")
        seen[int(result.timestamp)] = sorted(result.rows, key=repr)
    bench.tick(12)
    assert bench.rows("SELECT * FROM back") == bench.rows("SELECT * FROM t") == [(2, None)]
    for time, rows in seen.items():
        assert bench.rows(f"SELECT * FROM back AS OF {time}") == rows


def test_schemas_are_registered_when_the_sink_is_made_and_never_again(bench, registry):
    given, options = formats("avro", registry)
    bench.run("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT)", "INSERT INTO t VALUES (1, 'a')")
    sink(bench, "t", f"KEY (k) {given} ENVELOPE UPSERT", options)
    registered = [path for path in registry.asked if path.endswith("/versions")]
    assert registered == ["/subjects/out-value/versions", "/subjects/out-key/versions"]
    for _ in range(2):
        bench.tick()
        bench.crash()
        bench.run("UPDATE t SET v = v || '.'")
    bench.tick()
    assert [path for path in registry.asked if path.endswith("/versions")] == registered
    assert len({m.value[:5] for m in bench.messages()}) == 1
    assert len(bench.messages()) == 3


def test_nobody_sees_the_password_of_a_registry(bench, registry):
    given, options = formats("avro", registry)
    bench.run("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    sink(bench, "t", f"KEY (k) {given} ENVELOPE UPSERT", options)
    for n in range(2):
        ((_, text),) = bench.rows("SHOW CREATE SINK s")
        shown = bench.rows("SELECT sql FROM reclock.objects WHERE name = 's'")
        assert "s3cret" not in text + str(shown)
        assert "'***'" in text
        bench.run(f"INSERT INTO t VALUES ({n})")
        bench.crash()
        bench.tick()
        assert len(bench.messages()) == n + 1, "it is still let in"


def test_a_registry_that_is_down_makes_no_sink(bench):
    bench.run("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    given = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://127.0.0.1:1'"
    with pytest.raises(SourceUnavailable) as caught:
        sink(bench, "t", f"KEY (k) {given} ENVELOPE UPSERT")
    assert "http://127.0.0.1:1" in caught.value.message
    said = "see that the address is right and that the registry runs; what exists already is tried "
    assert caught.value.hint == f"{said}again by itself"  # CREATE SINK is not
    assert bench.rows("SHOW SINKS") == []


@contextmanager
def unreachable(bench):
    """Let the registry of the sink be at an address where nobody is."""
    ((sink_,),) = [[i] for i in bench.db._core.world.catalog.items.values() if i.kind == "sink"]
    form = sink_.statement.format
    url = form.registry
    object.__setattr__(form, "registry", "http://127.0.0.1:1")
    yield
    object.__setattr__(form, "registry", url)


def test_a_registry_that_is_down_at_a_restart_stalls_the_sink_alone(bench, registry):
    given, options = formats("avro", registry)
    bench.run("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    sink(bench, "t", f"KEY (k) {given} ENVELOPE UPSERT", options)
    bench.tick()
    bench.crash()
    with unreachable(bench):
        bench.run("INSERT INTO t VALUES (1)")
        bench.tick()
        assert bench.status() == "stalled"
        assert "the schema registry at http://127.0.0.1:1 does not answer" in bench.status("detail")
        assert bench.messages() == []
        assert bench.rows("SELECT * FROM t") == [(1,)]
    bench.tick()
    assert bench.status() == "running"
    assert len(bench.messages()) == 1


@pytest.mark.parametrize(
    ("rest", "code"),
    [
        ("KEY (k) FORMAT CSV ENVELOPE UPSERT", "0A000"),
        ("FORMAT JSON ENVELOPE UPSERT", "42P17"),
        ("KEY (k) FORMAT JSON ENVELOPE MATERIALIZE", "42P17"),
        ("KEY (z) FORMAT JSON ENVELOPE DEBEZIUM", "42703"),
        ("KEY (j) FORMAT JSON ENVELOPE DEBEZIUM", "42P17"),
        ("KEY (k) FORMAT AVRO USING SCHEMA '\"long\"' ENVELOPE UPSERT", "42P17"),
        ("KEY (k) FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'x' ENVELOPE UPSERT", "22023"),
        ("FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://x' ENVELOPE MATERIALIZE", "42P17"),
        ("KEY (k) FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://x' ENVELOPE UPSERT", "42P17"),
    ],
)
def test_what_no_encoder_does_is_refused_before_anybody_is_asked(bench, rest, code):
    bench.run('CREATE TABLE t (k BIGINT PRIMARY KEY, j JSON, "a b" BIGINT)')
    bench.kafka.running = False
    with pytest.raises(Error) as caught:
        bench.run(f"CREATE SINK s FROM t INTO KAFKA BROKER 'b' TOPIC 'o' {rest}")
    assert caught.value.code == code
    assert caught.value.hint
