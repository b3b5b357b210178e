"""What the sinks of one reclock write, another reads as the same transactions."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reclock.errors import Error
from reclock.testing.failpoints import FailpointRaised, armed

POINTS = ["tick.publish.before", "tick.publish.after", "sink.commit.before", "ingest.read.after"]
ROW = st.tuples(st.integers(0, 4), st.none() | st.sampled_from("abc"))


class Pair:
    """A database with sinks, and another that reads what they write."""

    def __init__(self, make_bench, keyed):
        self.one, self.other = make_bench(), make_bench()
        self.other.opener.kafka = self.other.kafka = self.one.kafka
        key = "KEY (id) NOT ENFORCED" if keyed else ""
        self.columns = "(id BIGINT PRIMARY KEY, x TEXT)" if keyed else "(id BIGINT, x TEXT)"
        self.one.run(
            "CREATE TABLE t (id BIGINT, x TEXT) WITH (RETAIN HISTORY FOR '1 h')",
            f"CREATE SINK s FROM t INTO KAFKA BROKER 'b:1' TOPIC 'out' {key} FORMAT JSON "
            "ENVELOPE DEBEZIUM WITH (partitions = 2, reuse_topic = true)",
        )
        self.one.tick()

    def read(self, name, rest=""):
        self.other.run(
            f"CREATE SOURCE {name} {self.columns} FROM KAFKA BROKER 'b:1' TOPIC 'out' FORMAT JSON "
            f"ENVELOPE DEBEZIUM {rest} WITH (consistency_topic = 'out-consistency', "
            "RETAIN HISTORY FOR '1 h')"
        )

    def times(self):
        """Return the times at which the table changed, in order."""
        found = set()
        for partition in (0, 1):
            found |= {message.time for message in self.one.messages("out", partition)}
        return sorted(found)


def write(bench, rows):
    for key, value in rows:
        bench.run(f"DELETE FROM t WHERE id = {key}")
        if value is not None:
            bench.run(f"INSERT INTO t VALUES ({key}, '{value}')")


@pytest.mark.parametrize("keyed", [True, False])
@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    history=st.lists(st.lists(ROW, max_size=3, unique_by=lambda r: r[0]), min_size=1, max_size=3),
    data=st.data(),
)
def test_the_other_has_the_same_transactions(make_bench, keyed, history, data):
    pair = Pair(make_bench, keyed)
    pair.read("s")
    pair.read("now", "RECLOCK INTO EPOCH")
    for rows in history:
        write(pair.one, rows)
        for bench in (pair.one, pair.other):
            if data.draw(st.booleans()):
                point = data.draw(st.sampled_from(POINTS))
                with armed({point: "raise"}), suppress(FailpointRaised, Error):
                    bench.tick()
                bench.crash()
            else:
                bench.tick()
    pair.one.tick(2)
    pair.other.tick(2)
    times = pair.times()
    for number, time in enumerate(times, 1):
        mine = pair.one.rows(f"SELECT * FROM t AS OF {time}")
        assert pair.other.rows(f"SELECT * FROM s AS OF {number}") == mine
    if times:
        assert pair.other.db.execute("SELECT * FROM s").timestamp == len(times)
    assert pair.other.rows("SELECT * FROM now") == pair.one.rows("SELECT * FROM t")
    waiting = "SELECT state, detail FROM reclock.source_status WHERE source = 's'"
    assert pair.other.rows(waiting) == [("running", None)]


def test_compaction_of_the_consistency_topic_changes_no_number(make_bench):
    pair = Pair(make_bench, keyed=True)
    for n in range(3):
        write(pair.one, [(n, "a")])
        pair.one.tick(2)
    pair.one.kafka.compact("out-consistency")
    pair.read("s")
    pair.other.tick()
    times = pair.times()
    assert len(times) == 3
    for number, time in enumerate(times, 1):
        assert pair.other.rows(f"SELECT * FROM s AS OF {number}") == pair.one.rows(
            f"SELECT * FROM t AS OF {time}"
        )
