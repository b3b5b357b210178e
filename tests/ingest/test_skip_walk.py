"""Bad records × envelopes × restarts × ALTER at random moments, against a model, at every time.

The model knows the records of the topic, at which time each is bound (``reclock.bindings``), and
when ALTER was run with which option. From these alone it says what the source holds at every time:
rows or an error, and which dead letters.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.local_engine import LocalEngine
from engines.model_engine import ModelEngine
from engines.task_engine import TaskEngine, TaskModel
from reclock.errors import Error
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.testing.kafka_upstream import Record

COLUMNS = {
    "none": "(id BIGINT, x TEXT)",
    "upsert": "(id BIGINT PRIMARY KEY, x TEXT)",
    "debezium": "(id BIGINT PRIMARY KEY, x TEXT)",
}
FAULTS = {"22P04", "22004", "23502"}
POINTS = ("tick.compute.before", "tick.publish.before", "tick.publish.after",
          "ddl.publish.before", "ddl.publish.after", "ingest.read.after")  # fmt: skip

records = st.tuples(
    st.integers(0, 1),  # partition, and so the parity of the key
    st.integers(0, 1),  # which of the keys of it
    st.sampled_from(["good", "good", "good", "delete", "bad", "bad", "keyless", "lost"]),
)
actions = st.one_of(
    st.lists(records, min_size=1, max_size=4),
    st.just("tick"),
    st.just("tick"),
    st.sampled_from(["skip", "report"]),
    st.just("restart"),
    st.tuples(
        st.just("fail"), st.sampled_from(POINTS), st.sampled_from(["tick", "skip", "report"])
    ),
)


class Walk:
    """A source, and all that has happened to it."""

    def __init__(self, opener, envelope, mode):
        self.opener, self.envelope = opener, envelope
        self.db = opener()
        self.topic = opener.kafka.create_topic(2)
        self.sent = {}
        self.number = 0
        self.db.execute("CREATE TABLE one (a INT)")
        self.db.execute("INSERT INTO one VALUES (1)")
        self.db.execute("ALTER SYSTEM SET logical_compaction_window = '1h'")
        self.db.execute(
            f"CREATE SOURCE s {COLUMNS[envelope]} FROM KAFKA BROKER 'b' TOPIC '{self.topic}' "
            f"FORMAT JSON ENVELOPE {envelope} WITH (on_error = '{mode}')"
        )
        self.db.execute("CREATE MATERIALIZED VIEW v AS SELECT id, x FROM s")
        self.modes = [(0, mode)]
        """From which time on which option holds."""

    def run(self, steps):
        for step in steps:
            if isinstance(step, list):
                self.produce(step)
            elif isinstance(step, tuple):
                self.fail(*step[1:])
            elif step == "restart":
                self.db = self.opener.reopened(self.db)
            else:
                self.act(step)
        self.act("tick")
        self.act("tick")
        self.check()
        self.db = self.opener.reopened(self.db)
        self.check()
        assert self.db.check() == []

    def produce(self, some):
        for partition, which, kind in some:
            key = partition + 2 * which
            self.number += 1
            value = {"id": key, "x": f"x{self.number}"}
            name = {"id": key}
            if self.envelope == "upsert":
                del value["id"]
            if self.envelope == "debezium":
                value = {"op": "c", "before": None, "after": value}
            raw = json.dumps(value).encode()
            raw_key = None if self.envelope == "none" else json.dumps(name).encode()
            good = True
            if kind == "bad":
                raw, good = b"nope %d" % self.number, False
            elif kind == "keyless" and self.envelope != "none":
                raw, raw_key, good = b"{", None, False
                key = None
            elif kind == "lost" and self.envelope == "debezium":
                lost = {"op": "u", "before": {"id": key}, "after": None}
                raw, good = json.dumps(lost).encode(), False
            elif kind == "delete" and self.envelope == "upsert":
                raw = None
            elif kind == "delete" and self.envelope == "debezium":
                raw = json.dumps({"op": "d", "before": {"id": key}, "after": None}).encode()
            elif kind == "delete":
                raw, good = None, False
            deletes = kind == "delete" and self.envelope != "none"
            row = None if deletes else (partition + 2 * which, f"x{self.number}")
            offset = sum(1 for p, _ in self.sent if p == partition)
            self.sent[partition, offset] = (good, key, row, raw, raw_key)
            self.opener.kafka.produce(self.topic, partition, Record(raw, raw_key))

    def act(self, step):
        if step == "tick":
            self.opener.clock.advance(1_000)
            self.db.tick()
            return
        before = self.mode()
        try:
            self.db.execute(f"ALTER SOURCE s SET (on_error = '{step}')")
        finally:
            self.noted(before)

    def mode(self):
        return (
            "skip" if "'skip'" in self.db.execute("SHOW CREATE SOURCE s").rows[0][1] else "report"
        )

    def noted(self, before):
        """Note when ALTER was done, if it was: at the last complete time then."""
        now = self.mode()
        if now != before:
            ((upper,),) = self.db.execute(
                "SELECT upper FROM reclock.frontiers WHERE object = 's'"
            ).rows
            self.modes.append((upper - 1, now))

    def fail(self, point, step):
        self.opener.clock.advance(1_000)
        before = self.mode()
        try:
            with armed({point: "raise"}):
                if step == "tick":
                    self.db.tick()
                else:
                    self.db.execute(f"ALTER SOURCE s SET (on_error = '{step}')")
        except (FailpointRaised, Error):
            self.db = self.opener.reopened(self.db)
        if step != "tick":
            self.noted(before)

    # What must be.

    def times(self):
        """Return the time of every record that has one."""
        found = {}
        query = 'SELECT partition, timestamp, "offset" FROM reclock.bindings ORDER BY timestamp'
        for partition, time, stop in self.db.execute(query).rows:
            for p, offset in self.sent:
                if p == int(partition) and offset < stop:
                    found.setdefault((p, offset), time)
        return found

    def expected(self, at):
        """Return the rows at a time, None if there is an error instead, and the letters."""
        times = self.times()
        events = [(time, 0, place[1], place) for place, time in times.items() if time <= at]
        events += [(time, 1, 0, mode) for time, mode in self.modes[1:] if time <= at]
        mode, keys, rows, lasting, letters = self.modes[0][1], {}, Counter(), [], {}
        for time, _, _, what in sorted(events, key=repr_order):
            if isinstance(what, str):
                mode = what
                if mode == "skip":
                    faulty = [place for place, kind in keys.values() if kind == "fault"]
                    letters |= dict.fromkeys([*faulty, *lasting], time)
                    lasting = []
                    keys = {k: v for k, v in keys.items() if v[1] != "fault"}
                continue
            good, key, row, *_ = self.sent[what]
            if not good and mode == "skip":
                letters[what] = time
            elif not good and (self.envelope == "none" or key is None):
                lasting.append(what)
            elif not good:
                keys[key] = (what, "fault")
            elif self.envelope == "none":
                rows[row] += 1
            elif row is None:
                keys.pop(key, None)
            else:
                keys[key] = (row, "row")
        if lasting or any(kind == "fault" for _, kind in keys.values()):
            return None, letters
        return rows + Counter(row for row, kind in keys.values() if kind == "row"), letters

    def check(self):
        ((since, upper),) = self.db.execute(
            "SELECT max(since), min(upper) FROM reclock.frontiers WHERE object IN ('s', 'v', 'one')"
        ).rows
        moments = {*self.times().values(), *(time for time, _ in self.modes), upper - 1}
        for at in sorted(t for t in moments if since <= t < upper):
            rows, letters = self.expected(at)
            for name in ("s", "v"):
                try:
                    found = Counter(self.db.execute(f"SELECT * FROM {name} AS OF {at}").rows)
                except Error as error:
                    if error.code not in FAULTS:
                        raise
                    found = None
                assert found == rows, (at, name, self.modes)
            told = self.db.execute(
                'SELECT d.number, d.partition, d."offset", d.timestamp, d.value, d.key '
                f"FROM reclock.dead_letters d CROSS JOIN one AS OF {at}"
            ).rows
            assert sorted(row[0] for row in told) == list(range(1, len(told) + 1))
            places = {(int(row[1]), row[2]): row[3] for row in told}
            assert places == letters, (at, self.modes)
            for _, partition, offset, _, value, key in told:
                sent = self.sent[int(partition), offset]
                assert (value, key) == (sent[3], sent[4])


def repr_order(event):
    time, kind, offset, what = event
    return time, kind, offset, repr(what)


@pytest.fixture(autouse=True)
def small_pulls(monkeypatch):
    monkeypatch.setattr("reclock.ingest.intake.PULL_ROWS", 2)
    monkeypatch.setattr("reclock.ingest.shares.SLICE", 2)


def walked(make_opener, envelope, mode, steps, engine):
    opener = make_opener()
    opener.engine = engine
    walk = Walk(opener, envelope, mode)
    walk.run(steps)
    opener.close()


walks = given(
    st.sampled_from([*COLUMNS]),
    st.sampled_from(["report", "skip"]),
    st.lists(actions, max_size=10),
    st.sampled_from([ModelEngine, LocalEngine, TaskModel, TaskEngine]),
)
KIND = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
}


@settings(max_examples=16, **KIND)
@walks
def test_a_walk(make_opener, envelope, mode, steps, engine):
    walked(make_opener, envelope, mode, steps, engine)


@pytest.mark.slow
@settings(max_examples=600, **KIND)
@walks
def test_many_walks(make_opener, envelope, mode, steps, engine):
    walked(make_opener, envelope, mode, steps, engine)
