"""Records that do not decode, skipped: dead letters, and ALTER SOURCE … SET (on_error = …)."""

from __future__ import annotations

import json

import pytest

from engines.local_engine import LocalEngine
from engines.model_engine import ModelEngine
from reclock.engine import dead_letters as letters
from reclock.errors import Error
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.testing.kafka_upstream import Record

LETTERS = (
    'SELECT number, timestamp, partition, "offset", key, value, code FROM reclock.dead_letters'
)
SKIP = "ALTER SOURCE s SET (on_error = 'skip')"
REPORT = "ALTER SOURCE s SET (on_error = 'report')"
INIT = "(id BIGINT, x TEXT)"
KEYED = "(id BIGINT PRIMARY KEY, x TEXT)"


class Feed:
    """A source ``s`` over a topic in memory."""

    def __init__(self, opener, columns=INIT, rest="FORMAT JSON", partitions=1):
        self.opener, self.kafka = opener, opener.kafka
        self.topic = self.kafka.create_topic(partitions)
        self.db = opener()
        self.create(columns, rest)

    def create(self, columns, rest, name="s"):
        self.db.execute(
            f"CREATE SOURCE {name} {columns} FROM KAFKA BROKER 'b' TOPIC '{self.topic}' {rest}"
        )

    def send(self, *values, partition=0):
        """Write values, and pairs of key and value: objects as JSON, bytes as they are."""
        for given in values:
            key, value = given if isinstance(given, tuple) else (None, given)
            self.kafka.produce(self.topic, partition, Record(_bytes(value), _bytes(key)))

    def tick(self):
        self.opener.clock.advance(1_000)
        self.db.tick()

    def rows(self, query="SELECT * FROM s"):
        return sorted(self.db.execute(query).rows, key=repr)

    def code(self, query="SELECT * FROM s"):
        with pytest.raises(Error) as caught:
            self.db.execute(query)
        return caught.value.code

    def restart(self):
        self.db = self.opener.reopened(self.db)


def _bytes(value):
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


@pytest.fixture(params=[ModelEngine, LocalEngine], ids=["model", "dataflow"])
def engine(opener, request):
    opener.engine = request.param
    return opener


def test_a_bad_record_is_a_letter_at_the_time_of_the_rows_around_it(engine):
    feed = Feed(engine, rest="FORMAT JSON WITH (on_error = 'skip')")
    feed.db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) FROM s")
    feed.send({"id": 1}, (b"k", b"nope"), {"id": 2})
    feed.tick()
    assert feed.rows() == [(1, None), (2, None)]
    assert feed.rows("SELECT * FROM v") == [(2,)]
    assert feed.rows("SELECT * FROM reclock.errors") == []
    (bound,) = feed.rows("SELECT max(timestamp) FROM reclock.bindings")
    assert feed.rows(LETTERS) == [(1, *bound, "0", 1, b"k", b"nope", "22P04")]
    (reason,) = feed.rows("SELECT reason FROM reclock.dead_letters")[0]
    assert reason.startswith("its value cannot be decoded: not JSON")
    status = "SELECT state, errors, skipped FROM reclock.source_status"
    assert feed.rows(status) == [("running", 1, 1)]
    feed.restart()
    assert len(feed.rows(LETTERS)) == 1
    feed.tick()
    assert feed.rows(status) == [("running", 0, 1)]  # nothing is read again, nothing forgotten
    assert feed.db.check() == []


