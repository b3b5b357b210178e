"""Exactly once, whatever fails: every failure at every step, then random walks.

Nothing here asks the exporter what it wrote. A separate ``read_committed`` reader does, and
compares with the change log after every step.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from conformance.sink import committed, failing
from reclock.connectors.kafka.cluster import Span
from reclock.errors import Error, InvalidValue, SinkRegressed
from reclock.errors import Fenced as FencedError
from reclock.failpoints import FailpointRaised, armed
from reclock.sinks.consistency import FrontierRecord, TransactionRecord, frontier_record, read
from reclock.sinks.encode.debezium import DebeziumEncoder
from reclock.sinks.encode.json_format import JsonFormat
from reclock.sinks.export import Exporter, Plan, Will
from reclock.sinks.failure import NewProducer, Retry, SendFailed, Stop
from reclock.sinks.gather import Limits
from reclock.sinks.producer import Patience, Target
from reclock.sql import types as t
from reclock.sql.schema import Column
from reclock.testing import kafka_log
from reclock.testing import kafka_producer as fake
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.kafka_upstream import Record
from reclock.time.frontier import CLOSED, Frontier, at
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from confluent_kafka import KafkaError

FORMAT = JsonFormat((Column("k", t.BIGINT), Column("v", t.BIGINT)), (0,))
START = at(10)

BEFORE_COMMIT = (
    "sink.begin.before", "sink.produce.after", "sink.progress.before", "sink.commit.before",
)  # fmt: skip
POINTS = (*BEFORE_COMMIT, "sink.commit.after", "sink.report.before")
ERRORS = (fake.RETRIABLE, fake.ABORTABLE, fake.FATAL, fake.FENCED, fake.TOO_LARGE)


@pytest.fixture(autouse=True)
def large_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading in small batches is what other tests look at."""
    monkeypatch.setattr(kafka_log, "_BATCH_ROWS", 10_000)


class Crash(BaseException):
    """The process is gone: nothing is caught, nothing cleaned up."""


def crash() -> None:
    raise Crash


