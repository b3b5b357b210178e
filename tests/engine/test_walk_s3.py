"""A database whose files are on S3 answers as one whose files are in a directory, at every time.

Two databases get the same random statements, ticks and restarts. Meanwhile the way to the store is
busy or closed for a while, copies are damaged or removed, and there is room for hardly any of them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from threading import Timer

import pytest

from engines.local_engine import LocalEngine
from reclock import ManualClock
from reclock.arrangement import remote_errors
from reclock.arrangement.remote import RemoteStore
from reclock.dataflow import merge
from reclock.engine import arrangements
from reclock.engine.place import CACHE, open_place
from reclock.session.database import Database
from s3 import KEYS, running_s3, way_to

VIEWS = {
    "parity": "SELECT a % 2 AS odd, count(*) AS n FROM t GROUP BY a % 2",
    "joined": "SELECT t.k, t.a + u.a AS s FROM t JOIN u ON t.k = u.k",
    "vals": "SELECT DISTINCT a FROM t",
}
STEPS = 20
SLOW = pytest.mark.slow(seconds=60)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def way(server, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["access_key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["secret_key"])
    with way_to(server) as way:
        yield way


class Pair:
    """The two databases, and what goes wrong on the way to one of them."""

    def __init__(self, home, way, seed):
        self.random = random.Random(seed)
        self.home, self.way = home, way
        self.clock = ManualClock(1_000)
        self.where = {"near": None, "far": way.address(f"walk{seed}")}
        self.objects = ["t", "u"]
        self.key = 0
        self.dbs = {}

    def open(self):
        for name, store in self.where.items():
            place = open_place(self.home / name, store=store)
            self.dbs[name] = Database(place, LocalEngine(), clock=self.clock, background=False)

    def close(self):
        for db in self.dbs.values():
            db.close()
        self.dbs = {}

    def execute(self, sql):
        found = [db.execute(sql) for db in self.dbs.values()]
        assert len({each.timestamp for each in found}) == 1, sql
        return found

    def begin(self):
        self.open()
        self.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT NOT NULL)")
        self.execute("CREATE TABLE u (k INT, a INT NOT NULL)")
        self.execute("ALTER SYSTEM SET logical_compaction_window = '5s'")

    def step(self):
        action = self.random.choice(
            [self.write] * 5 + [self.advance] * 3 + [self.define, self.restart, *self.faults]
        )
        action()
        self.compare()

    def write(self):
        name = self.random.choice("tu")
        kind = self.random.choice(["insert", "insert", "update", "delete"])
        if kind == "insert":
            rows = [(self.key + n, self.random.randrange(6)) for n in range(20)]
            self.key += 20 if name == "t" else 0
            self.execute(f"INSERT INTO {name} VALUES {', '.join(map(str, rows))}")
        elif kind == "update":
            some = self.random.randrange(5)
            self.execute(f"UPDATE {name} SET a = a + 1 WHERE k % 5 = {some}")
        else:
            self.execute(f"DELETE FROM {name} WHERE k % 7 = {self.random.randrange(7)}")

    def advance(self):
        self.clock.advance(self.random.choice([400, 1_000, 7_000]))
        for db in self.dbs.values():
            db.tick()

    def define(self):
        free = sorted(VIEWS.keys() - set(self.objects))
        if free:
            self.execute(f"CREATE MATERIALIZED VIEW {free[0]} AS {VIEWS[free[0]]}")
            self.objects.append(free[0])

    def restart(self):
        self.close()
        self.open()

    @property
    def faults(self):
        return [self.busy, self.away, self.damage, self.lose]

    def busy(self):
        self.way.busy = self.random.choice([0.0, 0.05, 0.2])

    def away(self):
        self.way.closed = True
        Timer(0.3, lambda: setattr(self.way, "closed", False)).start()

    def damage(self):
        there = self.home / "far" / CACHE
        for path in sorted(there.iterdir()) if there.exists() else ():
            if not path.name.endswith(".tmp"):  # a file being written is not a copy
                data = bytearray(path.read_bytes())
                data[len(data) // 3] ^= 1
                fresh = path.with_name(f".{path.name}~damaged.tmp")  # maps keep what they have
                fresh.write_bytes(data)
                fresh.rename(path)

    def lose(self):
        shutil.rmtree(self.home / "far" / CACHE, ignore_errors=True)

    def compare(self):
        for name in self.objects:
            one, other = self.execute(f"SELECT * FROM {name}")
            assert Counter(one.rows) == Counter(other.rows), name
            bounds = self.execute(
                f"SELECT since, upper FROM reclock.frontiers WHERE object = '{name}'"
            )
            assert bounds[0].rows == bounds[1].rows
            since, upper = bounds[0].rows[0]
            for time in {since, self.random.randrange(since, upper), upper - 1}:
                one, other = self.execute(f"SELECT * FROM {name} AS OF {time}")
                assert Counter(one.rows) == Counter(other.rows), (name, time)


@pytest.mark.parametrize(
    ("seed", "room"),
    [
        (1, "100"),
        *(pytest.param(n, r, marks=SLOW) for n in (2, 3) for r in ("100", "100 MiB")),
    ],
)
def test_the_same_answers_at_every_time(tmp_path, way, monkeypatch, seed, room):
    monkeypatch.setattr(arrangements, "INLINE_BYTES", 0)
    monkeypatch.setattr(merge, "INLINE_BYTES", 0)
    monkeypatch.setattr(remote_errors, "PAUSES", (0.05, 0.1, 0.2, 0.4, 0.8, 0.8, 0.8))
    monkeypatch.setenv("RECLOCK_CACHE_BYTES", room)
    pair = Pair(tmp_path, way, seed)
    with ExitStack() as undo:
        undo.callback(pair.close)
        pair.begin()
        assert isinstance(pair.dbs["far"]._core.segments, RemoteStore)
        for _ in range(STEPS * seed):
            pair.step()
        way.busy, way.closed = 0.0, False
        pair.restart()
        pair.compare()
        assert pair.dbs["far"].check() == []
    assert way.requests


CLUSTER = """
import json
import os
import random
import sys
from pathlib import Path

