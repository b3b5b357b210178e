"""Real processes over a real PostgreSQL, killed: nothing lost, nothing twice, no time changed.

A process follows a bank: each transfer is a row of ``transfers`` and two changes of ``accounts``,
in one transaction. It dies at a failpoint, or by ``kill -9`` at any moment; another goes on. What
was bound stays bound; in the end both tables are what PostgreSQL has, and at every time that is
bound the balances are those that the transfers of that time make.
"""

from __future__ import annotations

import random
import time
from contextlib import suppress

import pytest

from children import Child
from engines.task_engine import TaskEngine
from reclock.failpoints import EXIT_STATUS
from reclock.session.database import Database

pytestmark = pytest.mark.postgres

PROGRAM = """
from pathlib import Path
from reclock.ingest.postgres import intake, unfinished
intake.SPILL_BYTES = unfinished.SPILL_BYTES = spill
from reclock.session.database import Database
from reclock.failpoints import arm
from engines.model_engine import ModelEngine
from engines.task_engine import TaskEngine

if slow:
    import time
    from reclock.connectors.postgres.snapshot import Copy
    from reclock.ingest.postgres import copying
    copying.STEP_ROWS, read = 2, Copy._pages

    def pages(self, cursor, span):
        time.sleep(slow)
        return read(self, cursor, span)

    Copy._pages = pages
engine = TaskEngine if tasks else ModelEngine
db = Database(Path(path), engine(), background=background)
for point in points:
    arm(point, "exit")
while True:
    what = pipe.recv()
    if what == "tick":
        db.tick()
        pipe.send([])
    elif what.startswith("arm "):
        arm(what[4:], "exit")
        pipe.send([])
    else:
        pipe.send(db.execute(what).rows)
"""
BINDINGS = 'SELECT timestamp, "offset" FROM reclock.bindings WHERE "offset" > 0'
SNAPSHOT = ["postgres.slot.made", "postgres.copy.table", "postgres.copy.after"]
STREAM = ["ingest.read.after", "postgres.acknowledge.before", "postgres.acknowledge.after"]
TICK = [
    "ingest.bind.before", "tick.compute.before", "tick.land.before", "tick.publish.before",
    "durable.commit.before", "durable.commit.after", "tick.publish.after",
]  # fmt: skip