class World:
    """A view that changes, the log, and whoever exports the one to the other."""

    def __init__(self, seed: int = 0, keyed: bool = True, limits: Limits | None = None) -> None:
        self.random = random.Random(seed)
        self.kafka = MemoryKafka()
        names = (self.kafka.create_topic(2), self.kafka.create_topic(compacted=True))
        self.target = Target("u9", *names, "sink-u9")
        self.log: dict[int, list[tuple[int, int, int]]] = {}
        self.contents: dict[int, int] = {}
        self.upper = START
        self.clock = 0
        self.numbers = count()
        self.faults = fake.Faults()
        encoder = DebeziumEncoder(FORMAT, (0,) if keyed else ())
        self.plan = Plan(
            self.target, encoder, self.changes, self.positions, limits or Limits(6), idle_ms=0
        )
        self.patience = Patience(call=0.0, progress=0.0)
        self.exporter = self.started()

    # The view.

    def change(self, time: int, rows: int) -> None:
        """Let some rows change at a time: inserted, replaced, deleted."""
        updates: Counter[tuple[int, int]] = Counter()
        for _ in range(rows):
            key = self.random.randrange(8)
            old = self.contents.pop(key, None)
            if old is not None:
                updates[key, old] -= 1
            if old is None or self.random.random() < 0.7:
                new = self.contents[key] = next(self.numbers)
                updates[key, new] += 1
        self.log[time] = [(*row, diff) for row, diff in updates.items() if diff]

    def data(self) -> None:
        """Close one time with a change."""
        time = int(self.upper.element())
        self.change(time, self.random.randrange(1, 4))
        self.upper = at(time + self.random.randrange(1, 5))

    def idle(self) -> None:
        """Close times without a change."""
        self.upper = at(int(self.upper.element()) + self.random.randrange(1, 5))

    def snapshot(self) -> None:
        """Close one time with more rows than a transaction should have."""
        time = int(self.upper.element())
        self.change(time, 40)
        self.upper = at(time + 1)

    def many(self) -> None:
        """Close many times."""
        for _ in range(self.random.randrange(2, 9)):
            self.random.choice((self.data, self.idle))()

    def changes(self, lower: Frontier, upper: Frontier) -> Iterator[pa.RecordBatch]:
        """Yield the changes, beginning at or before ``lower``, in batches of whole times."""
        first = int(lower.element()) - self.random.randrange(5)
        times = sorted(
            time for time in self.log if first <= time and not upper.less_equal(Timestamp(time))
        )
        while times:
            size = self.random.randrange(1, 4)
            batch, times = times[:size], times[size:]
            rows = [(k, v, time, diff) for time in batch for k, v, diff in self.log[time]]
            columns = list(zip(*rows, strict=True)) or [()] * 4
            arrays = [pa.array(column, pa.int64()) for column in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=["c0", "c1", "time", "diff"])

    def positions(self, frontier: Frontier) -> dict[str, Any]:
        """Return something that depends on the frontier."""
        return {"u1": [*frontier]}

    # The sink.

    def opened(self) -> fake.Producer:
        return fake.opened(self.kafka, self.target, self.faults, self.patience)

    def started(self) -> Exporter:
        """Return what a new process makes."""
        return Exporter.resume(self.plan, self.opened(), START)

    def advance(self) -> None:
        """Take one step, and mend what it breaks, as a coordinator would."""
        self.clock += 1
        try:
            advanced = self.exporter.advance(self.upper, self.clock)
            assert advanced.frontier == self.exporter.frontier
        except Crash:
            self.exporter = self.started()
        except Stop as failed:
            if isinstance(failed.error, FencedError):
                assert self.exporter.is_lost
                self.exporter = self.started()
            else:
                assert not self.exporter.is_lost
        except Retry:
            assert not self.exporter.is_lost
        except (NewProducer, FailpointRaised):
            if self.exporter.is_lost:
                self.exporter.renew(self.opened())
        self.check()

    def settle(self) -> None:
        """Take steps until everything is written."""
        for _ in range(1_000):
            if self.exporter.frontier == self.upper:
                break
            self.advance()
        assert self.exporter.frontier == self.upper
        self.check()

    # What a consumer sees.

    def check(self) -> None:
        """Check that what is committed is the change log, once, up to the frontier."""
        ends: Counter[int] = Counter()
        frontiers = [START]
        topic = self.target.consistency
        (end,) = self.kafka.cluster().watermarks(topic, [0]).values()
        batches = self.kafka.cluster().fetch(topic, [Span(0, end.low, end.high)], ["key"])
        for row in (row for batch in batches for row in batch.to_pylist()):
            record = read(row["key"], row["value"], "here")
            if isinstance(record, FrontierRecord):
                frontiers.append(record.frontier)
                assert record.positions == self.positions(record.frontier)
            elif isinstance(record, TransactionRecord) and record.status == "END":
                assert record.time not in ends, "each time ends once"
                ends[int(record.time)] = record.counts[self.target.topic]
        assert all(a.strictly_precedes(b) for a, b in pairwise(frontiers)), "no step is empty"
        frontier = int(frontiers[-1].element())
        assert self.exporter.frontier == frontiers[-1]
        seen = committed(self.kafka, self.target.topic)
        sums: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
        counts: Counter[int] = Counter()
        for partition in (0, 1):
            times = [s.message.time for s in seen if s.partition == partition]
            assert times == sorted(times)
        for _, message in seen:
            counts[message.time] += 1
            value = json.loads(message.value or b"")
            for side, diff in (("before", -1), ("after", 1)):
                if (row := value[side]) is not None:
                    sums[message.time][row["k"], row["v"]] += diff
        assert counts == ends
        expected = {
            time: Counter({(k, v): diff for k, v, diff in rows})
            for time, rows in self.log.items()
            if time < frontier and rows
        }
        assert dict(sums) == expected


SCENARIOS = ("data", "idle", "snapshot", "many")


def prepared(scenario: str) -> World:
    """Return a world with something written and something to write."""
    world = World()
    world.data()
    world.settle()
    getattr(world, scenario)()
    return world


def act(world: World, action: str) -> Callable[[], None] | str:
    """Return what happens at a failpoint."""
    if action == "crash":
        return crash
    if action == "error":
        return "raise"
    if action == "timeout":
        return lambda: world.kafka.time_out(world.target.transactional_id)

    def fence() -> None:
        world.opened().fence()

    return fence


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("action", ["crash", "error", "timeout", "fence"])
@pytest.mark.parametrize("point", POINTS)
def test_every_failpoint(point: str, action: str, scenario: str) -> None:
    world = prepared(scenario)
    before = world.exporter.frontier
    with armed({point: act(world, action)}):
        world.advance()
    assert (world.exporter.frontier == before) == (point in BEFORE_COMMIT)
    world.settle()


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("point", POINTS)
def test_a_failpoint_that_fails_every_time(point: str, scenario: str) -> None:
    world = prepared(scenario)
    with armed({point: crash}):
        for _ in range(5):
            world.advance()
    world.settle()


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.name())
@pytest.mark.parametrize("step", ["begin", "produce", "commit"])
def test_every_error(step: str, error: KafkaError, done: bool, scenario: str) -> None:
    world = prepared(scenario)
    world.faults.fail(step, error, done=done)
    world.advance()
    world.settle()


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.name())
@pytest.mark.parametrize("done", [False, True])
def test_an_abort_that_fails(error: KafkaError, done: bool) -> None:
    world = prepared("many")
    world.faults.fail("produce", fake.ABORTABLE)
    world.faults.fail("abort", error, done=done)
    world.advance()
    world.settle()


