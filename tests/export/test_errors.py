"""What a broker says, and what becomes of the sink: tried again, begun anew, or stopped.

Through SQL: the state, the reason with a hint, and how often it was tried are in
``reclock.sink_status``; when the cause is gone, the output is whole.
"""

from __future__ import annotations

import json
import time

import pytest
from confluent_kafka import KafkaError

from reclock.connectors.kafka.cluster import Span
from reclock.errors import InvalidValue
from reclock.sinks.gather import Limits
from reclock.testing.failpoints import armed
from reclock.testing.kafka_producer import ABORTABLE, FATAL, RETRIABLE


def error(code, **what):
    return KafkaError(code, "as the broker says", **what)


RETRIED = {
    "timeout": RETRIABLE,
    "not delivered": ABORTABLE,
    "no leader": error(KafkaError.NOT_LEADER_FOR_PARTITION, retriable=True),
    "coordinator moves": error(KafkaError.NOT_COORDINATOR, retriable=True),
    "producer lost": FATAL,
    "unknown producer": error(KafkaError.UNKNOWN_PRODUCER_ID, fatal=True),
    "out of order": error(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, fatal=True),
    "never heard of": error(12_345),
}
STOPPED = {
    "unknown topic": (error(KafkaError.UNKNOWN_TOPIC_OR_PART), "make the topic again"),
    "topic refused": (
        error(KafkaError.TOPIC_AUTHORIZATION_FAILED, txn_requires_abort=True), "allow WRITE",
    ),
    "id refused": (error(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), "allow WRITE"),
    "cluster refused": (error(KafkaError.CLUSTER_AUTHORIZATION_FAILED), "allow WRITE"),
    "not let in": (error(KafkaError.SASL_AUTHENTICATION_FAILED), "kafka.* options"),
    "too large": (error(KafkaError.MSG_SIZE_TOO_LARGE), "max.message.bytes"),
    "batch too large": (error(KafkaError.RECORD_LIST_TOO_LARGE), "max.message.bytes"),
    "timeout not allowed": (
        error(KafkaError.INVALID_TRANSACTION_TIMEOUT), "transaction.max.timeout.ms",
    ),
    "no keys": (error(KafkaError.INVALID_RECORD), "give the sink a KEY"),
    "policy": (error(KafkaError.POLICY_VIOLATION), "who made the policy"),
    "fenced": (error(KafkaError._FENCED, fatal=True), "one instance"),
    "fenced by the broker": (error(KafkaError.PRODUCER_FENCED, fatal=True), "one instance"),
    "old epoch": (error(KafkaError.INVALID_PRODUCER_EPOCH, fatal=True), "one instance"),
}  # fmt: skip
STEPS = ("init", "begin", "produce", "commit")


class Pipe:
    """A table and its sink."""

    def __init__(self, opener, options=""):
        self.opener = opener
        self.kafka = opener.kafka
        self.faults = opener.outlets.faults
        self.db = opener()
        self.db.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
        self.db.execute("INSERT INTO t VALUES (0, 0)")
        self.db.execute(
            "CREATE SINK s FROM t INTO KAFKA BROKER 'b' TOPIC 'out' KEY (k) FORMAT JSON ENVELOPE "
            f"UPSERT WITH (reuse_topic = true{options})"
        )
        self.written = 1

    def write(self):
        self.db.execute(f"INSERT INTO t VALUES ({self.written}, {self.written})")
        self.written += 1

    def tick(self, ms=1_000):
        self.opener.clock.advance(ms)
        self.db.tick()

    def status(self):
        columns = "state, detail, retries, last_error"
        (row,) = self.db.execute(f"SELECT {columns} FROM reclock.sink_status").rows
        return dict(zip(columns.split(", "), row, strict=True))

    def reopen(self):
        self.db = self.opener.reopened(self.db)

    def keys(self):
        cluster = self.kafka.cluster("read_committed")
        high = cluster.watermarks("out", [0])[0].high
        batches = cluster.fetch("out", [Span(0, 0, high)], ["key"]) if high else ()
        return [json.loads(key)["k"] for batch in batches for key in batch["key"].to_pylist()]

    def check(self):
        """Everything is there, once, in the order in which it was written."""
        assert self.keys() == list(range(self.written))


@pytest.fixture
def pipe(opener):
    made = Pipe(opener)
    made.tick()
    return made


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", RETRIED)
def test_it_is_tried_again(pipe, name, step):
    if step == "init":
        pipe.reopen()
    pipe.faults.fail(step, RETRIED[name])
    pipe.write()
    pipe.tick()
    found = pipe.status()
    assert found["state"] in ("stalled", "running")
    assert found["retries"] in (0, 1)
    if found["state"] == "stalled":
        assert found["detail"] == found["last_error"]
        assert "hint: " in found["detail"]
    for _ in range(2):
        pipe.write()
        pipe.tick()
    assert pipe.status()["state"] == "running"
    pipe.check()