class Followed:
    """A database followed by processes that die."""

    def __init__(self, upstream, path, *, background=False, spill=64 << 20, tasks=False):
        self.upstream, self.path, self.background = upstream, path, background
        self.spill, self.tasks, self.slow = spill, tasks, 0
        """Whether tasks copy, and how many seconds a step of a copy takes more."""
        upstream("CREATE TABLE accounts (id INT PRIMARY KEY, balance INT)")
        upstream("CREATE TABLE transfers (id SERIAL PRIMARY KEY, src INT, dst INT, amount INT)")
        upstream("INSERT INTO accounts SELECT i, 0 FROM generate_series(1, 5) i")
        upstream("CREATE PUBLICATION p FOR ALL TABLES")
        self.seen: dict[int, int] = {}
        self.child = self.start()

    def start(self, points=()):
        self.child = Child(
            PROGRAM, path=str(self.path), points=tuple(points), background=self.background,
            spill=self.spill, tasks=self.tasks, slow=self.slow,
        )  # fmt: skip
        return self.child

    def ask(self, what):
        self.child.pipe.send(what)
        assert self.child.pipe.poll(60), f"no answer to {what}"
        return self.child.pipe.recv()

    def dies(self, what):
        """Ask, until it dies, for something that the process does not survive.

        A tick binds what was read only when the clock has got to the next time.
        """
        with suppress(EOFError, OSError):
            for _ in range(20):
                self.child.pipe.send(what)
                assert self.child.pipe.poll(60), f"no answer to {what}"
                self.child.pipe.recv()
                time.sleep(0.3)
        assert self.child.ended() == EXIT_STATUS

    def transfer(self, count=1):
        for _ in range(count):
            one, other = random.sample(range(1, 6), 2)
            self.upstream(
                f"BEGIN; UPDATE accounts SET balance = balance - 1 WHERE id = {one};"
                f"UPDATE accounts SET balance = balance + 1 WHERE id = {other};"
                f"INSERT INTO transfers (src, dst, amount) VALUES ({one}, {other}, 1); COMMIT"
            )

    def create(self):
        return f"CREATE SOURCE s {self.upstream.source()} WITH (RETAIN HISTORY FOR '1 h')"

    def note(self):
        """Note what is bound, and that what was is as it was."""
        now = dict(self.ask(BINDINGS))
        assert self.seen.items() <= now.items()
        self.seen = now

    def check(self):
        """Compare every time with itself, and the last with PostgreSQL."""
        for _ in range(100):
            self.ask("tick")
            if self.ask("SELECT count(*) FROM transfers") == self.upstream(
                "SELECT count(*) FROM transfers"
            ):
                break
            time.sleep(0.05)
        self.note()
        for table in ("accounts", "transfers"):
            theirs = self.upstream(f"SELECT * FROM {table}")
            assert sorted(self.ask(f"SELECT * FROM {table}")) == sorted(theirs)
        for moment in self.seen:
            balances = dict(self.ask(f"SELECT id, balance FROM accounts AS OF {moment}"))
            made = dict.fromkeys(range(1, 6), 0)
            for src, dst, amount in self.ask(
                f"SELECT src, dst, amount FROM transfers AS OF {moment}"
            ):
                made[src] -= amount
                made[dst] += amount
            assert balances == made
        assert len(self.upstream.slots()) == 1
        assert self.ask("SELECT * FROM reclock.errors") == []
        assert self.child.kill() == -9


@pytest.fixture
def followed(make_upstream, tmp_path):
    made = []

    def make(**how):
        made.append(Followed(make_upstream(), tmp_path / "state", **how))
        return made[-1]

    yield make
    for one in made:
        if one.child.pipe.closed is False:
            one.child.kill()


def test_a_slot_that_is_noted_and_never_made_is_forgotten(followed):
    bank = followed()
    bank.ask("arm postgres.slot.noted")
    bank.dies(bank.create())
    bank.start()
    assert bank.ask("SELECT name FROM reclock.objects") == []
    bank.ask(bank.create())
    bank.check()


@pytest.mark.parametrize("point", [*SNAPSHOT, *TICK])
def test_a_copy_that_dies_begins_again(followed, point):
    bank = followed()
    bank.transfer(3)
    bank.ask(bank.create())
    bank.ask(f"arm {point}")
    bank.dies("tick")
    bank.transfer(2)
    bank.start()
    bank.check()


@pytest.mark.parametrize("point", SNAPSHOT[1:])
def test_a_copy_by_tasks_that_dies_begins_again(followed, point):
    bank = followed(tasks=True)
    bank.transfer(3)
    bank.ask(bank.create())
    bank.ask(f"arm {point}")
    bank.dies("tick")
    bank.transfer(2)
    bank.start()
    bank.check()
    assert_no_files(bank)


def test_a_kill_in_the_middle_of_a_copy_by_tasks_loses_nothing(followed):
    bank = followed(tasks=True, background=True)
    bank.upstream("INSERT INTO accounts SELECT i, 0 FROM generate_series(6, 5000) i; ANALYZE")
    for _ in range(2):
        assert bank.child.kill() == -9
        bank.slow = 0.2
        bank.start()
        if bank.ask("SELECT name FROM reclock.objects") == []:
            bank.ask(bank.create())
        deadline = time.monotonic() + 60
        named = ("SELECT 1 FROM pg_stat_activity WHERE application_name ~ '^reclock_.* [0-9]+ "
                 f"[0-9]+$' AND datname = '{bank.upstream.name}'")  # fmt: skip
        while not bank.upstream(named):  # a task has read something, and not all
            assert time.monotonic() < deadline
        bank.transfer(1)
    assert bank.child.kill() == -9
    bank.upstream("DELETE FROM accounts WHERE id > 5")
    bank.slow = 0
    bank.start()
    bank.check()
    assert_no_files(bank)


