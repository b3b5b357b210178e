"""A clone in an empty folder, and only what the README says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\| `(make [a-z-]+)` \|", README, re.MULTILINE)


def bare() -> dict[str, str]:
    """Return an environment that knows nothing of this one."""
    hidden = ("PYTHON", "VIRTUAL_ENV", "RECLOCK", "MAKE", "MFLAGS", "PYTEST", "COV")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}


def test_the_readme_begins_with_commands_that_are_there() -> None:
    assert COMMANDS == ["make demo", "make test"]
    for command in COMMANDS:
        subprocess.run([*command.split(), "--dry-run"], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.slow(seconds=180)
@pytest.mark.kafka
def test_a_fresh_clone_does_what_the_readme_says(tmp_path: Path) -> None:
    clone = tmp_path / "reclock"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    env = {**bare(), "PYTHON": sys.executable}
    shown = subprocess.run(
        ["make", "demo"], cwd=clone, env=env, check=True, stdout=subprocess.PIPE, text=True
    )
    assert "duplicates 0, lost 0, wrong balances 0" in shown.stdout
    reclock = str(clone / ".venv" / "bin" / "reclock")
    subprocess.run([reclock, "init"], cwd=tmp_path, env=env, check=True)
    with subprocess.Popen(
        [reclock, "run", "pipeline.sql"], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "event=tick state=running" in line:
                break
        process.send_signal(signal.SIGINT)
        process.stderr.read()
    assert process.returncode == 0
    asked = subprocess.run(
        [reclock, "sql", "-c", "SELECT total FROM total"],
        cwd=tmp_path, env=env, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert "     0\n" in asked.stdout
    tests = [str(clone / ".venv" / "bin" / "pytest"), "-q", "tests/time"]  # `make test` runs all
    subprocess.run(tests, cwd=clone, env=env, check=True)