def test_a_running_source_is_unblocked_and_so_is_the_view_over_it(engine):
    feed = Feed(engine)
    feed.db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) FROM s")
    feed.send({"id": 1}, (b"k", b"nope"), {"id": 2})
    feed.tick()
    (before,) = feed.rows("SELECT upper FROM reclock.frontiers WHERE object = 's'")[0]
    assert feed.code() == feed.code("SELECT * FROM v") == "22P04"
    result = feed.db.execute(SKIP)
    assert result.tag == "ALTER SOURCE"
    assert result.notices == ("1 record is a dead letter now",)
    assert feed.rows() == [(1, None), (2, None)]
    assert feed.rows("SELECT * FROM v") == [(2,)]
    (found,) = feed.rows(LETTERS)
    assert found == (1, found[1], "0", 1, b"k", b"nope", "22P04")
    assert found[1] >= before
    assert feed.code(f"SELECT * FROM v AS OF {before - 1}") == "22P04"  # as it was
    feed.send(b"again", {"id": 3})
    feed.tick()
    assert len(feed.rows()) == 3
    assert [row[0] for row in feed.rows(LETTERS)] == [1, 2]
    feed.restart()
    feed.tick()
    assert len(feed.rows()) == 3
    assert [row[0] for row in feed.rows(LETTERS)] == [1, 2]
    assert feed.rows("SHOW CREATE SOURCE s")[0][1].endswith("FORMAT JSON WITH (on_error = 'skip')")
    assert feed.db.check() == []


def test_back_to_report_keeps_letters_and_reports_what_comes(engine):
    feed = Feed(engine, rest="FORMAT JSON WITH (on_error = 'skip')")
    feed.send(b"one")
    feed.tick()
    feed.db.execute(REPORT)
    feed.send(b"two")
    feed.tick()
    assert feed.code() == "22P04"
    feed.restart()
    assert feed.code() == "22P04"
    assert [row[5] for row in feed.rows(LETTERS)] == [b"one"]
    assert feed.rows("SELECT skipped FROM reclock.source_status") == [(1,)]
    feed.db.execute(SKIP)
    assert feed.rows() == []
    assert [row[5] for row in feed.rows(LETTERS)] == [b"one", b"two"]
    assert feed.db.check() == []


def test_a_record_that_is_skipped_leaves_its_key_as_it_was(engine):
    feed = Feed(engine, KEYED, "FORMAT JSON ENVELOPE UPSERT WITH (on_error = 'skip')")
    feed.send((1, {"x": "a"}), (1, b"nope"), (None, {"x": "keyless"}), (2, {"x": "b"}))
    feed.tick()  # the snapshot: the bad record hides no earlier one
    assert feed.rows() == [(1, "a"), (2, "b")]
    feed.send((2, b"nope"), (b"what", {"x": "c"}))
    feed.tick()
    assert feed.rows() == [(1, "a"), (2, "b")]
    assert [row[3:5] for row in feed.rows(LETTERS)] == [
        (1, b"1"),
        (2, None),
        (4, b"2"),
        (5, b"what"),
    ]


def test_keys_with_an_error_have_no_row_once_it_is_skipped(engine):
    feed = Feed(engine, KEYED, "FORMAT JSON ENVELOPE UPSERT")
    feed.db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) FROM s")
    feed.send((1, {"x": "a"}), (2, {"x": "b"}), (None, {"x": "keyless"}))
    feed.tick()
    feed.send((1, b"nope"))
    feed.tick()
    assert feed.code("SELECT * FROM v") in ("22P04", "23502")
    result = feed.db.execute(SKIP)
    assert result.notices == (
        "2 records are dead letters now",
        "1 key has no row until the next record",
    )
    assert feed.rows() == [(2, "b")]
    assert feed.rows("SELECT * FROM v") == [(1,)]
    feed.send((1, {"x": "c"}))
    feed.tick()
    assert feed.rows() == [(1, "c"), (2, "b")]
    assert feed.rows("SELECT * FROM v") == [(2,)]
    assert feed.db.check() == []


def change(op, before, after):
    return {"op": op, "before": before, "after": after}


def test_debezium_with_a_key(engine):
    feed = Feed(engine, KEYED, "FORMAT JSON ENVELOPE DEBEZIUM")
    one, two = {"id": 1, "x": "a"}, {"id": 2, "x": "b"}
    feed.send(({"id": 1}, change("c", None, one)), ({"id": 2}, change("c", None, two)))
    feed.send(({"id": 2}, b"nope"), (None, b"nor this"))
    feed.tick()
    assert feed.code() == "22P04"
    feed.db.execute(SKIP)
    assert feed.rows() == [(1, "a")]
    feed.send(({"id": 1}, change("t", None, None)), ({"id": 1}, change("u", one, None)))
    feed.send((None, change("c", None, {"x": "keyless"})))
    feed.send(({"id": 2}, change("u", two, {"id": 2, "x": "c"})))
    feed.tick()
    assert feed.rows() == [(1, "a"), (2, "c")]
    assert [row[3] for row in feed.rows(LETTERS)] == [2, 3, 4, 5, 6]
    assert feed.db.check() == []


