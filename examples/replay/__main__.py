"""A story in the terminal: mint, reclock, crash, replay.

A two-partition log (two files in a temporary directory) is ingested by a small engine
that really dies: each life is a process of its own, and the bad ones end in the middle of
a durable step, as ``kill -9`` would end them. The verdict at the end is computed, not
printed: every record's time before and after is compared.

Run it with ``make demo``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from reclock.clock import ManualClock
from reclock.durable.sqlite import open_sqlite
from reclock.failpoints import ENVIRONMENT, EXIT_STATUS, NAMES
from reclock.remap.progress import binding_rows
from reclock.testing.ingest import ScriptedIngest
from reclock.testing.scripted import Record, ScriptedSource

Times = dict[str, int]
COLOUR = sys.stdout.isatty()


def live(home: Path, now_ms: int) -> int:
    """Live one life: open the state, tick once at ``now_ms``, report, and leave."""
    logs = sorted(home.glob("partition-*.log"))
    records = [Record(int(f.stem[-1]), line) for f in logs for line in f.read_text().splitlines()]
    with open_sqlite(home / "state") as store:
        engine = ScriptedIngest(store, ScriptedSource(records), ManualClock(now_ms))
        found = {"bindings": list(binding_rows(engine.remap)), "upper": str(engine.upper)}
        engine.tick()
        times = {f"{r.partition}/{r.offset} {r.data}": int(t) for r, t in engine.times().items()}
        bindings = list(binding_rows(engine.remap))
    print(json.dumps({"found": found, "bindings": bindings, "times": times}))
    return 0


class Story:
    """Tells what happens, and keeps what every life published."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.seen: Times = {}
        self.moved: list[str] = []

    def say(self, text: str, style: str = "") -> None:
        """Print a line, in colour if somebody is looking."""
        print(f"\033[{style}m{text}\033[0m" if COLOUR and style else text, flush=True)

    def chapter(self, title: str) -> None:
        """Begin a part of the story."""
        self.say(f"\n{title}", "1")

    def produce(self, partition: int, *records: str) -> None:
        """Append to the log outside."""
        with (self.home / f"partition-{partition}.log").open("a") as log:
            log.writelines(f"{record}\n" for record in records)
        self.say(f"  partition {partition} receives: {', '.join(records)}")

    def life(self, now_ms: int, failpoint: str | None = None) -> None:
        """Run an engine for one tick; with a failpoint, it dies there."""
        environment = {**os.environ, ENVIRONMENT: f"{failpoint}=exit" if failpoint else ""}
        command = [sys.executable, "-m", "examples.replay", str(self.home), str(now_ms)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if failpoint and done.returncode == EXIT_STATUS:
            self.say(f"  the engine ticks at {now_ms} and is killed where {NAMES[failpoint]}", "31")
            return
        if done.returncode != 0 or failpoint:
            sys.exit(f"the engine ended with {done.returncode}, not as told\n{done.stderr}")
        report = json.loads(done.stdout)
        if report["found"]["bindings"] != report["bindings"]:
            self.show_bindings("  durable bindings are now", report["bindings"])
        self.show_times(report["times"])

    def show_bindings(self, title: str, bindings: list[list[int]]) -> None:
        """Print offsets per time."""
        by_time: dict[int, list[str]] = {}
        for time, partition, offset in bindings:
            by_time.setdefault(time, []).append(f"partition {partition} below {offset}")
        self.say(title)
        for time, parts in by_time.items():
            self.say(f"    {time} → {', '.join(parts)}", "36")

    def show_times(self, times: Times) -> None:
        """Print what is new, and remember what moved."""
        for record, time in sorted(times.items(), key=lambda item: (item[1], item[0])):
            if record not in self.seen:
                self.say(f"    published {record} at {time}", "32")
        lost = self.seen.keys() - times.keys()
        moved = {r for r in self.seen.keys() & times.keys() if times[r] != self.seen[r]}
        self.moved += sorted(lost | moved)
        self.seen = times


def tell(home: Path) -> int:
    """Tell the story; return 0 if its promises held."""
    story = Story(home)
    story.say("reclock: one durable map from time to source positions, shared by every reader")

    story.chapter("1. The remap decides. A tick binds what has arrived to one timestamp.")
    story.produce(0, "a", "b")
    story.produce(1, "x")
    story.life(1_000)

    story.chapter("2. A crash between deciding and publishing.")
    story.produce(0, "c")
    story.life(2_000, "remap.append.after")
    story.say("  nothing was published, but partition 0 below 3 belongs to 2000 now, for good")

    story.chapter("3. Replay. More data has come; the old records keep the time they were given.")
    story.produce(0, "d")
    story.produce(1, "y")
    story.life(3_000)

    story.chapter("4. A crash before deciding, and one after publishing: neither shows.")
    story.produce(1, "z")
    story.life(4_000, "remap.append.before")
    story.life(4_000, "ingest.publish.after")
    story.life(5_000)

    story.chapter("5. The clock goes back. Time does not.")
    story.produce(0, "e")
    story.say("  the engine ticks while the clock shows 1000: that time is taken, nothing is bound")
    story.life(1_000)
    story.say("  the engine ticks at 6000")
    story.life(6_000)

    produced = sum(len(f.read_text().splitlines()) for f in home.glob("partition-*.log"))
    good = not story.moved and len(story.seen) == produced and story.seen.get("0/2 c") == 2_000
    story.chapter("Verdict")
    story.say(f"  {produced} records produced, {len(story.seen)} published, 3 crashes")
    story.say(f"  records lost, repeated or moved in time: {len(story.moved)}")
    story.say("  every promise held" if good else "  A PROMISE WAS BROKEN", "32" if good else "31")
    return 0 if good else 1


def main() -> int:
    """Tell the story, or, called by it, live one life."""
    if len(sys.argv) == 3:
        return live(Path(sys.argv[1]), int(sys.argv[2]))
    with tempfile.TemporaryDirectory(prefix="reclock-demo-") as home:
        return tell(Path(home))


if __name__ == "__main__":
    sys.exit(main())
