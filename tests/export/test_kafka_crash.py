"""Real processes that sink to the real broker, killed, stopped, replaced: each change once.

A process runs a pipeline over a topic of accounts that the test keeps writing to: totals by
region, as DEBEZIUM and as UPSERT. What it wrote is read by a consumer of its own, and compared
with what the test computes itself from the records that it produced:

* the messages of a region are a chain: ``before`` is the ``after`` of the one before, so nothing
  is said twice, left out or out of order;
* after each timestamp the topic holds the totals of some prefix of the accounts topic, and
  later timestamps those of longer ones, up to all of it.

The engine is the model, which starts in a moment: what is killed here is the sink. A sink
without data writes how far it is at once, or the end of each test would wait for it.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import threading
import time
import uuid
from collections import defaultdict
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from children import Child
from reclock.failpoints import EXIT_STATUS
from reclock.testing.kafka import running_kafka
from reclock.testing.kafka_upstream import Record

pytestmark = pytest.mark.kafka

PROGRAM = """
import faulthandler, json, signal
from reclock.session.database import Database
from reclock.export import exporter
from reclock.failpoints import arm
from engines.model_engine import ModelEngine

exporter.IDLE_MS = 200
faulthandler.register(signal.SIGUSR1)  # what it waits for, when a test has waited in vain
while True:
    what = pipe.recv()
    if what.startswith("open "):
        db = Database(what[5:], ModelEngine())
        answer = []
    elif what.startswith("arm "):
        arm(*what[4:].split("="))
        answer = []
    else:
        answer = db.execute(what).rows
    pipe.send(json.dumps(answer, default=str))