AVRO = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}'


@pytest.mark.parametrize(
    ("columns", "rest", "bad", "good"),
    [
        ("(id BIGINT, x TEXT)", "FORMAT CSV", b"1,2,3", b"1,a"),
        ("(id BIGINT)", "FORMAT TEXT", None, None),
        ("(id BIGINT)", f"FORMAT AVRO USING SCHEMA '{AVRO}'", b"\xff", b"\x02"),
        ("(id BIGINT NOT NULL)", "FORMAT JSON", b'{"id": null}', b'{"id": 1}'),
    ],
    ids=["csv", "text", "avro", "json"],
)
def test_formats(opener, columns, rest, bad, good):
    if bad is None:
        columns, bad, good = "(x TEXT NOT NULL)", b"\xff\xfe", b"fine"
    feed = Feed(opener, columns, f"{rest} WITH (on_error = 'skip')")
    feed.send(good, bad, good)
    feed.tick()
    assert len(feed.rows()) == 2
    assert [row[5] for row in feed.rows(LETTERS)] == [bad]


def test_lines_of_files(opener, tmp_path):
    path = tmp_path / "lines.csv"
    path.write_text("1,a\n1,2,3\n2,b\nx,y\n")
    db = opener()
    db.execute(f"CREATE SOURCE s (id BIGINT, x TEXT) FROM FILE '{path}' FORMAT CSV")
    opener.clock.advance(1_000)
    db.tick()
    with pytest.raises(Error):
        db.execute("SELECT * FROM s")
    db.execute(SKIP)
    assert sorted(db.execute("SELECT * FROM s").rows) == [(1, "a"), (2, "b")]
    with path.open("a") as file:
        file.write("no,\n3,c\n")
    opener.clock.advance(1_000)
    db.tick()
    assert len(db.execute("SELECT * FROM s").rows) == 3
    found = db.execute('SELECT partition, "offset", value FROM reclock.dead_letters').rows
    assert sorted(found) == [
        ("lines.csv", 4, b"1,2,3"), ("lines.csv", 14, b"x,y"), ("lines.csv", 18, b"no,"),
    ]  # fmt: skip


def test_what_the_topic_has_lost_is_a_letter_without_bytes(opener):
    feed = Feed(opener)
    feed.send(b"nope", {"id": 1})
    feed.tick()
    feed.kafka.truncate(feed.topic, 0, 1)
    feed.db.execute(SKIP)
    assert feed.rows() == [(1, None)]
    assert [row[3:] for row in feed.rows(LETTERS)] == [(0, None, None, "22P04")]


def test_letters_are_bounded_and_all_are_counted(opener, monkeypatch):
    monkeypatch.setattr(letters, "MOST_LETTERS", 3)
    feed = Feed(opener, rest="FORMAT JSON WITH (on_error = 'skip')")
    feed.send(b"a", b"b")
    feed.tick()
    feed.send(b"c", b"d")
    feed.tick()
    assert [row[5] for row in feed.rows(LETTERS)] == [b"b", b"c", b"d"]
    feed.send(*[b"x%d" % n for n in range(7)])
    feed.tick()
    assert [row[0] for row in feed.rows(LETTERS)] == [10, 11, 9]
    monkeypatch.setattr(letters, "MOST_BYTES", 100)
    feed.send(b"l" * 60, b"m" * 60)
    feed.tick()
    assert [row[0] for row in feed.rows(LETTERS)] == [13]
    feed.send(b"n" * 200)
    feed.restart()
    feed.tick()
    assert [row[0] for row in feed.rows(LETTERS)] == [14]
    assert feed.rows("SELECT skipped FROM reclock.source_status") == [(14,)]
    assert feed.db.check() == []


