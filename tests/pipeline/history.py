"""A history: feeds, views, and what happens to them, as plain data that can be run again.

``Case`` is the data: it can be printed, kept, and made smaller by leaving parts out. Each action is
a name and a number, which seeds the choices that the action makes. ``Run`` does the actions and
compares with the model: some objects and times after each action, all of them at the end.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from reclock.errors import Error
from reclock.testing.failpoints import NAMES, FailpointRaised, armed

from .containers import Compressed, Parquet
from .feeds import Counting, Feed, Files, Steps, Table, Topic
from .lab import Lab
from .model import VIEWS, Broken, Row, Rows
from .outputs import ENVELOPES, Output
from .timed import Stated, Using
from .transactional import Transactional
from .worlds import World

if TYPE_CHECKING:
    from pathlib import Path

KINDS: dict[str, type[Feed]] = {
    "topic": Topic, "file": Files, "directory": Files, "counter": Counting, "table": Table,
    "stated": Stated, "using": Using, "transactional": Transactional, "parquet": Parquet,
    "gzip file": Compressed, "gzip directory": Compressed, "world": World,
}  # fmt: skip
FAULTS = {"22P04", "22004", "23502", "22P02"}
"""What reading is refused with where records do not decode, or a source has ended at one."""
TICK_POINTS = sorted(
    n for n in NAMES if n.startswith(("durable.", "arrangement.", "tick.", "ingest.", "sink."))
)
DDL_POINTS = sorted(n for n in NAMES if n.startswith(("durable.", "ddl.", "tick.", "arrangement.")))


@dataclass
class Case:
    """What is run: JSON has the same."""

    feeds: list[dict[str, Any]]
    views: list[list[Any]]
    """Kind of the view, then the numbers of the feeds that it reads."""
    actions: list[tuple[str, int]]
    settings: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        return json.dumps(self.__dict__)


class Follower:
    """Somebody who follows an object, and what was told."""

    def __init__(self, subscription: Any) -> None:
        self.subscription = subscription
        self.rows: Rows = Counter()
        self.progress = -1


class Run:
    """A case on its way."""

    def __init__(self, case: Case, home: Path) -> None:
        self.case = case
        home.mkdir(parents=True, exist_ok=True)
        self.lab = Lab(home)
        self.feeds: dict[str, Feed] = {}
        self.views: dict[str, tuple[str, list[str]]] = {}
        self.following: dict[str, Follower] = {}
        self.outputs: dict[str, Output] = {}
        self.read_at = 0
        self.compared = 0
        self.frontiers: dict[str, tuple[int, int | None]] = {}

    def __call__(self) -> None:
        """Do all of it."""
        try:
            self.begin()
            for name, seed in self.case.actions:
                getattr(self, name)(Random(seed))
                self.check(Random(seed + 1))
            self.finish()
        finally:
            self.lab.close()

    def execute(self, sql: str, *parameters: object) -> Any:
        return self.lab.db.execute(sql, parameters)

    # The beginning.

    def begin(self) -> None:
        self.isolate()
        for name, value in self.case.settings.items():
            self.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        for number, spec in enumerate(self.case.feeds):
            feed = KINDS[spec["kind"]](f"s{number}", spec, self.lab.kafka, self.lab.home)
            feed.ask = self.execute
            for seed in range(spec.get("before", 0)):
                feed.send(Random(seed + number), self)
            for statement in feed.statements():
                self.execute(statement)
            feed.created()
            self.feeds[feed.name] = feed
        for number in range(len(self.case.views)):
            self.view(f"early{number}", number)

    def isolate(self) -> None:
        self.execute("SET transaction_isolation = 'serializable'")

    def view(self, name: str, number: int) -> None:
        kind, *feeds = self.case.views[number]
        inputs = [f"s{n % len(self.case.feeds)}" for n in feeds]
        sql = VIEWS[kind].sql.format(*inputs)
        self.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
        self.views[name] = (kind, inputs)

    # Actions.

    def send(self, rng: Random) -> None:
        self.feeds[rng.choice(sorted(self.feeds))].send(rng, self)

    def tick(self, rng: Random) -> None:
        self.lab.clock.advance(rng.choice([0, 1, 300, 1_000, 1_000, 1_000, 2_500, 7_000]))
        self.lab.db.tick()

    def jump(self, rng: Random) -> None:
        now = self.lab.clock.now_ms()
        self.lab.clock.set(max(0, now + rng.choice([-5_000, -700, -1, 20_000])))

    def restart(self, rng: Random) -> None:
        self.following.clear()
        (self.lab.restart if rng.random() < 0.5 else self.lab.crash)()
        self.isolate()

    def outage(self, rng: Random) -> None:
        """Tick, or begin again, while the broker does not answer."""
        self.lab.kafka.running = False
        try:
            if rng.random() < 0.3:
                self.restart(rng)
            self.tick(rng)
        finally:
            self.lab.kafka.running = True

    def recover(self, rng: Random) -> None:
        if rng.random() < 0.6:
            self.following.clear()
            self.lab.crash()
            self.isolate()

    def fail(self, rng: Random) -> None:
        """Run into a failpoint; the process dies, or goes on."""
        try:
            with armed({rng.choice(TICK_POINTS): "raise"}):
                self.tick(rng)
        except FailpointRaised:
            self.recover(rng)

    def late(self, rng: Random) -> None:
        """Make a view that is there already, or one of these go."""
        if not self.case.views:
            return
        number = rng.randrange(len(self.case.views))
        name = f"late{number}"
        if name in self.views:
            if rng.random() < 0.4 and all(o.of != name for o in self.outputs.values()):
                self.execute(f"DROP MATERIALIZED VIEW {name}")
                del self.views[name]
                if (open_ := self.following.pop(name, None)) is not None:
                    open_.subscription.close()
            return
        if rng.random() < 0.3:
            try:
                with armed({rng.choice(DDL_POINTS): "raise"}):
                    self.view(name, number)
            except FailpointRaised:
                self.recover(rng)
            names = [row[0] for row in self.execute("SELECT name FROM reclock.objects").rows]
            if name in names:
                kind, *feeds = self.case.views[number]
                self.views[name] = (kind, [f"s{n % len(self.case.feeds)}" for n in feeds])
        else:
            self.view(name, number)

    def index(self, rng: Random) -> None:
        name = rng.choice(self.objects())
        columns = self.execute(f"SHOW COLUMNS FROM {name}").rows
        self.execute(f"CREATE INDEX ON {name} ({columns[0][0]})")

    def settings(self, rng: Random) -> None:
        name, values = rng.choice(
            [
                ("logical_compaction_window", ["1ms", "2s", "20s", "1h"]),
                ("timestamp_interval", ["1s", "250ms", "2s"]),
            ]
        )
        self.execute(f"ALTER SYSTEM SET {name} = '{rng.choice(values)}'")

    def alter(self, rng: Random) -> None:
        """Change what becomes of records that do not decode, of a source that runs."""
        some = [name for name, feed in self.feeds.items() if feed.alterable()]
        if not some:
            return
        bad = [name for name in some if self.feeds[name].has_faults()]
        feed: Any = self.feeds[rng.choice(bad or some)]
        mode = "report" if feed.on_error == "skip" and rng.random() < 0.7 else "skip"
        self.look()
        sql = f"ALTER SOURCE {feed.name} SET (on_error = '{mode}')"
        if rng.random() < 0.7:
            self.execute(sql)
        else:
            try:
                with armed({rng.choice(DDL_POINTS): "raise"}):
                    self.execute(sql)
            except FailpointRaised:
                self.recover(rng)
            shown = self.execute(f"SHOW CREATE SOURCE {feed.name}").rows[0][-1]
            if ("'skip'" in shown) != (mode == "skip"):
                return
        upper = self.execute(
            "SELECT upper FROM reclock.frontiers WHERE object = $1", feed.name
        ).rows[0][0]
        feed.altered(upper - 1, mode)

    def follow(self, rng: Random) -> None:
        name = rng.choice(self.objects())
        if name not in self.following:
            try:
                opened = self.lab.db.subscribe(f"SUBSCRIBE TO {name} WITH (PROGRESS)")
            except Error as error:
                self.must_be_broken(name, error)
                return
            self.following[name] = Follower(opened)

    def sink(self, rng: Random) -> None:
        """Let a view be written to a topic."""
        plain = [v for v, (kind, _) in self.views.items() if kind not in ("all", "filter")]
        if not plain or len(self.outputs) == 2:
            return
        of = rng.choice(sorted(plain))
        key = VIEWS[self.views[of][0]].key
        envelope = rng.choice(ENVELOPES if key else ENVELOPES[:2])
        name = f"out{len(self.outputs)}"
        self.look()
        begins = max(0, *(time or 0 for time in self.frontiers[of]))
        output = Output(name, of, envelope, key if envelope != "materialize" else None, begins)
        self.execute(output.statement())
        self.look()
        output.since = max(0, *(time or 0 for time in self.frontiers[of]))
        self.outputs[name] = output

    def compare_output(self, output: Output) -> None:
        """P4: what was committed is the change log of the view, once."""
        status = "SELECT frontier, state, detail FROM reclock.sink_status WHERE sink = $1"
        ((frontier, state, detail),) = self.execute(status, output.name).rows
        upper = self.frontiers[output.of][1]
        broken = upper and self.is_broken(output.of, upper - 1)
        waits = (frontier or 0) > (upper or 0)  # it begins where its relation will
        assert frontier == upper or broken or waits, (
            f"{output.name} is {state} at {frontier}: {detail}"
        )
        inputs = self.views[output.of][1]
        first = max([output.since, *map(self.blurred, inputs)])
        times = {t for t in self.times(output.of, kept=False) if first <= t < (frontier or 0)}
        for time, found in output.states(self.lab.kafka, sorted(times)).items():
            if time >= first and not self.is_broken(output.of, time):
                expected = self.expected(output.of, time)
                self.compared += 1
                assert found == expected, (
                    f"{output.name} of {output.of} at {time}: too many {found - expected}, "
                    f"missing {expected - found}"
                )

    # Checks.

    def objects(self) -> list[str]:
        return sorted([*self.feeds, *self.views])

    def look(self) -> None:
        """See which bindings and frontiers there are now."""
        found: dict[str, Steps] = {name: {} for name in self.feeds}
        for source, time, part, offset in self.execute("SELECT * FROM reclock.bindings").rows:
            if source in found:
                found[source].setdefault(part, []).append((time, offset))
        rows = self.execute("SELECT object, since, upper FROM reclock.frontiers").rows
        self.frontiers = {name: (since, upper) for name, since, upper in rows}
        for name, feed in self.feeds.items():
            feed.published(self.frontiers[name][1])
            feed.observe(found[name])
            limit, upper = feed.limit(), self.frontiers[name][1]
            assert limit is None or upper is None or upper <= max(limit, 0), (
                f"{name} is complete before {upper}, but not all was said of {limit}"
            )

    def expected(self, name: str, time: int) -> Rows:
        if name in self.feeds:
            return self.feeds[name].rows(time)
        kind, inputs = self.views[name]
        return VIEWS[kind].rows([self.feeds[i].rows(time) for i in inputs], time)

    def blurred(self, feed: str) -> int:
        return int(getattr(self.feeds[feed], "blurred", 0))

    def times(self, name: str, *, kept: bool = True) -> list[int]:
        """Return the times of an object at which something may be other than before.

        What a source bound and folded between two looks has a time before that nobody saw, and
        that a view whose history is longer still shows: such times are left out.
        """
        since, upper = self.frontiers[name]
        inputs = [name] if name in self.feeds else self.views[name][1]
        found = {since} if upper is None else {since, upper - 1}
        for feed in inputs:
            found |= self.feeds[feed].times()
        readable = [t for t in found if since <= t and (upper is None or t < upper)]
        if name in self.views and readable:  # a new one may have no time yet
            kind, inputs = self.views[name]
            try:
                rows = [self.feeds[i].rows(max(readable)) for i in inputs]
                found |= VIEWS[kind].times(rows)
            except Broken:
                pass
        found |= {time - 1 for time in found}
        since = max([since if kept else 0, *map(self.blurred, inputs)])
        return sorted(t for t in found if since <= t and (upper is None or t < upper))

    def check(self, rng: Random) -> None:
        self.look()
        for name in rng.sample(self.objects(), min(2, len(self.objects()))):
            times = self.times(name)
            if times and rng.random() < 0.5:
                self.compare(name, None)
            elif times:
                self.compare(name, rng.choice(times))
        for number in range(len(self.case.views)):
            both = {f"early{number}", f"late{number}"} <= self.views.keys()
            if both and rng.random() < 0.3:
                self.agree(f"early{number}", f"late{number}", rng)
        for name in list(self.following):
            self.fetch(name)

    def compare(self, name: str, time: int | None) -> None:
        """Compare an object with the model, at a time or now."""
        self.compared += 1
        try:
            if time is None:
                result = self.execute(f"SELECT * FROM {name}")
            else:
                result = self.execute(f"SELECT * FROM {name} AS OF $1", time)
        except Error as error:
            self.look()
            self.must_be_broken(name, error, time)
            return
        if time is None:
            time = int(result.timestamp)
            self.look()
        try:
            expected = self.expected(name, time)
        except Broken as broken:
            raise AssertionError(f"{name} at {time} is read in spite of {broken}") from None
        found = shown(result.columns, result.rows)
        assert found == expected, (
            f"{name} at {time}: too many {found - expected}, missing {expected - found}"
        )

    def must_be_broken(self, name: str, error: Error, time: int | None = None) -> None:
        if error.code not in FAULTS:
            raise error
        if time is None:
            time = (self.frontiers[name][1] or 2**62) - 1
        try:
            self.expected(name, time)
        except Broken:
            return
        raise AssertionError(f"{name} at {time} has an error: {error}") from error

    def agree(self, early: str, late: str, rng: Random) -> None:
        """P1: two views of the same text are the same at every time."""
        times = sorted({*self.times(early)} & {*self.times(late)})
        if not times:
            return
        time = rng.choice(times)
        query = (
            f"(SELECT * FROM {early} EXCEPT ALL SELECT * FROM {late}) UNION ALL "
            f"(SELECT * FROM {late} EXCEPT ALL SELECT * FROM {early}) AS OF {time}"
        )
        try:
            assert self.execute(query).rows == [], f"{early} and {late} at {time}"
        except Error as error:
            self.must_be_broken(early, error, time)

    def fetch(self, name: str) -> None:
        """Take what is told; what was told up to a time is what is there then."""
        follower = self.following[name]
        columns = follower.subscription.columns
        try:
            while came := follower.subscription.fetch(timeout=0):
                for update in came:
                    if update.progressed:
                        follower.progress = int(update.timestamp)
                        self.look()
                        rows = shown(columns, (+follower.rows).elements())
                        expected = self.expected(name, follower.progress)
                        assert rows == expected, (
                            f"{name} was told by {follower.progress}: too many {rows - expected}, "
                            f"missing {expected - rows}"
                        )
                    else:
                        assert update.timestamp > follower.progress, "told after its time"
                        follower.rows[frozen(update.row)] += update.diff
                        assert follower.rows[frozen(update.row)] >= -1000
        except Broken as broken:
            raise AssertionError(f"{name}: progress in spite of {broken}") from None
        except Error as error:
            self.look()
            follower.subscription.close()
            del self.following[name]
            if error.code not in FAULTS:
                raise
            times = [t for t in self.times(name, kept=False) if t >= follower.progress]
            if not any(self.is_broken(name, t) for t in times):
                raise AssertionError(f"{name} ended") from error

    def is_broken(self, name: str, time: int) -> bool:
        try:
            self.expected(name, time)
        except Broken:
            return True
        return False

    # The end.

    def finish(self) -> None:
        """Everything upstream becomes visible, and all times that are kept are right."""
        for feed in self.feeds.values():
            feed.settle(self)
        self.look()
        ahead = [u for _, u in self.frontiers.values() if u is not None]
        self.lab.clock.set(max([self.lab.clock.now_ms(), *(u for u in ahead if u < 10**7)]))
        for _ in range(60):
            self.lab.clock.advance(4_000)
            self.lab.db.tick()
            self.look()
            if all(feed.done(self.frontiers[name][1]) for name, feed in self.feeds.items()):
                break
        else:
            said = self.execute("SELECT source, state, detail FROM reclock.source_status").rows
            raise AssertionError(f"something is not visible: {said}")
        self.restart(Random(0))
        self.look()
        for name in self.objects():
            self.compare_log(name)
        if self.outputs:
            self.lab.db.tick()
            self.look()
        for output in self.outputs.values():
            self.compare_output(output)
        assert self.lab.db.check() == []

    def compare_log(self, name: str) -> None:
        """Compare at all times that are kept, by what a subscriber is told of them."""
        since, upper = self.frontiers[name]
        times = self.times(name)
        if not times:
            return
        if any(self.is_broken(name, time) for time in times):
            for time in times:
                self.compare(name, time)
            return
        told: dict[int, Rows] = {}
        until = "" if upper is None else f" UP TO {upper}"
        with self.lab.db.subscribe(f"SUBSCRIBE TO {name} AS OF {since}{until}") as came:
            columns = came.columns
            while updates := came.fetch(timeout=0):
                for update in updates:
                    assert upper is None or update.timestamp < upper
                    assert update.diff
                    some = told.setdefault(int(update.timestamp), Counter())
                    assert frozen(update.row) not in some, "a row is told twice at one time"
                    some[frozen(update.row)] = update.diff
        rows: Rows = Counter()
        inputs = [name] if name in self.feeds else self.views[name][1]
        blurred = max(map(self.blurred, inputs))
        for time in sorted({*times, *told}):
            for row, diff in told.get(time, {}).items():
                rows[row] += diff
            assert not -rows, f"{name} at {time}: fewer than none of {-rows}"
            if time < blurred:
                continue
            self.compared += 1
            found, expected = shown(columns, (+rows).elements()), self.expected(name, time)
            assert found == expected, (
                f"{name} is told at {time}: too many {found - expected}, missing {expected - found}"
            )


def frozen(value: Any) -> Any:
    """Return a value that can be counted."""
    if isinstance(value, (list, tuple)):
        return tuple(frozen(v) for v in value)
    if isinstance(value, dict):
        return tuple(frozen(v) for v in value.values())
    return bytes(value) if isinstance(value, memoryview) else value


def shown(columns: Any, rows: Any) -> Rows:
    """Return rows with whether there is an error in place of its text."""
    made: Rows = Counter()
    for row in rows:
        got: Row = frozen(row)
        if columns and columns[-1] == "error":
            got = (*got[:-1], got[-1] is not None)
        made[got] += 1
    return made
