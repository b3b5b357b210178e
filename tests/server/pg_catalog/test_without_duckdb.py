"""The engine needs no DuckDB: without it, only queries over PostgreSQL's catalog are refused."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
sys.modules["duckdb"] = None
import reclock
with reclock.open(sys.argv[1], clock=reclock.ManualClock(1_000), background=False) as db:
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    print(db.execute("SELECT a FROM t").rows)
    for query in ("SELECT relname FROM pg_class", "SELECT * FROM information_schema.tables"):
        try:
            db.execute(query)
        except reclock.Error as error:
            print(error.code, error.hint)
"""


def test_a_database_without_duckdb(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    refused = "0A000 pip install 'reclock[server]'"
    assert done.stdout.splitlines() == ["[(1,)]", refused, refused], done.stderr


def test_the_hint_is_true() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = "duckdb>=1.3"
    assert needed in project["optional-dependencies"]["server"]
    assert needed not in project["dependencies"]
    assert "reclock[server]" in (ROOT / "docs" / "server.md").read_text(encoding="utf-8")


def test_duckdb_is_loaded_when_it_is_asked(tmp_path: Path) -> None:
    program = PROGRAM.replace('sys.modules["duckdb"] = None', "").partition("    for query")[0]
    program += '    print("duckdb" in sys.modules)\n'
    program += '    db.execute("SELECT relname FROM pg_class")\n'
    program += '    print("duckdb" in sys.modules)\n'
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["[(1,)]", "False", "True"], done.stderr