@pytest.mark.parametrize("seed", range(24))
def test_random_walk(seed: int) -> None:
    world = World(seed, keyed=seed % 2 == 0, limits=Limits((1, 6, 100)[seed % 3]))
    draw = world.random
    for _ in range(60):
        getattr(world, draw.choice(SCENARIOS))()
        fate = draw.randrange(8)
        if fate == 0:
            action = act(world, draw.choice(("crash", "error", "timeout", "fence")))
            with armed({draw.choice(POINTS): action}):
                world.advance()
        elif fate == 1:
            step = draw.choice(("begin", "produce", "commit"))
            world.faults.fail(step, draw.choice(ERRORS), done=draw.random() < 0.5)
            world.advance()
        elif fate == 2:
            zombie, world.exporter = world.exporter, world.started()
            with pytest.raises(Stop) as stopped:
                zombie.advance(world.upper, world.clock)
            assert isinstance(stopped.value.error, FencedError)
            world.check()
        elif fate == 3:
            world.kafka.running = False
            with pytest.raises(SendFailed):
                world.exporter.advance(world.upper, world.clock)
            world.kafka.running = True
            if world.exporter.is_lost:
                world.exporter.renew(world.opened())
            world.check()
        elif fate == 4:
            other = world.kafka.begin()
            other.produce(world.target.consistency, 0, Record(b"?", b"stranger"))
            with pytest.raises(Retry):
                world.started()
            other.abort()
            world.exporter = world.started()
        else:
            world.advance()
    world.settle()


def test_a_new_sink_begins_where_it_is_told() -> None:
    world = World()
    assert world.exporter.frontier == START
    assert world.exporter.advance(START, 0).messages == 0
    world.snapshot()
    advanced = world.exporter.advance(world.upper, 0)
    assert advanced.frontier == world.upper
    assert advanced.times == 1
    assert advanced.messages > 0
    world.check()


def test_idle_progress_is_throttled_but_not_before_the_first() -> None:
    world = World()
    world.exporter = Exporter.resume(
        Plan(world.target, world.plan.encoder, world.changes, world.positions, idle_ms=100),
        world.opened(),
        START,
    )

    def step(ms: int) -> bool:
        world.idle()
        return world.exporter.advance(world.upper, ms).frontier == world.upper

    assert [step(ms) for ms in (0, 50, 99, 100, 150, 199, 200)] == [
        True, False, False, True, False, False, True,
    ]  # fmt: skip
    assert step(150), "a clock that goes back holds nothing up"
    world.data()
    assert world.exporter.advance(world.upper, 151).frontier == world.upper, "data never waits"
    assert world.exporter.advance(CLOSED, 152).frontier == CLOSED, "nor does the end"


def test_what_takes_too_long_is_made_smaller() -> None:
    world = World(limits=Limits(1_000))
    for _ in range(8):
        world.data()
    world.patience = Patience(transaction=0.0, call=0.0, progress=0.0)
    world.exporter = world.started()
    sizes = []
    original = world.plan.encoder.encode

    class Spy:
        def encode(self, updates: Any, description: Any) -> Any:
            sizes.append(0 if updates is None else updates.num_rows)
            return original(updates, description)

    plan = Plan(world.target, Spy(), world.changes, world.positions, Limits(8))
    exporter = Exporter.resume(plan, world.opened(), START)
    for _ in range(20):
        with pytest.raises((Retry, Stop)) as failed:
            exporter.advance(world.upper, 0)
        if failed.type is Stop:
            break
    assert failed.type is Stop
    assert "transaction_timeout" in str(failed.value.error.hint)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]
    assert exporter.frontier == START
    assert not exporter.is_lost


def test_progress_that_is_less_than_known_is_refused() -> None:
    world = World()
    world.data()
    world.settle()
    known = world.exporter.frontier
    assert Exporter.resume(world.plan, world.opened(), START, known).frontier == known
    later = at(int(known.element()) + 1)
    with pytest.raises(Stop) as stopped:
        Exporter.resume(world.plan, world.opened(), START, later)
    assert isinstance(stopped.value.error, SinkRegressed)
    world.kafka.recreate_topic(world.target.consistency, 1)
    for resume in (
        lambda: Exporter.resume(world.plan, world.opened(), START, known),
        lambda: world.exporter.renew(world.opened()),
    ):
        assert isinstance(failing(Stop, resume).error, SinkRegressed)


def emptied(world: World) -> None:
    """Delete the records of the consistency topic, as DeleteRecords does."""
    topic = world.target.consistency
    (end,) = world.kafka.cluster("read_uncommitted").watermarks(topic, [0]).values()
    world.kafka.truncate(topic, 0, end.high)


