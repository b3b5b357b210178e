"""What an error says of itself is true: when it goes, and what to do."""

from __future__ import annotations

import pytest

from reclock.errors import Error
from reclock.testing.kafka_upstream import Record


@pytest.fixture
def feed(opener):
    db, topic = opener(), opener.kafka.create_topic(1)

    def create(rest=""):
        db.execute(
            f"CREATE SOURCE s (id INT) FROM KAFKA BROKER 'b' TOPIC '{topic}' FORMAT JSON {rest}"
        )
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT id FROM s")
        return db, topic

    return create


def told(db, opener, query):
    opener.clock.advance(1_000)
    db.tick()
    with pytest.raises(Error) as caught:
        db.execute(query)
    return caught.value


@pytest.mark.parametrize("name", ["s", "v"])
def test_the_error_of_a_deleted_topic_stays(feed, opener, name):
    db, topic = feed()
    opener.kafka.delete_topic(topic)
    error = told(db, opener, f"SELECT * FROM {name}")
    assert "goes when" not in error.detail
    assert "drop the source" in error.hint


def test_so_does_that_of_a_source_that_was_told_to_stop(feed, opener):
    db, topic = feed("WITH (on_error = 'stop')")
    opener.kafka.produce(topic, 0, Record(b"nope"))
    error = told(db, opener, "SELECT * FROM v")
    assert error.code == "22P02"
    assert "goes when" not in error.detail
    assert error.hint.startswith("drop the source")


def test_that_of_a_record_goes_when_it_is_skipped(feed, opener):
    db, topic = feed()
    opener.kafka.produce(topic, 0, Record(b"nope"))
    error = told(db, opener, "SELECT * FROM v")
    assert error.detail.endswith("or the record is skipped")
    assert "SET (on_error = 'skip')" in error.hint
    db.execute("ALTER SOURCE s SET (on_error = 'skip')")
    assert db.execute("SELECT * FROM v").rows == []


def test_that_of_a_row_goes_with_it(opener):
    db = opener()
    db.execute("CREATE TABLE t (a INT)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT 1 / a FROM t")
    db.execute("INSERT INTO t VALUES (0)")
    error = told(db, opener, "SELECT * FROM v")
    assert "the error goes when its row does; for example where" in error.detail


def test_that_of_a_message_of_cdcv2_stays_and_says_so(opener):
    db, topic = opener(), opener.kafka.create_topic(1)
    db.execute(
        f"CREATE SOURCE s (id INT) FROM KAFKA BROKER 'b' TOPIC '{topic}' FORMAT JSON "
        "ENVELOPE MATERIALIZE"
    )
    end = b'{"progress": {"lower": [0], "upper": [5], "counts": []}}'
    opener.kafka.produce(topic, 0, Record(b"nope"), Record(end))
    error = told(db, opener, "SELECT * FROM s")
    with pytest.raises(Error, match="on_error = 'skip' is not for ENVELOPE MATERIALIZE"):
        db.execute("ALTER SOURCE s SET (on_error = 'skip')")
    assert "a source that refuses this (ENVELOPE MATERIALIZE, " in error.hint
    assert error.hint.endswith("must be created again")
