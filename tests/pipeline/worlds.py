"""Load generators whose events are drawn: AUCTION and BANK.

An event is a function of the options and its number (docs/generators.md): the model is told
which by a database of its own, which makes one event at a time and no other load, once for all
histories of a process. What it says is checked against the documents first.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engines.local_engine import LocalEngine
from reclock import ManualClock
from reclock.session.database import Database

from .feeds import Log
from .model import Record, Row, Rows

if TYPE_CHECKING:
    from random import Random

WORLDS = {
    "person": "AUCTION (SEED 7, RELATION 'person', EVENTS PER TICK {})",
    "auction": "AUCTION (SEED 7, RELATION 'auction', EVENTS PER TICK {})",
    "bid": "AUCTION (SEED 7, EVENTS PER TICK {})",
    "bank": "BANK (SEED 7, ACCOUNTS 3, EVENTS PER TICK {})",
}
SHARES = {"person": (0, 1), "auction": (1, 4), "bid": (4, 50)}
"""Of every fifty events of an auction house, those from here to there are of the relation."""
_known: dict[str, list[Row | None]] = {name: [] for name in WORLDS}


def event(name: str, number: int) -> Row | None:
    """Return the row of an event, None if it is of another relation."""
    while number >= len(_known[name]):
        _learn(2 * len(_known[name]) + 100)
    return _known[name][number]


def _learn(count: int) -> None:
    clock = ManualClock(1_000)
    with tempfile.TemporaryDirectory() as home:
        db = Database(Path(home) / "state", LocalEngine(), clock=clock, background=False)
        db.execute("ALTER SYSTEM SET logical_compaction_window = '10h'")
        for name, text in WORLDS.items():
            db.execute(f"CREATE SOURCE {name} FROM LOAD GENERATOR {text.format(1)}")
        times: dict[int, int] = {}
        while len(times) <= count:
            clock.advance(1_000)
            db.tick()
            times[clock.now_ms()] = len(times)
        for name in WORLDS:
            made: list[Row | None] = [None] * count
            until = clock.now_ms() + 1
            with db.subscribe(f"SUBSCRIBE TO {name} AS OF 1500 UP TO {until}") as came:
                while some := came.fetch(timeout=0):
                    for update in some:
                        if (number := times[int(update.timestamp)]) < count:
                            assert (made[number], update.diff) == (None, 1)
                            made[number] = tuple(update.row)
            assert made[: len(_known[name])] == _known[name], "other events than before"
            _check(name, made)
            _known[name] = made
        db.close()


def _check(name: str, made: list[Row | None]) -> None:
    if name == "bank":
        for number, row in enumerate(made):
            assert row is not None
            assert row[0] == number + 1
            assert row[1] != row[2]
            assert {row[1], row[2]} < {1, 2, 3}
            assert 1 <= row[3] <= 1_000
        return
    begin, end = SHARES[name]
    for number, row in enumerate(made):
        assert (row is not None) == (begin <= number % 50 < end), (name, number)
    if name != "bid":
        ids = [row[0] for row in made if row is not None]
        assert ids == list(range(ids[0], ids[0] + len(ids)))


class World(Log):
    """A relation of a generator whose events are drawn."""

    def statements(self) -> list[str]:
        text = WORLDS[self.spec["world"]].format(self.spec["events"])
        return [f"CREATE SOURCE {self.name} FROM LOAD GENERATOR {text}{self.options()}"]

    def send(self, rng: Random, run: Any) -> None:
        pass

    def observe(self, steps: Any) -> None:
        for found in steps.values():
            for offset in range(max(offset for _, offset in found)):
                self.records.setdefault(("0", offset), Record("0", offset, None))
        super().observe(steps)

    def rows(self, time: int) -> Rows:
        every = (event(self.spec["world"], record.offset) for _, record in self.placed(time))
        return Counter(row for row in every if row is not None)
