"""The tutorial runs as a reader would run it: commands, statements, a real Kafka, a kill -9.

The outputs of commands are compared; those of statements are in tests/test_sql_blocks.py. Ports and
directories are the test's own, and timestamps in the pages stand for those that the commands print.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from documents import Part, statements

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial"
BLOCK = re.compile(r"^```(console|sql)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOMENT = re.compile(r"\b\d{13}\b")
FILE = "-- pipeline.sql\n"
DOCUMENTED = "localhost:9092"
SECONDS = 240

pytestmark = [pytest.mark.slow(seconds=150), pytest.mark.kafka]


class Reader:
    """Runs the blocks of the tutorial in a directory of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.log = home / "run.log"
        self.kafka = ["--dir", str(home / "kafka")]
        self.address = DOCUMENTED
        self.moments: dict[str, str] = {}
        self.engine: subprocess.Popen[bytes] | None = None
        environment = os.environ | {"COLUMNS": "100", "PYTHONUNBUFFERED": "1"}
        self.environment = {k: v for k, v in environment.items() if not k.startswith("RECLOCK_")}

    def do(self, kind: str, text: str) -> None:
        if kind == "console":
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                self.command(command, shown)
        elif text.startswith(FILE):
            with (self.home / "pipeline.sql").open("a", encoding="utf-8") as file:
                file.write(text.replace(DOCUMENTED, self.address))
        else:
            given = statements(Part("sql", "", text, 1))
            ending = [one for one in given if not one.text.startswith("SUBSCRIBE")]
            if ending:
                self.say("; ".join(one.text for one in ending), text)

    def command(self, command: str, shown: str) -> None:
        match command.split():
            case ["reclock", "run", *_]:
                self.start()
            case ["kill", "-9", *_]:
                self.end(signal.SIGKILL)
            case ["reclock", "dev", "kafka", "start"]:
                self.address = self.run(f"{command} --port 0").splitlines()[-1]
            case _:
                self.expect(command, shown)

    def start(self) -> None:
        """Start the engine in the background, in place of one that runs; wait until it listens."""
        self.end(signal.SIGINT)
        command = [sys.executable, "-m", "reclock", "run", "pipeline.sql"]
        ports = ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        with self.log.open("wb") as log:
            self.engine = subprocess.Popen(
                [*command, *ports], cwd=self.home, env=self.environment, stderr=log
            )
        until = time.monotonic() + SECONDS
        while "event=listening" not in (said := self.log.read_text(encoding="utf-8")):
            assert self.engine.poll() is None, said
            assert time.monotonic() < until, said
            time.sleep(0.2)

    def end(self, number: signal.Signals) -> None:
        if self.engine is not None:
            self.engine.send_signal(number)
            self.engine.wait(SECONDS)
            self.engine = None

    def expect(self, command: str, shown: str) -> None:
        """Run a command until it prints what the page shows: an order takes a moment to arrive."""
        until = time.monotonic() + SECONDS
        shown = shown.replace(DOCUMENTED, self.address)
        while (printed := self.run(command)) != shown:
            assert "produce" not in command, printed
            assert time.monotonic() < until, f"{command}\n{printed}"
            time.sleep(0.5)

    def say(self, text: str, shown: str) -> None:
        """Run statements in the shell, with the moments that it has printed before."""
        for documented, moment in self.moments.items():
            text = text.replace(documented, moment)
        (self.home / "statements.sql").write_text(text, encoding="utf-8")
        printed = self.run("reclock sql -f statements.sql")
        if "mz_now()" in text:
            self.moments[MOMENT.findall(shown)[0]] = MOMENT.findall(printed)[0]

    def run(self, command: str) -> str:
        kafka = re.sub(r"(reclock dev kafka \w+)", rf"\1 {' '.join(self.kafka)}", command)
        done = subprocess.run(
            ["bash", "-c", kafka.replace("reclock ", f"{sys.executable} -m reclock ")],
            cwd=self.home, env=self.environment, capture_output=True, text=True, check=False,
            timeout=SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        written = [line for line in done.stderr.splitlines() if "written to" in line]
        return "".join(f"{line}\n" for line in [*done.stdout.splitlines(), *written])


def test_the_tutorial_runs(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    try:
        for page in sorted(TUTORIAL.glob("*.md")):
            for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
                reader.do(kind, text)
    finally:
        reader.end(signal.SIGKILL)
        reader.run("reclock dev kafka stop")
