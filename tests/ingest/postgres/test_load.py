"""pgbench, a load that we did not write; and PostgreSQL to Kafka, end to end, through kills."""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
import uuid
from contextlib import suppress

import psycopg2
import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from children import Child
from engines.task_engine import TaskEngine
from reclock.testing.postgres import _installed

from .servers import restart, serving

pytestmark = pytest.mark.postgres

SUMS = {
    "accounts": "sum(abalance)", "tellers": "sum(tbalance)", "branches": "sum(bbalance)",
    "history": "coalesce(sum(delta), 0)",
}  # fmt: skip
TABLES = ", ".join(f"pgbench_{table} AS {table}" for table in SUMS)


def pgbench(upstream, *given):
    program = _installed() / "bin" / "pgbench"
    where = ["-h", upstream.host, "-U", "postgres"]
    return subprocess.Popen(
        [program, *where, *given, upstream.name],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def ended(process):
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said.decode()


@pytest.mark.parametrize(
    "transactions", [100, pytest.param(4_000, marks=pytest.mark.slow(seconds=60))]
)
def test_the_sums_of_pgbench_agree_at_every_time(upstream, opener, transactions):
    opener.engine = TaskEngine
    ended(pgbench(upstream, "-i", "-q", "-s", "1"))
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    made = upstream.source(f"FOR TABLES ({TABLES})")
    db.execute(f"CREATE SOURCE bench {made} WITH (RETAIN HISTORY FOR '1 h')")
    for table, total in SUMS.items():
        db.execute(
            f"CREATE MATERIALIZED VIEW {table}_sum WITH (RETAIN HISTORY FOR '1 h') AS "
            f"SELECT {total}::bigint AS total FROM {table}"
        )
    each = "SELECT count(*) FROM tellers t JOIN branches b ON t.bid = b.bid WHERE b.bid IS NOT NULL"
    db.execute(f"CREATE MATERIALIZED VIEW pairs WITH (RETAIN HISTORY FOR '1 h') AS {each}")
    opener.clock.advance(1_000)
    db.tick()
    for _ in range(4):  # however quick each is
        load = pgbench(upstream, "-n", "-c", "4", "-t", str(transactions // 4))
        while load.poll() is None:
            opener.clock.advance(1_000)
            db.tick()
            time.sleep(0.05)
        ended(load)
        for _ in range(3):
            opener.clock.advance(1_000)
            db.tick()
    times = db.execute('SELECT timestamp FROM reclock.bindings WHERE "offset" > 0').rows
    assert len(times) > 4  # the copy, and what pgbench did in each turn
    seen = set()
    for (at,) in times:
        sums = {
            db.execute(f"SELECT total FROM {table}_sum AS OF {at}").rows[0][0] for table in SUMS
        }
        assert len(sums) == 1, (at, sums)
        seen |= sums
        assert db.execute(f"SELECT * FROM pairs AS OF {at}").rows == [(10,)]
    assert len(seen) > 2
    ((theirs,),) = upstream("SELECT sum(delta)::bigint FROM pgbench_history")
    assert db.execute("SELECT total FROM accounts_sum").rows == [(theirs,)]
    assert db.execute("SELECT count(*) FROM history").rows == [(4 * transactions,)]
    assert db.execute("SELECT * FROM reclock.errors").rows == []


PROGRAM = """
import json
from reclock.session.database import Database
from reclock.export import exporter
from engines.model_engine import ModelEngine

exporter.IDLE_MS = 200
db = Database(path, ModelEngine())
while True:
    pipe.send(json.dumps(db.execute(pipe.recv()).rows, default=str))
"""


def asking(child):
    def ask(sql):
        child.pipe.send(sql)
        assert child.pipe.poll(60), sql
        return json.loads(child.pipe.recv())

    return ask


def goes_on(ask):
    """Wait until the sink commits something that it had not."""
    begun = None
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ((frontier,),) = ask("SELECT frontier FROM reclock.sink_status")
        begun = begun or frontier
        if frontier and frontier > begun:
            return
        time.sleep(0.05)


MOVE = """
UPDATE accounts SET balance = balance - 1 WHERE id = {one};
UPDATE accounts SET balance = balance + 1 WHERE id = {other}
"""


def moving(upstream, dice, stopped):
    """Move money until it is told to stop; a server that was killed is tried again."""
    while not stopped.is_set():
        with suppress(psycopg2.OperationalError, psycopg2.InterfaceError):
            session = psycopg2.connect(upstream.connection)
            cursor = session.cursor()
            while not stopped.wait(0.01):
                one, other = dice.sample(range(1, 6), 2)
                cursor.execute(MOVE.format(one=one, other=other))
                session.commit()
            session.close()


@pytest.mark.kafka
@pytest.mark.parametrize("kills", [2, pytest.param(12, marks=pytest.mark.slow(seconds=120))])
def test_each_change_is_once_in_kafka(kafka, tmp_path, kills):
    """reclock is killed, and PostgreSQL is, in turns."""
    with serving() as server:
        upstream = server.database()
        upstream("CREATE TABLE accounts (id INT PRIMARY KEY, balance INT NOT NULL)")
        upstream("INSERT INTO accounts SELECT i, 100 FROM generate_series(1, 5) i")
        upstream("CREATE PUBLICATION p FOR ALL TABLES")
        topic, stopped = f"accounts-{uuid.uuid4().hex[:8]}", threading.Event()
        load = threading.Thread(target=moving, args=(upstream, random.Random(kills), stopped))
        load.start()
        child = None
        try:
            for life in range(kills + 1):
                child = Child(PROGRAM, path=str(tmp_path / "state"))
                ask = asking(child)
                ask("ALTER SYSTEM SET timestamp_interval = '50ms'")
                ask(f"CREATE SOURCE IF NOT EXISTS s {upstream.source()}")
                ask("CREATE SINK IF NOT EXISTS k FROM accounts INTO KAFKA BROKER "
                    f"'{kafka.address}' TOPIC '{topic}' KEY (id) FORMAT JSON ENVELOPE DEBEZIUM "
                    "WITH (reuse_topic = true)")  # fmt: skip
                goes_on(ask)
                if life == kills:
                    break
                if life % 2 == 0:
                    restart(server, upstream)
                    goes_on(ask)
                assert child.kill() == -9
            stopped.set()
            load.join()
            theirs = sorted(upstream("SELECT id, balance FROM accounts"))
            deadline = time.monotonic() + 60
            while sorted(map(tuple, ask("SELECT id, balance FROM accounts"))) != theirs:
                assert time.monotonic() < deadline
            ((upper,),) = ask("SELECT upper FROM reclock.frontiers WHERE object = 'accounts'")
            while (ask("SELECT frontier FROM reclock.sink_status")[0][0] or 0) < upper:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        finally:
            stopped.set()
            load.join()
            child.kill()
            upstream.session.close()
    check(committed(kafka, topic), theirs)


def check(messages, theirs):
    held, sums = {}, {}
    for at, key, value in messages:
        assert value["before"] == held.get(key), "the messages of a key are a chain"
        held[key] = value["after"]
        sums[at] = sum(row["balance"] for row in held.values())
    assert sorted((k, row["balance"]) for k, row in held.items()) == theirs
    assert set(sums.values()) == {500}, "a transaction is whole at every timestamp"
    assert len(messages) > 10, "more than the snapshot, and changes in every life"


def committed(kafka, topic):
    config = {
        "bootstrap.servers": kafka.address, "group.id": uuid.uuid4().hex,
        "enable.partition.eof": True, "isolation.level": "read_committed",
    }  # fmt: skip
    consumer = Consumer(config)
    parts = consumer.list_topics(topic, 20).topics[topic].partitions
    consumer.assign([TopicPartition(topic, part, 0) for part in parts])
    found, open_parts = [], len(parts)
    while open_parts:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            assert message.error().code() == KafkaError._PARTITION_EOF
            open_parts -= 1
            continue
        at = int(dict(message.headers())["reclock-timestamp"])
        found.append((at, json.loads(message.key())["id"], json.loads(message.value())))
    found.sort(key=lambda one: one[0])  # a key is in one partition
    consumer.close()
    return found
