"""P7: many sessions write and read while ticks run, clocks jump, appends fail and processes die.

Clients add to a table, to two tables in one transaction, and set registers by UPDATE; they
read tables, views over them, and both in a transaction. What they saw is one history over all
epochs, checked to be linearizable, and by the timestamps they were given; half of the histories
beside sources whose times are wrong in every way, in the timeline of the tables.
"""

from __future__ import annotations

import json
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

import pytest

from model.histories import History, check_linearizable, check_times
from reclock.errors import Error
from reclock.session.statements import read_then_write
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.testing.kafka_upstream import Record

CLIENTS = 4
EPOCHS = 3
SECONDS = 0.7
REGISTER = 1_000_000
"""Register k at value j stands for the numbers k·REGISTER + 1 … k·REGISTER + j."""

SETUP = (
    "ALTER SYSTEM SET timestamp_interval = '15ms'",
    "CREATE TABLE one (n BIGINT)",
    "CREATE TABLE two (n BIGINT)",
    "CREATE TABLE registers (k INT PRIMARY KEY, v BIGINT)",
    "CREATE MATERIALIZED VIEW both AS SELECT n FROM one UNION ALL SELECT n FROM two",
    "CREATE MATERIALIZED VIEW kept AS SELECT k, v FROM registers",
)
BOTH = "SELECT 0 AS k, n AS v FROM {both} UNION ALL SELECT k, v FROM {registers}"


POISONS = {
    "seconds": lambda now: now // 1_000,
    "microseconds": lambda now: now * 1_000,
    "soon": lambda now: now + 5_000,
    "hours": lambda now: max(0, now - 10_000_000),
    "far": lambda now: now + 10_000_000_000,
}


class Poison:
    """Sources of wall-clock time whose times are not, with a view that reads them and a table."""

    def __init__(self, opener, db):
        self._kafka = opener.kafka
        self._topics = {name: self._kafka.create_topic(1) for name in POISONS}
        self._stated = dict.fromkeys(POISONS, 0)
        for name, topic in self._topics.items():
            db.execute(
                f"CREATE SOURCE {name} (n BIGINT) FROM KAFKA BROKER 'b:1' TOPIC '{topic}' FORMAT "
                "JSON ENVELOPE MATERIALIZE WITH (epoch_ms_timeline = true)"
            )
        self.spread(opener.clock.now_ms())
        db.tick()
        db.execute(
            "CREATE MATERIALIZED VIEW bad AS SELECT one.n FROM one JOIN soon ON one.n = soon.n"
        )

    def spread(self, now):
        """Let every source say that there is a row now, by its own clock."""
        for name, of in POISONS.items():
            lower, time = self._stated[name], of(now)
            if time < lower:
                continue
            counts = [{"time": time, "count": 1}]
            said = (
                {"array": [{"data": {"n": time}, "time": time, "diff": 1}]},
                {"progress": {"lower": [lower], "upper": [time + 1], "counts": counts}},
            )
            self._kafka.produce(
                self._topics[name], 0, *(Record(json.dumps(message).encode()) for message in said)
            )
            self._stated[name] = time + 1


class Client:
    """Does one thing after the other, and writes down what it saw."""

    def __init__(self, number, seed, history):
        self.name = f"client {number}"
        self.number = number
        self.choose = random.Random(seed * 31 + number)
        self.history = history
        self.added = 0
        self.register = 0
        self.wrong = []

    def run(self, db, stopped):
        with db.session() as session:
            session.execute("SET statement_timeout = '5s'")
            while not stopped.is_set():
                try:
                    self.act(session)
                except Error:
                    session.execute("ROLLBACK")

    def act(self, session):
        match self.choose.randrange(6):
            case 0 | 1:
                self.add(session, "INSERT INTO one VALUES ({0}); INSERT INTO two VALUES ({0})")
            case 2:
                self.register += 1
                number = self.number * REGISTER + self.register
                with self.history.recording(self.name, "add", number) as done:
                    sql = "UPDATE registers SET v = $1 WHERE k = $2"
                    done.timestamp = session.execute(sql, (self.register, self.number)).timestamp
            case 3:
                with self.history.recording(self.name, "read") as done:
                    sql = BOTH.format(both="both", registers="kept")
                    self.saw(done, session.execute(sql))
            case 4:
                with self.history.recording(self.name, "read") as done:
                    sql = BOTH.format(both="one", registers="registers")
                    answer = session.execute(sql)
                    self.saw(done, answer, [(0, v) for k, v in answer.rows if k == 0])
            case 5:
                with self.history.recording(self.name, "read") as done:
                    session.execute("BEGIN")
                    two = session.execute("SELECT 0, n FROM two").rows
                    session.execute("SELECT 1")
                    rest = session.execute(BOTH.format(both="one", registers="registers"))
                    session.execute("COMMIT")
                    self.saw(done, rest, two)

    def add(self, session, sql):
        self.added += 1
        number = self.number * REGISTER + REGISTER // 2 + self.added
        with self.history.recording(self.name, "add", number) as done:
            done.timestamp = session.execute(f"BEGIN; {sql.format(number)}; COMMIT").timestamp

    def saw(self, done, answer, more=()):
        """Every number of the two tables is there twice; registers stand for many numbers."""
        logged = sorted(v for k, v in [*answer.rows, *more] if k == 0)
        if logged[::2] != logged[1::2]:
            self.wrong.append(f"half a transaction: {logged}")
        registers = {k: v for k, v in answer.rows if k}
        numbers = {k * REGISTER + j for k, v in registers.items() for j in range(1, v + 1)}
        done.numbers = frozenset([*logged, *numbers])
        done.timestamp = answer.timestamp