@pytest.mark.parametrize("name", ["timeout", "not delivered", "producer lost", "never heard of"])
def test_a_commit_that_was_done_is_not_done_again(pipe, name):
    if name == "not delivered":
        pytest.skip("an error that asks for an abort says that nothing is committed")
    pipe.faults.fail("commit", RETRIED[name], done=True)
    pipe.write()
    pipe.tick()
    for _ in range(2):
        pipe.write()
        pipe.tick()
    pipe.check()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", STOPPED)
def test_it_stops_and_says_what_to_do(pipe, name, step):
    cause, hint = STOPPED[name]
    if step == "init":
        pipe.reopen()
    pipe.faults.fail(step, cause)
    pipe.write()
    pipe.tick()
    found = pipe.status()
    assert found["state"] == "failed"
    assert hint in found["detail"].partition("hint: ")[2]
    assert found["last_error"] == found["detail"]
    before = pipe.keys()
    pipe.write()
    pipe.tick()
    assert pipe.keys() == before, "it writes nothing more"
    assert pipe.db.execute("SELECT count(*) FROM t").rows == [(pipe.written,)], "nobody else stops"
    pipe.reopen()
    pipe.tick()
    assert pipe.status()["state"] == "running"
    pipe.check()


def test_brokers_that_do_not_answer_are_waited_for(pipe):
    pipe.kafka.running = False
    for n in range(1, 4):
        pipe.write()
        pipe.tick()
        found = pipe.status()
        assert (found["state"], found["retries"]) == ("stalled", n)
        assert "tried again by itself" in found["detail"]
    pipe.reopen()
    pipe.tick()
    assert pipe.status()["state"] == "stalled"
    pipe.kafka.running = True
    pipe.tick()
    pipe.check()


@pytest.mark.parametrize("topic", ["out", "out-consistency"])
def test_a_topic_that_is_gone_stops_it(pipe, topic):
    pipe.kafka.delete_topic(topic)
    pipe.write()
    pipe.tick()
    found = pipe.status()
    assert found["state"] == "failed"
    assert "does not exist" in found["detail"]
    assert "make the topic again" in found["detail"]
    pipe.reopen()
    pipe.tick()
    assert pipe.status()["state"] == "failed"


def slow():
    time.sleep(0.06)


def test_a_timestamp_that_takes_too_long_stops_it_with_what_to_change(opener):
    pipe = Pipe(opener, ", transaction_timeout = '50ms'")
    with armed({"sink.produce.after": slow}):
        pipe.tick()
        assert pipe.status()["state"] == "stalled"
        pipe.tick()
        found = pipe.status()
    assert found["state"] == "failed"
    assert found["retries"] == 1
    for what in ("transaction_timeout", "transaction.max.timeout.ms", "snapshot"):
        assert what in found["detail"]
    assert pipe.keys() == []
    pipe.reopen()
    pipe.tick()
    pipe.check()


def test_timestamps_that_take_too_long_together_are_written_in_smaller_groups(opener):
    pipe = Pipe(opener, ", transaction_timeout = '50ms'")
    pipe.tick()
    pipe.kafka.running = False
    for _ in range(8):
        pipe.write()
        pipe.tick()
    pipe.kafka.running = True
    sent = []

    def slow_if_large():
        if pipe.db._core.exporters[_sink(pipe)].in_flight > 2:
            slow()
        sent.append(pipe.db._core.exporters[_sink(pipe)].in_flight)

    with armed({"sink.produce.after": slow_if_large}):
        for _ in range(30):
            pipe.tick()
    assert max(sent) > 2
    assert pipe.status()["state"] == "running"
    pipe.check()


def _sink(pipe):
    (found,) = pipe.db._core.exporters._exporters
    return found


def test_a_transaction_that_the_broker_ended_is_begun_anew(opener):
    pipe = Pipe(opener, ", transaction_timeout = '50ms'")
    pipe.tick()
    exporter = pipe.db._core.exporters[_sink(pipe)]

    def overdue():
        slow()
        pipe.kafka.time_out(exporter._outlet.target.transactional_id)

    pipe.write()
    with armed({"sink.commit.before": overdue}):
        pipe.tick()
    found = pipe.status()
    assert found["state"] == "stalled"
    assert "open for too long" in found["detail"]
    pipe.tick()
    pipe.check()


def test_how_much_a_transaction_holds_can_be_said(opener):
    pipe = Pipe(opener, ", transaction_rows = 1, transaction_bytes = 1000")
    (exporter,) = pipe.db._core.exporters._exporters.values()
    assert exporter._plan.limits == Limits(1, 1_000)
    for _ in range(3):
        pipe.write()
    pipe.tick()
    pipe.check()


@pytest.mark.parametrize("option", ["transaction_rows = 0", "transaction_bytes = 0"])
def test_a_transaction_that_may_hold_nothing_is_refused(opener, option):
    with pytest.raises(InvalidValue, match="at least one row and one byte"):
        Pipe(opener, f", {option}")
    assert opener.kafka.cluster("read_committed").describe("out") is None