def test_supplied_bindings_time_letters_too(opener):
    feed = Feed(opener)
    feed.db.execute('CREATE TABLE b (timestamp BIGINT, partition INT, "offset" BIGINT)')
    feed.create(INIT, "FORMAT JSON RECLOCK USING b WITH (on_error = 'skip')", name="u")
    feed.send({"id": 1}, b"nope", {"id": 2}, b"later")
    feed.db.execute("INSERT INTO b VALUES (10, 0, 1), (20, 0, 3), (30, 0, 3)")
    for _ in range(3):
        feed.tick()
    feed.db.execute("SET transaction_isolation = 'serializable'")
    assert feed.rows("SELECT id FROM u") == [(1,), (2,)]
    found = "SELECT timestamp, value FROM reclock.dead_letters WHERE source = 'u'"
    assert feed.rows(found) == [(20, b"nope")]


@pytest.mark.parametrize(
    ("columns", "rest", "why"),
    [
        (INIT, "FORMAT JSON ENVELOPE MATERIALIZE", "would never be complete"),
        (INIT, "FORMAT JSON ENVELOPE DEBEZIUM", "take away rows that are not there"),
    ],
)
def test_where_a_record_cannot_be_missed(opener, columns, rest, why):
    feed = Feed(opener)
    with pytest.raises(Error, match=why) as caught:
        feed.create(columns, f"{rest} WITH (on_error = 'skip')", name="t")
    assert caught.value.code == "42601"
    feed.create(columns, rest, name="t")
    with pytest.raises(Error, match=why):
        feed.db.execute("ALTER SOURCE t SET (on_error = 'skip')")


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("ALTER SOURCE s SET (on_error = 'ignore')", "22023"),
        ("ALTER SOURCE s SET (on_error = 'inline')", "0A000"),
        ("ALTER SOURCE i SET (on_error = 'skip')", "0A000"),
        ("ALTER SOURCE g SET (on_error = 'skip')", "42809"),
        ("ALTER SOURCE nothing SET (on_error = 'skip')", "42P01"),
        ("ALTER TABLE t SET (on_error = 'skip')", "42601"),
        ("ALTER SOURCE t SET (on_error = 'skip')", "42809"),
        ("ALTER SOURCE s SET (on_error = 'skip', RETAIN HISTORY FOR '1h')", "42601"),
    ],
)
def test_what_cannot_be_altered(opener, sql, code):
    feed = Feed(opener)
    feed.create(INIT, "FORMAT JSON WITH (on_error = 'inline')", name="i")
    feed.db.execute("CREATE SOURCE g FROM LOAD GENERATOR COUNTER")
    feed.db.execute("CREATE TABLE t (a INT)")
    assert feed.code(sql) == code


def test_a_source_that_has_ended_stays_so(opener):
    feed = Feed(opener, rest="FORMAT JSON WITH (on_error = 'stop')")
    feed.send(b"nope")
    feed.tick()
    assert feed.code(SKIP) == "55000"


def test_stop_and_fail_can_be_set_too(opener):
    feed = Feed(opener)
    feed.db.execute("ALTER SOURCE s SET (on_error = 'stop')")
    feed.send({"id": 1}, b"nope")
    feed.tick()
    assert feed.rows("SELECT state FROM reclock.source_status") == [("failed",)]
    feed.create(INIT, "FORMAT JSON WITH (on_error = 'fail')", name="f")
    feed.tick()
    assert feed.code("SELECT * FROM f") == "22P04"


@pytest.mark.parametrize("point", ["ddl.publish.before", "ddl.publish.after"])
def test_an_alter_is_whole_or_not_at_all(opener, point):
    feed = Feed(opener)
    feed.send(b"nope")
    feed.tick()
    with pytest.raises((FailpointRaised, Error)), armed({point: "raise"}):
        feed.db.execute(SKIP)
    feed.restart()
    done = point.endswith("after")
    assert len(feed.rows(LETTERS)) == done
    assert (feed.rows() == []) if done else (feed.code() == "22P04")
    feed.db.execute(SKIP)
    assert feed.rows() == []
    assert len(feed.rows(LETTERS)) == 1
