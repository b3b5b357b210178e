"""Real processes over the real broker, killed: nothing lost, nothing doubled, no time changed.

A process reads SQL from its input and answers in JSON; time passes, its loop ticks every 20
milliseconds, and it dies by ``kill -9``, or by itself at a failpoint.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from itertools import pairwise

import pytest

from reclock.failpoints import ENVIRONMENT, EXIT_STATUS

pytestmark = pytest.mark.kafka

PROGRAM = """
import json, sys
import reclock
from reclock.failpoints import arm

db = reclock.open(sys.argv[1])
print(json.dumps("open"), flush=True)
for line in sys.stdin:
    what = json.loads(line)
    if what == "close":
        db.close()
        answer = []
    elif what.startswith("arm "):
        arm(what[4:], "exit")
        answer = []
    else:
        answer = db.execute(what).rows
    print(json.dumps(answer, default=str), flush=True)
"""
BINDINGS = 'SELECT timestamp, partition, "offset" FROM reclock.bindings'
POINTS = [
    "ingest.read.after", "ingest.bind.before", "tick.compute.before",
    "tick.publish.before", "tick.publish.after",
]  # fmt: skip
DURABLE = ["durable.commit.before", "durable.commit.after"]


class Process:
    """A database in a process of its own."""

    def __init__(self, path, failpoints=""):
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, ENVIRONMENT: failpoints},
        )  # fmt: skip

    def opened(self):
        assert json.loads(self._process.stdout.readline()) == "open"
        return self

    def execute(self, sql):
        print(json.dumps(sql), file=self._process.stdin, flush=True)
        return [tuple(row) for row in json.loads(self._process.stdout.readline())]

    def kill(self):
        """Kill it, at once, whatever it does."""
        self._process.kill()
        return self.ended()

    def ended(self):
        code = self._process.wait(60)
        self._process.stdin.close()
        self._process.stdout.close()
        return code


class Load(threading.Thread):
    """Writes ``{"id": n}`` to random partitions until it is stopped."""

    def __init__(self, lab, topic, partitions):
        super().__init__()
        self.lab, self.topic, self.partitions = lab, topic, partitions
        self.count = 0
        self.going = threading.Lock()
        self.stopped = threading.Event()

    def run(self):
        while not self.stopped.wait(0.004):
            some = [{"id": self.count + n, "x": "x"} for n in range(4)]
            with self.going:
                self.lab.send(self.topic, random.randrange(self.partitions), *some)
            self.count += len(some)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.join()


def create(process, lab, topic, rest=""):
    process.execute("ALTER SYSTEM SET timestamp_interval = '20ms'")
    process.execute(
        f"CREATE SOURCE s (id BIGINT, x TEXT) FROM KAFKA BROKER '{lab.kafka.address}' "
        f"TOPIC '{topic}' FORMAT JSON INCLUDE PARTITION AS p, OFFSET AS o {rest}"
    )


def times_of(bindings):
    """Return the time of every offset, and the first time there is."""
    found, steps = {}, {}
    for timestamp, partition, offset in bindings:
        steps.setdefault(int(partition), []).append((timestamp, offset))
    for partition, bound in steps.items():
        at = 0
        for timestamp, offset in sorted(bound):
            found |= {(partition, o): timestamp for o in range(at, offset)}
            at = max(at, offset)
    return found, min(timestamp for timestamp, _, _ in bindings)


def check_same(before, after):
    """Check that offsets kept their times, but for those that were folded, together."""
    old, _ = times_of(before)
    new, since = times_of(after)
    for place, time_ in old.items():
        assert new[place] == time_ or time_ < new[place] == since, place


def clocked(lab):
    """Open the state here, with time standing still where it is."""
    db = lab.open()
    (state,) = db._core.world.timelines.values()
    lab.clock.set(int(state.upper))
    return db


def rows(db, query):
    return sorted(db.execute(query).rows, key=repr)


@pytest.mark.parametrize("window", ["60s", pytest.param("1ms", marks=pytest.mark.slow(seconds=40))])
def test_views_agree_and_offsets_keep_their_times_through_kill_9(real, window):
    topic = real.kafka.create_topic(16)
    seen = []
    process = Process(real.path).opened()
    process.execute(f"ALTER SYSTEM SET logical_compaction_window = '{window}'")
    create(process, real, topic)
    with Load(real, topic, 16) as load:
        process.execute("CREATE MATERIALIZED VIEW a AS SELECT * FROM s")
        time.sleep(1)
        process.execute("CREATE MATERIALIZED VIEW b AS SELECT * FROM s")
        for n in range(2):
            time.sleep(0.7)
            seen.append(process.execute(BINDINGS))
            process.kill()
            process = Process(real.path).opened()
            seen.append(process.execute(BINDINGS))
            if not n:
                process.execute("CREATE MATERIALIZED VIEW c AS SELECT * FROM s")
        time.sleep(0.5)
    real.eventually(
        lambda: process.execute("SELECT bound FROM reclock.source_status") == [(load.count,)]
    )
    seen.append(process.execute(BINDINGS))
    process.kill()
    db = clocked(real)
    seen.append([row[1:] for row in rows(db, "SELECT * FROM reclock.bindings")])
    for before, after in pairwise(seen):
        check_same(before, after)
    frontiers = {row[0]: row[1:3] for row in rows(db, "SELECT * FROM reclock.frontiers")}
    bound, first = times_of(seen[-1])
    times = set()
    for one, other in ("sa", "sb", "sc", "ab", "ac", "bc"):
        since = max(frontiers[one][0], frontiers[other][0])
        upper = min(frontiers[one][1], frontiers[other][1])
        log = real.change_log(db, one, since, upper)
        assert log == real.change_log(db, other, since, upper), (one, other)
        for at, (_, _, partition, offset) in log:
            assert at == max(bound[partition, offset], since), "not at the time of its binding"
        assert sorted(row[0] for _, row in log) == list(range(load.count))
        times |= {at for at, _ in log}
    if window == "60s":
        assert len(times) > 10, "not many times were looked at"
        assert first == 0
    assert db.check() == []


def test_a_process_that_dies_at_any_step_loses_and_doubles_nothing(real):
    topic = real.kafka.create_topic(4)
    process = Process(real.path).opened()
    create(process, real, topic)
    process.execute("CREATE MATERIALIZED VIEW v AS SELECT p, count(*) AS n FROM s GROUP BY p")
    sent = 0

    def send():
        nonlocal sent
        for partition in range(4):
            real.send(topic, partition, *({"id": sent + n, "x": "x"} for n in range(10)))
            sent += 10

    send()
    real.eventually(lambda: process.execute("SELECT bound FROM reclock.source_status") == [(sent,)])
    before = process.execute(BINDINGS)
    for point in DURABLE:
        process.execute(f"arm {point}")
        send()
        assert process.ended() == EXIT_STATUS, point
        process = Process(real.path).opened()
    process.kill()
    for point in POINTS:
        send()
        assert Process(real.path, f"{point}=exit").ended() == EXIT_STATUS, point
        db = clocked(real)
        after = [row[1:] for row in rows(db, "SELECT * FROM reclock.bindings")]
        check_same(before, after)
        before = after
        ids = Counter(row[0] for row in rows(db, "SELECT id FROM s"))
        assert all(n == 1 for n in ids.values()), point
        assert db.check() == [], point
        db.close()
    db = clocked(real)
    real.caught_up(db, sent)
    assert rows(db, "SELECT id FROM s") == sorted(((n,) for n in range(sent)), key=repr)
    assert rows(db, "SELECT n FROM v") == [(sent // 4,)] * 4
    check_same(before, [row[1:] for row in rows(db, "SELECT * FROM reclock.bindings")])
    assert db.check() == []


@pytest.mark.slow(seconds=15)
def test_a_process_ends_while_the_broker_does_not_answer(real):
    topic = real.kafka.create_topic(2)
    process = Process(real.path).opened()
    create(process, real, topic)
    real.send(topic, 0, *({"id": n} for n in range(10)))
    real.eventually(lambda: process.execute("SELECT bound FROM reclock.source_status") == [(10,)])
    real.kafka.stop()
    try:
        time.sleep(1)
        began = time.monotonic()
        process.execute("close")
        assert time.monotonic() - began < 6
        process._process.stdin.close()
        assert process.ended() == 0
        assert time.monotonic() - began < 10
    finally:
        real.kafka.start()


@pytest.mark.slow(seconds=120)
def test_a_process_that_is_killed_again_and_again(real):
    """Two minutes of kills at random moments, a broker that goes and comes, and load."""
    topic = real.kafka.create_topic(8)
    process = Process(real.path).opened()
    create(process, real, topic, "WITH (max_rows_per_tick = 500)")
    process.execute("CREATE MATERIALIZED VIEW v AS SELECT p, count(*) AS n FROM s GROUP BY p")
    seen = []
    chance = random.Random(0)
    with Load(real, topic, 8) as load:
        for n in range(25):
            time.sleep(chance.random() * 2)
            process.kill()
            if n % 8 == 4:
                with load.going:
                    real.kafka.stop()
                    process = Process(real.path).opened()
                    process.execute("SELECT * FROM v")
                    real.kafka.start()
            else:
                process = Process(real.path).opened()
            seen.append(process.execute(BINDINGS))
    process.kill()
    db = clocked(real)
    real.caught_up(db, load.count)
    for before, after in pairwise(seen):
        check_same(before, after)
    assert rows(db, "SELECT id FROM s") == sorted(((n,) for n in range(load.count)), key=repr)
    assert db.check() == []
