"""A story in the terminal: bind, publish, crash, replay.

A directory of two files is a source. Each life of the database is a process of its own that ticks
once; the bad ones end in the middle of a durable step, as ``kill -9`` would end them. The verdict
at the end is computed, not printed: it compares the time of every record before and after.

Run it with ``python -m examples.replay``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import reclock
from reclock.failpoints import ENVIRONMENT, EXIT_STATUS, NAMES

Times = dict[str, int]
COLOUR = sys.stdout.isatty()
SETUP = """
ALTER SYSTEM SET logical_compaction_window = '1 h';
CREATE SOURCE log (line TEXT) FROM DIRECTORY '{directory}' FORMAT TEXT;
"""


def live(home: Path, now_ms: int) -> int:
    """Live one life: open the state, tick once at ``now_ms``, report, and leave."""
    new = not (home / "state").exists()
    clock = reclock.ManualClock(now_ms)
    with reclock.open(home / "state", clock=clock, background=False) as db:
        if new:
            db.execute(SETUP.format(directory=home / "log"))
        db.tick()
        query = "SELECT since, upper FROM reclock.frontiers WHERE object = 'log'"
        ((since, upper),) = db.execute(query).rows
        with db.subscribe(f"SUBSCRIBE log AS OF {since} UP TO {upper}") as updates:
            times = {update.row[0]: update.timestamp for update in updates}
    print(json.dumps(times))
    return 0


class Story:
    """Tells what happens, and keeps what every life published."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.seen: Times = {}
        self.moved: list[str] = []
        self.produced = 0
        (home / "log").mkdir()

    def say(self, text: str, style: str = "") -> None:
        """Print a line, in colour on a terminal."""
        print(f"\033[{style}m{text}\033[0m" if COLOUR and style else text, flush=True)

    def chapter(self, title: str) -> None:
        """Begin a part of the story."""
        self.say(f"\n{title}", "1")

    def produce(self, file: str, *lines: str) -> None:
        """Append to a file of the log."""
        with (self.home / "log" / f"{file}.txt").open("a") as log:
            log.writelines(f"{line}\n" for line in lines)
        self.produced += len(lines)
        self.say(f"  {file}.txt receives: {', '.join(lines)}")

    def life(self, now_ms: int, failpoint: str | None = None) -> None:
        """Open the database for one tick; with a failpoint, it dies there."""
        environment = {**os.environ, ENVIRONMENT: f"{failpoint}=exit" if failpoint else ""}
        command = [sys.executable, "-m", "examples.replay", str(self.home), str(now_ms)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if failpoint and done.returncode == EXIT_STATUS:
            self.say(f"  the tick at {now_ms} is killed where {NAMES[failpoint]}", "31")
            return
        if done.returncode != 0 or failpoint:
            sys.exit(f"the database ended with {done.returncode}, not as told\n{done.stderr}")
        self.show(json.loads(done.stdout))

    def show(self, times: Times) -> None:
        """Print what is new, and remember what moved."""
        for line, time in sorted(times.items(), key=lambda item: (item[1], item[0])):
            if line not in self.seen:
                self.say(f"    published {line} at {time}", "32")
        lost = self.seen.keys() - times.keys()
        moved = {line for line in self.seen.keys() & times.keys() if times[line] != self.seen[line]}
        self.moved += sorted(lost | moved)
        self.seen = times


def tell(home: Path) -> int:
    """Tell the story; return 0 if its promises held."""
    story = Story(home)
    story.say("reclock: one durable map from time to source positions, shared by every reader")

    story.chapter("1. A tick binds what has arrived to one timestamp.")
    story.life(500)
    story.produce("a", "apple", "avocado")
    story.produce("b", "banana")
    story.life(1_500)

    story.chapter("2. A crash before the bindings are durable: they are forgotten, and read again.")
    story.produce("a", "apricot")
    story.life(2_500, "tick.land.before")
    story.produce("b", "blueberry")
    story.life(3_500)

    story.chapter("3. A crash after they are durable: the records have their time for good.")
    story.produce("a", "almond")
    story.life(4_500, "tick.publish.after")
    story.produce("b", "blackberry")
    story.life(5_500)

    story.chapter("4. The clock goes back. Time does not.")
    story.produce("a", "acerola")
    story.life(1_500)
    story.life(6_500)

    times = story.seen
    good = not story.moved and len(times) == story.produced
    good = good and times["almond"] < times["blackberry"] and times["apricot"] == times["blueberry"]
    story.chapter("Verdict")
    story.say(f"  {story.produced} records produced, {len(times)} published, 2 crashes")
    story.say(f"  records lost, repeated or moved in time: {len(story.moved)}")
    story.say("  every promise held" if good else "  A PROMISE WAS BROKEN", "32" if good else "31")
    return 0 if good else 1


def main() -> int:
    """Tell the story, or, called by it, live one life."""
    if len(sys.argv) == 3:
        return live(Path(sys.argv[1]), int(sys.argv[2]))
    with tempfile.TemporaryDirectory(prefix="reclock-replay-") as home:
        return tell(Path(home))


if __name__ == "__main__":
    sys.exit(main())