"""
STATUS = "SELECT sink, state, frontier, detail, retries, last_error FROM reclock.sink_status"
REGIONS = ("north", "south", "east", "west", "middle")
ACCOUNTS = 30


class Process:
    """A process that opens a database when it is told to."""

    def __init__(self):
        self._child = Child(PROGRAM)
        self.kill, self.ended = self._child.kill, self._child.ended

    def tell(self, what):
        self._child.pipe.send(what)

    def answer(self):
        return [tuple(row) for row in json.loads(self._child.pipe.recv())]

    def execute(self, sql):
        self.tell(sql)
        return self.answer()

    def die_at(self, point):
        """Have it end itself at a failpoint; it may not answer any more."""
        self.tell(f"arm {point}=exit")

    def status(self):
        return {sink: found for sink, *found in self.execute(STATUS)}

    def signal(self, number):
        os.kill(self._child.pid, number)

    def stop(self):
        """End it, if it still runs."""
        with suppress(ValueError):  # it was waited for
            self.kill()


class Load:
    """Writes accounts, faster or slower, until it is told to stop; knows what it wrote."""

    def __init__(self, kafka, topic, seed):
        self._random = random.Random(seed)
        config = {"bootstrap.servers": kafka.address, "linger.ms": 5, "enable.idempotence": True}
        self._producer = Producer(config)  # what is written is known, though brokers go
        self._topic = topic
        self._stopped = threading.Event()
        self.written = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def write(self, count=1):
        for _ in range(count):
            account = self._random.randrange(ACCOUNTS)
            row = {"region": self._random.choice(REGIONS), "balance": len(self.written)}
            value = None if self._random.random() < 0.1 else row
            self._producer.produce(
                self._topic, json.dumps(value).encode() if value else None,
                json.dumps({"id": account}).encode(), 0,
            )  # fmt: skip
            self.written.append((account, value))
        self._producer.poll(0)

    def _run(self):
        while not self._stopped.wait(0.02):
            self.write(self._random.randrange(8))

    def stop(self):
        self._stopped.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def prefixes(self):
        """Return the totals after each record that was written."""
        accounts = {}
        totals = defaultdict(lambda: [0, 0])
        yield {}
        for account, value in self.written:
            old = accounts.pop(account, None)
            if old is not None:
                totals[old["region"]][0] -= 1
                totals[old["region"]][1] -= old["balance"]
            if value is not None:
                accounts[account] = value
                totals[value["region"]][0] += 1
                totals[value["region"]][1] += value["balance"]
            yield {region: (n, total) for region, (n, total) in totals.items() if n}


class Pipeline:
    """The topics, the load, and a process that is there or not."""

    def __init__(self, kafka, path, seed=None):
        seed = random.randrange(1 << 30) if seed is None else seed
        print("seed", seed)
        self.kafka = kafka
        self.path = path
        self.random = random.Random(seed)
        self.name = uuid.uuid4().hex[:8]
        self.source = kafka.create_topic()
        self.load = Load(kafka, self.source, seed)
        self.process = None
        self._started = []

    def start(self, path=None):
        """Have another process begin to open the state."""
        self.process = Process()
        self._started.append(self.process)
        self.process.tell(f"open {path or self.path}")
        return self

    def create(self, recover="false", timeout="60s", consistency=None):
        """Wait until it is open, and create what is not there."""
        process = self.process
        assert process.answer() == []
        process.execute("ALTER SYSTEM SET timestamp_interval = '30ms'")
        process.execute("ALTER SYSTEM SET logical_compaction_window = '1ms'")
        process.execute(
            "CREATE SOURCE IF NOT EXISTS accounts (id BIGINT PRIMARY KEY, region TEXT, balance "
            f"BIGINT) FROM KAFKA BROKER '{self.kafka.address}' TOPIC '{self.source}' FORMAT JSON "
            "ENVELOPE UPSERT"
        )
        process.execute(
            "CREATE MATERIALIZED VIEW IF NOT EXISTS totals AS SELECT region, count(*) AS n, "
            "sum(balance)::bigint AS total FROM accounts GROUP BY region"
        )
        for sink in ("debezium", "upsert"):
            shared = "" if consistency is None else f", consistency_topic = '{consistency}'"
            process.execute(
                f"CREATE SINK IF NOT EXISTS {sink} FROM totals INTO KAFKA BROKER "
                f"'{self.kafka.address}' TOPIC '{self.topic(sink)}' KEY (region) FORMAT JSON "
                f"ENVELOPE {sink} WITH (reuse_topic = true, recover = {recover}, "
                f"transaction_timeout = '{timeout}'{shared})"
            )
        return self

    def close(self):
        """End whatever still runs."""
        self.load._stopped.set()
        for process in self._started:
            process.stop()

    def topic(self, sink):
        return f"{sink}-{self.name}"

    def wait(self, done, seconds=60):
        deadline = time.monotonic() + seconds
        while not done():
            if time.monotonic() >= deadline:
                self.process.signal(signal.SIGUSR1)
                raise AssertionError(self.process.status())
            time.sleep(0.05)

    def goes_on(self, seconds=60):
        """Wait until both sinks commit something that they had not."""
        self.wait(lambda: all(f[1] for f in self.process.status().values()), seconds)
        before = {sink: found[1] for sink, found in self.process.status().items()}
        self.wait(lambda: all(f[1] > before[s] for s, f in self.process.status().items()), seconds)
        return self

    def messages(self, sink):
        """Everything that a read_committed consumer sees, in order."""
        config = {
            "bootstrap.servers": self.kafka.address, "group.id": uuid.uuid4().hex,
            "enable.partition.eof": True, "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
        }  # fmt: skip
        consumer = Consumer(config)
        consumer.assign([TopicPartition(self.topic(sink), 0, 0)])
        found = []
        while (message := consumer.poll(20)) is not None and message.error() is None:
            at = int(dict(message.headers())["reclock-timestamp"])
            value = message.value() and json.loads(message.value())
            found.append((at, json.loads(message.key())["region"], value))
        consumer.close()
        return found

    def finish(self):
        """Stop writing, wait until all of it is out, and compare."""
        self.load.stop()
        count = len(self.load.written)
        bound = 'SELECT max("offset") FROM reclock.bindings'
        self.wait(lambda: self.process.execute(bound)[0][0] == count, 120)
        ((upper,),) = self.process.execute(
            "SELECT upper FROM reclock.frontiers WHERE object = 'totals'"
        )
        self.wait(lambda: all((f[1] or 0) >= upper for f in self.process.status().values()), 120)
        self.process.kill()
        self.check()

    def check(self):
        """Compare what was committed with what was produced."""
        prefixes = list(self.load.prefixes())
        final = prefixes[-1]
        held, topic, place = {}, [], 0
        for at, region, value in self.messages("debezium"):
            assert value["before"] == held.get(region), "the messages of a key are a chain"
            assert value["before"] != value["after"]
            held[region] = value["after"]
            topic.append((at, dict(held)))
        times = [at for at, _ in topic]
        assert times == sorted(times)
        whole = dict(topic)  # the last one of each timestamp
        for at in sorted(whole):
            seen = {r: (v["n"], v["total"]) for r, v in whole[at].items() if v is not None}
            while prefixes[place] != seen:
                place += 1
                assert place < len(prefixes), f"what the topic has at {at} never was"
        assert {r: (v["n"], v["total"]) for r, v in held.items() if v is not None} == final
        last, moments = {}, {}
        for at, region, value in self.messages("upsert"):
            assert moments.get(region, -1) < at, "once at a time"
            assert region not in last or last[region] != value, "said twice"
            last[region], moments[region] = value, at
        assert {r: (v["n"], v["total"]) for r, v in last.items() if v is not None} == final


@pytest.fixture
def pipeline(kafka, tmp_path):
    made = Pipeline(kafka, tmp_path / "state")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("kills", "turn"),
    [(4, 0), *(pytest.param(10, n, marks=pytest.mark.slow(seconds=60)) for n in range(5))],
)
def test_killed_again_and_again_under_load(pipeline, kills, turn):
    for n in range(turn, turn + kills):
        pipeline.start()
        if n % 5 != 4:  # now and then it dies while it opens
            pipeline.create()
        if n % 5 in (0, 2):  # now and then while it writes for sure
            pipeline.goes_on()
        time.sleep(pipeline.random.uniform(0.0, 1.5))
        assert pipeline.process.kill() == -signal.SIGKILL
    pipeline.start().create().goes_on().finish()
    print(len(pipeline.load.written), "records,", len(pipeline.messages("debezium")), "messages")
    assert len(pipeline.messages("debezium")) > 10 * kills


POINTS = [
    "sink.produce.after", "sink.commit.before", "sink.commit.after", "sink.report.before",
    *(pytest.param(point, marks=pytest.mark.slow(seconds=20)) for point in (
        "sink.begin.before", "sink.progress.before", "sink.hold.before", "tick.publish.before",
        "tick.publish.after", "durable.commit.before", "durable.commit.after",
    )),
]  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_failpoint(pipeline, point):
    pipeline.start().create().goes_on()
    pipeline.process.die_at(point)
    assert pipeline.process.ended() == EXIT_STATUS
    pipeline.start().create().goes_on().finish()


def test_a_process_that_slept_is_barred_and_says_so(pipeline, tmp_path):
    pipeline.start().create().goes_on()
    sleeper = pipeline.process
    sleeper.signal(signal.SIGSTOP)
    shutil.copytree(pipeline.path, tmp_path / "copy")
    pipeline.start(path=tmp_path / "copy").create().goes_on()
    owner, pipeline.process = pipeline.process, sleeper
    sleeper.signal(signal.SIGCONT)
    pipeline.wait(lambda: all(f[0] == "failed" for f in sleeper.status().values()))
    for _, _, detail, *_ in sleeper.status().values():
        assert "another instance of this sink took over" in detail
    sleeper.kill()
    pipeline.process = owner
    pipeline.goes_on().finish()


def test_a_process_whose_state_was_replaced_bars_nobody(pipeline, tmp_path):
    pipeline.start().create().goes_on()
    sleeper = pipeline.process
    sleeper.signal(signal.SIGSTOP)
    pipeline.path.rename(tmp_path / "lost")
    pipeline.start().create(recover="true").goes_on()
    owner, pipeline.process = pipeline.process, sleeper
    sleeper.signal(signal.SIGCONT)
    pipeline.wait(lambda: all(f[0] == "failed" for f in sleeper.status().values()))
    sleeper.kill()
    again = pipeline.start(path=tmp_path / "lost").process
    assert again.answer() == []
    pipeline.wait(lambda: all(f[0] == "failed" for f in again.status().values()))
    for _, _, detail, *_ in again.status().values():
        assert "another database writes sink" in detail
    again.kill()
    pipeline.process = owner
    pipeline.goes_on().finish()


@pytest.mark.parametrize("hosts", [2, pytest.param(10, marks=pytest.mark.slow(seconds=20))])
def test_hosts_that_lose_their_disks(pipeline, hosts):
    for _ in range(hosts):
        pipeline.start().create(recover="true").goes_on()
        time.sleep(pipeline.random.uniform(0.0, 0.5))
        pipeline.process.kill()
        shutil.rmtree(pipeline.path)
    pipeline.start().create(recover="true").goes_on().finish()


def test_a_stranger_holds_a_transaction_open_in_the_consistency_topic(pipeline):
    shared = pipeline.kafka.create_topic(compacted=True)
    pipeline.start().create(consistency=shared).goes_on()
    stranger = pipeline.kafka.begin()
    stranger.produce(shared, 0, Record(b"?", b"stranger"))
    pipeline.goes_on()
    pipeline.process.kill()
    pipeline.start().create(consistency=shared)
    time.sleep(2)
    states = {found[0] for found in pipeline.process.status().values()}
    assert states <= {"starting", "stalled"}, "what is hidden is not taken for missing"
    stranger.abort()
    pipeline.goes_on().finish()


@pytest.mark.slow(seconds=30)
def test_the_timeout_of_a_transaction_elapses_while_nobody_is_there(pipeline):
    pipeline.start().create(timeout="2s").goes_on()
    pipeline.process.die_at("sink.commit.before")
    assert pipeline.process.ended() == EXIT_STATUS
    time.sleep(15)  # the broker looks every ten seconds
    pipeline.start().create(timeout="2s").goes_on().finish()


@pytest.mark.slow(seconds=40)
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_broker_that_goes_with_a_transaction_open(tmp_path, how):
    with running_kafka() as kafka:
        pipeline = Pipeline(kafka, tmp_path / "state")
        pipeline.start().create().goes_on()
        for _ in range(2):
            pipeline.process.execute("arm sink.commit.before=sleep:1500")
            time.sleep(1)
            pid = int((kafka.directory / "broker").read_text().split()[0])
            os.kill(pid, signal.SIGKILL) if how == "killed" else kafka.stop()
            time.sleep(1)
            kafka.start()
            pipeline.process.execute("arm sink.commit.before=sleep:0")
            pipeline.goes_on(120)
        pipeline.finish()
        pipeline.close()


def test_another_reclock_reads_the_output_back(pipeline):
    pipeline.start().create().goes_on()
    for sink, envelope in (("debezium", "DEBEZIUM"), ("upsert", "UPSERT")):
        pipeline.process.execute(
            f"CREATE SOURCE back_{sink} (region TEXT PRIMARY KEY, n BIGINT, total BIGINT) FROM "
            f"KAFKA BROKER '{pipeline.kafka.address}' TOPIC '{pipeline.topic(sink)}' FORMAT JSON "
            f"ENVELOPE {envelope}"
        )
    pipeline.load.stop()
    count = len(pipeline.load.written)
    bound = "SELECT max(\"offset\") FROM reclock.bindings WHERE source = 'accounts'"
    pipeline.wait(lambda: pipeline.process.execute(bound)[0][0] == count)
    assert pipeline.process.execute("SELECT * FROM totals")
    for sink in ("debezium", "upsert"):
        for one, other in (("totals", f"back_{sink}"), (f"back_{sink}", "totals")):
            query = f"SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other}"
            pipeline.wait(lambda q=query: pipeline.process.execute(q) == [])
    pipeline.process.kill()
    pipeline.check()
