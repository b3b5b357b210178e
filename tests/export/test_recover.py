"""A sink goes on from an empty state directory: every change once, or a refusal that says why."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from contextlib import suppress

import pytest

from reclock.connectors.kafka.cluster import Span
from reclock.errors import Error
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.testing.kafka_producer import ABORTABLE, FATAL, RETRIABLE
from reclock.testing.kafka_upstream import Record

ENVELOPES = {
    "upsert": "KEY (region) FORMAT JSON ENVELOPE UPSERT",
    "debezium": "KEY (region) FORMAT JSON ENVELOPE DEBEZIUM",
    "keyless": "FORMAT JSON ENVELOPE DEBEZIUM",
    "materialize": "FORMAT JSON ENVELOPE MATERIALIZE",
}
SALES = """CREATE MATERIALIZED VIEW sales AS SELECT c.region, count(*) AS n, sum(o.amount) AS total
FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region"""


class Hosts:
    """Hosts over one broker, one after another, each with a state directory of its own."""

    def __init__(self, opener, envelope="upsert", seed=0, partitions=2):
        self.opener = opener
        self.kafka = opener.kafka
        self.envelope = envelope
        self.random = random.Random(seed)
        self.orders = 0
        self.partitions = partitions
        self.customers = {}
        self.kafka.recreate_topic("orders", 2)
        self.kafka.recreate_topic("customers", 1)
        self.db = None
        for customer in range(6):
            self.move(customer)

    def host(self, recover="true", options="", sink=True):
        """Go to a host that has nothing but the brokers."""
        if self.db is not None:
            self.opener.crash(self.db)
        shutil.rmtree(self.opener.path, ignore_errors=True)
        self.db = self.opener()
        self.db.execute(
            "CREATE SOURCE orders (id BIGINT, customer BIGINT, amount NUMERIC(12,2)) "
            "FROM KAFKA BROKER 'b' TOPIC 'orders' FORMAT JSON"
        )
        self.db.execute(
            "CREATE SOURCE customers (id BIGINT PRIMARY KEY, region TEXT) "
            "FROM KAFKA BROKER 'b' TOPIC 'customers' FORMAT JSON ENVELOPE UPSERT"
        )
        self.db.execute(SALES)
        if sink:
            self.sink(recover, options)

    def sink(self, recover="true", options=""):
        self.db.execute(
            f"CREATE SINK s FROM sales INTO KAFKA BROKER 'b' TOPIC 'out' {ENVELOPES[self.envelope]}"
            f" WITH (reuse_topic = true, recover = {recover}, partitions = {self.partitions}"
            f"{options})"
        )

    def order(self, count=1):
        for _ in range(count):
            self.orders += 1
            row = {"id": self.orders, "customer": self.random.randrange(6),
                   "amount": self.random.randrange(1, 10_000) / 100}  # fmt: skip
            part = self.random.randrange(2)
            self.kafka.produce("orders", part, Record(json.dumps(row).encode(), None))

    def move(self, customer=None):
        regions = ["north", "south", "east"] if customer is not None else ["north", "west", None]
        customer = self.random.randrange(6) if customer is None else customer
        region = self.random.choice(regions)
        value = None if region is None else json.dumps({"region": region}).encode()
        self.kafka.produce("customers", 0, Record(value, json.dumps({"id": customer}).encode()))

    def change(self):
        self.order(self.random.randrange(4))
        if self.random.random() < 0.5:
            self.move()

    def tick(self, ms=1_000):
        self.opener.clock.advance(ms)
        self.db.tick()

    def status(self):
        columns = "state, frontier, detail"
        (row,) = self.db.execute(f"SELECT {columns} FROM reclock.sink_status").rows
        return row

    def messages(self):
        """What a read_committed consumer sees: (partition, time, key, value), in order."""
        cluster = self.kafka.cluster("read_committed")
        found = []
        for part in range(self.partitions):
            mark = cluster.watermarks("out", [part])[part]
            spans = [Span(part, mark.low, mark.high)] if mark.low < mark.high else []
            for batch in cluster.fetch("out", spans, ["key", "headers"]) if spans else ():
                for row in batch.to_pylist():
                    time = {h["key"]: h["value"] for h in row["headers"]}["reclock-timestamp"]
                    value = row["value"] and json.loads(row["value"])
                    found.append((part, int(time), row["key"] and json.loads(row["key"]), value))
        return found

    def rows(self):
        query = "SELECT region, n, total FROM sales"
        return Counter((r, n, str(t)) for r, n, t in self.db.execute(query).rows)

    def contents(self):
        """The rows that a consumer has who read everything from the beginning."""
        found = Counter()
        last = {}
        for _, _, key, value in sorted(self.messages(), key=lambda m: m[1]):
            if self.envelope == "upsert":
                last[key["region"]] = value
            elif self.envelope == "materialize":
                for update in value.get("array", ()):
                    found[row_of(update["data"])] += update["diff"]
            else:
                for side, diff in (("before", -1), ("after", 1)):
                    if value[side] is not None:
                        found[row_of(value[side])] += diff
                assert min(found.values(), default=0) >= 0, "taken away before it was there"
        found += Counter(row_of(row) for row in last.values() if row is not None)
        return +found

    def check(self):
        """The topic holds the view, times ascend, and nothing was said twice."""
        assert self.status()[0] == "running", self.status()
        assert self.contents() == self.rows()
        for part in range(self.partitions):
            times = [m[1] for m in self.messages() if m[0] == part]
            assert times == sorted(times)
        if self.envelope == "upsert":
            last = {}
            for _, time, key, value in sorted(self.messages(), key=lambda m: m[1]):
                name = key["region"]
                assert last.get(name, (None, None))[1] != value, "said twice"
                assert last.get(name, (-1,))[0] < time, "twice at one time"
                last[name] = (time, value)
        elif self.envelope == "debezium":
            for _, _, _, value in self.messages():
                assert value["before"] != value["after"]


def row_of(value):
    return value["region"], value["n"], f"{value['total']:.2f}"


@pytest.fixture
def hosts(opener):
    return Hosts(opener)


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_a_new_host_goes_on_where_the_old_one_ended(opener, envelope):
    hosts = Hosts(opener, envelope)
    hosts.host()
    for _ in range(5):
        hosts.change()
        hosts.tick()
    hosts.check()
    before = hosts.messages()
    hosts.host()
    assert hosts.status()[0] == "starting"
    hosts.tick()
    hosts.check()
    said = [m for m in hosts.messages() if m not in before]
    assert [m for m in said if envelope != "materialize"] == [], "nothing changed meanwhile"
    for _ in range(5):
        hosts.change()
        hosts.tick()
        hosts.check()
    assert hosts.messages() != before


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_what_happened_meanwhile_is_one_change(opener, envelope):
    hosts = Hosts(opener, envelope)
    hosts.host()
    for customer in range(6):
        hosts.move(customer)
    hosts.order(10)
    hosts.tick()
    hosts.check()
    before = len(hosts.messages())
    frontier = hosts.status()[1]
    hosts.order(5)
    hosts.move(1)
    hosts.order(5)
    hosts.host()
    hosts.tick()
    hosts.check()
    new = hosts.messages()
    assert len(new) > before
    later = {
        time for _, time, _, value in new if time >= frontier and "progress" not in (value or ())
    }
    assert len(later) == 1


def test_the_same_statement_makes_a_sink_and_recovers_it(hosts):
    hosts.host()
    hosts.tick()
    assert hosts.status()[0] == "running"
    hosts.order(3)
    hosts.host()
    hosts.tick()
    hosts.check()
    assert hosts.db.execute("SHOW SINKS").rows


def test_it_waits_for_its_sources(hosts):
    hosts.host()
    for customer in range(6):
        hosts.move(customer)
    hosts.order(10)
    hosts.tick()
    frontier = hosts.status()[1]
    before = hosts.messages()
    hosts.host(sink=False)
    hosts.db.execute("DROP MATERIALIZED VIEW sales")
    hosts.db.execute("DROP SOURCE orders")
    hosts.db.execute(
        "CREATE SOURCE orders (id BIGINT, customer BIGINT, amount NUMERIC(12,2)) FROM KAFKA BROKER "
        "'b' TOPIC 'orders' FORMAT JSON WITH (max_rows_per_tick = 2)"
    )
    hosts.db.execute(SALES)
    hosts.sink()
    waited = 0
    for _ in range(10):
        hosts.tick()
        state, at, detail = hosts.status()
        if state == "running":
            break
        waited += 1
        assert (state, at) == ("recovering", frontier)
        assert "orders" in detail
        assert hosts.messages() == before, "nothing is said of a time before"
    assert waited
    hosts.check()
    assert hosts.messages() == before


def test_it_waits_for_its_clock(hosts):
    written(hosts)
    hosts.tick(100_000)
    frontier = hosts.status()[1]
    before = hosts.messages()
    hosts.order(5)
    hosts.opener.clock.set(frontier - 5_000)
    hosts.host()
    for _ in range(3):
        hosts.tick()
        state, at, detail = hosts.status()
        assert (state, at) == ("recovering", frontier)
        assert "ms behind" in detail
        assert hosts.messages() == before
    for _ in range(4):
        hosts.tick()
    hosts.check()
    assert all(m[1] >= frontier for m in hosts.messages() if m not in before)


def test_the_old_host_never_comes_back(hosts, tmp_path):
    written(hosts)
    old, path = hosts.db, hosts.opener.path
    hosts.db = None
    hosts.opener.path = tmp_path / "new"
    hosts.order(5)
    hosts.host()
    new = hosts.db
    hosts.db = old  # before the new one has written anything
    hosts.tick()
    state, _, detail = hosts.status()
    assert state == "failed"
    assert "another instance" in detail
    hosts.opener.path = path
    for _ in range(2):  # before the new one has written anything, and after that
        old = hosts.db = hosts.opener.reopened(old)
        hosts.tick()
        state, _, detail = hosts.status()
        assert state == "failed"
        assert "another database" in detail
        hosts.db = new
        hosts.order(5)
        hosts.tick()
        hosts.check()


def test_a_sink_that_was_dropped_is_gone_on_with(hosts):
    written(hosts)
    hosts.db.execute("DROP SINK s")
    hosts.order(5)
    hosts.tick()
    hosts.sink()
    hosts.tick()
    hosts.check()


def refused(hosts, **given):
    with pytest.raises(Error) as caught:
        hosts.host(**given)
    error = caught.value
    assert error.hint
    assert hosts.db.execute("SHOW SINKS").rows == []
    return error


def written(hosts):
    """Have something written, and leave."""
    hosts.host()
    for customer in range(6):
        hosts.move(customer)
    hosts.order(5)
    hosts.tick()
    hosts.check()


def test_without_recover_it_is_refused_with_the_ways_out(hosts):
    written(hosts)
    before = hosts.messages()
    error = refused(hosts, recover="false")
    assert error.code == "55000"
    assert "recover = true" in error.hint
    assert "ON ORPHAN USE NONCE" in error.hint
    hosts.db.execute(
        "CREATE SINK s FROM sales INTO KAFKA BROKER 'b' TOPIC 'out' KEY (region) FORMAT JSON "
        "ENVELOPE UPSERT ON ORPHAN USE NONCE WITH (reuse_topic = true)"
    )
    hosts.tick()
    assert hosts.messages() == before


def test_progress_alone_is_output_too(hosts):
    hosts.host()
    hosts.tick()
    assert hosts.messages() == []
    error = refused(hosts, recover="false")
    assert "has written all times" in error.detail


def test_tables_are_refused_by_name(opener):
    hosts = Hosts(opener)
    hosts.host(sink=False)
    hosts.db.execute("CREATE TABLE extra (region TEXT, n BIGINT, total NUMERIC)")
    hosts.db.execute("DROP MATERIALIZED VIEW sales")
    hosts.db.execute("CREATE VIEW half AS SELECT region, n, total FROM extra")
    hosts.db.execute(
        "CREATE MATERIALIZED VIEW sales AS SELECT region, sum(n) AS n, sum(total) AS total "
        "FROM half GROUP BY region"
    )
    with pytest.raises(Error, match='"extra" is a table') as caught:
        hosts.sink()
    assert caught.value.code == "0A000"


@pytest.mark.parametrize(
    ("options", "text"),
    [("reuse_topic = false", "reuse_topic"), ("reuse_topic = true, snapshot = false", "snapshot")],
)
def test_options_that_contradict_it_are_refused(hosts, options, text):
    hosts.host(sink=False)
    with pytest.raises(Error, match=text):
        hosts.db.execute(
            "CREATE SINK s FROM sales INTO KAFKA BROKER 'b' TOPIC 'out' KEY (region) FORMAT JSON "
            f"ENVELOPE UPSERT WITH (recover = true, {options})"
        )


def test_a_source_that_is_another_is_refused(hosts):
    written(hosts)
    hosts.kafka.recreate_topic("orders", 2)
    error = refused(hosts)
    assert '"orders" was' in error.detail


def test_a_source_that_lost_its_beginning_is_refused(hosts):
    written(hosts)
    hosts.kafka.truncate("orders", 0, 1)
    error = refused(hosts)
    assert "origin" in error.detail


def test_a_source_that_lost_its_end_is_refused(hosts):
    written(hosts)
    hosts.host(sink=False)
    for part in (0, 1):
        log = hosts.kafka.partition("orders", part)
        log.entries, log.high = log.entries[:0], 0
    with pytest.raises(Error, match="cannot go on from where source") as caught:
        hosts.sink()
    assert "truncated" in caught.value.detail


def test_other_sources_are_refused(hosts):
    written(hosts)
    hosts.host(sink=False)
    hosts.db.execute("DROP MATERIALIZED VIEW sales")
    hosts.db.execute(
        "CREATE MATERIALIZED VIEW sales AS SELECT region, count(*) AS n, sum(id) AS total "
        "FROM customers GROUP BY region"
    )
    with pytest.raises(Error, match="made of other sources") as caught:
        hosts.sink()
    assert 'made of "customers", "orders"; this one is of "customers"' in caught.value.detail


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_a_topic_whose_beginning_is_gone_is_refused(opener, envelope):
    hosts = Hosts(opener, envelope)
    written(hosts)
    for part in range(2):
        if hosts.kafka.partition("out", part).high:
            hosts.kafka.truncate("out", part, 1)
    hosts.host()
    hosts.tick()
    state, _, detail = hosts.status()
    assert state == "failed"
    assert "beginning" in detail


def test_what_somebody_else_wrote_into_the_topic_is_refused(hosts):
    written(hosts)
    hosts.kafka.produce("out", 1, Record(b"{}", b"{}"))
    before = hosts.kafka.partition("out", 1).high
    hosts.host()
    hosts.tick()
    assert hosts.status()[0] == "failed"
    assert hosts.kafka.partition("out", 1).high == before


def test_a_compacted_topic_says_as_much_if_its_key_is_unique(opener):
    hosts = Hosts(opener, "upsert")
    hosts.host()
    for _ in range(10):
        hosts.change()
        hosts.tick()
    hosts.kafka.compact("out")
    hosts.kafka.settings["out"] = {"cleanup.policy": "compact"}
    rows = hosts.rows()
    hosts.host()
    hosts.tick()
    assert hosts.contents() == rows == hosts.rows()
    keyless = Hosts(opener, "keyless")
    keyless.db = hosts.db
    keyless.kafka.recreate_topic("out", 2)
    keyless.kafka.settings["out"] = {"cleanup.policy": "delete"}
    keyless.kafka.recreate_topic("out-consistency", 1)
    written(keyless)
    keyless.kafka.settings["out"] = {"cleanup.policy": "compact"}
    assert "compacted" in refused(keyless).message


def test_a_compacted_debezium_topic_is_read_by_its_keys(opener):
    hosts = Hosts(opener, "debezium")
    hosts.host()
    for _ in range(12):
        hosts.change()
        hosts.tick()
    hosts.kafka.compact("out")
    hosts.kafka.settings["out"] = {"cleanup.policy": "compact"}
    before = len(hosts.messages())
    hosts.host()
    hosts.tick()
    assert hosts.status()[0] == "running"
    assert len(hosts.messages()) == before, "it holds the view"


POINTS = [
    "sink.begin.before", "sink.produce.after", "sink.progress.before", "sink.commit.before",
    "sink.commit.after", "sink.report.before", "sink.hold.before", "ddl.publish.before",
    "ddl.publish.after",
]  # fmt: skip


@pytest.mark.parametrize("envelope", ["upsert", "keyless"])
@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("point", POINTS)
def test_recovery_itself_may_fail_anywhere(opener, point, restart, envelope):
    hosts = Hosts(opener, envelope)
    written(hosts)
    hosts.order(5)
    hosts.host(sink=False)
    with armed({point: "raise"}):
        with suppress(FailpointRaised):
            hosts.sink()
        hosts.tick()
    if restart:
        hosts.db = opener.reopened(hosts.db)
    if not hosts.db.execute("SHOW SINKS").rows:
        hosts.sink()
    hosts.tick()
    hosts.order(2)
    hosts.tick()
    hosts.check()


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("error", [RETRIABLE, ABORTABLE, FATAL])
@pytest.mark.parametrize("step", ["init", "begin", "produce", "commit"])
def test_brokers_may_fail_meanwhile(opener, step, error, done):
    if (step, error, done) == ("commit", ABORTABLE, True):
        done = False  # an error that asks for an abort says that nothing is committed
    hosts = Hosts(opener)
    written(hosts)
    hosts.order(5)
    hosts.host(sink=False)
    opener.outlets.faults.fail(step, error, done=done)
    try:
        hosts.sink()
    except Error:
        hosts.sink()
    opener.outlets.faults.fail(step, error, done=done)
    for _ in range(3):
        hosts.tick()
    hosts.check()


SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.slow(seconds=4)) for seed in range(2, 12))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("envelope", ENVELOPES)
def test_hosts_at_random(make_opener, envelope, seed):
    print("seed", seed)
    opener = make_opener()
    hosts = Hosts(opener, envelope, seed)
    chance = random.Random(seed)
    hosts.host()
    for _ in range(25):
        fate = chance.randrange(6)
        if fate == 0:
            hosts.host()
        elif fate == 1:
            hosts.db = opener.reopened(hosts.db)
        elif fate == 2:
            with armed({chance.choice(POINTS[:7]): "raise"}):
                hosts.tick()
        elif fate == 3:
            opener.kafka.running = False
            hosts.tick()
            opener.kafka.running = True
        hosts.change()
        hosts.tick(chance.choice([1, 100, 1_000]))
    for _ in range(3):
        hosts.tick()
    hosts.check()


def test_times_that_are_not_the_clocks_are_refused(hosts):
    hosts.host(sink=False)
    hosts.db.execute(
        "CREATE SOURCE own (region TEXT, n BIGINT) FROM KAFKA BROKER 'b' TOPIC 'orders' FORMAT "
        "JSON WITH (timeline = 'mine')"
    )
    with pytest.raises(Error, match="times are not those of a clock") as caught:
        hosts.db.execute(
            "CREATE SINK s FROM own INTO KAFKA BROKER 'b' TOPIC 'out' FORMAT JSON ENVELOPE "
            "DEBEZIUM WITH (reuse_topic = true, recover = true)"
        )
    assert caught.value.code == "0A000"


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_another_reclock_reads_the_output_back(opener, envelope):
    hosts = Hosts(opener, envelope)
    hosts.host()
    for _ in range(4):
        hosts.change()
        hosts.tick()
    key = " PRIMARY KEY" if envelope in ("upsert", "debezium") else ""
    kind = {"keyless": "debezium"}.get(envelope, envelope)
    hosts.db.execute(
        f"CREATE SOURCE back (region TEXT{key}, n BIGINT, total NUMERIC(38,2)) FROM KAFKA BROKER "
        f"'b' TOPIC 'out' FORMAT JSON ENVELOPE {kind}"
    )
    for _ in range(4):
        hosts.change()
        hosts.tick()
    hosts.tick()
    hosts.check()
    assert hosts.rows()
    if envelope == "materialize":  # it has the times of the sink, not of this clock
        back = hosts.db.execute("SELECT region, n, total FROM back").rows
        assert Counter((r, n, str(t)) for r, n, t in back) == hosts.rows()
        return
    for one, other in (("back", "sales"), ("sales", "back")):
        query = (
            f"SELECT region, n, total::NUMERIC(38,2) FROM {one} EXCEPT ALL "
            f"SELECT region, n, total::NUMERIC(38,2) FROM {other}"
        )
        assert hosts.db.execute(query).rows == []