def changes_in(world: World) -> Counter[tuple[int, str, int, int]]:
    """Return what a reader of the data topic sees: (time, side, key, value)."""
    found: Counter[tuple[int, str, int, int]] = Counter()
    for _, message in committed(world.kafka, world.target.topic):
        value = json.loads(message.value or b"")
        for side in ("before", "after"):
            if (row := value[side]) is not None:
                found[message.time, side, row["k"], row["v"]] += 1
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("lag", ["none", "some", "all", "never"])
def test_a_consistency_topic_that_is_emptied_loses_nothing(lag: str, seed: int) -> None:
    world = World(seed)
    known = [None, START]
    for _ in range(6):
        world.many()
        world.settle()
        known.append(world.exporter.frontier)
    emptied(world)
    before = changes_in(world)
    knows = {"none": known[-1], "some": known[-3], "all": known[2], "never": known[0]}[lag]
    world.exporter = Exporter.resume(world.plan, world.opened(), START, knows)
    assert world.exporter.frontier.precedes(known[-1] or START)
    for _ in range(3):
        world.many()
    while world.exporter.frontier != world.upper:
        world.exporter.advance(world.upper, 0)
    after = changes_in(world)
    assert before <= after
    expected: Counter[tuple[int, str, int, int]] = Counter()
    for time, rows in world.log.items():
        for k, v, diff in rows:
            expected[time, "after" if diff > 0 else "before", k, v] += 1
    assert after == expected, "each once"


def test_data_without_progress_that_nobody_deleted_is_refused() -> None:
    world = World()
    world.data()
    world.settle()
    world.kafka.recreate_topic(world.target.consistency, 1)
    error = failing(Stop, world.started).error
    assert isinstance(error, SinkRegressed)
    assert "nothing" in str(error.detail)


def written_by(world: World, writer: str, heir_of: Will | None = None) -> Plan:
    plan = world.plan
    return Plan(
        plan.target, plan.encoder, plan.changes, plan.positions, plan.limits, 0,
        writer, lambda _: {"orders": {"topic": "x"}}, heir_of,
    )  # fmt: skip


def test_a_database_goes_on_from_another_only_as_its_heir() -> None:
    world = World()
    old = Exporter.resume(written_by(world, "old"), world.opened(), START)
    world.data()
    while old.frontier != world.upper:
        old.advance(world.upper, 0)
    will = Will("old", old.frontier)
    for plan in (
        written_by(world, "new"),
        written_by(world, "new", Will("old", START)),
        written_by(world, "new", Will("older", old.frontier)),
    ):
        error = failing(Stop, lambda p=plan: Exporter.resume(p, world.opened(), START)).error
        assert isinstance(error, FencedError)
        assert "recover" in str(error.hint)
    new = Exporter.resume(written_by(world, "new", will), world.opened(), START)
    assert new.is_heir
    new.renew(world.opened())
    assert new.is_heir
    world.data()
    while new.frontier != world.upper:
        new.advance(world.upper, 0)
    assert not new.is_heir
    again = Exporter.resume(written_by(world, "new", will), world.opened(), START)
    assert not again.is_heir
    assert again.frontier == new.frontier
    old.close()
    assert isinstance(failing(Stop, lambda: old.renew(world.opened())).error, FencedError)
    world.exporter = again
    world.check()


def test_progress_of_somebody_else_is_refused() -> None:
    world = World()
    world.data()
    world.settle()
    key, value = frontier_record(world.target.sink, at(10**6), {})
    world.kafka.produce(world.target.consistency, 0, Record(value, key))
    error = failing(Stop, lambda: world.exporter.renew(world.opened())).error
    assert isinstance(error, FencedError)


def test_a_lost_exporter_does_nothing() -> None:
    world = World()
    world.exporter.close()
    assert world.exporter.is_lost
    with pytest.raises(InvalidValue):
        world.exporter.advance(at(99), 0)
    world.exporter.renew(world.opened())
    world.data()
    world.settle()


def test_an_encoder_that_fails_leaves_nothing() -> None:
    world = World()
    world.data()

    class Broken:
        def encode(self, updates: Any, description: Any) -> Any:
            encoded = world.plan.encoder.encode(updates, description)

            class Halfway:
                times, faults = encoded.times, encoded.faults

                def chunks(self) -> Any:
                    yield from encoded.chunks()
                    message = "broken"
                    raise Error(message)

            return Halfway()

    plan = Plan(world.target, Broken(), world.changes, world.positions)
    exporter = Exporter.resume(plan, world.opened(), START)
    with pytest.raises(Error, match="broken"):
        exporter.advance(world.upper, 0)
    world.exporter = world.started()
    world.check()
    world.settle()