import reclock
from reclock.engine import arrangements
from reclock.dataflow import merge
from reclock.dataflow.job import part

home, address = Path(sys.argv[1]), sys.argv[2]
(home / "driver").mkdir()
os.chdir(home / "driver")
arrangements.INLINE_BYTES = merge.INLINE_BYTES = part.INLINE_BYTES = 0
MASTER = "local-cluster[2,1,1024]"


def told(word):
    print(word, flush=True)
    assert sys.stdin.readline()


def walk(name, execution, **elsewhere):
    chosen, clock, found = random.Random(7), reclock.ManualClock(1_000), []

    def opened():
        return reclock.open(
            home / name, background=False, clock=clock, master=MASTER, **elsewhere
        )

    db = opened()
    try:
        db.execute(f"ALTER SYSTEM SET execution = '{execution}'")
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, k INT, x INT)")
        db.execute("CREATE TABLE u (k INT, name TEXT)")
        db.execute("INSERT INTO u SELECT i, 'n' || i FROM generate_series(1, 6) AS g(i)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT u.name, count(*) AS n, sum(t.x) AS s"
                   " FROM t LEFT JOIN u ON t.k = u.k GROUP BY u.name")
        db.execute("CREATE MATERIALIZED VIEW w AS SELECT k, max(id) AS m FROM t GROUP BY k")
        for step in range(8):
            low = step * 500
            db.execute(f"INSERT INTO t SELECT i, i % {chosen.randrange(5, 9)}, i % 5"
                       f" FROM generate_series({low + 1}, {low + 500}) AS g(i)")
            db.execute(f"DELETE FROM t WHERE id % 11 = {chosen.randrange(11)}")
            db.execute(f"UPDATE t SET k = k + 1 WHERE x = {chosen.randrange(5)}")
            clock.advance(chosen.choice([400, 1_000]))
            db.tick()
            if elsewhere and step == 3:
                told("kill it")
            if step == 5:
                db.close()
                db = opened()
            for query in ("SELECT * FROM v", "SELECT * FROM w", "SELECT count(*), sum(x) FROM t"):
                answer = db.execute(query)
                found.append((answer.timestamp, sorted(answer.rows, key=repr)))
        if elsewhere:
            from pyspark import SparkContext

            def seen(_):
                copies = Path(os.environ["RECLOCK_CACHE_DIR"]).absolute()
                yield str(copies), sum(1 for path in copies.rglob("*") if path.is_file())

            context = SparkContext._active_spark_context
            print(json.dumps(sorted(set(context.parallelize(range(40), 40)
                                        .mapPartitions(seen).collect()))), flush=True)
        assert db.check() == []
    finally:
        db.close()
    return found


far = walk("far", "spark", store=address)
assert far == walk("near", "driver"), "another answer"
print("same", flush=True)
"""


@pytest.mark.slow(seconds=200)  # and not spark: its Spark is in another process
def test_executors_share_nothing_but_the_store(tmp_path):
    """The copies of each are its own, and the server is killed and started again."""
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": KEYS["access_key"],
        "AWS_SECRET_ACCESS_KEY": KEYS["secret_key"],
        "RECLOCK_CACHE_DIR": "copies",  # of where each process runs
    }
    with (
        running_s3(tmp_path / "s3") as server,
        way_to(server) as way,
        (tmp_path / "said").open("w") as errors,
    ):
        way.busy = 0.02
        process = subprocess.Popen(
            [sys.executable, "-c", CLUSTER, str(tmp_path), way.address()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
            stderr=errors,
        )  # fmt: skip
        try:
            assert process.stdout.readline() == "kill it\n", (tmp_path / "said").read_text()
            server.kill()
            Timer(1.0, server.start).start()
            process.stdin.write("killed\n")
            process.stdin.flush()
            places = json.loads(process.stdout.readline() or "[]")
            said = process.stdout.readline()
        finally:
            process.stdin.close()
            process.wait(300)
            process.stdout.close()
        assert said == "same\n", (tmp_path / "said").read_text()
        assert len(places) == 2, places
        assert all(files for _, files in places), places
        assert not any(place.startswith(str(tmp_path / "driver")) for place, _ in places), places
        read = [r for r in way.requests if r.startswith("GET")]
        assert read