class Chaos:
    """Lets the clock jump, and appends and ticks fail, one in so many."""

    def __init__(self, seed, opener):
        self.choose = random.Random(seed)
        self.opener = opener
        self.latest = 0
        self.poison = None

    def fail(self):
        if self.choose.random() < 0.03:
            message = "by chance"
            raise FailpointRaised(message)

    def linger(self):
        if self.choose.random() < 0.1:
            sleep(self.choose.random() * 0.03)

    def dawdle(self):
        """Have a tick take long, while it does not have the lock."""
        if self.choose.random() < 0.3:
            sleep(self.choose.random() * 0.1)

    def points(self):
        return {
            "durable.append.before": self.fail,
            "durable.commit.after": self.fail,
            "tick.compute.before": self.dawdle,
            "tick.land.before": self.dawdle,
            "tick.publish.before": self.linger,
            "write.append.before": self.linger,
            "write.read.after": self.linger,
        }

    def let_time_pass(self, seconds):
        end = monotonic() + seconds
        while monotonic() < end:
            jump = self.choose.choice([7, 7, 7, 20, 20, 5_000, -5_000, 200_000, -100_000])
            now = max(0, self.opener.clock.now_ms() + jump)
            self.latest = max(self.latest, now)
            self.opener.clock.set(now)
            if self.poison is not None:
                self.poison.spread(now)
            sleep(0.01)


def crash(opener, db, stopped):
    """Take the store away from everybody, then wait for them: none may be left to answer."""
    opener.crash(db)
    stopped.set()
    db._core.loop.stop()


@pytest.mark.parametrize("window", ["0", "60s"])
@pytest.mark.parametrize("poisoned", [False, True])
def test_histories_of_many_sessions_are_linearizable(opener, monkeypatch, poisoned, window):
    if not poisoned:  # what an UPDATE reads is read before its turn, and again, or kept
        monkeypatch.setattr(read_then_write, "FEW_ROWS", -1)
        monkeypatch.setattr(read_then_write, "BRIEF", -1.0 if window == "0" else 1e9)
    seed = int(os.environ.get("RECLOCK_SEED") or random.randrange(10**6))
    print(f"RECLOCK_SEED={seed} runs this history again")
    history = History()
    clients = [Client(number, seed, history) for number in range(1, CLIENTS + 1)]
    chaos = Chaos(seed, opener)
    db = opener()
    for statement in (*SETUP, f"ALTER SYSTEM SET logical_compaction_window = '{window}'"):
        db.execute(statement)
    db.insert("registers", [(client.number, 0) for client in clients])
    if poisoned:
        chaos.poison = Poison(opener, db)
    db.close()
    for epoch in range(EPOCHS):
        db = opener(background=True)
        stopped = threading.Event()
        with armed(chaos.points()), ThreadPoolExecutor(CLIENTS) as pool:
            working = [pool.submit(client.run, db, stopped) for client in clients]
            chaos.let_time_pass(SECONDS)
            if epoch % 2:
                stopped.set()
            else:
                crash(opener, db, stopped)
            for work in working:
                assert isinstance(work.exception(), Error | None)
        if epoch % 2:
            db.close()
    db = opener()
    last = Client(9, seed, history)
    with history.recording(last.name, "read") as done:
        last.saw(done, db.execute(BOTH.format(both="both", registers="kept")))
    assert [wrong for client in (*clients, last) for wrong in client.wrong] == []
    assert check_linearizable(history) == []
    assert check_times(history) == []
    returned = [operation for operation in history.operations if operation.returned]
    assert max(o.timestamp for o in returned if o.timestamp is not None) < chaos.latest + 10_000
    assert len(returned) > 5  # fewer say nothing; how many there are depends on the machine
    assert len([o for o in history.reads if o.numbers]) > 0
    print(len(returned), "operations")