def assert_no_files(bank):
    """What the copies that died have written is gone."""
    with Database(bank.path, TaskEngine(), background=False) as db:
        named = db._core.named()
        there = [name for name in db._core.segments.names() if name.startswith("staged-")]
        assert [name for name in there if name not in named] == []


@pytest.mark.parametrize("point", [*STREAM, *TICK])
def test_a_stream_that_dies_goes_on(followed, point):
    bank = followed()
    bank.transfer(3)
    bank.ask(bank.create())
    bank.ask("tick")
    bank.transfer(2)
    bank.ask("tick")
    bank.note()
    bank.transfer(2)
    bank.ask(f"arm {point}")
    bank.dies("tick")
    bank.transfer(2)
    bank.start()
    bank.ask("tick")
    bank.note()
    bank.check()


@pytest.mark.parametrize(
    "point",
    [
        "postgres.large.before", "tick.publish.after",
        *(pytest.param(p, marks=pytest.mark.slow(seconds=5)) for p in [STREAM[0], *TICK[:-1]]),
    ],
)  # fmt: skip
def test_a_large_transaction_that_dies_is_read_again(followed, point):
    bank = followed(spill=1)  # every transaction is large
    bank.ask(bank.create())
    bank.ask("tick")
    bank.transfer(2)
    bank.ask("tick")
    bank.note()
    bank.transfer(2)
    bank.ask(f"arm {point}")
    bank.dies("tick")
    bank.transfer(2)
    bank.start()
    bank.ask("tick")
    bank.note()
    bank.check()


def test_a_refresh_that_dies_leaves_the_tables_as_they_were(followed):
    bank = followed()
    bank.transfer(2)
    bank.ask(bank.create())
    bank.ask("tick")
    bank.upstream("ALTER TABLE transfers ADD COLUMN note TEXT DEFAULT 'n'")
    bank.ask("arm postgres.refresh.copied")
    bank.dies("ALTER SOURCE s REFRESH")
    bank.transfer(1)
    bank.start()
    bank.ask("tick")
    assert "note" not in str(bank.ask("SHOW COLUMNS FROM transfers"))
    bank.note()
    bank.ask("ALTER SOURCE s REFRESH")
    assert bank.ask("SELECT count(*) FROM transfers WHERE note = 'n'") == [(3,)]
    assert len(bank.upstream.slots()) == 1


@pytest.mark.parametrize("point", ["postgres.slot.drop.before", "postgres.slot.drop.after"])
def test_a_slot_of_a_source_that_is_gone_is_dropped_at_the_next_start(followed, point):
    bank = followed(background=True)
    bank.ask(bank.create())
    bank.ask("SELECT count(*) FROM accounts")
    bank.ask(f"arm {point}")
    bank.dies("DROP SOURCE s")
    bank.start()
    assert bank.ask("SELECT name FROM reclock.objects") == []
    for _ in range(100):
        if not bank.upstream.slots():
            break
        time.sleep(0.1)
    assert bank.upstream.slots() == []
    assert bank.child.kill() == -9


@pytest.mark.slow(seconds=90)
def test_fifty_kills_at_any_moment(followed):
    bank = followed(background=True)
    bank.ask(bank.create())
    for _ in range(50):
        bank.transfer(random.randrange(1, 20))
        time.sleep(random.random() * 0.4)
        if random.random() < 0.5:
            bank.note()
        assert bank.child.kill() == -9
        bank.transfer(random.randrange(3))
        bank.start()
    bank.check()
