"""The demonstration without Kafka: the bank makes its own transfers, and is killed all the same.

The engine is this module as a program (``python -m reclock.demo.embedded STATE``): it keeps the
views and prints how they are, a line a tick. It is killed and started again; transfers that were
made before are made again, exactly, and have the same timestamps. In the end the state is opened
here, and the views are compared, at every timestamp that was kept, with what they must be.

Tests: tests/demo/test_demo.py.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import reclock
from reclock.clock import SystemClock
from reclock.demo.bank import Expected, embedded_pipeline
from reclock.demo.engine import Engine
from reclock.demo.screen import Reading, counted
from reclock.errors import DemoFailed
from reclock.sql.parse import parse_statements

if TYPE_CHECKING:
    from reclock.demo.screen import Screen

EVENTS: Final = 250
_TICKS: Final = 8
"""How many ticks an engine does before it is killed."""
_PATIENCE: Final = 90.0


@dataclass(frozen=True)
class Checked:
    """What the kept history says."""

    kills: int
    transfers: int
    timestamps: int
    wrong: int
    """At how many timestamps a balance was not what it must be."""
    totals: list[int]

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return self.wrong == 0 and self.totals == [0]

    def __str__(self) -> str:
        word = "right" if self.right else "WRONG"
        return (
            f"{word}: {self.transfers:,} transfers after {counted(self.kills, 'kill')}\n"
            f"  balances wrong at {self.wrong} of {self.timestamps} timestamps\n"
            f"  the view of the total was ever {self.totals}"
        )


@dataclass
class EmbeddedStory:
    """The demonstration in an empty directory."""

    home: Path
    screen: Screen
    kills: int = 3

    def run(self) -> Checked:
        """Tell it from the beginning to the end; leave nothing running."""
        state = self.home / "state"
        command = [sys.executable, "-m", "reclock.demo.embedded", str(state)]
        engine = Engine(command, self.home / "engine.log", {})
        try:
            for turn in range(self.kills + 1):
                self.screen.say("the engine starts")
                engine.start()
                self._watch(engine)
                if turn < self.kills:
                    engine.kill()
                    self.screen.say(f"kill -9 ({engine.kills})")
        finally:
            engine.stop()
        self.screen.say("stopped; looking at every timestamp that was kept")
        return check(state, engine.kills)

    def _watch(self, engine: Engine) -> None:
        deadline = time.monotonic() + _PATIENCE
        while len(readings := _readings(engine)) < _TICKS:
            if engine.exited or time.monotonic() > deadline:
                said = "\n".join(engine.lines[-15:])
                message = "the engine does not tick"
                raise DemoFailed(message, detail=f"its last lines:\n{said}")
            last = readings[-1] if readings else {}
            count, total = last.get("transfers", 0), last.get("total", 0)
            self.screen.show(
                Reading(
                    "running" if readings else "starting", engine.kills, count, count,
                    EVENTS * 2.0, last.get("at"), last.get("lag_ms"), len(readings),
                    int(total not in (0, None)), 0,
                )
            )  # fmt: skip
            time.sleep(0.1)


def check(state: Path, kills: int) -> Checked:
    """Compare the kept history of a state with what it must be."""
    with reclock.open(state, background=False) as db:
        bound = db.execute('SELECT timestamp, "offset" FROM reclock.bindings ORDER BY 1').rows
        since, upper = db.execute(
            "SELECT max(since), min(upper) FROM reclock.frontiers "
            "WHERE object IN ('balance', 'total')"
        ).rows[0]
        wrong = 0
        kept = [(at, count) for at, count in bound if since <= at < upper]
        for at, count in kept:
            rows = db.execute(f"SELECT account, balance FROM balance AS OF {at}").rows
            wrong += dict(rows) != Expected.of(count).balances
        query = f"SUBSCRIBE TO total AS OF {since} UP TO {upper}"
        totals = [u.row[0] for u in db.subscribe(query) if u.row is not None and u.diff == 1]
        return Checked(kills, kept[-1][1] if kept else 0, len(kept), wrong, totals)


def _readings(engine: Engine) -> list[dict[str, Any]]:
    return [json.loads(line) for line in engine.lines if line.startswith('{"at"')]


def engine(state: Path) -> None:
    """Keep the views, and print how they are, until this process is killed."""
    with reclock.open(state) as db:
        if not db.execute("SELECT name FROM reclock.objects WHERE name = 'transfers'").rows:
            for parsed in parse_statements(embedded_pipeline(EVENTS)):
                db.execute(parsed.text)
        last, clock = None, SystemClock()
        while True:
            result = db.execute(
                "SELECT (SELECT count(*) FROM transfers), (SELECT total FROM total)"
            )
            if result.timestamp != last:
                last = result.timestamp
                (count, total), lag = result.rows[0], clock.now_ms() - int(last or 0)
                reading = {"at": last, "transfers": count, "total": total, "lag_ms": max(0, lag)}
                print(json.dumps(reading, default=int), flush=True)
            time.sleep(0.25)


if __name__ == "__main__":
    engine(Path(sys.argv[1]))
