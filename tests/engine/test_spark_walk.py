"""A whole pipeline in the driver, and as Spark jobs: equal at every time, and in what is written.

A file that grows, with records that are skipped; a topic with keys; a topic of changes; a table; a
join with totals, groups and an expression that Spark computes, a filter on time whose updates
expire and are renewed, merges, a restart, and a sink. Spark's pages say what each job is for.
At random, with crashes: tests/session/test_end_to_end.py.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest

import reclock
from reclock import ManualClock
from reclock.arrangement import merge as rules
from reclock.engine import merging
from reclock.spark import job
from reclock.testing.kafka_upstream import Record

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow(seconds=60)]

STEPS = 5
VIEWS = {
    "totals": "SELECT c.city, count(*) AS n, sum(o.amount) AS total FROM orders o"
    " JOIN customers c ON o.customer = c.id GROUP BY c.city",
    "texts": "SELECT id, upper(city) AS city FROM customers",
    "lists": "SELECT customer, string_agg(id::text, ',' ORDER BY id) AS ids FROM orders"
    " GROUP BY customer",
    "recent": "SELECT id, amount FROM orders WHERE mz_now() < at + 4000",
    "labels": "SELECT o.id, l.label FROM orders o LEFT JOIN tags l ON o.customer = l.id",
    "held": "SELECT s.item, s.amount, t.label FROM stock s LEFT JOIN tags t ON s.item = t.id",
}
INPUTS = ("orders", "customers", "stock", "tags")
POOLS = {
    "read": "ingest", "tick": "ticks", "first load": "ticks", "merge": "merges", "query": "queries",
}  # fmt: skip
"""Where jobs of each kind belong; all of them run here."""
OTHERS = {"preflight": "ticks", "catching up": "ticks", "renewal": "merges"}


class Upstream:
    """What is written to the file and the topics, step by step."""

    def __init__(self, home, kafka):
        self.orders, self.kafka = home / "orders.json", kafka
        self.topic, self.changes = kafka.create_topic(2), kafka.create_topic(1)
        self.stock = {}

    def grow(self, step):
        with self.orders.open("a") as file:
            for n in range(step * 40, step * 40 + 40):
                order = {"id": n, "customer": n % 7, "amount": n, "at": 1_000 + n * 20}
                file.write(json.dumps(order) + "\n" if n % 19 else "no order\n")
        for n in range(7):
            if (n + step) % 3 == 0:
                city = {"city": f"city {(n * step) % 4}"}
                value = None if n == step else json.dumps(city).encode()
                self.kafka.produce(self.topic, n % 2, Record(value, json.dumps({"id": n}).encode()))
        for item in range(6):
            if (item + step) % 2 == 0:
                self.change(item, None if item == step else {"item": item, "amount": item * step})

    def change(self, item, after):
        before = self.stock.get(item)
        if before is None and after is None:
            return
        kind = "c" if before is None else "d" if after is None else "u"
        made = {"before": before, "after": after, "op": kind}
        key = json.dumps({"item": item}).encode()
        self.kafka.produce(self.changes, 0, Record(json.dumps(made).encode(), key))
        self.stock[item] = after


def opened(path, clock):
    return reclock.open(path / "state", clock=clock, background=False)


def started(db, path, execution, upstream):
    broker = upstream.kafka.address
    db.execute(f"ALTER SYSTEM SET execution = '{execution}'")
    db.execute("ALTER SYSTEM SET logical_compaction_window = '1 h'")
    db.execute("ALTER SYSTEM SET compute_replica_expiration_offset = '3 s'")
    db.execute("CREATE TABLE tags (id INT PRIMARY KEY, label TEXT)")
    db.execute(
        "CREATE SOURCE orders (id BIGINT, customer BIGINT, amount BIGINT, at BIGINT)"
        f" FROM FILE '{upstream.orders}' FORMAT JSON WITH (on_error = 'skip')"
    )
    db.execute(
        "CREATE SOURCE customers (id BIGINT, city TEXT, PRIMARY KEY (id))"
        f" FROM KAFKA BROKER '{broker}' TOPIC '{upstream.topic}'"
        " KEY FORMAT JSON VALUE FORMAT JSON ENVELOPE UPSERT"
    )
    db.execute(
        "CREATE SOURCE stock (item BIGINT, amount BIGINT, PRIMARY KEY (item))"
        f" FROM KAFKA BROKER '{broker}' TOPIC '{upstream.changes}' FORMAT JSON ENVELOPE DEBEZIUM"
    )
    for name, query in VIEWS.items():
        options = "WITH (allow_full_recompute = true)" if name == "lists" else ""
        db.execute(f"CREATE MATERIALIZED VIEW {name} {options} AS {query}")
    db.execute(
        f"CREATE SINK written FROM totals INTO FILE '{path / 'out.json'}' FORMAT JSON"
        " ENVELOPE MATERIALIZE"
    )


def pipeline(home, execution, kafka):
    """Return all rows at every time, what was written, and where ticks ran."""
    path, clock, found = home / execution, ManualClock(1_000), {}
    path.mkdir()
    upstream, places, times = Upstream(path, kafka), set(), []
    upstream.grow(0)
    db = opened(path, clock)
    started(db, path, execution, upstream)
    for step in range(1, STEPS):
        upstream.grow(step)
        db.execute(f"INSERT INTO tags VALUES ({step}, 'label {step}')")
        db.execute(f"UPDATE tags SET label = label || '!' WHERE id < {step}")
        for _ in range(2):
            clock.advance(1_000)
            db.tick()
            db._core.merger.wait()
            db._core.expirations.wait()
        ticked = "SELECT place FROM reclock.ticks WHERE rows > 0"
        places |= {place for (place,) in db.execute(ticked).rows}
        times.append(clock.now_ms())
        if step == 2:
            db.close()
            db = opened(path, clock)
    with db:
        for name in (*VIEWS, *INPUTS):
            for at in times:
                rows = db.execute(f"SELECT * FROM {name} AS OF {at}").rows
                found[name, at] = Counter(map(repr, rows))
        asked = db.execute("SELECT customer, sum(amount) FROM orders GROUP BY customer").rows
        found["asked", times[-1]] = Counter(map(repr, asked))
        skipped = db.execute("SELECT source, skipped FROM reclock.source_status ORDER BY 1").rows
        assert db.check() == []
    lines = [json.loads(line) for line in (path / "out.json").read_text().splitlines()]
    updates = Counter(repr(u) for line in lines for u in line.get("array", ()))
    return found, updates, skipped, places


class Jobs:
    """The jobs that Spark has run since this was made, as its pages show them."""

    def __init__(self, spark):
        self.context = spark.session.sparkContext
        self.since = len(self.all())

    def all(self):
        self.context._jsc.sc().listenerBus().waitUntilEmpty()
        jobs = self.context._jsc.sc().statusStore().jobsList(None)
        return [jobs.apply(at) for at in reversed(range(jobs.size()))]

    def pools(self):
        """Return the pools of each kind of job; every job has a description and a group."""
        store, found = self.context._jsc.sc().statusStore(), {}
        for one in self.all()[self.since :]:
            assert one.jobGroup().isDefined(), one.name()
            title, stages = one.description().get(), one.stageIds()
            (kind,) = (kind for kind in POOLS | OTHERS if title.startswith(kind))
            attempts = (store.lastStageAttempt(stages.apply(n)) for n in range(stages.size()))
            found.setdefault(kind, set()).update(stage.schedulingPool() for stage in attempts)
        return found


def test_a_pipeline_is_the_same_in_the_driver_and_in_tasks(tmp_path, kafka, spark, monkeypatch):
    monkeypatch.setattr(merging, "FEW_RUNS", 2)
    monkeypatch.setattr(rules, "PART_ROWS", 40)
    monkeypatch.setattr(job, "PART_ROWS", 20)
    *expected, places = pipeline(tmp_path, "driver", kafka)
    assert places == {"driver"}
    assert {name for (name, _), rows in expected[0].items() if rows} == {*VIEWS, *INPUTS, "asked"}
    assert expected[1]
    jobs = Jobs(spark)
    *found, places = pipeline(tmp_path, "spark", kafka)
    assert places == {"spark"}
    assert found == expected
    pools = jobs.pools()
    assert pools == {kind: {pool} for kind, pool in (POOLS | OTHERS).items() if kind in pools}
    assert pools.keys() >= POOLS.keys()
